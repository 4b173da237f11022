mod archive;
mod bisect;
mod clean;
pub(crate) mod command_line;
mod compare;
mod contention;
mod deciding_metrics;
mod doctor;
mod exec;
mod hashd;
mod import;
mod latest_run;
mod layout;
mod list;
mod man;
mod net;
mod peers;
mod plan;
mod profile;
mod read;
mod remote;
mod replay;
mod report;
mod run;
pub(crate) mod run_perf;
pub(crate) mod schema;
mod selection;
mod tune;
mod variants;

use std::path::PathBuf;

use crate::cli::{AgentCommand, Cli, Command};
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{print_bytes, print_text};

/// Runs a command. `folder` is the run folder of `-r`.
pub(crate) fn run_command(command: Command, folder: Option<PathBuf>, console: &Console) -> Result<Exit, Error> {
    let folder = folder.as_deref();
    match command {
        Command::Run(args) => run::run(*args, folder, console),
        Command::Plan(args) => plan::plan(*args, folder, console),
        Command::List(args) => list::list(&args, console),
        Command::Peers(command) => peers::peers(&command, console),
        Command::Summary(args) => read::summary(&args, folder, console),
        Command::Format(args) => read::format(&args, folder, console),
        Command::Study(args) => read::study(&args, folder, console),
        Command::Solve(args) => read::solve(&args, folder, console),
        Command::Report(args) => report::report(&args, console),
        Command::Import(args) => import::import(*args, console),
        Command::Pack(args) => archive::pack(&args, folder, console),
        Command::Unpack(args) => archive::unpack(&args, console),
        Command::Snapshot(args) => archive::snapshot(&args, console),
        Command::Compare(args) => compare::compare(&args, console),
        Command::Ab(args) => variants::ab(&args, console),
        Command::Calibrate(args) => variants::calibrate(&args, console),
        Command::Model { command } => compare::model(&command, console),
        Command::Analyze(args) => compare::analyze(&args, console),
        Command::Nearest(args) => compare::nearest(&args, console),
        Command::Bisect { command } => bisect::bisect(&command, console),
        Command::Strip(args) => compare::strip(&args, console),
        Command::Doctor(args) => doctor::doctor(&args, console),
        Command::Tune { command } => tune::tune(&command, console),
        Command::Clean(args) => clean::clean(&args, console),
        Command::Profile { command } => profile::profile(&command, console),
        Command::Schema { name } => schema::print_schema(name),
        Command::Exec { kernel, config } => Err(exec::replace_process(kernel, &config, console)),
        Command::Hashd(args) => hashd::hashd(&args, console),
        Command::Deps(args) => contention::deps(&args, console),
        Command::Merge(args) => contention::merge(&args, folder),
        Command::RunPerf(args) => run_perf::run(&args, console),
        Command::ComparePerf(args) => run_perf::compare(&args, console),
        Command::AnalyzePerf(args) => run_perf::analyze(&args, console),
        Command::DiffPerf(args) => run_perf::diff(&args, console),
        Command::StripRunPerf(args) => run_perf::strip(&args, console),
        Command::Net { command } => net::net(*command, console),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::build_command(), "weighbridge", &mut script);
            print_bytes(&script)?;
            Ok(Exit::Success)
        }
        Command::Man { into: None } => {
            print_text(&man::render_page())?;
            Ok(Exit::Success)
        }
        Command::Man { into: Some(folder) } => {
            man::write_pages(&folder)?;
            Ok(Exit::Success)
        }
    }
}

pub(crate) fn run_agent_command(command: AgentCommand, console: &Console) -> Result<Exit, Error> {
    match command {
        AgentCommand::Agent => exec::serve_agent(),
        AgentCommand::Exec { kernel, config } => exec::exec(kernel, &config),
        AgentCommand::Images { order } => exec::run_image_order(&order),
        AgentCommand::Net { command } => net::run_workload(*command, console),
        AgentCommand::Doctor(args) => doctor::diagnose(&args, console),
        AgentCommand::Tune { command } => tune::tune_here(&command, console),
    }
}
