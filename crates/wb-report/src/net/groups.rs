//! Groups: what they did, and what their strands used.

use wb_net::engine::usage::Usage;
use wb_net::result::RunResult;

use super::figures::{LATENCY, bits, bytes, figure, latency, percent, ratio};
use crate::text::{Style, Table, heads_of, named};

/// What groups did, how long their rounds took, and what that cost both sides.
pub(super) fn groups(result: &RunResult, style: Style) -> String {
    let columns = ["strands", "time", "received", "throughput", "difference", "rounds", "per second"];
    let mut moved = Table::new(&heads_of("", &columns));
    let columns: Vec<&str> = std::iter::once("rounds").chain(LATENCY).collect();
    let mut rounds = Table::new(&heads_of("", &columns));
    let columns = ["CPU", "user", "system", "waits", "preemptions"];
    let mut used = Table::new(&heads_of("", &columns));
    for group in &result.groups {
        let totals = &group.totals;
        let kind = match (group.processes, group.strands) {
            (true, 1) => "process",
            (true, _) => "processes",
            (false, 1) => "thread",
            (false, _) => "threads",
        };
        let figures = [
            format!("{} {kind}", group.strands),
            figure(Some(totals.seconds), "s"),
            bytes(totals.received_bytes),
            bits(totals.throughput),
            percent(totals.difference_percent),
            totals.rounds.to_string(),
            figure(totals.rounds_per_second, "/s"),
        ];
        moved.row(named(format!("  {}", group.name), figures));
        let figures = std::iter::once(totals.rounds.to_string()).chain(latency(totals.latency.as_ref()));
        rounds.row(named(format!("  {}", group.name), figures));
        for (side, usage) in [("client", group.client_usage), ("server", group.server_usage)] {
            used.row(named(format!("  {}, {side}", group.name), usage_of(usage, totals.seconds)));
        }
    }
    [
        style.section("groups") + &moved.draw(style),
        style.section("rounds of groups") + &rounds.draw(style),
        style.section("CPU and context switches of groups") + &used.draw(style),
    ]
    .concat()
}

/// CPU in percent of one, its times, and context switches.
fn usage_of(usage: Usage, seconds: f64) -> [String; 5] {
    let share = ratio((usage.user_ns + usage.system_ns) as f64 / 1e7, seconds);
    let time = |nanos: u64| figure(Some(nanos as f64), "ns");
    [
        percent(share),
        time(usage.user_ns),
        time(usage.system_ns),
        usage.voluntary_switches.to_string(),
        usage.involuntary_switches.to_string(),
    ]
}
