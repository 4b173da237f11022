//! The files of libp2p's performance suites: `impls.yaml` of test-plans and `images.yaml` of unified-testing.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::entry_error::{EntryError, convert_items};
use super::peers_file::check_ids;
use crate::launch::{ContainerImage, Counts, Dialect, EndpointCommand, Launch, Payload};
use crate::matrix::{Aliases, Axis, Endpoint, Matrix, Rule, Suite};
use wb_results::Scenario;

/// Transports that have security and multiplexing of their own.
const STANDALONE: [&str; 6] = ["quic", "quic-v1", "webtransport", "webrtc", "webrtc-direct", "https"];

const AXES: [&str; 3] = ["transport", "security", "muxer"];

/// The fields, shared by both files, that decide what is measured; all others say how.
#[derive(Debug, Deserialize)]
pub(super) struct SuiteFile {
    #[serde(default, rename = "test-aliases")]
    aliases: Vec<SuiteAlias>,
    servers: Option<Vec<SuiteServer>>,
    #[serde(default)]
    baselines: Vec<SuiteEndpoint>,
    implementations: Vec<SuiteEndpoint>,
}

#[derive(Debug, Deserialize)]
struct SuiteAlias {
    alias: String,
    value: String,
}

/// Where listeners run. A remote one is the worker with its id.
#[derive(Debug, Deserialize)]
struct SuiteServer {
    id: String,
    #[serde(rename = "type")]
    location: ServerLocation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ServerLocation {
    Local,
    Remote,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SuiteEndpoint {
    id: String,
    server: Option<String>,
    #[serde(default)]
    dial_only: bool,
    #[serde(default)]
    transports: Vec<String>,
    #[serde(default)]
    secure_channels: Vec<String>,
    #[serde(default)]
    muxers: Vec<String>,
}

pub(super) fn is_suite(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("implementations:"))
}

pub(super) fn to_matrix(file: SuiteFile) -> Result<Matrix, EntryError> {
    let suite = if file.servers.is_some() { Suite::TestPlans } else { Suite::UnifiedTesting };
    let standalone = STANDALONE.map(str::to_owned).to_vec();
    let servers = file.servers.unwrap_or_default();
    let endpoints = |section: Section, entries: Vec<SuiteEndpoint>| {
        convert_items(entries, section.key(), |entry| endpoint(entry, suite, section, &servers))
    };
    let matrix = Matrix {
        suite,
        axes: AXES.map(|axis| Axis(axis.to_owned())).to_vec(),
        rules: vec![Rule { when: vec![(0, standalone)], drop: vec![1, 2] }],
        endpoints: endpoints(Section::Implementations, file.implementations)?,
        baselines: endpoints(Section::Baselines, file.baselines)?,
        aliases: Aliases(file.aliases.into_iter().map(|SuiteAlias { alias, value }| (alias, value)).collect()),
        scenarios: Vec::new(),
        checks: Vec::new(),
        expected_failures: Vec::new(),
        root: String::new(),
    };
    check_ids(&matrix, Section::Implementations.key())?;
    Ok(matrix)
}

/// The section of a file in which an endpoint stands; part of the name of its image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Implementations,
    Baselines,
}

impl Section {
    fn key(self) -> &'static str {
        match self {
            Self::Implementations => "implementations",
            Self::Baselines => "baselines",
        }
    }

    /// The image of an endpoint, as the suite's build scripts name it.
    fn image(self, suite: Suite, id: &str) -> String {
        match (suite, self) {
            (Suite::UnifiedTesting, Self::Implementations) => format!("perf-implementations-{id}"),
            (Suite::UnifiedTesting, Self::Baselines) => format!("perf-baselines-{id}"),
            (Suite::TestPlans | Suite::Weighbridge, _) => format!("perf-{id}"),
        }
    }
}

fn endpoint(
    endpoint: SuiteEndpoint,
    suite: Suite,
    section: Section,
    servers: &[SuiteServer],
) -> Result<Endpoint, EntryError> {
    let SuiteEndpoint { id, server, dial_only, transports, secure_channels, muxers } = endpoint;
    let dialect = if suite == Suite::TestPlans { Dialect::TestPlans } else { Dialect::UnifiedTesting };
    let command = EndpointCommand {
        argv: Vec::new(),
        env: BTreeMap::new(),
        ready: None,
        container: Some(ContainerImage { name: section.image(suite, &id), options: Vec::new() }),
    };
    let launch = Launch {
        dialect,
        counts: Counts::Both,
        payload: Payload::Wire,
        duration: false,
        build: Vec::new(),
        sources: Vec::new(),
        files: Vec::new(),
        listener: (!dial_only).then(|| command.clone()),
        dialer: Some(command),
    };
    let server = match server {
        None => None,
        Some(name) => {
            let known = servers.iter().find(|server| server.id == name);
            let known = known.ok_or_else(|| {
                EntryError::new(format!("invalid endpoint `{id}`: unknown server `{name}`")).within("server")
            })?;
            (known.location == ServerLocation::Remote).then_some(name)
        }
    };
    Ok(Endpoint {
        id,
        version: None,
        protocol: None,
        supports: vec![transports, secure_channels, muxers],
        scenarios: Scenario::STANDARD.to_vec(),
        server,
        ceiling: None,
        comparison: None,
        launch: Some(launch),
    })
}
