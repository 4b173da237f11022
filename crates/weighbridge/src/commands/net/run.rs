//! `weighbridge net run`, and what the presets have in common with it.

use std::io::BufWriter;

use wb_net::{
    control::Limits,
    engine::{self, work::Settings},
    language::Profile,
    result::{Outcome, RunResult},
    session::client::{Run, RunError},
};

use super::{
    super::{print_json, print_text, runtime},
    check, child,
    live::{Live, duration},
    serve::ended,
    trust,
};
use crate::cli::net::{CommonFlags, RunArgs};
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;

/// Runs a profile.
pub(super) fn run(args: &RunArgs, console: &Console) -> Result<Exit, Error> {
    let (profile, notes) = check::profile(&args.profile, &args.var)?;
    let bare = args.no_statistics;
    let result = measure(profile, notes, &args.common, args.port, bare, console)?;
    if args.common.json {
        print_json(&result)?;
    } else {
        print_text(&format!("{:#?}\n", result.totals))?;
    }
    Ok(exit(&result.outcome))
}

/// Makes a run of a profile.
pub(super) fn measure(
    profile: Profile,
    notes: Vec<String>,
    flags: &CommonFlags,
    port: u16,
    bare: bool,
    console: &Console,
) -> Result<RunResult, Error> {
    let settings = settings(flags, bare)?;
    let run = Run {
        profile,
        servers: flags.server.iter().cloned().collect(),
        port,
        credentials: trust::credentials(&flags.trust)?,
        limits: Limits::default(),
        settings,
        limit: flags.max_duration.map(duration),
        seed: flags.seed.unwrap_or_else(rand::random),
        child: child(),
    };
    let mut raw = match &flags.raw {
        Some(path) => {
            let file = std::fs::File::create(path);
            let file = file.map_err(|source| Error::File { path: path.display().to_string(), source })?;
            Some(BufWriter::new(file))
        }
        None => None,
    };
    let raw = raw.as_mut().map(|file| file as &mut dyn std::io::Write);
    let mut live = Live::new(&run.profile, !flags.json && !console.quiet, raw);
    let made = runtime()?.block_on(run.make(ended(), &mut live));
    if let (Some(source), Some(path)) = (live.failed, &flags.raw) {
        return Err(Error::File { path: path.display().to_string(), source });
    }
    let made = made.map_err(|error| Error::Usage { help: way_out(&error), what: error.to_string() })?;
    let mut result = RunResult::new(&run.profile, &run.settings, made);
    result.notes.splice(0..0, notes);
    Ok(result)
}

fn way_out(error: &RunError) -> String {
    match error {
        RunError::Unresolved { .. } => "say where it is with --server HOST=ADDRESS".to_owned(),
        RunError::Server { .. } => "`weighbridge net serve` must run there, with the same token".to_owned(),
        RunError::Files(_) => "name a folder with files in `dir=`".to_owned(),
        RunError::Thread(_) => "raise the limit of processes (`ulimit -u`)".to_owned(),
    }
}

fn settings(flags: &CommonFlags, bare: bool) -> Result<Settings, Error> {
    let mut counters = flags.events.clone();
    if counters.is_empty() && flags.counters {
        counters = engine::USUAL.map(str::to_owned).to_vec();
    }
    if let Err(why) = engine::probe(&counters) {
        return Err(Error::Usage {
            what: format!("unsupported here: {why}"),
            help: format!("leave -e and -E away, or count some of {}", engine::EVENTS.join(", ")),
        });
    }
    Ok(Settings {
        cpus: flags.cpus.iter().flat_map(|cpus| &cpus.0).map(|&cpu| cpu as usize).collect(),
        threads: flags.max_threads,
        interval: flags.interval.0.max(10_000_000),
        deadline: flags.datagram_deadline.0,
        flowop_cpu: flags.cpu,
        counters,
        raw: flags.raw.is_some(),
        bare,
        ports: None,
    })
}

/// What the exit status says of how a run ended.
pub(super) fn exit(outcome: &Outcome) -> Exit {
    match outcome {
        Outcome::Completed => Exit::Fine,
        Outcome::Cut | Outcome::Unsupported { .. } | Outcome::Failed { .. } | Outcome::Lost { .. } => Exit::FellShort,
        Outcome::Interrupted => Exit::Interrupted,
    }
}
