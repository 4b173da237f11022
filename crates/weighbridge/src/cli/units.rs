//! The notation of sizes and times, below the options of each command that has any.

use clap::{Arg, Command};

const NOTATIONS: [(&str, &str); 2] = [
    ("SIZE", "SIZE is a number of bytes, or one with k, m, g or t (powers of 1024): `64k`."),
    ("TIME", "TIME is a number of seconds, or one with ns, us, ms, s, min, h, d or w: `500ms`, `2h`."),
];

/// The commands with the options of other programs, and thus their notation.
const FOREIGN: [&str; 7] =
    ["uperf", "iperf3", "run-perf", "compare-perf", "analyze-perf", "diff-perf", "strip-run-perf"];

pub(super) fn describe(command: Command) -> Command {
    let command = command.mut_subcommands(describe);
    if FOREIGN.contains(&command.get_name()) {
        return command;
    }
    let has = |name: &str| command.get_arguments().any(|arg| has_value(arg, name));
    let notes = NOTATIONS.into_iter().filter(|(name, _)| has(name)).map(|(_, note)| note);
    let notes: Vec<&str> = notes.collect();
    if notes.is_empty() {
        return command;
    }
    let after = command.get_after_help().map(ToString::to_string);
    let paragraphs: Vec<String> = [notes.join("\n")].into_iter().chain(after).collect();
    command.after_long_help(paragraphs.join("\n\n"))
}

/// Whether the value of an argument, or each of several, has this name.
fn has_value(arg: &Arg, name: &str) -> bool {
    let is_named = |value: &clap::builder::Str| value.trim_end_matches(",…") == name;
    !arg.is_hide_set() && arg.get_value_names().is_some_and(|names| names.iter().any(is_named))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use wb_model::{Bytes, Nanos};

    use super::*;

    #[test]
    fn the_notations_are_those_that_are_parsed() {
        for suffix in ["", "k", "m", "g", "t"] {
            assert!(format!("2{suffix}").parse::<Bytes>().is_ok(), "{suffix}");
        }
        for suffix in ["", "ns", "us", "ms", "s", "min", "h", "d", "w"] {
            assert!(format!("2{suffix}").parse::<Nanos>().is_ok(), "{suffix}");
        }
        assert_eq!("2w".parse::<Nanos>(), "14d".parse());
    }

    #[test]
    fn notes_precede_the_exit_statuses() {
        let command = Command::new("c").arg(Arg::new("a").long("a").value_name("SIZE,…")).after_help("exit status: 0");
        let help = describe(command).get_after_long_help().unwrap().to_string();
        assert!(help.starts_with("SIZE is ") && help.ends_with("`64k`.\n\nexit status: 0"), "{help}");
        assert_eq!(describe(Command::new("c").after_help("x")).get_after_long_help(), None);
    }
}
