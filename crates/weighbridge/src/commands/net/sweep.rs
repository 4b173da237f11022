//! `weighbridge net sweep`: latency as a function of the offered load.

use wb_net::engine::protocol::{EngineProgress, Settings};
use wb_net::engine::raw_log::LatencyRecord;
use wb_net::session::client::ClientRun;
use wb_net::session::coordinator::RunObserver;
use wb_net_profile::presets::{self, PresetConfig};
use wb_net_profile::{NetProfile, Protocol};
use wb_report::chart::{png, svg};
use wb_report::net::sweep::{SweepChart, sweep_page, sweep_text};
use wb_results::net::{RunResult, RunStatus};
use wb_results::net::{Sweep, SweepPoint};
use wb_session::program::runtime;

use super::outcome::{report_outcome, start_error, worst_exit};
use super::presets::host_and_port;
use super::serve::wait_for_signal;
use super::{child_command, random_seed, trust};
use crate::cli::net::sweep::{SweepArgs, SweepPreset};
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{check_file, print_json, print_text, write_file};

/// In pixels.
const IMAGE_WIDTH: f64 = 860.0;

/// Measures the capacity, then the latency at each load.
pub(super) fn sweep(args: &SweepArgs, console: &Console) -> Result<Exit, Error> {
    if !args.loads.is_sorted_by(|one, next| one < next) {
        return Err(Error::Usage {
            what: "invalid --loads: expected distinct percentages in ascending order".to_owned(),
            help: "the sweep goes from the lowest load, with which the others are compared, up to saturation"
                .to_owned(),
        });
    }
    if args.preset == SweepPreset::UdpRr && args.protocol.is_some_and(|protocol| protocol != Protocol::Udp) {
        return Err(Error::Usage {
            what: "invalid --protocol: expected udp with --preset udp-rr".to_owned(),
            help: "remove --protocol, or sweep rr".to_owned(),
        });
    }
    for path in [&args.html, &args.svg, &args.png].into_iter().flatten() {
        check_file(path)?;
    }
    let (host, port) = host_and_port(&args.host, args.port)?;
    let progress = |text: &str| {
        if !console.quiet {
            crate::console::message!("{text}");
        }
    };
    let measure = |rate: Option<f64>| measure(args, &host, port, rate);
    progress("measuring the capacity");
    let unlimited = measure(None)?;
    let title = title(args, &host);
    if unlimited.outcome != RunStatus::Completed {
        return Ok(report_outcome(&unlimited.outcome, console));
    }
    let Some(capacity) = unlimited.totals.rounds_per_second.filter(|capacity| *capacity > 0.0) else {
        return Err(Error::Incomplete {
            what: "no round trip completed in the unlimited run, so the capacity is unknown".to_owned(),
            help: "measure longer with -t".to_owned(),
        });
    };
    let mut points: Vec<SweepPoint> = Vec::new();
    for &load in &args.loads {
        let offered = capacity * load / 100.0;
        progress(&format!("load {load} %: {offered:.0} round trips per second"));
        let mut results = Vec::new();
        for _ in 0..args.runs {
            results.push(measure(Some(offered))?);
            if results.last().is_some_and(|result| result.outcome == RunStatus::Interrupted) {
                break;
            }
        }
        points.extend(SweepPoint::new(load, offered, &results));
        // More load would only lengthen the queue.
        if points.last().is_some_and(|last| last.is_saturated || last.outcome != RunStatus::Completed) {
            break;
        }
    }
    let sweep = Sweep::new(title, capacity, points);
    if args.json {
        print_json(&sweep)?;
    } else {
        print_text(&sweep_text(&sweep, console.stdout_style))?;
    }
    write_files(args, &sweep)?;
    let mut outcomes: Vec<&RunStatus> = Vec::new();
    for point in &sweep.points {
        if !outcomes.contains(&&point.outcome) {
            outcomes.push(&point.outcome);
        }
    }
    Ok(worst_exit(outcomes.into_iter().map(|outcome| report_outcome(outcome, console))))
}

fn write_files(args: &SweepArgs, sweep: &Sweep) -> Result<(), Error> {
    if let Some(path) = &args.html {
        write_file(path, &sweep_page(sweep).map_err(|error| Error::Internal(error.to_string()))?)?;
    }
    let image = svg(&SweepChart::new(sweep), IMAGE_WIDTH);
    if let Some(path) = &args.svg {
        write_file(path, &image)?;
    }
    if let Some(path) = &args.png {
        write_file(path, &png(&image).map_err(|error| Error::Internal(error.to_string()))?)?;
    }
    Ok(())
}

fn protocol(args: &SweepArgs) -> Protocol {
    if args.preset == SweepPreset::UdpRr { Protocol::Udp } else { args.protocol.unwrap_or(Protocol::Tcp) }
}

fn title(args: &SweepArgs, host: &str) -> String {
    let connections = wb_model::pluralize(args.instances as usize, "connection");
    let name = match args.preset {
        SweepPreset::Rr => "rr",
        SweepPreset::Crr => "crr",
        SweepPreset::UdpRr => "udp-rr",
    };
    format!("{name} to {host}: {}, messages of {}, {connections}", protocol(args).name(), args.message_size)
}

fn build_profile(args: &SweepArgs, host: &str, rate: Option<f64>) -> NetProfile {
    let config = PresetConfig {
        protocol: protocol(args),
        instances: args.instances,
        runtime: args.runtime,
        warm_up: (args.preset != SweepPreset::Crr).then_some(args.omit),
        rate: rate.map(|rate| rate / f64::from(args.instances)),
        ..PresetConfig::new(host)
    };
    let (request, response) = (args.message_size.0, args.response_size.unwrap_or(args.message_size).0);
    match args.preset {
        SweepPreset::Rr => presets::rr(&config, request, response),
        SweepPreset::Crr => presets::crr(&config, request, response),
        SweepPreset::UdpRr => presets::udp_rr(&config, request, response),
    }
}

/// Runs the preset at `rate` round trips per second, in total over all connections; as fast as possible for `None`.
fn measure(args: &SweepArgs, host: &str, port: u16, rate: Option<f64>) -> Result<RunResult, Error> {
    let credentials = trust::credentials(&args.trust)?;
    let settings = Settings {
        cpus: args.cpus.iter().flat_map(|cpus| &cpus.0).map(|&cpu| cpu as usize).collect(),
        ..Settings::default()
    };
    let profile = build_profile(args, host, rate);
    let run = ClientRun { port, settings, ..ClientRun::new(profile, credentials, child_command(), random_seed()) };
    let record = runtime()?.block_on(run.execute(wait_for_signal(), &mut NoopObserver));
    Ok(wb_net::result::assemble(&run, record.map_err(|error| start_error(&error))?))
}

/// Ignores progress: a sweep reports only its loads.
struct NoopObserver;

impl RunObserver for NoopObserver {
    fn on_progress(&mut self, _: Option<&str>, _: EngineProgress) {}
    fn on_transaction(&mut self, _: usize, _: usize) {}
    fn on_latencies(&mut self, _: &[LatencyRecord]) {}
}
