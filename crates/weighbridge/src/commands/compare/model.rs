//! `weighbridge model`: fits, rebases and shows models of normal values.

use wb_compare::model::noise::learn;
use wb_compare::run_perf::model::{FitMethod, fit};
use wb_compare::{AnyModel, Builds, ToleranceModel};
use wb_model::pluralize;
use wb_report::compare::{model_text, noise_text};

use super::builds::read_strictly;
use crate::cli::OutputPath;
use crate::cli::compare::{FitFlags, ModelCommand};
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{print_text, write_file};

pub(crate) fn model(command: &ModelCommand, console: &Console) -> Result<Exit, Error> {
    match command {
        ModelCommand::Show { file } => {
            print_text(&match AnyModel::read(file)? {
                AnyModel::Tolerance(model) => model_text(&model, console.stdout_style),
                AnyModel::Noise(model) => noise_text(&model, console.stdout_style),
            })?;
            Ok(Exit::Success)
        }
        ModelCommand::Fit(args) => {
            let builds = read_strictly(&args.builds, &args.fit.read, console)?;
            if args.noise {
                return fit_noise(&builds, &args.fit.output, console);
            }
            write_model(&fit(fit_method(&args.fit), args.fit.tolerance, &builds), &args.fit.output)
        }
        ModelCommand::Rebase(args) => {
            let builds = read_strictly(&args.builds, &args.fit.read, console)?;
            let AnyModel::Tolerance(model) = AnyModel::read_for(&args.model, &builds)? else {
                let what = format!("cannot rebase {}: a noise model has no level", args.model.display());
                let help = "fit it again with `weighbridge model fit --noise`".to_owned();
                return Err(Error::Usage { what, help });
            };
            let rebased = model.rebase(fit_method(&args.fit), args.fit.tolerance, &builds);
            if let (unmoved @ 1.., false) = (rebased.unchanged, console.quiet) {
                crate::console::message!("note: no values for {}: not rebased", pluralize(unmoved, "check"));
            }
            write_model(&rebased.model, &args.fit.output)
        }
    }
}

fn write_model(model: &ToleranceModel, output: &OutputPath) -> Result<Exit, Error> {
    if model.entries.is_empty() {
        return Err(no_value_error());
    }
    write_file(output, &model.to_json())?;
    crate::console::message!("model of {}: {output}", pluralize(model.entries.len(), "check"));
    Ok(Exit::Success)
}

/// Fits a noise model. The exit status is that of an incomplete result if no check has enough data.
fn fit_noise(builds: &Builds, output: &OutputPath, console: &Console) -> Result<Exit, Error> {
    let model = learn(builds);
    if model.checks.is_empty() {
        return Err(no_value_error());
    }
    write_file(output, &wb_record::files::json_text(output.as_path(), &model)?)?;
    if model.is_single_system && !console.quiet {
        crate::console::message!(
            "note: each build is a single run: all count as runs of one build, so differences between builds are noise"
        );
    }
    let unusable: Vec<String> = model.checks.values().filter_map(|noise| noise.unusable_reason()).collect();
    crate::console::message!("noise of {}: {output}", pluralize(model.checks.len(), "check"));
    if let (Some(reason), false) = (unusable.first(), console.quiet) {
        crate::console::message!("note: {} of them cannot be used yet: {reason}", unusable.len());
    }
    Ok(if unusable.len() < model.checks.len() { Exit::Success } else { Exit::Incomplete })
}

fn no_value_error() -> Error {
    Error::NothingToDo {
        what: "no values to fit a model to".to_owned(),
        help: "`weighbridge analyze` shows what each build has".to_owned(),
    }
}

fn fit_method(flags: &FitFlags) -> FitMethod {
    if flags.stddev { FitMethod::Stddev } else { FitMethod::Linear }
}
