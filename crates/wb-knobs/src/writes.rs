//! What setting a knob writes, by the ways in which kernels take values.

use std::ops::RangeInclusive;

use wb_model::Bytes;
use wb_sys::environment::memory::selected_option;
use wb_sys::undo::{Refusal, Step};
use wb_sys::{SysError, SysRoot};

use crate::knob::Unsupported;

/// Something that is written to set a knob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnobWrite {
    /// A state: what it was is noted before, and put back.
    State {
        /// Where.
        step: Step,
        /// What it is to hold.
        state: String,
    },
    /// An action: it leaves no state, so that nothing is noted and nothing put back.
    Action(KnobAction),
}

/// What is done and over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnobAction {
    /// Everything that waits to be written is, and then what memory holds of files is dropped: as this number says to
    /// `/proc/sys/vm/drop_caches`.
    DropCaches(u8),
}

impl KnobAction {
    const DROP: &str = "/proc/sys/vm/drop_caches";

    /// Why it cannot be done here, from reading alone.
    pub(crate) fn refusal(&self, sys: &SysRoot) -> Option<Refusal> {
        match self {
            Self::DropCaches(_) => Step::setting(Self::DROP).refusal(sys),
        }
    }

    /// Does it; why that could not be, if so.
    pub(crate) fn execute(&self, sys: &SysRoot) -> Result<(), String> {
        match self {
            Self::DropCaches(what) => {
                // Only what is written already can be dropped.
                if sys.is_real() {
                    rustix::fs::sync();
                }
                let full = sys.path(Self::DROP).map_err(|error| error.to_string())?;
                std::fs::write(full, what.to_string()).map_err(|error| format!("`{}`: {error}", Self::DROP))
            }
        }
    }
}

/// What sets a knob, or why it cannot be set so.
pub type KnobWrites = Result<Vec<KnobWrite>, Unsupported>;

impl KnobWrite {
    /// Writes a value to a file of the kernel's.
    pub fn setting(path: impl Into<String>, state: impl Into<String>) -> Self {
        Self::State { step: Step::setting(path), state: state.into() }
    }
}

/// One value in one file.
pub(crate) fn setting_write(path: impl Into<String>, state: impl Into<String>) -> KnobWrites {
    Ok(vec![KnobWrite::setting(path, state)])
}

/// `on` or `off`.
pub(crate) fn parse_switch(wanted: &str) -> Result<bool, Unsupported> {
    match wanted {
        "on" | "true" | "1" | "yes" => Ok(true),
        "off" | "false" | "0" | "no" => Ok(false),
        other => Err(Unsupported(format!("`{other}` is neither on nor off"))),
    }
}

/// `on` or `off` as 1 or 0.
pub(crate) fn switch_in(path: &str, wanted: &str) -> KnobWrites {
    setting_write(path, if parse_switch(wanted)? { "1" } else { "0" })
}

/// A whole number within what the kernel documents for a knob. Of some knobs the kernel itself takes any number.
pub(crate) fn parse_number(knob: &str, text: &str, range: RangeInclusive<i64>) -> Result<i64, Unsupported> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| invalid(knob, text, &numbers(&range)))
}

/// The numbers of a range, for people.
fn numbers(range: &RangeInclusive<i64>) -> String {
    /// Nobody means more.
    const MANY: i64 = i32::MAX as i64;
    match (*range.start(), *range.end()) {
        (first, last) if last == first + 2 => format!("{first}, {} or {last}", first + 1),
        (least, MANY..) => format!("a whole number of at least {least}"),
        (least, most) => format!("a whole number from {least} to {most}"),
    }
}

/// Why a knob does not take a value.
pub(crate) fn invalid(knob: &str, value: &str, expected: &str) -> Unsupported {
    Unsupported(format!("invalid value `{value}` for {knob}: expected {expected}"))
}

