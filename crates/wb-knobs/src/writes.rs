//! The writes that set a knob, and parsers for its values.

use std::ops::RangeInclusive;

use wb_diagnostics::suggest;
use wb_model::Bytes;
use wb_sys::environment::memory::selected_option;
use wb_sys::undo::{ManagedResource, Refusal};
use wb_sys::{SysRoot, programs};

use crate::unsupported::Unsupported;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnobWrite {
    /// A state, whose previous value is logged and restored later.
    State { resource: ManagedResource, state: String },
    /// An action, which has no state to log or to restore.
    Action(KnobAction),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnobAction {
    /// Writes back dirty pages and drops caches, by writing this number to `/proc/sys/vm/drop_caches`.
    DropCaches(u8),
}

impl KnobAction {
    const DROP: &str = "/proc/sys/vm/drop_caches";

    /// Why it cannot be performed here, determined without writing anything.
    pub(crate) fn refusal(&self, sys: &SysRoot) -> Option<Refusal> {
        match self {
            Self::DropCaches(_) => ManagedResource::setting(Self::DROP).refusal(sys),
        }
    }

    pub(crate) fn execute(&self, sys: &SysRoot) -> Result<(), String> {
        match self {
            Self::DropCaches(what) => {
                // Dirty pages cannot be dropped.
                if sys.is_real() {
                    rustix::fs::sync();
                }
                let full = sys.path(Self::DROP).map_err(|error| error.to_string())?;
                std::fs::write(full, what.to_string()).map_err(|error| format!("`{}`: {error}", Self::DROP))
            }
        }
    }
}

pub type KnobWrites = Result<Vec<KnobWrite>, Unsupported>;

impl KnobWrite {
    pub fn setting(path: impl Into<String>, state: impl Into<String>) -> Self {
        Self::State { resource: ManagedResource::setting(path), state: state.into() }
    }
}

pub(crate) fn setting_write(path: impl Into<String>, state: impl Into<String>) -> KnobWrites {
    Ok(vec![KnobWrite::setting(path, state)])
}

pub(crate) fn parse_switch(value: &str) -> Result<bool, Unsupported> {
    match value {
        "on" | "true" | "1" | "yes" => Ok(true),
        "off" | "false" | "0" | "no" => Ok(false),
        other => Err(Unsupported(format!("invalid value `{other}`: expected on or off"))),
    }
}

/// Parses a whole number in the range that the kernel documents for a knob. The kernel itself may accept any number.
pub(crate) fn parse_number(knob: &str, text: &str, range: RangeInclusive<i64>) -> Result<i64, Unsupported> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| invalid(knob, text, &numbers(&range)))
}

fn numbers(range: &RangeInclusive<i64>) -> String {
    /// Ranges up to here or beyond are described as unlimited.
    const MANY: i64 = i32::MAX as i64;
    match (*range.start(), *range.end()) {
        (first, last) if last == first + 2 => format!("{first}, {} or {last}", first + 1),
        (least, MANY..) => format!("a whole number of at least {least}"),
        (least, most) => format!("a whole number from {least} to {most}"),
    }
}

pub(crate) fn invalid(knob: &str, value: &str, expected: &str) -> Unsupported {
    Unsupported(format!("invalid value `{value}` for {knob}: expected {expected}"))
}

pub(crate) fn number_write(path: impl Into<String>, knob: &str, text: &str, range: RangeInclusive<i64>) -> KnobWrites {
    setting_write(path, parse_number(knob, text, range)?.to_string())
}

/// Parses a size: `4m`, `128 KiB`.
pub(crate) fn parse_size(value: &str) -> Result<Bytes, Unsupported> {
    let plain = value.replace([' '], "").to_ascii_lowercase().replace("ib", "");
    plain.parse().map_err(|_| Unsupported(format!("invalid size `{value}`: expected a size such as 128k, 4m or 1g")))
}

