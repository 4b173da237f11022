//! Opening many connections, against uperf: the time of a whole run, from the start of the client to its exit.

use super::peers::{free_port, weighbridge_pair};
use super::{ClientServer, CorePlacement, client_server_side};
use crate::bench_env::{BenchEnv, require_tool};
use crate::pairs::{BenchSide, PairedBenchmark};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpeningProfile {
    /// One strand opens 10,000 connections, holds them, and closes them.
    Held,
    /// 1,700 strands open a connection and close it, five times.
    Strands,
}

impl OpeningProfile {
    fn name(self) -> &'static str {
        match self {
            Self::Held => "10000 connections of a strand",
            Self::Strands => "connections of 1700 strands",
        }
    }

    fn text(self) -> String {
        let connect = r#"<flowop type="connect" options="remotehost=127.0.0.1 protocol=tcp"#;
        let disconnect = r#"<flowop type="disconnect"/>"#;
        match self {
            Self::Held => format!(
                "<profile name=\"held\">\n<group nthreads=\"1\">\n<transaction iterations=\"10000\">\n{connect} canfail\"/>\n\
                 </transaction>\n<transaction iterations=\"10000\">\n{disconnect}\n</transaction>\n</group>\n</profile>\n"
            ),
            Self::Strands => format!(
                "<profile name=\"strands\">\n<group nthreads=\"1700\">\n<transaction iterations=\"5\">\n{connect}\"/>\n\
                 {disconnect}\n</transaction>\n</group>\n</profile>\n"
            ),
        }
    }
}

pub(super) fn rows(env: &BenchEnv) -> Vec<PairedBenchmark<'_>> {
    let row = |profile: OpeningProfile| {
        let name = format!("net {} vs uperf", profile.name());
        PairedBenchmark::new(name, "runs/s", move || {
            require_tool("uperf")?;
            Ok((our_side(env, profile)?, uperf_side(env, profile)?))
        })
    };
    [OpeningProfile::Held, OpeningProfile::Strands].map(row).into()
}

fn our_side(env: &BenchEnv, profile: OpeningProfile) -> Result<BenchSide, String> {
    let (client, server) = CorePlacement::Cross.cpus()?;
    let port = free_port()?;
    let program = env.weighbridge_program()?.display().to_string();
    let run = ["run", &write_profile(env, profile)?, "-P", &port.to_string(), "-q"].map(str::to_owned).to_vec();
    timed(env, "weighbridge", weighbridge_pair(&program, client, server, port, run))
}

fn uperf_side(env: &BenchEnv, profile: OpeningProfile) -> Result<BenchSide, String> {
    let port = free_port()?;
    let words = |words: &[&str]| -> Vec<String> { words.iter().map(|word| (*word).to_owned()).collect() };
    let both = ClientServer {
        server: words(&["uperf", "-s", "-P", &port.to_string()]),
        client: words(&["uperf", "-m", &write_profile(env, profile)?, "-P", &port.to_string()]),
        port,
        env: Vec::new(),
    };
    timed(env, "uperf", both)
}

fn write_profile(env: &BenchEnv, profile: OpeningProfile) -> Result<String, String> {
    let path = env.folder().join(format!("{profile:?}.xml"));
    std::fs::write(&path, profile.text()).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path.display().to_string())
}

/// A side whose figure is how often its client could run in a second.
fn timed(env: &BenchEnv, name: &str, mut both: ClientServer) -> Result<BenchSide, String> {
    // The shell's clock: both clients print what they like.
    let script = r#"TIMEFORMAT='{"seconds": %R}'; { time "$@" >/dev/null 2>&1; } 2>&1"#;
    let shell = ["bash", "-c", script, "bash"].map(str::to_owned);
    both.client = shell.into_iter().chain(both.client).collect();
    client_server_side(env, name, &both, |result| Some(1.0 / result["seconds"].as_f64()?))
}