/// A whole number in a file.
pub(crate) fn number_in(path: impl Into<String>, knob: &str, text: &str, range: RangeInclusive<i64>) -> KnobWrites {
    setting_write(path, parse_number(knob, text, range)?.to_string())
}

/// A size: `4m`, `128 KiB`.
pub(crate) fn parse_size(wanted: &str) -> Result<Bytes, Unsupported> {
    let plain = wanted.replace([' '], "").to_ascii_lowercase().replace("ib", "");
    plain.parse().map_err(|_| Unsupported(format!("`{wanted}` is no size: write 128k, 4m, 1g")))
}

/// One of those that a file lists: `always [madvise] never`, or another file.
pub(crate) fn choice(sys: &SysRoot, path: &str, listed: &str, wanted: &str) -> KnobWrites {
    let text = match sys.text(listed) {
        // Where nothing says what there is, the kernel does when it is written.
        Err(SysError::Missing { .. }) if listed != path => return setting_write(path, wanted),
        other => other?,
    };
    let known: Vec<&str> = text.split_whitespace().map(selected_option).collect();
    match known.contains(&wanted) {
        true => setting_write(path, wanted),
        false => Err(Unsupported(format!("`{wanted}` is not among {}", known.join(", ")))),
    }
}

/// What a shell does with arguments.
pub(crate) fn shell(script: &str, arguments: &[&str]) -> Vec<String> {
    ["sh", "-c", script, "sh"].iter().chain(arguments).map(|word| (*word).to_owned()).collect()
}

/// What commands set, of the running system alone, and where the program that does it is there.
pub(crate) fn command(
    sys: &SysRoot,
    name: &str,
    program_name: &str,
    [read, write]: [Vec<String>; 2],
    state: String,
) -> KnobWrites {
    require_program(sys, program_name)?;
    Ok(vec![KnobWrite::State { step: Step::Command { name: name.to_owned(), read, write }, state }])
}

/// A program that is asked of the running system, where it is there.
pub(crate) fn require_program<'a>(sys: &SysRoot, name: &'a str) -> Result<&'a str, Unsupported> {
    if !sys.is_real() {
        return Err(Unsupported(format!("`{name}` is asked of running systems alone")));
    }
    let path = std::env::var("PATH").unwrap_or_default();
    match path.split(':').chain(["/usr/sbin", "/sbin"]).any(|folder| sys.exists(format!("{folder}/{name}"))) {
        true => Ok(name),
        false => Err(Unsupported(format!("there is no program `{name}`"))),
    }
}

#[cfg(test)]
mod tests {
    use wb_sys::fake_root::FakeRoot;

    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [("128k", 128 << 10), ("4 MiB", 4 << 20), ("512", 512), ("0", 0)] {
            assert_eq!(parse_size(text).unwrap(), Bytes(bytes), "{text}");
        }
        assert!(parse_size("much").is_err());
    }

    #[test]
    fn numbers_outside_their_range_are_refused_with_it() {
        let refusal = |text: &str, range: RangeInclusive<i64>| parse_number("x", text, range).unwrap_err().0;
        assert_eq!(parse_number("x", "2", 0..=2), Ok(2));
        assert_eq!(refusal("3", 0..=2), "invalid value `3` for x: expected 0, 1 or 2");
        assert_eq!(refusal("-2", -1..=4), "invalid value `-2` for x: expected a whole number from -1 to 4");
        assert_eq!(refusal("few", 4..=i64::MAX), "invalid value `few` for x: expected a whole number of at least 4");
    }

    #[test]
    fn only_what_is_listed_can_be_chosen() {
        let made = FakeRoot::new().file("/x", "none [mq-deadline] kyber");
        let sys = made.root();
        assert_eq!(choice(&sys, "/x", "/x", "mq-deadline").unwrap(), [KnobWrite::setting("/x", "mq-deadline")]);
        let told = choice(&sys, "/x", "/x", "bfq").unwrap_err().0;
        assert_eq!(told, "`bfq` is not among none, mq-deadline, kyber");
    }
}