/// The options that a file lists (`always [madvise] never`); none where there is no such file.
pub(crate) fn listed_options(sys: &SysRoot, path: &str) -> Vec<String> {
    // Without a list the kernel decides when the value is written.
    let text = sys.text(path).unwrap_or_default();
    text.split_whitespace().map(|option| selected_option(option).to_owned()).collect()
}

/// Writes one of the options that the machine offers; any value if it lists none.
pub(crate) fn choice(path: &str, offered: &[String], value: &str) -> KnobWrites {
    if !offered.is_empty() {
        check_option(value, offered)?;
    }
    setting_write(path, value)
}

pub(crate) fn check_option(value: &str, options: &[impl AsRef<str>]) -> Result<(), Unsupported> {
    let options: Vec<&str> = options.iter().map(AsRef::as_ref).collect();
    if options.contains(&value) {
        return Ok(());
    }
    let suggestion = suggest(value, &options).map(|near| format!("; {near}")).unwrap_or_default();
    Err(Unsupported(format!("invalid value `{value}`: expected one of {}{suggestion}", options.join(", "))))
}

pub(crate) fn shell(script: &str, arguments: &[&str]) -> Vec<String> {
    ["sh", "-c", script, "sh"].iter().chain(arguments).map(|word| (*word).to_owned()).collect()
}

/// A write by commands, on the running system only, and where the required program is installed.
pub(crate) fn command(
    sys: &SysRoot,
    name: &str,
    program_name: &str,
    [read, write]: [Vec<String>; 2],
    state: String,
) -> KnobWrites {
    require_program(sys, program_name)?;
    Ok(vec![KnobWrite::State { resource: ManagedResource::Command { name: name.to_owned(), read, write }, state }])
}

/// Requires a program, which is available only on the running system.
pub(crate) fn require_program<'a>(sys: &SysRoot, name: &'a str) -> Result<&'a str, Unsupported> {
    if !sys.is_real() {
        return Err(Unsupported(format!("`{name}` is used only on the running system")));
    }
    match programs::find_system(name) {
        Some(_) => Ok(name),
        None => Err(Unsupported(format!("no such program: `{name}`"))),
    }
}

#[cfg(test)]
mod tests {
    use wb_sys::fake_root::FakeRoot;

    use super::*;

    #[test]
    fn sizes_with_suffixes_and_units_are_parsed() {
        for (text, bytes) in [("128k", 128 << 10), ("4 MiB", 4 << 20), ("512", 512), ("0", 0)] {
            assert_eq!(parse_size(text).unwrap(), Bytes(bytes), "{text}");
        }
        assert!(parse_size("much").is_err());
    }

    #[test]
    fn numbers_out_of_range_are_refused_with_the_range() {
        let refusal = |text: &str, range: RangeInclusive<i64>| parse_number("x", text, range).unwrap_err().0;
        assert_eq!(parse_number("x", "2", 0..=2), Ok(2));
        assert_eq!(refusal("3", 0..=2), "invalid value `3` for x: expected 0, 1 or 2");
        assert_eq!(refusal("-2", -1..=4), "invalid value `-2` for x: expected a whole number from -1 to 4");
        assert_eq!(refusal("few", 4..=i64::MAX), "invalid value `few` for x: expected a whole number of at least 4");
    }

    #[test]
    fn only_listed_options_are_accepted() {
        let fake = FakeRoot::new().file("/x", "none [mq-deadline] kyber");
        let offered = listed_options(&fake.root(), "/x");
        assert_eq!(choice("/x", &offered, "mq-deadline").unwrap(), [KnobWrite::setting("/x", "mq-deadline")]);
        let message = |value: &str| choice("/x", &offered, value).unwrap_err().0;
        assert_eq!(message("bfq"), "invalid value `bfq`: expected one of none, mq-deadline, kyber");
        let expected =
            "invalid value `mq-dedline`: expected one of none, mq-deadline, kyber; did you mean `mq-deadline`?";
        assert_eq!(message("mq-dedline"), expected);
        let unlisted = listed_options(&fake.root(), "/y");
        assert_eq!(choice("/x", &unlisted, "bfq").unwrap(), [KnobWrite::setting("/x", "bfq")]);
    }
}
