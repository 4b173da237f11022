//! From flags to a sequence.

use std::path::PathBuf;

use clap::parser::ValueSource;
use wb_contention::execute::{SequenceOptions, SequenceRequest};
use wb_contention::{BenchSpec, Parameters, machine};
use wb_diagnostics::DiagnosticCollector;
use wb_sys::SysRoot;

use crate::cli::Cli;
use crate::cli::contention::SequenceFlags;
use crate::error::Error;

/// Memory of the emulated machine, in GiB.
const MEM_PROFILE: u32 = 16;
const SWAPPINESS: u32 = 60;
/// Folder of hashd's files, beside the undo log's folder.
pub(super) const DIR: &str = "/var/lib/weighbridge";

/// Options of `run` and `plan` that concern sequences, too.
const SHARED_OPTIONS: [&str; 12] = [
    "tests",
    "into",
    "run_folder",
    "json",
    "metadata",
    "seed",
    "secret_from",
    "quiet",
    "color",
    "log",
    "no_worker",
    "help",
];
/// Options of sequences.
const OWN_OPTIONS: [&str; 10] = [
    "dir",
    "file",
    "dev",
    "mem_profile",
    "mem_avail",
    "iocost_from_sys",
    "iocost_qos",
    "swappiness",
    "force",
    "time_scale",
];

pub(super) fn request(words: &[String], flags: &SequenceFlags, seed: Option<u64>) -> Result<SequenceRequest, Error> {
    refuse_other_options()?;
    let options = SequenceOptions {
        dir: flags.dir.clone().unwrap_or_else(|| PathBuf::from(DIR)),
        dev: flags.dev.clone(),
        mem_profile: flags.mem_profile.map_or(Some(MEM_PROFILE), |profile| profile.0),
        mem_avail: flags.mem_avail,
        iocost_qos: flags.iocost_qos.unwrap_or_default(),
        swappiness: flags.swappiness.unwrap_or(SWAPPINESS),
        force: flags.force,
        iocost_from_sys: flags.iocost_from_sys,
        time_scale: flags.time_scale,
    };
    let specs = parse_specs(words)?;
    let mut system = machine::read(&SysRoot::real(), &options.dir, options.dev.as_deref())?;
    system.swappiness = options.swappiness;
    let committed = options.parameters_file().read()?;
    let parameters = match (flags.iocost_from_sys, system.iocost) {
        (false, _) => committed,
        (true, Some(iocost)) => committed.updated(Parameters { iocost: Some(iocost), hashd: None }),
        (true, None) => {
            return Err(Error::Usage {
                what: format!("--iocost-from-sys: io.cost of {} is not enabled", system.device.name),
                help: "without it, committed parameters are used, or measured".to_owned(),
            });
        }
    };
    Ok(SequenceRequest { specs, options, system, parameters, seed: seed.unwrap_or_else(rand::random) })
}

/// Parses specifications, and reports the mistakes of all.
pub(super) fn parse_specs<'a>(words: impl IntoIterator<Item = &'a String>) -> Result<Vec<BenchSpec>, Error> {
    let mut mistakes = DiagnosticCollector::default();
    let specs = words.into_iter().filter_map(|word| mistakes.ok(BenchSpec::parse(word))).collect();
    mistakes.finish()?;
    Ok(specs)
}

/// Refuses options of tests, which would have no effect on benches.
fn refuse_other_options() -> Result<(), Error> {
    let mut program = Cli::build_command();
    // The arguments have been parsed before.
    let Ok(matches) = program.try_get_matches_from_mut(std::env::args_os()) else { return Ok(()) };
    let Some((name, matches)) = matches.subcommand() else { return Ok(()) };
    let Some(command) = program.find_subcommand(name) else { return Ok(()) };
    let is_other = |arg: &&clap::Arg| {
        let id = arg.get_id().as_str();
        let is_accepted = SHARED_OPTIONS.contains(&id) || OWN_OPTIONS.contains(&id);
        !is_accepted && matches.value_source(id) == Some(ValueSource::CommandLine)
    };
    match command.get_arguments().find(is_other).and_then(clap::Arg::get_long) {
        Some(flag) => Err(Error::Usage {
            what: format!("--{flag} has no effect on contention benches"),
            help: format!("`weighbridge {name} --help` lists their options under `Contention benches`"),
        }),
        None => Ok(()),
    }
}
