//! Presets: predefined network workloads that need no profile.

use wb_net_profile::presets::{self, PresetConfig};
use wb_net_profile::support::unsupported_features;
use wb_net_profile::{MAX_UDP_PAYLOAD, NetProfile, Protocol, StrandKind};
use wb_report::net::{self, Combination};
use wb_results::net::{RunResult, RunStatus};

use super::{
    outcome::{report_outcome, worst_exit},
    progress::ProgressFormat,
    response_log::{ResponseLayout, ResponseLog},
    run::{RunConfig, progress_format, run_profile, write_xml},
};
use crate::cli::net::{BufferSize, NetClientFlags, PresetArgs};
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{check_file, print_json, print_text};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Preset {
    Stream,
    Maerts,
    Bidirec,
    Rr,
    Crr,
    Handshakes,
    UdpRr,
}

impl Preset {
    fn is_stream(self) -> bool {
        matches!(self, Self::Stream | Self::Maerts | Self::Bidirec)
    }

    fn profile(self, setup: &PresetConfig, size: u32, response: u32) -> NetProfile {
        match self {
            Self::Stream => presets::stream(setup, size),
            Self::Maerts => presets::maerts(setup, size),
            Self::Bidirec => presets::bidirec(setup, size),
            Self::Rr => presets::rr(setup, size, response),
            Self::Crr => presets::crr(setup, size, response),
            Self::Handshakes => presets::handshakes(setup),
            Self::UdpRr => presets::udp_rr(setup, size, response),
        }
    }
}

/// One combination of protocol, message size and number of connections.
#[derive(Debug, Clone, Copy)]
struct PresetCase {
    protocol: Protocol,
    size: BufferSize,
    instances: u32,
}

pub(super) fn run(preset: Preset, args: &PresetArgs, console: &Console) -> Result<Exit, Error> {
    let (host, port) = host_and_port(&args.host, args.port)?;
    let points = preset_cases(preset, args);
    check_sizes(&points, args)?;
    if args.gso && points.iter().any(|point| point.protocol != Protocol::Udp) {
        return Err(Error::Usage {
            what: "invalid --gso: expected a stream of UDP".to_owned(),
            help: "add --protocols udp, or remove --gso".to_owned(),
        });
    }
    let flags = &args.common;
    flags.xml.as_ref().map_or(Ok(()), check_file)?;
    let mut responses = flags.raw.as_ref().map(|path| ResponseLog::create(path, ResponseLayout::Named)).transpose()?;
    let mut results: Vec<(PresetCase, RunResult)> = Vec::new();
    let how = RunConfig { port, counts_only: false, progress: progress_format(flags, false, console) };
    for point in &points {
        let profile = build_profile(preset, args, &host, point);
        let title = format_title(&profile, &host, point, args);
        if let Some(responses) = &mut responses {
            responses.start_profile(&profile, (points.len() > 1).then_some(title.as_str()));
        }
        if matches!(how.progress, ProgressFormat::Lines { .. }) {
            print_text(&format!("{title}\n"))?;
        }
        let result = match unsupported_features(&profile).first() {
            Some(lack) => wb_net::result::unsupported(&profile, lack.to_string()),
            None => run_profile(profile, flags, how, responses.as_mut())?,
        };
        let is_interrupted = result.outcome == RunStatus::Interrupted;
        results.push((*point, result));
        if is_interrupted {
            break;
        }
    }
    if matches!(how.progress, ProgressFormat::Lines { .. }) {
        print_text("\n")?;
    }
    print_results(&results, points.len(), flags, console)?;
    responses.map_or(Ok(()), ResponseLog::finish)?;
    let (_, results): (Vec<PresetCase>, Vec<RunResult>) = results.into_iter().unzip();
    if let Some(path) = &flags.xml {
        write_xml(path, &results)?;
    }
    // Report each distinct outcome once.
    let mut outcomes: Vec<&RunStatus> = Vec::new();
    for result in &results {
        if !outcomes.contains(&&result.outcome) {
            outcomes.push(&result.outcome);
        }
    }
    Ok(worst_exit(outcomes.into_iter().map(|outcome| report_outcome(outcome, console))))
}

