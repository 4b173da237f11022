//! `weighbridge net run`, and the code that it shares with the presets.

use wb_net::{
    control::ControlLimits,
    engine::{self, protocol::Settings},
    session::{client::ClientRun, coordinator::RunObserver},
};
use wb_net_profile::NetProfile;
use wb_net_profile::mirror::hosts;
use wb_report::net::{self, ResultSections};
use wb_results::net::RunResult;
use wb_session::program::runtime;

use super::{
    check, child_command,
    outcome::{report_outcome, start_error},
    progress::{ProgressFormat, ProgressPrinter},
    random_seed,
    response_log::{ResponseLayout, ResponseLog},
    serve::wait_for_signal,
    trust,
    uperf::TransactionProgress,
};
use crate::cli::OutputPath;
use crate::cli::net::{NetClientFlags, NetRunArgs};
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{check_file, print_json, print_text, write_file};

pub(super) fn run(args: &NetRunArgs, console: &Console) -> Result<Exit, Error> {
    let (profile, notes) = check::load_profile(&args.profile, &args.var)?;
    let flags = &args.common;
    flags.xml.as_ref().map_or(Ok(()), check_file)?;
    let mut responses = flags.raw.as_ref().map(|path| ResponseLog::create(path, ResponseLayout::Named)).transpose()?;
    if let Some(responses) = &mut responses {
        responses.start_profile(&profile, None);
    }
    let how =
        RunConfig { port: args.port, counts_only: args.no_statistics, progress: progress_format(flags, true, console) };
    let mut result = run_profile(profile, flags, how, responses.as_mut())?;
    result.notes.splice(0..0, notes);
    if flags.json {
        print_json(&result)?;
    } else {
        print_text(&net::result_text(&result, result_sections(args), console.stdout_style))?;
    }
    responses.map_or(Ok(()), ResponseLog::finish)?;
    if let Some(path) = &flags.xml {
        write_xml(path, std::slice::from_ref(&result))?;
    }
    Ok(report_outcome(&result.outcome, console))
}

fn result_sections(args: &NetRunArgs) -> ResultSections {
    ResultSections {
        groups: args.all || args.groups,
        threads: args.all || args.threads,
        transactions: args.all || args.transactions,
        flowops: args.all || args.flowops || args.common.cpu || args.common.has_counters(),
        netstat: args.netstat,
        nested: args.nested,
    }
}

/// Configuration of a run beyond its profile and the common flags.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunConfig {
    pub(super) port: u16,
    pub(super) counts_only: bool,
    pub(super) progress: ProgressFormat,
}

pub(super) fn progress_format(flags: &NetClientFlags, names: bool, console: &Console) -> ProgressFormat {
    // Enough decimals to distinguish consecutive intervals.
    let decimals = match flags.interval.0 {
        interval if interval.is_multiple_of(100_000_000) => 1,
        interval if interval.is_multiple_of(10_000_000) => 2,
        _ => 3,
    };
    match (flags.timestamped, flags.json || console.quiet) {
        (true, _) => ProgressFormat::Timestamped,
        (false, true) => ProgressFormat::Silent,
        (false, false) => ProgressFormat::Lines { decimals, names },
    }
}

pub(super) fn run_profile(
    profile: NetProfile,
    flags: &NetClientFlags,
    how: RunConfig,
    responses: Option<&mut ResponseLog>,
) -> Result<RunResult, Error> {
    let mut notes = unused_servers(&profile, &flags.server);
    let (settings, counter_note) = settings(flags, how.counts_only);
    notes.extend(counter_note);
    let run = ClientRun {
        servers: flags.server.iter().cloned().collect(),
        port: how.port,
        limits: ControlLimits {
            connect_timeout: flags.connect_timeout.into(),
            handshake_timeout: flags.connect_timeout.into(),
            ..ControlLimits::default()
        },
        settings,
        limit: flags.max_duration.map(Into::into),
        ..ClientRun::new(
            profile,
            trust::credentials(&flags.trust)?,
            child_command(),
            flags.seed.unwrap_or_else(random_seed),
        )
    };
    let execute = |observer: &mut dyn RunObserver| {
        let record = runtime()?.block_on(run.execute(wait_for_signal(), observer));
        let mut result = wb_net::result::assemble(&run, record.map_err(|error| start_error(&error))?);
        result.notes.splice(0..0, notes);
        Ok::<_, Error>(result)
    };
    if how.progress == ProgressFormat::Timestamped {
        let mut live = TransactionProgress::new(&run.profile, true, responses);
        let result = execute(&mut live)?;
        live.finish(&result)?;
        return Ok(result);
    }
    let mut live = ProgressPrinter::new(&run, how.progress, responses);
    let result = execute(&mut live)?;
    live.finish(&result);
    Ok(result)
}

/// Notes about servers of hosts that the profile does not have, which may be misspelt.
fn unused_servers(profile: &NetProfile, servers: &[(String, String)]) -> Vec<String> {
    let hosts = hosts(profile);
    let unused = servers.iter().filter(|(name, _)| !hosts.contains(name));
    unused
        .map(|(name, _)| format!("unknown host in `--server {name}=…`: the profile has {}", hosts.join(", ")))
        .collect()
}

pub(super) fn write_xml(path: &OutputPath, results: &[RunResult]) -> Result<(), Error> {
    let text = net::xml::xml(results).map_err(Error::output(path))?;
    write_file(path, &text)
}

/// The settings of a run, and a note if events cannot be counted here.
fn settings(flags: &NetClientFlags, bare: bool) -> (Settings, Option<String>) {
    let (settings, note) = engine_settings(&flags.events, flags.counters);
    let settings = Settings {
        cpus: flags.cpus.iter().flat_map(|cpus| &cpus.0).map(|&cpu| cpu as usize).collect(),
        max_threads: flags.max_threads,
        progress_interval: flags.interval.0,
        datagram_timeout: flags.datagram_deadline.0,
        flowop_cpu: flags.cpu,
        raw: flags.raw.is_some(),
        totals_only: bare,
        ..settings
    };
    (settings, note)
}

/// Settings that count these events, or the default ones; and a note if an event cannot be counted here: many virtual
/// machines have no counters.
pub(super) fn engine_settings(events: &[String], default_events: bool) -> (Settings, Option<String>) {
    let mut counters = events.to_vec();
    if counters.is_empty() && default_events {
        counters = engine::DEFAULT_EVENTS.map(str::to_owned).to_vec();
    }
    let can_count = |event: &str| engine::probe(&[event.to_owned()]).is_ok();
    let note = engine::probe(&counters).err().map(|error| {
        let available: Vec<&str> = engine::SUPPORTED_EVENTS.iter().copied().filter(|event| can_count(event)).collect();
        let alternatives = match available.as_slice() {
            [] => "no event can be counted here".to_owned(),
            events => format!("events that can be counted here: {}", events.join(", ")),
        };
        counters.retain(|event| can_count(event));
        format!("cannot count an event: {error}; {alternatives}")
    });
    (Settings { counters, ..Settings::default() }, note)
}
