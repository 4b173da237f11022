//! The parameters of `net`, and what follows from them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Nanos;
use wb_net::language::{Extent, FlowopAction, NetProfile, ParsedProfile, ProfileDiagnostics, Variables, parse};

use super::nodes::SideNodes;
use super::values::{PrimaryMetric, RunExpectation};

/// Variables that profiles call their host by. Whatever a host is called, its server is on the worker.
const HOST_VARIABLES: [&str; 2] = ["h", "host"];

/// How a net cell is measured
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Params {
    /// The file of a profile in uperf's language: beside the plan, or anywhere by its whole path
    pub(super) profile: String,
    /// The profile
    #[schemars(extend("x-resolved" = "the text of its file"))]
    pub(super) profile_text: Option<String>,
    /// The profile's variables, NAME=VALUE each; `h`, `host`, `h1`… stand for the workers that serve where nothing is said
    pub(super) vars: Vec<String>,
    /// Transactions are cut after so long; 0: they go to their end
    pub(super) max_duration: Nanos,
    /// Interval of the latency histograms over time, 10ms at least
    #[schemars(extend("minimum" = 10_000_000))]
    pub(super) interval: Nanos,
    /// NUMA node that the server runs on; -1: any
    pub(super) server_node: i32,
    /// NUMA node that the client runs on; -1: any
    pub(super) client_node: i32,
}

impl Default for Params {
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

impl Params {
    /// What the profile says, or why it says nothing.
    pub(super) fn parse_profile(&self) -> Result<NetProfile, String> {
        let text = self.profile_text.as_deref().ok_or_else(|| self.unread_profile_error())?;
        let variables = self.variables()?.into_iter().collect::<Variables>();
        let read = parse(&self.profile, text, &variables).map_err(|faults| describe_faults(&faults))?;
        let ParsedProfile { profile, .. } = read;
        Ok(profile)
    }

    fn unread_profile_error(&self) -> String {
        match self.profile.as_str() {
            "" => "`profile` names no file: examples/net has some to start from".to_owned(),
            path => format!("the profile `{path}` cannot be read; each needs a [[test]] of its own"),
        }
    }

    /// The variables that the profile is run with.
    pub(super) fn variables(&self) -> Result<Vec<(String, String)>, String> {
        let given = self.vars.iter().map(|var| {
            let parts = var.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
            parts.ok_or_else(|| format!("`vars`: `{var}` is no NAME=VALUE"))
        });
        let given = given.collect::<Result<Vec<_>, _>>()?;
        let unsaid = HOST_VARIABLES
            .into_iter()
            .filter(|host| self.uses_variable(host) && given.iter().all(|(name, _)| name != host));
        let worker = unsaid.map(|host| (host.to_owned(), "127.0.0.1".to_owned()));
        let numbered = self.numbered_hosts().filter(|host| given.iter().all(|(name, _)| name != host));
        let others = numbered.map(|host| (host.clone(), host));
        Ok(worker.chain(others).collect::<Vec<_>>().into_iter().chain(given).collect())
    }

    /// The variables that the profile calls several hosts by: `h1`, `h2`, …; each is a server of its own.
    fn numbered_hosts(&self) -> impl Iterator<Item = String> {
        let names = HOST_VARIABLES.into_iter().flat_map(|host| (1..=9).map(move |number| format!("{host}{number}")));
        names.filter(|name| self.uses_variable(name))
    }

    /// Whether the profile has a variable: `$name` or `${name}`.
    fn uses_variable(&self, name: &str) -> bool {
        let text = self.profile_text.as_deref().unwrap_or_default();
        let goes_on = |rest: &str| rest.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_');
        let mut bare = text.split('$').skip(1).filter_map(|rest| rest.strip_prefix(name));
        bare.any(|rest| !goes_on(rest)) || text.contains(&format!("${{{name}}}"))
    }

    pub(super) fn nodes(&self) -> SideNodes {
        SideNodes { server: self.server_node, client: self.client_node }
    }

    pub(super) fn expectation(&self) -> RunExpectation {
        RunExpectation {
            primary: self.parse_profile().map_or(PrimaryMetric::Throughput, |profile| primary_metric(&profile)),
            window: None,
            may_be_cut: self.max_duration.0 > 0,
            interval: self.interval,
        }
    }

    /// Whether the profile has windows of a length of their own, or is cut.
    pub(super) fn sets_duration(&self) -> bool {
        let has_window = |profile: &NetProfile| {
            let parts = profile.groups.iter().flat_map(|group| &group.transactions);
            parts.map(|part| part.extent).any(|extent| matches!(extent, Extent::Window(_)))
        };
        self.max_duration.0 > 0 || self.parse_profile().is_ok_and(|profile| has_window(&profile))
    }

