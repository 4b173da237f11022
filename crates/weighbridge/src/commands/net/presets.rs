//! The presets: workloads for whoever writes no profile.

use wb_net::{
    language::{Profile, Protocol, StrandKind},
    presets::{self, Setup},
};

use super::{
    super::{print_json, print_text},
    run::{exit, measure},
};
use crate::cli::net::PresetArgs;
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;

/// Which workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Preset {
    Stream,
    Maerts,
    Bidirec,
    Rr,
    Crr,
    UdpRr,
}

impl Preset {
    fn is_stream(self) -> bool {
        matches!(self, Self::Stream | Self::Maerts | Self::Bidirec)
    }

    fn profile(self, setup: &Setup, size: u32, response: u32) -> Profile {
        match self {
            Self::Stream => presets::stream(setup, size),
            Self::Maerts => presets::maerts(setup, size),
            Self::Bidirec => presets::bidirec(setup, size),
            Self::Rr => presets::rr(setup, size, response),
            Self::Crr => presets::crr(setup, size, response),
            Self::UdpRr => presets::udp_rr(setup, size, response),
        }
    }
}

/// Measures each combination that was asked for.
pub(super) fn run(preset: Preset, args: &PresetArgs, console: &Console) -> Result<Exit, Error> {
    let (host, port) = match args.host.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
            let port = port.parse().map_err(|_| Error::Usage {
                what: format!("`{port}` is no port"),
                help: "HOST or HOST:PORT is expected".to_owned(),
            })?;
            (host.trim_matches(['[', ']']).to_owned(), port)
        }
        _ => (args.host.clone(), args.port),
    };
    let or = |given: &[wb_model::Bytes], usual: u64| -> Vec<u32> {
        let given: Vec<u32> = given.iter().map(|size| size.0.min(1 << 30) as u32).collect();
        if given.is_empty() { vec![usual as u32] } else { given }
    };
    let sizes = or(&args.message_sizes, if preset.is_stream() { 65536 } else { 90 });
    let protocols = if args.protocols.is_empty() { vec![Protocol::Tcp] } else { args.protocols.clone() };
    let mut results = Vec::new();
    for &protocol in &protocols {
        for &size in &sizes {
            for &instances in &args.instances {
                let setup = Setup {
                    protocol,
                    instances,
                    runtime: args.runtime,
                    window: args.window.map(|window| window.0 as u32),
                    kind: if args.processes { StrandKind::Process } else { StrandKind::Thread },
                    ..Setup::new(&host)
                };
                let response = args.response_size.map_or(size, |size| size.0 as u32);
                let profile = preset.profile(&setup, size, response);
                let result = measure(profile, Vec::new(), &args.common, port, false, console)?;
                if !args.common.json {
                    print_text(&format!("{:#?}\n", result.totals))?;
                }
                results.push(result);
            }
        }
    }
    if args.common.json {
        print_json(&results)?;
    }
    Ok(results.iter().map(|result| exit(&result.outcome)).find(|exit| *exit != Exit::Fine).unwrap_or(Exit::Fine))
}
