//! The parameters of `net`, and what follows from them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Nanos;
use wb_net_profile::{Extent, FlowopAction, NetProfile, ParsedProfile, ProfileDiagnostics, Variables, parse};

use super::expectation::{PrimaryMetric, RunExpectation};
use super::nodes::SideNodes;

/// Variables that profiles use for their host. Whatever its name, its server runs on the worker.
const HOST_VARIABLES: [&str; 2] = ["h", "host"];

/// How a net cell is measured
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct NetParams {
    /// File with a profile in uperf's language; relative to the plan, or an absolute path
    pub(super) profile: String,
    /// Text of the profile
    #[schemars(extend("x-default" = "the text of its file"))]
    pub(super) profile_text: Option<String>,
    /// Variables of the profile, NAME=VALUE each; default of `h`, `host`, `h1`…: the workers of the servers
    pub(super) vars: Vec<String>,
    /// Maximum duration of transactions, which are then cut short; 0: no limit
    pub(super) max_duration: Nanos,
    /// Interval of the latency histograms over time, at least 10ms
    #[schemars(extend("minimum" = 10_000_000))]
    pub(super) interval: Nanos,
    /// NUMA node that the server runs on; -1: any
    pub(super) server_node: i32,
    /// NUMA node that the client runs on; -1: any
    pub(super) client_node: i32,
}

impl Default for NetParams {
    fn default() -> Self {
        Self {
            profile: String::new(),
            profile_text: None,
            vars: Vec::new(),
            max_duration: Nanos(0),
            interval: Nanos(1_000_000_000),
            server_node: -1,
            client_node: -1,
        }
    }
}

impl NetParams {
    pub(super) fn parse_profile(&self) -> Result<NetProfile, String> {
        let text = self.profile_text.as_deref().ok_or_else(|| self.unread_profile_error())?;
        let variables = self.variables()?.into_iter().collect::<Variables>();
        let parsed = parse(&self.profile, text, &variables).map_err(|errors| describe_faults(&errors))?;
        let ParsedProfile { profile, .. } = parsed;
        Ok(profile)
    }

    fn unread_profile_error(&self) -> String {
        match self.profile.as_str() {
            "" => "missing `profile`: see examples/net for examples".to_owned(),
            path => format!("cannot read profile `{path}`; each profile requires its own [[test]]"),
        }
    }

    /// Variables of the profile, including default hosts.
    pub(super) fn variables(&self) -> Result<Vec<(String, String)>, String> {
        let vars = self.vars.iter().map(|var| {
            let parts = var.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
            parts.ok_or_else(|| format!("`vars`: invalid variable `{var}`: expected NAME=VALUE"))
        });
        let vars = vars.collect::<Result<Vec<_>, _>>()?;
        let missing = HOST_VARIABLES
            .into_iter()
            .filter(|host| self.uses_variable(host) && vars.iter().all(|(name, _)| name != host));
        let defaults = missing.map(|host| (host.to_owned(), "127.0.0.1".to_owned()));
        let numbered = self.numbered_hosts().filter(|host| vars.iter().all(|(name, _)| name != host));
        let numbered_defaults = numbered.map(|host| (host.clone(), host));
        Ok(defaults.chain(numbered_defaults).collect::<Vec<_>>().into_iter().chain(vars).collect())
    }

    /// Variables that the profile uses for several hosts: `h1`, `h2`, …; each has its own server.
    fn numbered_hosts(&self) -> impl Iterator<Item = String> {
        let names = HOST_VARIABLES.into_iter().flat_map(|host| (1..=9).map(move |number| format!("{host}{number}")));
        names.filter(|name| self.uses_variable(name))
    }

    /// Whether the profile uses a variable: `$name` or `${name}`.
    fn uses_variable(&self, name: &str) -> bool {
        let text = self.profile_text.as_deref().unwrap_or_default();
        let continues = |rest: &str| rest.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_');
        let mut bare = text.split('$').skip(1).filter_map(|rest| rest.strip_prefix(name));
        bare.any(|rest| !continues(rest)) || text.contains(&format!("${{{name}}}"))
    }

    pub(super) fn nodes(&self) -> SideNodes {
        SideNodes { server: self.server_node, client: self.client_node }
    }

    pub(super) fn expectation(&self) -> RunExpectation {
        RunExpectation {
            primary: self.parse_profile().map_or(PrimaryMetric::Throughput, |profile| primary_metric(&profile)),
            window: None,
            may_be_truncated: self.max_duration.0 > 0,
            interval: self.interval,
        }
    }

    /// Whether the profile has windows of a fixed duration, or is cut short.
    pub(super) fn sets_duration(&self) -> bool {
        let has_window = |profile: &NetProfile| {
            let transactions = profile.groups.iter().flat_map(|group| &group.transactions);
            transactions.map(|transaction| transaction.extent).any(|extent| matches!(extent, Extent::Window(_)))
        };
        self.max_duration.0 > 0 || self.parse_profile().is_ok_and(|profile| has_window(&profile))
    }

    /// Seconds of the profile's windows, at most `max-duration`; transactions limited by iterations take the time of a
    /// sample.
    pub(super) fn seconds(&self, min_time: Nanos) -> f64 {
        let seconds = self.parse_profile().map_or(min_time.seconds(), |profile| profile_seconds(&profile, min_time));
        if self.max_duration.0 > 0 { seconds.min(self.max_duration.seconds()) } else { seconds }
    }
}

