//! Renders a result. The layout is uperf 1.0.8's; the values are defined as in Weighbridge.

// Writing to a string cannot fail: results of `writeln!` are dropped.
use std::fmt::Write;

use wb_net_profile::NetProfile;
use wb_results::net::{FlowopResult, FlowopSide, GroupResult, LatencySummary, RunResult, TransactionResult};

use super::ResultSections;

const SEPARATOR: &str = "-------------------------------------------------------------------------------\n";

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProgressLine {
    /// Bytes moved.
    pub bytes: u64,
    pub seconds: f64,
    /// Executions of flowops.
    pub operations: u64,
}

impl ProgressLine {
    /// One line of progress, without its end.
    pub fn line(&self, name: &str) -> String {
        let Self { bytes, seconds, operations } = *self;
        let per_second = |amount: f64| if seconds > 0.0 { amount / seconds } else { 0.0 };
        format!(
            "{name:<8}{:>9} / {seconds:6.2}(s) = {:>12} {:>11.0}op/s ",
            format_bytes(bytes as f64),
            format_rate(per_second(bytes as f64 * 8.0)),
            per_second(operations as f64)
        )
    }
}

/// Renders a run: the lines of its transactions, the total, and the selected sections. With `ended`, the time of day in
/// milliseconds, lines are those for scripts; those of transactions and the total have been printed.
pub fn result_text(profile: &NetProfile, result: &RunResult, sections: ResultSections, ended: Option<f64>) -> String {
    let line = |name: &str, totals: ProgressLine| match ended {
        Some(millis) => timestamped_line(millis, name, totals.bytes, totals.operations),
        None => totals.line(name) + "\n",
    };
    let mut out = result.rate_shortfall().map(|shortfall| shortfall + "\n").unwrap_or_default();
    if ended.is_none() {
        for (name, totals) in transactions(result) {
            let _ = writeln!(out, "{}", totals.line(&name));
        }
        out += SEPARATOR;
        let _ = writeln!(out, "{}\n", total(result).line("Total"));
    }
    if sections.groups {
        heading(&mut out, "Group Details");
        out.extend(result.groups.iter().map(|group| line(&group.name, group_totals(group))));
        out.push_str("\n\n");
    }
    if sections.threads {
        heading(&mut out, "Strand Details");
        for (group, strand) in result.groups.iter().flat_map(|group| group.strands.iter().map(move |one| (group, one)))
        {
            let totals = ProgressLine {
                bytes: strand.sent_bytes + strand.received_bytes,
                seconds: group.totals.seconds,
                operations: strand.operations,
            };
            // As in uperf, each group counts its own.
            out += &line(&format!("Thr{}", strand.strand), totals);
        }
        out.push_str("\n\n");
    }
    if sections.transactions {
        latency_heading(&mut out, "Txn");
        for transaction in all_transactions(result) {
            let cpu = transaction.flowops.iter().filter_map(|flowop| flowop.client.cpu_ns).sum::<u64>();
            let count = transaction.rounds.unwrap_or(0);
            latency_row(&mut out, &transaction.name, count, transaction.latency.as_ref(), cpu);
        }
        out.push_str("\n\n");
    }
    if sections.flowops {
        latency_heading(&mut out, "Flowop");
        for flowop in flowops(result) {
            let cpu = flowop.client.cpu_ns.unwrap_or(0);
            latency_row(&mut out, &flowop.name, flowop.client.count, flowop.client.latency.as_ref(), cpu);
            for (name, count) in &flowop.client.counters {
                let per_operation = *count as f64 / flowop.client.count.max(1) as f64;
                let _ = writeln!(out, "  {name:<22}{per_operation:>12.1} per operation");
            }
        }
        out.push_str("\n\n");
    }
    out += &netstat(result);
    out += &run_statistics(profile, result);
    out
}

/// The line of script-readable progress (`-R`).
pub fn timestamped_line(millis: f64, name: &str, bytes: u64, operations: u64) -> String {
    format!("timestamp_ms:{millis:.4} name:{name} nr_bytes:{bytes} nr_ops:{operations}\n")
}

pub fn separator() -> &'static str {
    SEPARATOR
}

/// Bytes that were received by both sides, in the data phase.
fn total(result: &RunResult) -> ProgressLine {
    let totals = &result.totals;
    ProgressLine { bytes: totals.received_bytes, seconds: totals.seconds, operations: totals.operations }
}

