//! The parameters of `uperf`: pbench-uperf's names and defaults.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{Bytes, Nanos};
use wb_net_profile::Protocol;
use wb_stats::SamplingRule;

use crate::fio::params::pbench_rule;
use crate::fio::sysinfo::Collector;
use crate::net::expectation::{PrimaryMetric, RunExpectation};
use crate::net::nodes::SideNodes;

/// How a uperf cell is measured
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct UperfParams {
    /// Traffic pattern: messages to the server (stream), from it (maerts), or both (bidirec); or alternating requests
    /// and responses (rr), with a connection for each (crr), or as datagrams (udp-rr)
    #[schemars(extend("x-axis" = true, "x-aliases" = ["test-type", "type"], "x-default" = "stream, maerts, bidirec, and rr"))]
    pub(super) test_types: Option<TestType>,
    /// Duration of the measurement of a sample, at least 10ms
    #[schemars(extend("minimum" = 10_000_000))]
    pub(super) runtime: Nanos,
    /// Size of a message, or of a request and its response
    #[schemars(extend("minimum" = 1, "x-axis" = true, "x-aliases" = ["message-size"], "x-default" = "1, 64, and 16k"))]
    pub(super) message_sizes: Option<Bytes>,
    /// Transport protocol
    #[schemars(extend("x-axis" = true, "x-aliases" = ["protocol"], "x-default" = "tcp, and udp; of udp-rr udp"))]
    pub(super) protocols: Option<Protocol>,
    /// Connections, each with its own threads; for bidirec in each direction
    #[schemars(extend("minimum" = 1, "maximum" = 10_000, "x-axis" = true, "x-aliases" = ["instance"], "x-default" = "1, 8, and 64"))]
    pub(super) instances: Option<u32>,
    /// NUMA node that every server runs on; -1: any
    pub(super) server_node: i32,
    /// NUMA node that every client runs on; -1: any
    pub(super) client_node: i32,
    /// NUMA nodes of the servers in their order, in place of server-node: those of further servers are any
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-default" = "server-node for each of them"))]
    pub(super) server_nodes: Vec<i32>,
    /// NUMA nodes of the clients in their order, in place of client-node
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-default" = "client-node for each of them"))]
    pub(super) client_nodes: Vec<i32>,
    /// Samples per set. As in pbench, a set whose standard deviation reaches max-stddev is repeated, and only the last
    /// set counts. With 0 the plan's rule applies instead: sample until the median is as precise as the plan requires
    pub(super) samples: u32,
    /// Standard deviation at which a set is repeated, as a percentage of its mean
    #[schemars(range(min = 0))]
    pub(super) max_stddev: f64,
    /// Maximum number of sets; if all reach max-stddev, the cell has not converged, and the last set counts
    #[schemars(range(min = 1))]
    pub(super) max_failures: u32,
    /// pbench's first iteration after an interruption; only 1, as a run into the same folder resumes on its own
    #[schemars(range(min = 1))]
    pub(super) start_iteration_num: u32,
    /// Record every response time, one per line; adds overhead
    pub(super) log_response_times: bool,
    /// Free-form label
    pub(super) config: String,
    /// Monitoring commands that run during every sample: name of a group under [tool-groups] in the plan file
    pub(super) tool_group: String,
    /// pbench's pattern of tools whose CPU figures go into the result; only a label, as CPU time is measured on both
    /// sides
    pub(super) tool_label_pattern: String,
    /// System information to collect from the worker: a list of collectors, `all`, or `none`; `default` is all except
    /// `sos`, which takes minutes
    pub(super) sysinfo: Vec<Collector>,
}

/// The number of no node in particular, as in pbench.
const ANY_NODE: i32 = -1;

/// Traffic pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum TestType {
    /// Messages from client to server
    #[default]
    Stream,
    /// Messages from server to client
    Maerts,
    /// Messages in both directions
    Bidirec,
    /// Requests and responses
    Rr,
    /// Requests and responses, with a connection for each
    Crr,
    /// Requests and responses as datagrams
    UdpRr,
}