fn describe_faults(errors: &ProfileDiagnostics) -> String {
    let all = errors.diagnostics();
    let first = all.first().map(ToString::to_string).unwrap_or_default();
    let rest = match all.len() {
        0 | 1 => String::new(),
        all => format!(", and {} more", all - 1),
    };
    format!("invalid profile `{}`: {first}{rest}: see `weighbridge net check`", errors.source_name())
}

fn primary_metric(profile: &NetProfile) -> PrimaryMetric {
    let transactions = profile.groups.iter().flat_map(|group| &group.transactions);
    let transfers_data = |action: &FlowopAction| {
        matches!(action, FlowopAction::Send(_) | FlowopAction::Receive(_) | FlowopAction::SendFiles(_))
    };
    let any = transactions.flat_map(|transaction| &transaction.flowops).any(|flowop| transfers_data(&flowop.action));
    if any { PrimaryMetric::Throughput } else { PrimaryMetric::EmptyRounds }
}

fn profile_seconds(profile: &NetProfile, min_time: Nanos) -> f64 {
    let groups = profile.groups.iter().map(|group| {
        let window = |extent: Extent| match extent {
            Extent::Window(window) => window.as_secs_f64(),
            // Connects or disconnects.
            Extent::Iterations(0..=1) => 0.0,
            Extent::Iterations(_) => min_time.seconds(),
        };
        group.transactions.iter().map(|transaction| window(transaction.extent)).sum()
    });
    groups.fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RR: &str = r#"<profile name="rr"><group nthreads="$n">
        <transaction iterations="1"><flowop type="connect" options="remotehost=$h protocol=tcp"/></transaction>
        <transaction duration="2s"><flowop type="write" options="size=90"/>
            <flowop type="read" options="size=90"/></transaction>
        <transaction iterations="1"><flowop type="disconnect"/></transaction>
    </group></profile>"#;

    fn params(text: &str, vars: &[&str]) -> NetParams {
        NetParams {
            profile: "rr.xml".to_owned(),
            profile_text: Some(text.to_owned()),
            vars: vars.iter().map(|var| (*var).to_owned()).collect(),
            ..NetParams::default()
        }
    }

    #[test]
    fn the_host_is_the_worker_by_default() {
        let hosts = |vars: &[&str]| wb_net_profile::mirror::hosts(&params(RR, vars).parse_profile().unwrap());
        assert_eq!(hosts(&["n=1"]), ["127.0.0.1"]);
        assert_eq!(hosts(&["n=1", "h=there"]), ["there"]);
    }

    #[test]
    fn a_host_variable_is_only_set_if_the_profile_uses_it() {
        let names = |text: &str| {
            let all = params(text, &["n=1"]).variables().unwrap();
            all.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(names(RR), ["h", "n"]);
        assert_eq!(names(&RR.replace("$h", "${host}")), ["host", "n"]);
        assert_eq!(names(&RR.replace("$h", "$host2")), ["host2", "n"]);
    }

    #[test]
    fn numbered_hosts_have_their_own_servers() {
        let two = RR.replace(
            "<transaction iterations=\"1\"><flowop type=\"disconnect\"/>",
            "<transaction iterations=\"1\">\
            <flowop type=\"connect\" options=\"remotehost=$h2 protocol=tcp conn=2\"/><flowop type=\"disconnect\"/>",
        );
        let hosts = |vars: &[&str]| wb_net_profile::mirror::hosts(&params(&two, vars).parse_profile().unwrap());
        assert_eq!(hosts(&["n=1"]), ["127.0.0.1", "h2"]);
        assert_eq!(hosts(&["n=1", "h2=there"]), ["127.0.0.1", "there"]);
    }

    #[test]
    fn errors_in_a_profile_are_reported() {
        let reason = |params: NetParams| params.parse_profile().unwrap_err();
        assert!(reason(params(RR, &[])).contains('n'), "{}", reason(params(RR, &[])));
        assert_eq!(reason(params(RR, &["n"])), "`vars`: invalid variable `n`: expected NAME=VALUE");
        assert!(reason(params("<profile>", &[])).contains("see `weighbridge net check`"));
        assert!(reason(NetParams::default()).contains("missing `profile`"));
        let unreadable = NetParams { profile_text: None, ..params(RR, &[]) };
        assert!(reason(unreadable).starts_with("cannot read profile `rr.xml`"));
    }

    #[test]
    fn the_estimate_follows_the_windows_and_the_cut() {
        let rr = params(RR, &["n=1"]);
        assert_eq!(rr.seconds(Nanos(0)), 2.0);
        assert_eq!(NetParams { max_duration: Nanos(500_000_000), ..rr.clone() }.seconds(Nanos(0)), 0.5);
        let counted = params(&RR.replace("duration=\"2s\"", "iterations=\"1000\""), &["n=1"]);
        assert_eq!(counted.seconds(Nanos(3_000_000_000)), 3.0);
    }

    #[test]
    fn throughput_is_primary_if_data_is_transferred() {
        assert_eq!(params(RR, &["n=1"]).expectation().primary, PrimaryMetric::Throughput);
        let idle =
            RR.replace("\"write\" options=\"size=90\"", "\"nop\"").replace("\"read\" options=\"size=90\"", "\"nop\"");
        assert_eq!(params(&idle, &["n=1"]).expectation().primary, PrimaryMetric::EmptyRounds);
    }
}
