//! Reading builds, for every command that has some.

use wb_compare::{Builds, Read, ReadOptions, Source};

use crate::cli::compare::BuildFlags;
use crate::console::Console;
use crate::error::Error;

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