fn group_totals(group: &GroupResult) -> ProgressLine {
    let totals = &group.totals;
    ProgressLine { bytes: totals.received_bytes, seconds: totals.seconds, operations: totals.operations }
}

/// The transactions of all groups by their number, which uperf counts from 1 in these lines.
fn transactions(result: &RunResult) -> Vec<(String, ProgressLine)> {
    let longest = result.groups.iter().map(|group| group.transactions.len()).max().unwrap_or(0);
    let at = |position: usize| result.groups.iter().filter_map(move |group| group.transactions.get(position));
    let totals = |position: usize| ProgressLine {
        bytes: at(position).map(|transaction| transaction.received_bytes).sum(),
        seconds: at(position).map(|transaction| transaction.seconds).fold(0.0, f64::max),
        operations: at(position).map(|transaction| transaction.operations).sum(),
    };
    (0..longest).map(|position| (format!("Txn{}", position + 1), totals(position))).collect()
}

fn all_transactions(result: &RunResult) -> impl Iterator<Item = &TransactionResult> {
    result.groups.iter().flat_map(|group| &group.transactions)
}

fn flowops(result: &RunResult) -> impl Iterator<Item = &FlowopResult> {
    all_transactions(result).flat_map(|transaction| &transaction.flowops)
}

fn heading(out: &mut String, title: &str) {
    let _ = writeln!(out, "{title}");
    out.push_str(SEPARATOR);
}

fn latency_heading(out: &mut String, name: &str) {
    let _ = writeln!(out, "{name:<10}{:>14}{:>12}{:>12}{:>12}{:>12} ", "Count", "avg", "cpu", "max", "min");
    out.push_str(SEPARATOR);
}

fn latency_row(out: &mut String, name: &str, count: u64, latency: Option<&LatencySummary>, cpu: u64) {
    let time = |nanos: Option<f64>| format_time(nanos.unwrap_or(0.0));
    let _ = writeln!(
        out,
        "{name:<10}{count:>14}{:>12}{:>12}{:>12}{:>12} ",
        time(latency.map(|latency| latency.mean_ns)),
        format_time(cpu as f64 / count.max(1) as f64),
        time(latency.map(|latency| latency.percentiles.max_ns as f64)),
        time(latency.map(|latency| latency.percentiles.min_ns as f64)),
    );
}

fn netstat(result: &RunResult) -> String {
    let mut out = String::new();
    let Some(master) = result.machines.first() else { return out };
    heading(&mut out, "Netstat statistics for this run");
    let _ = writeln!(out, "{:<5}{:>12}{:>12}{:>13}{:>13}", "Nic", "opkts/s", "ipkts/s", "obits/s", "ibits/s");
    let per_second = |count: u64| if result.totals.seconds > 0.0 { count as f64 / result.totals.seconds } else { 0.0 };
    for interface in &master.network.interfaces {
        let _ = writeln!(
            out,
            "{:<5}{:>12.0}{:>12.0}{:>13}{:>13} ",
            interface.name,
            per_second(interface.packets_out),
            per_second(interface.packets_in),
            format_rate(per_second(interface.bytes_out) * 8.0),
            format_rate(per_second(interface.bytes_in) * 8.0),
        );
    }
    out.push_str(SEPARATOR);
    out.push('\n');
    out
}

#[derive(Default)]
struct HostRow {
    seconds: f64,
    bytes: u64,
    operations: u64,
    errors: u64,
}

impl HostRow {
    fn new<'a>(
        groups: impl IntoIterator<Item = &'a GroupResult>,
        seconds: f64,
        side: fn(&FlowopResult) -> Option<&FlowopSide>,
    ) -> Self {
        let transactions = groups.into_iter().flat_map(|group| &group.transactions);
        let sides = transactions.flat_map(|transaction| &transaction.flowops).filter_map(side);
        sides.fold(Self { seconds, ..Self::default() }, |sum, side| Self {
            seconds,
            bytes: sum.bytes + side.bytes,
            operations: sum.operations + side.count,
            errors: sum.errors + side.errors.values().sum::<u64>(),
        })
    }

    fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.bytes as f64 * 8.0 / self.seconds } else { 0.0 }
    }

    /// Failures in percent of the executions, as in uperf.
    fn error_percent(&self) -> f64 {
        self.errors as f64 * 100.0 / self.operations.max(1) as f64
    }

    fn write(&self, out: &mut String, name: &str) {
        let _ = writeln!(
            out,
            "{name:<15.15} {:>8}{:>11}{:>13}{:>13}{:>12.2}",
            format!("{:.2}s", self.seconds),
            format_bytes(self.bytes as f64),
            format_rate(self.rate()),
            self.operations,
            self.error_percent(),
        );
    }
}

