//! Adds kernel parameters to a host by restarting its running kernel with kexec. Nothing is written to disk, so the
//! next ordinary boot starts the machine unchanged.

use wb_agent::{Worker, WorkerError};
use wb_model::Bytes;

/// Separates the original arguments on a kernel's command line from those that we added. A kernel ignores words with a
/// dot that name a module it does not have.
const ADDED_ARGUMENTS_MARKER: &str = "weighbridge.added";
pub const PROC_CMDLINE: &str = "/proc/cmdline";
/// Maximum length of a command line; no architecture accepts more.
const MAX_COMMAND_LINE: Bytes = Bytes(64 << 10);

/// Reboots through the machine's own boot loader.
const REBOOT_SCRIPT: &str = "systemctl reboot || reboot";
/// Finds kexec, and the running kernel and its initrd in the paths that distributions use.
const FIND_KERNEL_SCRIPT: &str = r#"
command -v kexec >/dev/null || { echo "no such program: \`kexec\` (Debian's package kexec-tools)" >&2; exit 1; }
release=$(uname -r)
for kernel in "/boot/vmlinuz-$release" "/usr/lib/modules/$release/vmlinuz" ""; do [ ! -e "$kernel" ] || break; done
for initrd in "/boot/initrd.img-$release" "/boot/initramfs-$release.img" "/boot/initrd-$release" ""; do
    [ ! -e "$initrd" ] || break
done
[ -n "$kernel" ] || { echo "the running kernel $release is not in /boot or /usr/lib/modules" >&2; exit 1; }
"#;
/// Restarts that kernel with the command line `$1`.
const KEXEC_SCRIPT: &str = r#"
kexec -a -l "$kernel" ${initrd:+--initrd="$initrd"} --append="$1" >&2 || exit 1
systemctl kexec || { sync; kexec -e; }
"#;

/// How a machine's kernel is started at the next reboot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Boot {
    /// The machine's own boot loader.
    Default,
    /// kexec of the running kernel with this command line.
    Kexec(String),
}

impl Boot {
    pub(crate) fn command(&self) -> Vec<String> {
        let (script, line) = match self {
            Self::Default => (REBOOT_SCRIPT.to_owned(), ""),
            Self::Kexec(line) => (format!("{FIND_KERNEL_SCRIPT}{KEXEC_SCRIPT}"), line.as_str()),
        };
        ["sh", "-c", &script, "sh", line].map(str::to_owned).into()
    }

    /// The command that checks whether the reboot is possible, without changing anything.
    pub(crate) fn check_command(&self) -> Vec<String> {
        let script = match self {
            Self::Default => "command -v systemctl >/dev/null || command -v reboot >/dev/null",
            Self::Kexec(_) => FIND_KERNEL_SCRIPT,
        };
        ["sh", "-c", script].map(str::to_owned).into()
    }
}

/// The arguments that a running kernel was started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    original: Vec<String>,
    added: Vec<String>,
}

impl CommandLine {
    pub async fn read(worker: &Worker) -> Result<Self, WorkerError> {
        Ok(Self::parse(&String::from_utf8_lossy(&worker.get(PROC_CMDLINE, MAX_COMMAND_LINE).await?)))
    }

    pub fn local() -> std::io::Result<Self> {
        Ok(Self::parse(&std::fs::read_to_string(PROC_CMDLINE)?))
    }

    fn parse(text: &str) -> Self {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        match words.iter().position(|word| word == ADDED_ARGUMENTS_MARKER) {
            None => Self { original: words, added: Vec::new() },
            Some(marker) => Self { original: words[..marker].to_vec(), added: words[marker + 1..].to_vec() },
        }
    }

    pub(crate) fn matches_boot(&self, boot: &Boot) -> bool {
        match boot {
            Boot::Default => self.added.is_empty(),
            Boot::Kexec(line) => *self == Self::parse(line),
        }
    }

    /// The arguments that we added; empty after an ordinary boot.
    pub fn added(&self) -> &[String] {
        &self.added
    }

    /// The boot required for the kernel to have exactly these added arguments; none if it already has them.
    pub fn required_boot(&self, required: &[String]) -> Option<Boot> {
        let missing: Vec<&str> =
            required.iter().filter(|word| !self.original.contains(word)).map(String::as_str).collect();
        if missing == self.added {
            return None;
        }
        if missing.is_empty() {
            return Some(Boot::Default);
        }
        // BOOT_IMAGE is added by the boot loader and is not a kernel parameter.
        let original = self.original.iter().map(String::as_str).filter(|word| !word.starts_with("BOOT_IMAGE="));
        Some(Boot::Kexec(original.chain([ADDED_ARGUMENTS_MARKER]).chain(missing).collect::<Vec<_>>().join(" ")))
    }
}

pub(crate) fn argument_error(argument: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\'' | '\\');
    let bad = argument.is_empty() || argument == ADDED_ARGUMENTS_MARKER || !argument.chars().all(is_plain);
    bad.then(|| format!("invalid kernel parameter `{argument}`: expected one word, such as `nosmt` or `hugepagesz=1G`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(line: &str, required: &[&str]) -> Option<Boot> {
        let required: Vec<String> = required.iter().map(|word| (*word).to_owned()).collect();
        CommandLine::parse(line).required_boot(&required)
    }

    fn again(line: &str) -> Option<Boot> {
        Some(Boot::Kexec(line.to_owned()))
    }

    #[test]
    fn kexec_adds_the_missing_arguments() {
        let plain = "BOOT_IMAGE=/vmlinuz root=/dev/vda1 quiet\n";
        assert_eq!(start(plain, &["nosmt", "quiet"]), again("root=/dev/vda1 quiet weighbridge.added nosmt"));
        assert_eq!(start(plain, &["quiet"]), None);
        assert_eq!(start(plain, &[]), None);
    }

    #[test]
    fn added_arguments_are_parsed_and_dropped_by_the_next_boot() {
        let added = "root=/dev/vda1 weighbridge.added nosmt";
        assert_eq!(CommandLine::parse(added).added(), ["nosmt"]);
        assert_eq!(start(added, &["nosmt"]), None);
        assert_eq!(start(added, &[]), Some(Boot::Default));
        assert_eq!(start(added, &["mitigations=off"]), again("root=/dev/vda1 weighbridge.added mitigations=off"));
        assert_eq!(start(added, &["root=/dev/vda1"]), Some(Boot::Default));
    }

    #[test]
    fn arguments_are_single_words() {
        assert!(argument_error("hugepagesz=1G").is_none() && argument_error("isolcpus=1-3,5").is_none());
        assert!(
            ["", "a b", "a\nb", "a=\"b\"", ADDED_ARGUMENTS_MARKER].into_iter().all(|bad| argument_error(bad).is_some())
        );
    }
}