impl TestType {
    /// Its name, also for `weighbridge net`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Maerts => "maerts",
            Self::Bidirec => "bidirec",
            Self::Rr => "rr",
            Self::Crr => "crr",
            Self::UdpRr => "udp-rr",
        }
    }

    /// pbench's primary metric: Gb_sec for streams, trans_sec for the others.
    pub(super) fn primary_metric(self) -> PrimaryMetric {
        match self {
            Self::Stream | Self::Maerts | Self::Bidirec => PrimaryMetric::Throughput,
            Self::Rr | Self::Crr | Self::UdpRr => PrimaryMetric::Rounds,
        }
    }
}

impl Default for UperfParams {
    fn default() -> Self {
        Self {
            test_types: None,
            runtime: Nanos(60_000_000_000),
            message_sizes: None,
            protocols: None,
            instances: None,
            server_node: ANY_NODE,
            client_node: ANY_NODE,
            server_nodes: Vec::new(),
            client_nodes: Vec::new(),
            samples: 3,
            max_stddev: 5.0,
            max_failures: 6,
            start_iteration_num: 1,
            log_response_times: false,
            config: String::new(),
            tool_group: "default".to_owned(),
            tool_label_pattern: "uperf-".to_owned(),
            sysinfo: vec![Collector::Default],
        }
    }
}

impl UperfParams {
    pub(super) fn test_type(&self) -> TestType {
        self.test_types.unwrap_or_default()
    }

    pub(super) fn protocol(&self) -> Protocol {
        self.protocols.unwrap_or(Protocol::Tcp)
    }

    /// The nodes of a client and its server, given by their position among those that measure at the same time.
    pub(super) fn nodes(&self, position: usize) -> SideNodes {
        let node = |nodes: &[i32], of_all| match nodes {
            [] => of_all,
            nodes => nodes.get(position).copied().unwrap_or(ANY_NODE),
        };
        SideNodes {
            server: node(&self.server_nodes, self.server_node),
            client: node(&self.client_nodes, self.client_node),
        }
    }

    pub(super) fn rule(&self) -> Option<SamplingRule> {
        pbench_rule(self.samples, self.max_stddev, self.max_failures)
    }

    pub(super) fn expectation(&self) -> RunExpectation {
        RunExpectation {
            primary: self.test_type().primary_metric(),
            window: Some(self.runtime),
            may_be_truncated: false,
            interval: self.interval(),
        }
    }

    /// Interval of latencies over time: a tenth of the runtime, at most a second, so that short samples have several.
    pub(super) fn interval(&self) -> Nanos {
        Nanos((self.runtime.0 / 10).clamp(10_000_000, 1_000_000_000))
    }

    /// Arguments of `weighbridge net`, without the address of the server.
    pub(super) fn arguments(&self, host: &str) -> Vec<String> {
        let size = self.message_sizes.unwrap_or(Bytes(1)).to_string();
        let instances = self.instances.unwrap_or(1).to_string();
        let (runtime, interval) = (self.runtime.to_string(), self.interval().to_string());
        let flags = [
            ("--runtime", runtime.as_str()),
            ("--message-sizes", &size),
            ("--protocols", self.protocol().name()),
            ("--instances", &instances),
            ("--interval", &interval),
        ];
        // udp-rr has no other protocol, and so no such option.
        let flags = flags.into_iter().filter(|(flag, _)| self.test_type() != TestType::UdpRr || *flag != "--protocols");
        let words = [self.test_type().name(), host].into_iter();
        words.chain(flags.flat_map(|(flag, value)| [flag, value])).map(str::to_owned).collect()
    }

