//! `weighbridge analyze`, `nearest` and `strip`.

use wb_compare::analyze::{CheckFilter, write_csv};
use wb_compare::run_perf::strip::StripOptions;

use super::builds::read_strictly;
use crate::cli::compare::{AnalyzeArgs, NearestArgs, StripArgs};
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{print_bytes, print_text, write_file};

pub(crate) fn analyze(args: &AnalyzeArgs, console: &Console) -> Result<Exit, Error> {
    let builds = read_strictly(&args.builds, &args.read, console)?;
    let which = if args.primary { CheckFilter::Primary } else { CheckFilter::All };
    let mut table = Vec::new();
    write_csv(&builds, which, &mut table).map_err(|error| Error::Internal(error.to_string()))?;
    match &args.output {
        Some(path) => {
            write_file(path, &table)?;
            crate::console::message!("table: {path}");
        }
        None => print_bytes(&table)?,
    }
    Ok(Exit::Success)
}

pub(crate) fn nearest(args: &NearestArgs, console: &Console) -> Result<Exit, Error> {
    match print_nearest(args, console) {
        // Exit status 1 is a valid index, so errors need another one.
        Err(error) if args.exit_index => {
            error.report(console);
            Ok(Exit::Code(u8::MAX))
        }
        other => other,
    }
}

fn print_nearest(args: &NearestArgs, console: &Console) -> Result<Exit, Error> {
    let groups = args.candidates.iter().map(std::slice::from_ref).chain(args.groups.0.iter().map(Vec::as_slice));
    let groups: Vec<&[String]> = groups.collect();
    let typed: Vec<String> = std::iter::once(&args.build).chain(groups.iter().copied().flatten()).cloned().collect();
    let builds = read_strictly(&typed, &args.read, console)?;
    let mut next = 1;
    let candidates: Vec<Vec<usize>> = groups
        .iter()
        .map(|group| {
            let first = next;
            next += group.len();
            (first..next).collect()
        })
        .collect();
    let nearest = wb_compare::run_perf::nearest::nearest(&builds, 0, &candidates, args.flatten)?;
    print_text(&format!("{}\n", nearest.candidate))?;
    Ok(if args.exit_index { Exit::Code(u8::try_from(nearest.candidate).unwrap_or(u8::MAX - 1)) } else { Exit::Success })
}

pub(crate) fn strip(args: &StripArgs, console: &Console) -> Result<Exit, Error> {
    let options = StripOptions { include_incorrect: args.include_incorrect, attach_sysinfo: args.attach_sysinfo };
    let stripped = wb_compare::run_perf::strip::strip(&args.from, &args.into, &options)?;
    if !console.quiet {
        stripped.warnings.iter().for_each(|warning| crate::console::message!("note: {warning}"));
        crate::console::message!("{}: {} → {} bytes", args.into.display(), stripped.before, stripped.after);
    }
    Ok(Exit::Success)
}