fn run_statistics(profile: &NetProfile, result: &RunResult) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "Run Statistics");
    let columns = ("Hostname", "Time", "Data", "Throughput", "Operations", "Errors");
    let (host, time, data, throughput, operations, errors) = columns;
    let _ = writeln!(out, "{host:<15}{time:>9}{data:>11}{throughput:>13}{operations:>13}{errors:>12}");
    out.push_str(SEPARATOR);
    for (group, definition) in result.groups.iter().zip(&profile.groups) {
        let mut hosts: Vec<&str> = Vec::new();
        for endpoint in definition.flowops().filter_map(|flowop| flowop.endpoint()) {
            if !hosts.contains(&endpoint.remote.as_str()) {
                hosts.push(&endpoint.remote);
            }
        }
        HostRow::new([group], group.totals.seconds, |flowop| flowop.server.as_ref()).write(&mut out, &hosts.join(","));
    }
    let seconds = result.totals.seconds;
    let servers = HostRow::new(&result.groups, seconds, |flowop| flowop.server.as_ref());
    if result.groups.len() > 1 {
        servers.write(&mut out, "Total");
    }
    let master = HostRow::new(&result.groups, seconds, |flowop| Some(&flowop.client));
    master.write(&mut out, "master");
    out.push_str(SEPARATOR);
    let difference = |master: f64, servers: f64| {
        let percent = if master == 0.0 || servers == 0.0 { 0.0 } else { (master - servers) / master * 100.0 };
        format!("{percent:.2}%")
    };
    let _ = writeln!(
        out,
        "Difference(%) {:>10}{:>11}{:>13}{:>13}{:>12}\n",
        difference(master.seconds, servers.seconds),
        difference(master.bytes as f64, servers.bytes as f64),
        difference(master.rate(), servers.rate()),
        difference(master.operations as f64, servers.operations as f64),
        format!("{:.2}%", master.error_percent().max(servers.error_percent())),
    );
    out
}

/// Bytes in powers of 1024, in at most seven characters as in uperf.
fn format_bytes(bytes: f64) -> String {
    if bytes == 0.0 {
        return "0".to_owned();
    }
    // Four digits before the point would leave no room for the unit.
    let (mut value, mut unit) = (bytes, 0);
    let units = ["B", "KB", "MB", "GB", "TB"];
    while value >= 999.995 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    let mut text = format!("{value:.2}{}", units[unit]);
    text.truncate(7);
    text
}

fn format_rate(bits_per_second: f64) -> String {
    if bits_per_second == 0.0 {
        return "0".to_owned();
    }
    scaled(bits_per_second, 1000.0, ["b/s", "Kb/s", "Mb/s", "Gb/s", "Tb/s"])
}

fn format_time(nanos: f64) -> String {
    scaled(nanos, 1000.0, ["ns", "us", "ms", "s", "s"])
}

fn scaled(mut value: f64, base: f64, units: [&str; 5]) -> String {
    let mut unit = 0;
    while value >= base && unit + 1 < units.len() && units[unit + 1] != units[unit] {
        value /= base;
        unit += 1;
    }
    format!("{value:.2}{}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_progress_have_uperfs_columns() {
        let total = ProgressLine { bytes: 2_018_634_629, seconds: 4.31, operations: 488_681 };
        assert_eq!(total.line("Total"), "Total      1.88GB /   4.31(s) =     3.75Gb/s      113383op/s ");
        let part = ProgressLine { bytes: 1_022_518_886, seconds: 1.0, operations: 247_508 };
        assert_eq!(part.line("Txn2"), "Txn2      975.15M /   1.00(s) =     8.18Gb/s      247508op/s ");
        let none = ProgressLine { bytes: 0, seconds: 0.0, operations: 0 };
        assert_eq!(none.line("Txn1"), "Txn1            0 /   0.00(s) =            0           0op/s ");
    }

    #[test]
    fn times_have_the_unit_that_fits() {
        let times = [0.0, 901.0, 8_780_000.0, 65e9].map(format_time);
        assert_eq!(times, ["0.00ns", "901.00ns", "8.78ms", "65.00s"]);
    }
}
