//! `ab` and `calibrate`: compare one test with variants of itself, or with itself.

mod ab;
mod calibrate;
mod criterion;
mod experiment;
mod inputs;
mod stopping_rule;

pub(crate) use ab::ab;
pub(crate) use calibrate::calibrate;
pub(crate) use experiment::read_experiment;

use std::path::Path;

use wb_compare::experiment::Experiment;
use wb_record::RunFolder;

use super::{print_json, print_text};
use crate::cli::variants::SingleTestFlags;
use crate::console::Console;
use crate::error::Error;

/// Writes the result to the run folder and prints it.
fn save_and_print(
    experiment: &Experiment,
    folder: &Path,
    one: &SingleTestFlags,
    console: &Console,
) -> Result<(), Error> {
    experiment::write_experiment(&RunFolder::open(folder)?, experiment)?;
    match (one.json, experiment) {
        (true, Experiment::Variants(result)) => print_json(result),
        (true, Experiment::Calibration(result)) => print_json(result),
        (false, _) => {
            print_text(&wb_report::compare::experiment_text(experiment, console.stdout_style))?;
            print_text(&format!("\nrun folder: {}\n", folder.display()))
        }
    }
}
