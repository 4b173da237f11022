//! Implements the commands.

mod bisect;
mod clean;
mod compare;
mod definitions;
mod doctor;
mod exec;
mod hosts;
mod import;
mod list;
mod man;
mod measure;
mod net;
mod plan;
mod profile;
mod publishing;
mod read;
mod remote;
mod report;
mod run;
pub(crate) mod run_perf;
mod schema;
mod selection;
mod tune;
mod variants;

pub(crate) use run::{format_duration, format_estimate, group_by_reason};
pub(crate) use schema::schema_names;

use crate::cli::{Cli, Command};
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;

/// Runs a command.
pub(crate) fn run_command(command: Command, console: &Console) -> Result<Exit, Error> {
    match command {
        Command::Run(args) => run::run(&args, console),
        Command::Plan(args) => plan::plan(&args, console),
        Command::List(args) => list::list(&args, console),
        Command::Summary(args) => read::summary(&args, console),
        Command::Format(args) => read::format(&args, console),
        Command::Study(args) => read::study(&args, console),
        Command::Solve(args) => read::solve(&args, console),
        Command::Report(args) => report::report(&args, console),
        Command::Import(args) => import::import(*args, console),
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
        Command::Schema { name } => schema::print_schema(name.as_deref()),
        Command::Exec { kernel, config } => exec::exec(kernel, &config),
        Command::Images { order } => exec::run_image_order(&order),
        Command::Agent => exec::serve_agent(),
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

/// Prints a value as JSON.
fn print_json(value: &impl serde::Serialize) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Error::Internal(error.to_string()))?;
    print_text(&format!("{text}\n"))
}

/// Prints text.
fn print_text(text: &str) -> Result<(), Error> {
    print_bytes(text.as_bytes())
}

/// Writes bytes to standard output; a closed pipe (`| head`) is not an error.
fn print_bytes(bytes: &[u8]) -> Result<(), Error> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(source) if source.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::File { path: "standard output".to_owned(), source })
        }
        _ => Ok(()),
    }
}

/// Writes a file requested by the user, atomically.
fn write_file(path: &std::path::Path, text: &str) -> Result<(), Error> {
    Ok(wb_record::files::write_atomic(path, text.as_bytes())?)
}

/// Creates the single-threaded runtime of the control plane.
fn runtime() -> Result<tokio::runtime::Runtime, Error> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Error::File { path: "tokio".to_owned(), source })
}

/// Path of this program's executable.
fn current_program() -> Result<std::path::PathBuf, Error> {
    std::env::current_exe().map_err(|source| Error::File { path: "this program".to_owned(), source })
}

/// SHA-256 of this program's executable.
fn current_program_hash() -> Result<String, Error> {
    let program = current_program()?;
    let hash = std::fs::File::open(&program).and_then(wb_model::Sha256::of_reader);
    let cannot_read = |source| Error::File { path: program.display().to_string(), source };
    Ok(hash.map_err(cannot_read)?.as_str().to_owned())
}
