//! Sequences of contention benches: `run` and `plan` with benches as arguments, reading commands with `-r`, and `merge`.

mod committed;
mod deps;
mod merge;
mod read;
mod render;
mod request;
mod run;
mod sequence_file;

pub(crate) use committed::{CommittedParameters, ParametersSearch};
pub(crate) use deps::deps;
pub(crate) use merge::merge;
pub(crate) use read::{BenchSelection, ReadTarget, unselected_folders};
pub(crate) use run::{plan_sequence, run_sequence};
pub(crate) use sequence_file::with_files;

use wb_diagnostics::suggest;
use wb_plan::Catalog;
use wb_results::contention::Bench;
use wb_session::EventSink;
use wb_session::definitions::registry_for;

use crate::cli::MeasurementFlags;
use crate::cli::contention::SequenceFlags;
use crate::error::Error;

/// Whether the arguments of `run` and `plan` are contention benches. Fails if some are, and others are tests.
pub(crate) fn is_sequence(words: &[String]) -> Result<bool, Error> {
    let benches = words.iter().filter(|word| Bench::is_named_by(word)).count();
    match words.iter().find(|word| !Bench::is_named_by(word)) {
        Some(test) if benches > 0 => Err(Error::Usage {
            what: format!("cannot run contention benches and the test `{test}` in one run"),
            help: "a sequence of benches takes its stages in order, and samples no cells: use two commands".to_owned(),
        }),
        _ => Ok(benches > 0),
    }
}

/// Refuses names that are neither tests nor benches but resemble a bench.
pub(crate) fn refuse_misspelled(what: &MeasurementFlags, events: &EventSink) -> Result<(), Error> {
    let names = Bench::ALL.map(Bench::name);
    // A plan may bring tests of its own.
    let words = what.tests.iter().filter(|_| what.plan.is_none());
    for name in words.filter_map(|word| word.split(':').next()) {
        let Some(suggestion) = suggest(name, names) else { continue };
        if registry_for(&[name], &what.tests_d, None, events)?.declaration(name).is_none() {
            return Err(Error::Usage {
                what: format!("unknown test or contention bench `{name}`"),
                help: format!("{suggestion} benches: {}; `weighbridge list` shows the tests", names.join(", ")),
            });
        }
    }
    Ok(())
}

/// Refuses options of contention benches for tests.
pub(crate) fn refuse_sequence_flags(flags: &SequenceFlags) -> Result<(), Error> {
    match flags.first_given() {
        None => Ok(()),
        Some(flag) => Err(Error::Usage {
            what: format!("{flag} has no effect on tests"),
            help: format!("it is an option of contention benches: {}", Bench::ALL.map(Bench::name).join(", ")),
        }),
    }
}
