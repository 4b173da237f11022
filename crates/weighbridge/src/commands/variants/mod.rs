//! One test against variants of itself, or against itself: `ab` and `calibrate`.

mod ab;
mod calibrate;
mod kept;
mod measured;
mod question;
mod referee;

pub(crate) use ab::ab;
pub(crate) use calibrate::calibrate;
pub(crate) use kept::held;

use std::path::Path;

use wb_compare::variants::Held;
use wb_record::RunFolder;

use super::{print_json, print_text};
use crate::cli::variants::One;
use crate::console::Console;
use crate::error::Error;

/// Keeps what came of it in the run folder, and prints it.
fn tell(held: &Held, folder: &Path, one: &One, console: &Console) -> Result<(), Error> {
    kept::keep(&RunFolder::open(folder)?, held)?;
    match (one.json, held) {
        (true, Held::Variants(told)) => print_json(told),
        (true, Held::Calibrated(told)) => print_json(told),
        (false, _) => {
            print_text(&wb_report::compare::held_text(held, console.out))?;
            print_text(&format!("\nrun folder: {}\n", folder.display()))
        }
    }
}
