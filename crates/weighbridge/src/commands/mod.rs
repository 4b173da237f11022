//! What each command does.

mod doctor;
mod exec;
mod list;
mod plan;
mod read;
mod report;
mod run;
mod schema;
mod what;

pub(crate) use run::lasting;

use clap::CommandFactory;

use crate::cli::{Cli, Command};
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;

/// Carries out a command.
pub(crate) fn carry_out(command: Command, console: &Console) -> Result<Exit, Error> {
    match command {
        Command::Run(args) => run::run(*args, console),
        Command::Plan(args) => plan::plan(&args, console),
        Command::List(args) => list::list(&args, console),
        Command::Summary(args) => read::summary(&args, console),
        Command::Format(args) => read::format(&args, console),
        Command::Study(args) => read::study(&args, console),
        Command::Solve(args) => read::solve(&args, console),
        Command::Report(args) => report::report(&args, console),
        Command::Doctor(args) => doctor::doctor(&args, console),
        Command::Schema { name } => schema::schema(name.as_deref()),
        Command::Exec { kernel, config } => exec::exec(kernel, &config),
        Command::Agent => exec::agent(),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "weighbridge", &mut std::io::stdout());
            Ok(Exit::Fine)
        }
        Command::Man => man(),
    }
}

fn man() -> Result<Exit, Error> {
    let stdout = |source| Error::File { path: "standard output".to_owned(), source };
    clap_mangen::Man::new(Cli::command()).render(&mut std::io::stdout()).map_err(stdout)?;
    for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
        let name = format!("weighbridge {}", command.get_name());
        let man = clap_mangen::Man::new(command.clone().display_name(name));
        man.render_name_section(&mut std::io::stdout()).map_err(stdout)?;
        man.render_description_section(&mut std::io::stdout()).map_err(stdout)?;
        man.render_options_section(&mut std::io::stdout()).map_err(stdout)?;
    }
    Ok(Exit::Fine)
}

/// Prints a value as JSON.
fn print_json(value: &impl serde::Serialize) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Error::Kernel(error.to_string()))?;
    print_text(&format!("{text}\n"))
}

/// Prints text; a reader that has gone away (`| head`) is no error.
fn print_text(text: &str) -> Result<(), Error> {
    use std::io::Write;
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(source) if source.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::File { path: "standard output".to_owned(), source })
        }
        _ => Ok(()),
    }
}

/// Writes a file of the user's whole.
fn write_file(path: &std::path::Path, text: &str) -> Result<(), Error> {
    Ok(wb_record::files::write_whole(path, text.as_bytes())?)
}

/// The control path's runtime: one thread.
fn runtime() -> Result<tokio::runtime::Runtime, Error> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Error::File { path: "tokio".to_owned(), source })
}

/// This program's file.
fn this_program() -> Result<std::path::PathBuf, Error> {
    std::env::current_exe().map_err(|source| Error::File { path: "this program".to_owned(), source })
}