    /// How long the profile's windows take, cut as asked; what is counted in rounds takes the time of a sample.
    pub(super) fn seconds(&self, min_time: Nanos) -> f64 {
        let seconds = self.parse_profile().map_or(min_time.seconds(), |profile| profile_seconds(&profile, min_time));
        if self.max_duration.0 > 0 { seconds.min(self.max_duration.seconds()) } else { seconds }
    }
}

/// What is wrong with a profile first, and how to see the rest.
fn describe_faults(faults: &ProfileDiagnostics) -> String {
    let all = faults.diagnostics();
    let first = all.first().map(ToString::to_string).unwrap_or_default();
    let others = match all.len() {
        0 | 1 => String::new(),
        all => format!(", and {} more", all - 1),
    };
    format!("the profile `{}`: {first}{others}: `weighbridge net check` shows where", faults.source_name())
}

fn primary_metric(profile: &NetProfile) -> PrimaryMetric {
    let parts = profile.groups.iter().flat_map(|group| &group.transactions);
    let moves = |action: &FlowopAction| {
        matches!(action, FlowopAction::Send(_) | FlowopAction::Receive(_) | FlowopAction::SendFiles(_))
    };
    let any = parts.flat_map(|part| &part.flowops).any(|flowop| moves(&flowop.action));
    if any { PrimaryMetric::Throughput } else { PrimaryMetric::EmptyRounds }
}

fn profile_seconds(profile: &NetProfile, min_time: Nanos) -> f64 {
    let groups = profile.groups.iter().map(|group| {
        let window = |extent: Extent| match extent {
            Extent::Window(window) => window.as_secs_f64(),
            // Connects and disconnects.
            Extent::Iterations(0..=1) => 0.0,
            Extent::Iterations(_) => min_time.seconds(),
        };
        group.transactions.iter().map(|part| window(part.extent)).sum()
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

    fn params(text: &str, vars: &[&str]) -> Params {
        Params {
            profile: "rr.xml".to_owned(),
            profile_text: Some(text.to_owned()),
            vars: vars.iter().map(|var| (*var).to_owned()).collect(),
            ..Params::default()
        }
    }

    #[test]
    fn the_host_is_the_worker_unless_it_is_said() {
        let hosts = |vars: &[&str]| wb_net::mirror::hosts(&params(RR, vars).parse_profile().unwrap());
        assert_eq!(hosts(&["n=1"]), ["127.0.0.1"]);
        assert_eq!(hosts(&["n=1", "h=there"]), ["there"]);
    }

    #[test]
    fn a_variable_is_only_said_where_the_profile_has_it() {
        let names = |text: &str| {
            let all = params(text, &["n=1"]).variables().unwrap();
            all.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(names(RR), ["h", "n"]);
        assert_eq!(names(&RR.replace("$h", "${host}")), ["host", "n"]);
        assert_eq!(names(&RR.replace("$h", "$host2")), ["host2", "n"]);
    }

    #[test]
    fn hosts_with_numbers_are_servers_of_their_own() {
        let two = RR.replace(
            "<transaction iterations=\"1\"><flowop type=\"disconnect\"/>",
            "<transaction iterations=\"1\">\
            <flowop type=\"connect\" options=\"remotehost=$h2 protocol=tcp conn=2\"/><flowop type=\"disconnect\"/>",
        );
        let hosts = |vars: &[&str]| wb_net::mirror::hosts(&params(&two, vars).parse_profile().unwrap());
        assert_eq!(hosts(&["n=1"]), ["127.0.0.1", "h2"]);
        assert_eq!(hosts(&["n=1", "h2=there"]), ["127.0.0.1", "there"]);
    }

    #[test]
    fn what_is_wrong_with_a_profile_is_told() {
        let why = |params: Params| params.parse_profile().unwrap_err();
        assert!(why(params(RR, &[])).contains('n'), "{}", why(params(RR, &[])));
        assert_eq!(why(params(RR, &["n"])), "`vars`: `n` is no NAME=VALUE");
        assert!(why(params("<profile>", &[])).contains("`weighbridge net check` shows where"));
        assert!(why(Params::default()).contains("names no file"));
        let unread = Params { profile_text: None, ..params(RR, &[]) };
        assert!(why(unread).starts_with("the profile `rr.xml` cannot be read"));
    }

    #[test]
    fn the_estimate_follows_the_windows_and_the_cut() {
        let rr = params(RR, &["n=1"]);
        assert_eq!(rr.seconds(Nanos(0)), 2.0);
        assert_eq!(Params { max_duration: Nanos(500_000_000), ..rr.clone() }.seconds(Nanos(0)), 0.5);
        let counted = params(&RR.replace("duration=\"2s\"", "iterations=\"1000\""), &["n=1"]);
        assert_eq!(counted.seconds(Nanos(3_000_000_000)), 3.0);
    }

    #[test]
    fn throughput_is_primary_where_anything_is_moved() {
        assert_eq!(params(RR, &["n=1"]).expectation().primary, PrimaryMetric::Throughput);
        let idle =
            RR.replace("\"write\" options=\"size=90\"", "\"nop\"").replace("\"read\" options=\"size=90\"", "\"nop\"");
        assert_eq!(params(&idle, &["n=1"]).expectation().primary, PrimaryMetric::EmptyRounds);
    }
}
