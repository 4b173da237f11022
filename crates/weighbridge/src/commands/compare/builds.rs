//! Reading builds, for every command that has some.

use std::path::Path;

use wb_compare::{Builds, Model, Read, ReadOptions, Source, Statistic};

use crate::cli::compare::BuildFlags;
use crate::console::Console;
use crate::error::Error;

/// Reads a model that knows something of the builds.
pub(super) fn model(file: &Path, builds: &Builds) -> Result<Model, Error> {
    let model = Model::read(file)?;
    if model.knows_any(builds) {
        return Ok(model);
    }
    let its = model.entries.keys().next().map_or("", String::as_str);
    let theirs = builds.rows().next().map(|row| builds.id(row, Statistic::Mean).to_string()).unwrap_or_default();
    Err(Error::Usage {
        what: format!("{} knows no check of the builds", file.display()),
        help: format!("it knows `{its}`, they have `{theirs}`"),
    })
}

/// Reads builds as they were typed; tells what was odd.
pub(super) fn read(typed: &[String], flags: &BuildFlags, console: &Console) -> Result<Builds, Error> {
    Ok(read_and_note(typed, flags, console)?.builds)
}

/// The same, and keeps what was odd.
pub(super) fn read_and_note(typed: &[String], flags: &BuildFlags, console: &Console) -> Result<Read, Error> {
    let mut sources = typed.iter().map(|text| Source::parse(text)).collect::<Result<Vec<_>, _>>()?;
    if let Some(first) = sources.first_mut() {
        first.profiles.extend(flags.map.iter().cloned());
    }
    let options = ReadOptions { include_incorrect: flags.include_incorrect, strict: flags.strict };
    let read = wb_compare::read(&sources, &options)?;
    if !console.quiet {
        read.warnings.iter().for_each(|warning| eprintln!("note: {warning}"));
    }
    Ok(read)
}
