//! Defaults in the help of options, taken from the types that define them.

use clap::{Arg, Command};
use serde_json::{Map, Value};
use wb_model::HugePages;
use wb_plan::Sampling;

use super::{AB_PREFIX, CALIBRATE_PREFIX, RUN_PREFIX};

/// Adds the defaults of sampling, placement, matrices and run folders to the help of their options.
pub(super) fn show_defaults(program: Command) -> Command {
    let sampling = Sampling::default();
    let mut shared = fields(&sampling);
    shared.extend([
        ("budget".to_owned(), value(&sampling.budget(true))),
        ("huge-pages".to_owned(), value(&HugePages::default())),
    ]);
    let matrices = fields(&wb_peers_worker::PeersParams::default());
    let add = |command: Command, defaults: &Map<String, Value>| command.mut_args(|arg| with_default(arg, defaults));
    let add_folder = |command, prefix: &str| add(command, &Map::from_iter([("into".to_owned(), folder(prefix))]));
    let mut program = each_command(program, &|command| add(command, &shared));
    for (name, prefix) in [("run", RUN_PREFIX), ("ab", AB_PREFIX), ("calibrate", CALIBRATE_PREFIX)] {
        program = change_subcommand(program, name, |command| add_folder(command, prefix));
    }
    change_subcommand(program, "peers", |peers| {
        change_subcommand(peers, "run", |run| add_folder(add(run, &matrices), RUN_PREFIX))
    })
}

/// The form of the name of a new run folder.
fn folder(prefix: &str) -> Value {
    format!("{prefix}-DATE-TIME").into()
}

/// Changes one subcommand. [`Command::mut_subcommand`] would move it behind the others.
pub(super) fn change_subcommand(command: Command, name: &str, change: impl Fn(Command) -> Command) -> Command {
    command.mut_subcommands(|command| if command.get_name() == name { change(command) } else { command })
}

fn each_command(command: Command, change: &dyn Fn(Command) -> Command) -> Command {
    change(command).mut_subcommands(|command| each_command(command, change))
}

fn fields(values: &impl serde::Serialize) -> Map<String, Value> {
    match value(values) {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn value(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).expect("plain data has a JSON form")
}

/// Adds its default to the help of an option, if it is a number or a text.
fn with_default(arg: Arg, defaults: &Map<String, Value>) -> Arg {
    let default = match defaults.get(&arg.get_id().as_str().replace('_', "-")) {
        Some(Value::String(text)) if !text.is_empty() => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => return arg,
    };
    match arg.get_help().filter(|_| arg.get_long().is_some()) {
        Some(help) => {
            let help = format!("{help} [default: {}]", default.trim_end_matches(".0"));
            arg.help(help)
        }
        None => arg,
    }
}
