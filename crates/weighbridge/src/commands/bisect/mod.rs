//! `weighbridge bisect`: which change made the difference, by the end that each revision is most like.

mod child;
mod drive;
mod git;
mod state;
mod step;

pub(crate) use state::{About, Step};

use step::{Standing, standing_name, told};

use super::{print_json, print_text};
use crate::cli::bisect::{BisectCommand, ShowArgs, StepArgs};
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;
use state::Folder;

/// Carries out what was asked of it.
pub(crate) fn bisect(command: &BisectCommand, console: &Console) -> Result<Exit, Error> {
    match command {
        BisectCommand::Run(args) => drive::run(args, console),
        BisectCommand::Step(args) => step(args, console),
        BisectCommand::Show(args) => show(args),
    }
}

/// One step. Whatever is wrong with the bisection itself has to end it: an exit status of 1 would be taken for `bad`.
fn step(args: &StepArgs, console: &Console) -> Result<Exit, Error> {
    const ABORT: u8 = 128;
    let step = || {
        let folder = Folder::new(&args.into)?;
        let about = folder.about()?;
        let name = match &args.name {
            Some(name) => name.clone(),
            None => {
                // What was measured of a revision is not what stands now.
                git::Git(&about.repo).require_clean()?;
                standing_name(&about)?
            }
        };
        Standing { folder: &folder, about: &about, name: &name }.step(console)
    };
    match step() {
        Ok(taken) => Ok(Exit::Index(taken.status())),
        Err(error) => {
            error.tell(console);
            Ok(Exit::Index(ABORT))
        }
    }
}

/// All that a bisection is about and has measured.
#[derive(Debug, serde::Serialize, schemars::JsonSchema)]
pub(crate) struct Bisection {
    /// What it is about.
    about: About,
    /// Every step, in order.
    steps: Vec<Step>,
    /// The first bad revision, once it is found.
    first_bad: Option<String>,
}

fn show(args: &ShowArgs) -> Result<Exit, Error> {
    let folder = Folder::new(&args.into)?;
    let first_bad = std::fs::read_to_string(folder.first_bad()).ok().map(|text| text.trim().to_owned());
    let bisection = Bisection { about: folder.about()?, steps: folder.steps()?, first_bad };
    if args.json {
        print_json(&bisection)?;
        return Ok(Exit::Fine);
    }
    let git = git::Git(&bisection.about.repo);
    let ends = [("good", &bisection.about.good), ("bad", &bisection.about.bad)];
    let ends: String = ends.map(|(side, end)| format!("{side}: {}\n", git.about(&end.revision))).concat();
    let line = |step: &Step| format!("{}  {}\n", git.about(&step.name), told(&step.found));
    let found = bisection.first_bad.as_ref().map(|revision| format!("first bad: {}\n", git.about(revision)));
    let steps: String = bisection.steps.iter().map(line).collect();
    print_text(&format!("{ends}{steps}{}", found.unwrap_or_default()))?;
    Ok(Exit::Fine)
}
