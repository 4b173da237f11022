//! The files of libp2p's performance suites: `impls.yaml` of test-plans and `images.yaml` of unified-testing.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::peers_file::check_ids;
use crate::matrix::{Aliases, Axis, Endpoint, Matrix, Rule, Scenario, Suite};

/// Transports that have security and multiplexing of their own.
const STANDALONE: [&str; 6] = ["quic", "quic-v1", "webtransport", "webrtc", "webrtc-direct", "https"];

/// The axes of both suites.
const AXES: [&str; 3] = ["transport", "security", "muxer"];

/// What these files have in common, and that decides what is to be measured; everything else says how.
#[derive(Debug, Deserialize)]
pub(super) struct SuiteFile {
    #[serde(default, rename = "test-aliases")]
    aliases: Vec<SuiteAlias>,
    servers: Option<IgnoredAny>,
    #[serde(default)]
    baselines: Vec<SuiteEndpoint>,
    implementations: Vec<SuiteEndpoint>,
}

#[derive(Debug, Deserialize)]
struct SuiteAlias {
    alias: String,
    value: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SuiteEndpoint {
    id: String,
    #[serde(default)]
    transports: Vec<String>,
    #[serde(default)]
    secure_channels: Vec<String>,
    #[serde(default)]
    muxers: Vec<String>,
}

/// Whether a YAML text is one of these files.
pub(super) fn is_suite(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("implementations:"))
}

/// The matrix that a file defines.
pub(super) fn to_matrix(file: SuiteFile) -> Result<Matrix, String> {
    let suite = if file.servers.is_some() { Suite::TestPlans } else { Suite::UnifiedTesting };
    let standalone = STANDALONE.map(str::to_owned).to_vec();
    let matrix = Matrix {
        suite,
        axes: AXES.map(|axis| Axis(axis.to_owned())).to_vec(),
        rules: vec![Rule { when: vec![(0, standalone)], drop: vec![1, 2] }],
        endpoints: file.implementations.into_iter().map(endpoint).collect(),
        baselines: file.baselines.into_iter().map(endpoint).collect(),
        aliases: Aliases(file.aliases.into_iter().map(|SuiteAlias { alias, value }| (alias, value)).collect()),
        expected_failures: Vec::new(),
        root: String::new(),
    };
    check_ids(&matrix)?;
    Ok(matrix)
}

fn endpoint(endpoint: SuiteEndpoint) -> Endpoint {
    let SuiteEndpoint { id, transports, secure_channels, muxers } = endpoint;
    Endpoint {
        id,
        version: None,
        protocol: None,
        supports: vec![transports, secure_channels, muxers],
        scenarios: Scenario::ALL.to_vec(),
        launch: None,
    }
}
