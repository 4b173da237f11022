//! `weighbridge model`.

use wb_compare::Model;
use wb_compare::model::{Fit, fit};
use wb_report::compare::model_text;

use super::builds::{model as model_of, read};
use crate::cli::compare::{FitFlags, ModelCommand};
use crate::commands::print_text;
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;

/// Learns, moves or shows a model.
pub(crate) fn model(command: &ModelCommand, console: &Console) -> Result<Exit, Error> {
    let (model, flags) = match command {
        ModelCommand::Show { file } => {
            print_text(&model_text(&Model::read(file)?, console.out))?;
            return Ok(Exit::Fine);
        }
        ModelCommand::Fit(args) => {
            let builds = read(&args.builds, &args.how.read, console)?;
            (fit(how(&args.how), args.how.tolerance, &builds), &args.how)
        }
        ModelCommand::Rebase(args) => {
            let builds = read(&args.builds, &args.how.read, console)?;
            let model = model_of(&args.model, &builds)?;
            (model.rebase(how(&args.how), args.how.tolerance, &builds), &args.how)
        }
    };
    if model.entries.is_empty() {
        return Err(Error::Nothing {
            what: "the builds have no value that a model could be made of".to_owned(),
            help: "`weighbridge analyze` shows what each build has".to_owned(),
        });
    }
    model.write(&flags.output)?;
    eprintln!("model of {} checks: {}", model.entries.len(), flags.output.display());
    Ok(Exit::Fine)
}

fn how(flags: &FitFlags) -> Fit {
    if flags.stddev { Fit::Stddev } else { Fit::Linear }
}
