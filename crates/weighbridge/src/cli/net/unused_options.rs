//! Options of the presets that some of them do not use: hidden from their help, and refused.

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

use crate::cli::UsageError;

/// The presets with the ids of the shared options that they do not use.
const UNUSED: [(&str, &[&str]); 7] = [
    ("stream", &["response_size"]),
    ("maerts", &["response_size"]),
    ("bidirec", &["response_size"]),
    ("rr", &["gso"]),
    ("crr", &["gso", "omit"]),
    ("handshakes", &["gso", "omit", "message_sizes", "response_size"]),
    ("udp-rr", &["gso", "protocols"]),
];

pub(crate) fn hide(net: Command) -> Command {
    net.mut_subcommands(|preset| match unused(preset.get_name()) {
        Some(ids) => ids.iter().fold(preset, |preset, id| preset.mut_arg(id, |arg| arg.hide(true))),
        None => preset,
    })
}

pub(crate) fn refuse(net: &ArgMatches) -> Result<(), UsageError> {
    let Some((name, matches)) = net.subcommand() else { return Ok(()) };
    let is_given = |id: &&&str| matches.value_source(id) == Some(ValueSource::CommandLine);
    match unused(name).unwrap_or_default().iter().find(is_given) {
        None => Ok(()),
        Some(id) => {
            let option = format!("--{}", id.replace('_', "-"));
            Err(UsageError {
                what: format!("{option} has no effect on `net {name}`"),
                help: format!("remove {option}. `weighbridge net {name} --help` describes all options"),
            })
        }
    }
}

fn unused(preset: &str) -> Option<&'static [&'static str]> {
    UNUSED.iter().find(|(name, _)| *name == preset).map(|(_, ids)| *ids)
}
