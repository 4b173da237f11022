//! `weighbridge bisect`: which change made the difference, by the end that each revision is most like.

mod child_process;
mod driver;
mod git;
mod state;
mod step;

pub(crate) use state::{BisectionConfig, BisectionStep};

use step::{CheckedOutRevision, describe_verdict, head_revision};

use super::{print_json, print_text};
use crate::cli::bisect::{BisectCommand, BisectShowArgs, BisectStepArgs};
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;
use state::BisectionFolder;

/// Carries out what was asked of it.
pub(crate) fn bisect(command: &BisectCommand, console: &Console) -> Result<Exit, Error> {
    match command {
        BisectCommand::Run(args) => driver::run(args, console),
        BisectCommand::Step(args) => run_step(args, console),
        BisectCommand::Show(args) => show(args),
    }
}

/// One step. Whatever is wrong with the bisection itself has to end it: an exit status of 1 would be taken for `bad`.
fn run_step(args: &BisectStepArgs, console: &Console) -> Result<Exit, Error> {
    const ABORT: u8 = 128;
    let step = || {
        let folder = BisectionFolder::new(&args.into)?;
        let about = folder.read_config()?;
        let name = match &args.name {
            Some(name) => name.clone(),
            None => {
                // What was measured of a revision is not what stands now.
                git::Git(&about.repo).require_clean()?;
                head_revision(&about)?
            }
        };
        CheckedOutRevision { folder: &folder, config: &about, name: &name }.run_step(console)
    };
    match step() {
        Ok(taken) => Ok(Exit::Code(taken.exit_code())),
        Err(error) => {
            error.report(console);
            Ok(Exit::Code(ABORT))
        }
    }
}

/// All that a bisection is about and has measured.
#[derive(Debug, serde::Serialize, schemars::JsonSchema)]
pub(crate) struct BisectionReport {
    /// What it is about.
    config: BisectionConfig,
    /// Every step, in order.
    steps: Vec<BisectionStep>,
    /// The first bad revision, once it is found.
    first_bad: Option<String>,
}

fn show(args: &BisectShowArgs) -> Result<Exit, Error> {
    let folder = BisectionFolder::new(&args.into)?;
    let first_bad = std::fs::read_to_string(folder.first_bad_path()).ok().map(|text| text.trim().to_owned());
    let bisection = BisectionReport { config: folder.read_config()?, steps: folder.read_steps()?, first_bad };
    if args.json {
        print_json(&bisection)?;
        return Ok(Exit::Success);
    }
    let git = git::Git(&bisection.config.repo);
    let ends = [("good", &bisection.config.good), ("bad", &bisection.config.bad)];
    let ends: String = ends.map(|(side, end)| format!("{side}: {}\n", git.describe_revision(&end.revision))).concat();
    let line =
        |step: &BisectionStep| format!("{}  {}\n", git.describe_revision(&step.name), describe_verdict(&step.verdict));
    let found =
        bisection.first_bad.as_ref().map(|revision| format!("first bad: {}\n", git.describe_revision(revision)));
    let steps: String = bisection.steps.iter().map(line).collect();
    print_text(&format!("{ends}{steps}{}", found.unwrap_or_default()))?;
    Ok(Exit::Success)
}