    /// Contradiction among the parameters, independent of the machine, if any.
    pub(super) fn contradiction(&self) -> Option<String> {
        const MAX_DATAGRAM: u64 = 65_507;
        let size = self.message_sizes.unwrap_or_default();
        let (test_type, protocol) = (self.test_type(), self.protocol());
        if test_type == TestType::UdpRr && protocol != Protocol::Udp {
            return Some(format!(
                "udp-rr requires `protocols=udp`, got {}: use rr for other protocols",
                protocol.name()
            ));
        }
        if protocol == Protocol::Udp && size.0 > MAX_DATAGRAM {
            return Some(format!("invalid message-sizes {size}: a datagram has at most {MAX_DATAGRAM} bytes"));
        }
        for (side, node, nodes) in
            [("server", self.server_node, &self.server_nodes), ("client", self.client_node, &self.client_nodes)]
        {
            if node != ANY_NODE && !nodes.is_empty() {
                return Some(format!("both `{side}-node` and `{side}-nodes` are given: expected one of them"));
            }
        }
        if self.runtime < Nanos(10_000_000) {
            return Some(format!("invalid runtime {}: expected at least 10ms", self.runtime));
        }
        (self.start_iteration_num != 1).then(|| {
            "invalid `start-iteration-num`: expected 1; use --into to resume a run, and --select to select cells"
                .to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(json: &str) -> UperfParams {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn names_are_those_of_the_engine() {
        let all = Protocol::ALL.map(Protocol::name);
        let parsed = all.map(|name| params(&format!(r#"{{"protocols": "{name}"}}"#)).protocol().name());
        assert_eq!(parsed, all);
        for name in ["stream", "maerts", "bidirec", "rr", "crr", "udp-rr"] {
            assert_eq!(params(&format!(r#"{{"test-types": "{name}"}}"#)).test_type().name(), name);
        }
    }

    #[test]
    fn a_cell_is_a_preset() {
        let cell = params(r#"{"test-types": "rr", "message-sizes": "16k", "instances": 8, "runtime": "500ms"}"#);
        assert_eq!(
            cell.arguments("h").join(" "),
            "rr h --runtime 500ms --message-sizes 16k --protocols tcp --instances 8 --interval 50ms"
        );
        let datagrams = params(r#"{"test-types": "udp-rr", "protocols": "udp", "runtime": "1s"}"#);
        assert_eq!(
            datagrams.arguments("h").join(" "),
            "udp-rr h --runtime 1s --message-sizes 1 --instances 1 --interval 100ms"
        );
        assert_eq!(cell.expectation().primary, PrimaryMetric::Rounds);
        assert_eq!(UperfParams::default().interval(), Nanos(1_000_000_000));
    }

    #[test]
    fn nodes_are_those_of_all_pairs_or_an_ordered_list() {
        let nodes = |json: &str, position| {
            let SideNodes { server, client } = params(json).nodes(position);
            (server, client)
        };
        assert_eq!(nodes("{}", 1), (-1, -1));
        assert_eq!(nodes(r#"{"server-node": 1}"#, 3), (1, -1));
        let lists = r#"{"server-nodes": [0, 1], "client-nodes": [-1, 0]}"#;
        assert_eq!([0, 1, 2].map(|position| nodes(lists, position)), [(0, -1), (1, 0), (-1, -1)]);
        let both = params(r#"{"client-nodes": [0], "client-node": 1}"#).contradiction().unwrap();
        assert!(both.starts_with("both `client-node` and `client-nodes`"), "{both}");
    }

    #[test]
    fn unsupported_parameters_have_a_reason() {
        let reason = |json: &str| params(json).contradiction().unwrap_or_default();
        assert_eq!(reason("{}"), "");
        assert_eq!(reason(r#"{"test-types": "udp-rr", "protocols": "udp"}"#), "");
        assert!(
            reason(r#"{"test-types": "udp-rr", "protocols": "tcp"}"#)
                .starts_with("udp-rr requires `protocols=udp`, got tcp")
        );
        assert!(reason(r#"{"protocols": "udp", "message-sizes": "64k"}"#).contains("at most 65507 bytes"));
        assert!(reason(r#"{"runtime": 0}"#).contains("at least 10ms"));
        assert!(reason(r#"{"start-iteration-num": 3}"#).contains("--into"));
    }
}
