//! `weighbridge model`.

use std::path::Path;

use wb_compare::model::noise::learn;
use wb_compare::model::{Fit, fit};
use wb_compare::{AnyModel, Builds, Model};
use wb_model::counted;
use wb_report::compare::{model_text, noise_text};

use super::builds::{model as model_of, read};
use crate::cli::compare::{FitFlags, ModelCommand};
use crate::commands::print_text;
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;

/// Learns, moves or shows a model.
pub(crate) fn model(command: &ModelCommand, console: &Console) -> Result<Exit, Error> {
    match command {
        ModelCommand::Show { file } => {
            print_text(&match AnyModel::read(file)? {
                AnyModel::Scores(model) => model_text(&model, console.out),
                AnyModel::Noise(model) => noise_text(&model, console.out),
            })?;
            Ok(Exit::Fine)
        }
        ModelCommand::Fit(args) => {
            let builds = read(&args.builds, &args.how.read, console)?;
            if args.noise {
                return noise(&builds, &args.how.output, console);
            }
            written(&fit(how(&args.how), args.how.tolerance, &builds), &args.how.output)
        }
        ModelCommand::Rebase(args) => {
            let builds = read(&args.builds, &args.how.read, console)?;
            let AnyModel::Scores(model) = model_of(&args.model, &builds)? else {
                let what = format!("{} is a model of noise, which has no level that could move", args.model.display());
                let help = "`weighbridge model fit --noise` learns it anew".to_owned();
                return Err(Error::Usage { what, help });
            };
            let rebased = model.rebase(how(&args.how), args.how.tolerance, &builds);
            if let (unmoved @ 1.., false) = (rebased.unmoved, console.quiet) {
                crate::console::tell!("note: the builds have nothing of {}: unmoved", counted(unmoved, "check"));
            }
            written(&rebased.model, &args.how.output)
        }
    }
}

fn written(model: &Model, output: &Path) -> Result<Exit, Error> {
    if model.entries.is_empty() {
        return Err(nothing());
    }
    model.write(output)?;
    crate::console::tell!("model of {}: {}", counted(model.entries.len(), "check"), output.display());
    Ok(Exit::Fine)
}

/// Learns how far runs lie apart; falls short where that is known well enough of no check.
fn noise(builds: &Builds, output: &Path, console: &Console) -> Result<Exit, Error> {
    let model = learn(builds);
    if model.checks.is_empty() {
        return Err(nothing());
    }
    model.write(output)?;
    if model.one_system && !console.quiet {
        crate::console::tell!(
            "note: each build is a single run, so all are taken for runs of one: what builds differ in is noise too"
        );
    }
    let thin: Vec<String> = model.checks.values().filter_map(|noise| noise.why_not()).collect();
    crate::console::tell!("noise of {}: {}", counted(model.checks.len(), "check"), output.display());
    if let (Some(why), false) = (thin.first(), console.quiet) {
        crate::console::tell!("note: {} of them cannot be used yet: {why}", thin.len());
    }
    Ok(if thin.len() < model.checks.len() { Exit::Fine } else { Exit::FellShort })
}

fn nothing() -> Error {
    Error::Nothing {
        what: "the builds have no value that a model could be made of".to_owned(),
        help: "`weighbridge analyze` shows what each build has".to_owned(),
    }
}

fn how(flags: &FitFlags) -> Fit {
    if flags.stddev { Fit::Stddev } else { Fit::Linear }
}
