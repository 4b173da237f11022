//! The parameters of `uperf`: pbench-uperf's names and defaults.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{Bytes, Nanos};
use wb_net::language::Protocol;
use wb_stats::SamplingRule;

use crate::fio::params::pbench_rule;
use crate::fio::sysinfo::Collector;
use crate::net::nodes::SideNodes;
use crate::net::values::{PrimaryMetric, RunExpectation};

/// How a uperf cell is measured
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Params {
    /// What is done: messages to the server, from it, or both ways; or requests and responses by turns, with a
    /// connection for each in crr, or as datagrams in udp-rr
    #[schemars(extend("x-axis" = true, "x-aliases" = ["test-type", "type"], "x-resolved" = "stream, maerts, bidirec, and rr"))]
    pub(super) test_types: Option<TestType>,
    /// Measured time of a sample, 10ms at least
    #[schemars(extend("minimum" = 10_000_000))]
    pub(super) runtime: Nanos,
    /// Size of a message, of a request and of its response
    #[schemars(extend("minimum" = 1, "x-axis" = true, "x-aliases" = ["message-size"], "x-resolved" = "1, 64, and 16k"))]
    pub(super) message_sizes: Option<Bytes>,
    /// By which protocol
    #[schemars(extend("x-axis" = true, "x-aliases" = ["protocol"], "x-resolved" = "tcp, and udp; of udp-rr udp"))]
    pub(super) protocols: Option<Protocol>,
    /// Connections, each with threads of its own; bidirec has as many each way
    #[schemars(extend("minimum" = 1, "maximum" = 10_000, "x-axis" = true, "x-aliases" = ["instance"], "x-resolved" = "1, 8, and 64"))]
    pub(super) instances: Option<u32>,
    /// NUMA node that the server runs on; -1: any
    #[schemars(extend("x-aliases" = ["server-nodes"]))]
    pub(super) server_node: i32,
    /// NUMA node that the client runs on; -1: any
    #[schemars(extend("x-aliases" = ["client-nodes"]))]
    pub(super) client_node: i32,
    /// pbench's rule: a set of so many samples counts when it spreads little enough, else another is taken, and the
    /// last one counts; 0: the plan's rule, which goes on until the median is known well enough
    pub(super) samples: u32,
    /// A set that spreads less counts: the standard deviation in percent of the mean
    #[schemars(range(min = 0))]
    pub(super) max_stddev: f64,
    /// After so many sets that spread more it is given up
    #[schemars(range(min = 1))]
    pub(super) max_failures: u32,
    /// pbench's way to go on after an interruption, for which a run into the same folder needs nothing: only 1
    #[schemars(range(min = 1))]
    pub(super) start_iteration_num: u32,
    /// Whether every response time is kept, a line each; it takes time of its own
    pub(super) log_response_times: bool,
    /// A label of one's own
    pub(super) config: String,
    /// Tools around every sample: a group of the plan's [tool-groups]
    pub(super) tool_group: String,
    /// pbench's choice of tools whose CPU figures go into the result: kept as a label, since both sides are asked for
    /// theirs
    pub(super) tool_label_pattern: String,
    /// What is collected of the worker: default is all but sos, all is everything
    pub(super) sysinfo: Vec<Collector>,
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum TestType {
    /// Messages from client to server
    #[default]
    Stream,
    /// Messages from server to client
    Maerts,
    /// Both at once
    Bidirec,
    /// Requests and responses
    Rr,
    /// The same with a connection for each
    Crr,
    /// The same as datagrams
    UdpRr,
}

impl TestType {
    /// Its name, as `weighbridge net` takes it too.
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

    /// pbench's primary metrics: Gb_sec of streams, trans_sec of the others.
    pub(super) fn primary_metric(self) -> PrimaryMetric {
        match self {
            Self::Stream | Self::Maerts | Self::Bidirec => PrimaryMetric::Throughput,
            Self::Rr | Self::Crr | Self::UdpRr => PrimaryMetric::Rounds,
        }
    }
}

impl Default for Params {
    fn default() -> Self {
        Self {
            test_types: None,
            runtime: Nanos(60_000_000_000),
            message_sizes: None,
            protocols: None,
            instances: None,
            server_node: -1,
            client_node: -1,
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

impl Params {
    pub(super) fn test_type(&self) -> TestType {
        self.test_types.unwrap_or_default()
    }

    pub(super) fn protocol(&self) -> Protocol {
        self.protocols.unwrap_or(Protocol::Tcp)
    }

    pub(super) fn nodes(&self) -> SideNodes {
        SideNodes { server: self.server_node, client: self.client_node }
    }

    pub(super) fn rule(&self) -> Option<SamplingRule> {
        pbench_rule(self.samples, self.max_stddev, self.max_failures)
    }

    pub(super) fn expectation(&self) -> RunExpectation {
        RunExpectation {
            primary: self.test_type().primary_metric(),
            window: Some(self.runtime),
            may_be_cut: false,
            interval: self.interval(),
        }
    }

    /// Ten intervals at least, of a second at most: latencies over time say something of short samples too.
    pub(super) fn interval(&self) -> Nanos {
        Nanos((self.runtime.0 / 10).clamp(10_000_000, 1_000_000_000))
    }

    /// What follows `weighbridge net`, but for where the server is.
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
        let words = [self.test_type().name(), host].into_iter();
        words.chain(flags.into_iter().flat_map(|(flag, value)| [flag, value])).map(str::to_owned).collect()
    }

    /// What no machine can do.
    pub(super) fn contradiction(&self) -> Option<String> {
        const LARGEST_DATAGRAM: u64 = 65_507;
        let size = self.message_sizes.unwrap_or_default();
        let (test_type, wire) = (self.test_type(), self.protocol());
        if test_type == TestType::UdpRr && wire != Protocol::Udp {
            return Some(format!("udp-rr is by udp, not by {}: `protocols=udp`, or rr", wire.name()));
        }
        if wire == Protocol::Udp && size.0 > LARGEST_DATAGRAM {
            return Some(format!("a datagram has {LARGEST_DATAGRAM} bytes at most, and message-sizes is {size}"));
        }
        if self.runtime < Nanos(10_000_000) {
            return Some(format!("a runtime of {} is too short: 10ms at least", self.runtime));
        }
        (self.start_iteration_num != 1).then(|| {
            "`start-iteration-num`: leave it out; a run into its folder (--into) goes on where it was, and --select \
             chooses cells"
                .to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(json: &str) -> Params {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn the_names_are_those_of_the_engine() {
        let all = Protocol::ALL.map(Protocol::name);
        let read = all.map(|name| params(&format!(r#"{{"protocols": "{name}"}}"#)).protocol().name());
        assert_eq!(read, all);
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
        assert_eq!(cell.expectation().primary, PrimaryMetric::Rounds);
        assert_eq!(Params::default().interval(), Nanos(1_000_000_000));
    }

    #[test]
    fn what_cannot_be_says_why() {
        let why = |json: &str| params(json).contradiction().unwrap_or_default();
        assert_eq!(why("{}"), "");
        assert_eq!(why(r#"{"test-types": "udp-rr", "protocols": "udp"}"#), "");
        assert!(why(r#"{"test-types": "udp-rr", "protocols": "tcp"}"#).starts_with("udp-rr is by udp, not by tcp"));
        assert!(why(r#"{"protocols": "udp", "message-sizes": "64k"}"#).contains("65507 bytes at most"));
        assert!(why(r#"{"runtime": 0}"#).contains("too short"));
        assert!(why(r#"{"start-iteration-num": 3}"#).contains("--into"));
    }
}
