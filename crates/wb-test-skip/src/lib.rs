//! Skips of tests that lack what they need on a machine: a privilege, a program, a feature of the kernel.
//!
//! Start with [`skip!`].

#![forbid(unsafe_code)]

use std::fmt::Arguments;

/// The variable that allows skips; `scripts/test` sets it, and totals them.
const ALLOW: &str = "WEIGHBRIDGE_ALLOW_SKIPS";

/// Says loudly what is not tested and why, given as for `format!`. A test that is run by hand fails instead: it would
/// pass without having tested anything.
///
/// # Panics
/// If skips are not allowed.
#[macro_export]
macro_rules! skip {
    ($($reason:tt)*) => {
        $crate::report_skip(::std::format_args!($($reason)*))
    };
}

/// See [`skip!`].
///
/// # Panics
/// If skips are not allowed.
pub fn report_skip(reason: Arguments<'_>) {
    let is_allowed = std::env::var_os(ALLOW).is_some_and(|value| value == "1");
    assert!(is_allowed, "this cannot be tested here: {reason} ({ALLOW}=1 skips it)");
    println!("SKIPPED: {reason}");
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    /// Set by the test below.
    const REQUESTED: &str = "WEIGHBRIDGE_TEST_OF_SKIPS";

    #[test]
    fn skips_if_requested() {
        if std::env::var_os(REQUESTED).is_some() {
            skip!("no {}", "means");
        }
    }

    #[test]
    fn a_skip_fails_unless_it_is_allowed() {
        let run = |allowed: Option<&str>| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", "--show-output", "tests::skips_if_requested"]);
            command.env(REQUESTED, "1").env_remove(super::ALLOW).envs(allowed.map(|value| (super::ALLOW, value)));
            let output = command.output().unwrap();
            (output.status.success(), String::from_utf8(output.stdout).unwrap())
        };
        for refused in [None, Some(""), Some("0")] {
            let (is_passed, text) = run(refused);
            let reason = "this cannot be tested here: no means (WEIGHBRIDGE_ALLOW_SKIPS=1 skips it)";
            assert!(!is_passed && text.contains(reason), "{text}");
        }
        let (is_passed, text) = run(Some("1"));
        assert!(is_passed && text.contains("SKIPPED: no means\n"), "{text}");
    }
}