fn print_results(
    results: &[(PresetCase, RunResult)],
    requested: usize,
    flags: &NetClientFlags,
    console: &Console,
) -> Result<(), Error> {
    if flags.json {
        let results: Vec<&RunResult> = results.iter().map(|(_, result)| result).collect();
        return print_json(&results);
    }
    // What is counted for flowops is in the tables of flowops alone.
    let has_flowops = flags.cpu || flags.has_counters();
    let flowops = |result| if has_flowops { net::flowops_text(result, console.stdout_style) } else { String::new() };
    if let ([(_, result)], 1) = (results, requested) {
        return print_text(&(flowops(result) + &net::preset(result, console.stdout_style)));
    }
    for (point, result) in results.iter().filter(|_| has_flowops) {
        let connections = wb_model::pluralize(point.instances as usize, "connection");
        print_text(&format!("{}, messages of {}, {connections}:\n", point.protocol.name(), point.size))?;
        print_text(&flowops(result))?;
    }
    let all: Vec<Combination<'_>> = results
        .iter()
        .map(|(point, result)| Combination {
            protocol: point.protocol.name().to_owned(),
            size: point.size.to_string(),
            instances: point.instances,
            result,
        })
        .collect();
    print_text(&net::combinations(&all, console.stdout_style))
}

/// Splits HOST:PORT; without a port, it is `port`.
pub(super) fn host_and_port(text: &str, port: u16) -> Result<(String, u16), Error> {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
            let port = port.parse().map_err(|_| Error::Usage {
                what: format!("invalid port `{port}` in `{text}`: expected a number from 0 to 65535"),
                help: "write HOST or HOST:PORT, with an IPv6 address in brackets".to_owned(),
            })?;
            Ok((host.trim_matches(['[', ']']).to_owned(), port))
        }
        _ => Ok((text.trim_matches(['[', ']']).to_owned(), port)),
    }
}

fn preset_cases(preset: Preset, args: &PresetArgs) -> Vec<PresetCase> {
    let default_size = |protocol| match (preset.is_stream(), protocol) {
        (true, Protocol::Udp | Protocol::UnixDgram) => BufferSize(1470),
        (true, _) => BufferSize(64 << 10),
        (false, _) => BufferSize(90),
    };
    let protocols = match preset {
        Preset::UdpRr => vec![Protocol::Udp],
        Preset::Handshakes if args.protocols.is_empty() => vec![Protocol::Tls],
        _ if args.protocols.is_empty() => vec![Protocol::Tcp],
        _ => args.protocols.clone(),
    };
    let each = protocols.iter().flat_map(|&protocol| {
        let sizes =
            if args.message_sizes.is_empty() { vec![default_size(protocol)] } else { args.message_sizes.clone() };
        let sizes = sizes.iter().flat_map(move |&size| {
            args.instances.iter().map(move |&instances| PresetCase { protocol, size, instances })
        });
        sizes.collect::<Vec<_>>()
    });
    each.collect()
}

fn check_sizes(points: &[PresetCase], args: &PresetArgs) -> Result<(), Error> {
    let oversized = |point: &PresetCase| {
        let largest = point.size.0.max(args.response_size.map_or(0, |size| size.0));
        (point.protocol == Protocol::Udp && largest > MAX_UDP_PAYLOAD).then_some(largest)
    };
    let Some(bytes) = points.iter().find_map(oversized) else { return Ok(()) };
    Err(Error::Usage {
        what: format!("a message of {bytes} bytes does not fit into a UDP datagram"),
        help: format!("at most {MAX_UDP_PAYLOAD} bytes fit: choose a smaller size with -l"),
    })
}

fn build_profile(preset: Preset, args: &PresetArgs, host: &str, point: &PresetCase) -> NetProfile {
    let messages = if args.gso { presets::segments(point.size.0) } else { 1 };
    let bytes_per_round = point.size.0.saturating_mul(messages);
    let setup = PresetConfig {
        protocol: point.protocol,
        instances: point.instances,
        runtime: args.runtime,
        window: args.window.map(|window| window.0),
        warm_up: args.omit,
        congestion: args.congestion.clone(),
        mss: args.mss,
        tos: args.tos,
        gso: args.gso,
        rate: args.rate.map(|rate| rate.rounds_per_second(bytes_per_round)),
        kind: if args.processes { StrandKind::Process } else { StrandKind::Thread },
        ..PresetConfig::new(host)
    };
    preset.profile(&setup, point.size.0, args.response_size.unwrap_or(point.size).0)
}

fn format_title(profile: &NetProfile, host: &str, point: &PresetCase, args: &PresetArgs) -> String {
    let connections = wb_model::pluralize(point.instances as usize, "connection");
    let protocol = point.protocol.name();
    let seconds = args.runtime.as_secs_f64();
    format!("{} with {host}: {protocol}, messages of {}, {connections}, {seconds} s", profile.name, point.size)
}
