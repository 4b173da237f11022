//! Kernel arguments of a host: its kernel started once more by kexec, with more arguments. Nothing of it is on a disk, so
//! that whatever starts the machine the next time starts it as ever.

use wb_agent::{Worker, WorkerError};
use wb_model::Bytes;

/// What stands in a kernel's command line before the arguments that we added. A kernel passes over words with a dot whose
/// module it does not have.
const ADDED_ARGUMENTS_MARKER: &str = "weighbridge.added";
/// Where a kernel's command line is read.
pub const COMMAND_LINE: &str = "/proc/cmdline";
/// The longest that one may be; no architecture takes more.
const MAX_COMMAND_LINE: Bytes = Bytes(64 << 10);

/// Reboots by whatever starts the machine.
const REBOOT_SCRIPT: &str = "systemctl reboot || reboot";
/// Finds kexec, and the files of the running kernel where distributions have kernels and initrds.
const FIND: &str = r#"
command -v kexec >/dev/null || { echo "there is no program \`kexec\` (Debian's package kexec-tools)" >&2; exit 1; }
release=$(uname -r)
for kernel in "/boot/vmlinuz-$release" "/usr/lib/modules/$release/vmlinuz" ""; do [ ! -e "$kernel" ] || break; done
for initrd in "/boot/initrd.img-$release" "/boot/initramfs-$release.img" "/boot/initrd-$release" ""; do
    [ ! -e "$initrd" ] || break
done
[ -n "$kernel" ] || { echo "the running kernel $release is not in /boot" >&2; exit 1; }
"#;
/// Starts that kernel once more, with the command line `$1`.
const KEXEC: &str = r#"
kexec -a -l "$kernel" ${initrd:+--initrd="$initrd"} --append="$1" >&2 || exit 1
systemctl kexec || { sync; kexec -e; }
"#;

/// How a machine's kernel is started next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Boot {
    /// By whatever starts the machine.
    Default,
    /// The running kernel once more, with this command line.
    Kexec(String),
}

impl Boot {
    /// The words of the command that asks for it.
    pub(crate) fn command(&self) -> Vec<String> {
        let (script, line) = match self {
            Self::Default => (REBOOT_SCRIPT.to_owned(), ""),
            Self::Kexec(line) => (format!("{FIND}{KEXEC}"), line.as_str()),
        };
        ["sh", "-c", &script, "sh", line].map(str::to_owned).into()
    }

    /// The words of the command that says whether it can be asked for, and changes nothing.
    pub(crate) fn check_command(&self) -> Vec<String> {
        let script = match self {
            Self::Default => "command -v systemctl >/dev/null || command -v reboot >/dev/null",
            Self::Kexec(_) => FIND,
        };
        ["sh", "-c", script].map(str::to_owned).into()
    }
}

/// What a running kernel was started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    own: Vec<String>,
    added: Vec<String>,
}

impl CommandLine {
    /// That of a worker's machine.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn read(worker: &Worker) -> Result<Self, WorkerError> {
        Ok(Self::parse(&String::from_utf8_lossy(&worker.get(COMMAND_LINE, MAX_COMMAND_LINE).await?)))
    }

    /// That of this machine.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn local() -> std::io::Result<Self> {
        Ok(Self::parse(&std::fs::read_to_string(COMMAND_LINE)?))
    }

    fn parse(text: &str) -> Self {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        match words.iter().position(|word| word == ADDED_ARGUMENTS_MARKER) {
            None => Self { own: words, added: Vec::new() },
            Some(at) => Self { own: words[..at].to_vec(), added: words[at + 1..].to_vec() },
        }
    }

    /// Whether it is what such a start makes of it.
    pub(crate) fn matches_boot(&self, boot: &Boot) -> bool {
        match boot {
            Boot::Default => self.added.is_empty(),
            Boot::Kexec(line) => *self == Self::parse(line),
        }
    }

    /// What we added; nothing where it was started as ever.
    pub fn added(&self) -> &[String] {
        &self.added
    }

    /// The start that it takes until the kernel has just these arguments more than its own; none where it has them.
    pub fn required_boot(&self, wanted: &[String]) -> Option<Boot> {
        let missing: Vec<&str> = wanted.iter().filter(|word| !self.own.contains(word)).map(String::as_str).collect();
        if missing == self.added {
            return None;
        }
        if missing.is_empty() {
            return Some(Boot::Default);
        }
        // A boot loader's note of where it found the kernel is no argument.
        let own = self.own.iter().map(String::as_str).filter(|word| !word.starts_with("BOOT_IMAGE="));
        Some(Boot::Kexec(own.chain([ADDED_ARGUMENTS_MARKER]).chain(missing).collect::<Vec<_>>().join(" ")))
    }
}

/// What is wrong with a kernel argument.
pub(crate) fn argument_error(argument: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\'' | '\\');
    let bad = argument.is_empty() || argument == ADDED_ARGUMENTS_MARKER || !argument.chars().all(is_plain);
    bad.then(|| format!("`{argument}` is no kernel argument: each is one word, as `nosmt` or `hugepagesz=1G`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(line: &str, wanted: &[&str]) -> Option<Boot> {
        let wanted: Vec<String> = wanted.iter().map(|word| (*word).to_owned()).collect();
        CommandLine::parse(line).required_boot(&wanted)
    }

    fn again(line: &str) -> Option<Boot> {
        Some(Boot::Kexec(line.to_owned()))
    }

    #[test]
    fn a_kernel_is_started_once_more_with_what_it_lacks() {
        let plain = "BOOT_IMAGE=/vmlinuz root=/dev/vda1 quiet\n";
        assert_eq!(start(plain, &["nosmt", "quiet"]), again("root=/dev/vda1 quiet weighbridge.added nosmt"));
        assert_eq!(start(plain, &["quiet"]), None);
        assert_eq!(start(plain, &[]), None);
    }

    #[test]
    fn what_was_added_is_known_and_goes_with_the_next_start() {
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
