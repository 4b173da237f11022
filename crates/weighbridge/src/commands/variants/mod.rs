//! One test against variants of itself, or against itself: `ab` and `calibrate`.

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

/// Keeps what came of it in the run folder, and prints it.
fn save_and_print(held: &Experiment, folder: &Path, one: &SingleTestFlags, console: &Console) -> Result<(), Error> {
    experiment::write_experiment(&RunFolder::open(folder)?, held)?;
    match (one.json, held) {
        (true, Experiment::Variants(told)) => print_json(told),
        (true, Experiment::Calibration(told)) => print_json(told),
        (false, _) => {
            print_text(&wb_report::compare::experiment_text(held, console.stdout_style))?;
            print_text(&format!("\nrun folder: {}\n", folder.display()))
        }
    }
}
