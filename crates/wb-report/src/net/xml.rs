//! Writes runs as XML, with intervals and totals, for programs that processed uperf's output.

use std::io;

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};
use wb_results::net::{LatencySummary, RunResult, RunStatus, Totals};

use crate::xml_chars::replace_forbidden;

pub fn xml(results: &[RunResult]) -> io::Result<String> {
    let mut file = XmlWriter(Writer::new_with_indent(Vec::new(), b' ', 1));
    file.0.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    file.element("weighbridge-net", vec![("version", "1".to_owned())], |file| {
        results.iter().try_for_each(|result| file.run(result))
    })?;
    String::from_utf8(file.0.into_inner()).map_err(io::Error::other)
}

struct XmlWriter(Writer<Vec<u8>>);

type Attributes = Vec<(&'static str, String)>;

impl XmlWriter {
    fn element(
        &mut self,
        name: &str,
        attributes: Attributes,
        content: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        self.0.write_event(Event::Start(start_tag(name, &attributes)))?;
        content(self)?;
        self.0.write_event(Event::End(BytesEnd::new(name)))
    }

    fn empty(&mut self, name: &str, attributes: Attributes) -> io::Result<()> {
        self.0.write_event(Event::Empty(start_tag(name, &attributes)))
    }

    fn run(&mut self, result: &RunResult) -> io::Result<()> {
        let (state, reason) = outcome_attributes(&result.outcome);
        let mut attributes = vec![("profile", result.profile.clone()), ("seed", result.seed.to_string())];
        attributes.push(("outcome", state.to_owned()));
        attributes.extend(reason.map(|reason| ("reason", reason.to_owned())));
        self.element("run", attributes, |file| {
            for note in result.rate_shortfall().iter().chain(&result.notes) {
                file.element("note", Vec::new(), |file| {
                    file.0.write_event(Event::Text(BytesText::new(&replace_forbidden(note))))
                })?;
            }
            file.summary(&result.totals)?;
            for group in &result.groups {
                let attributes = vec![("name", group.name.clone()), ("strands", group.strand_count.to_string())];
                file.element("group", attributes, |file| {
                    file.summary(&group.totals)?;
                    group.transactions.iter().try_for_each(|transaction| file.transaction(transaction))
                })?;
            }
            for machine in &result.machines {
                file.element("timeseries", vec![("machine", machine.name.clone())], |file| {
                    machine.progress.iter().try_for_each(|point| {
                        let counts = [
                            ("sent-bytes", point.sent_bytes),
                            ("received-bytes", point.received_bytes),
                            ("operations", point.operations),
                        ];
                        let times = [("at", point.end_seconds.to_string()), ("seconds", point.seconds.to_string())];
                        let counts = counts.map(|(name, count)| (name, count.to_string()));
                        file.empty("interval", times.into_iter().chain(counts).collect())
                    })
                })?;
            }
            Ok(())
        })
    }

    fn summary(&mut self, totals: &Totals) -> io::Result<()> {
        let mut attributes = vec![
            ("seconds", totals.seconds.to_string()),
            ("sent-bytes", totals.sent_bytes.to_string()),
            ("received-bytes", totals.received_bytes.to_string()),
            ("operations", totals.operations.to_string()),
            ("rounds", totals.rounds.to_string()),
            ("errors", totals.errors.to_string()),
            ("timeouts", totals.timeouts.to_string()),
            ("lost-datagrams", totals.lost_datagrams.to_string()),
            ("failed-rounds", totals.failed_rounds.to_string()),
            ("pending-rounds", totals.pending_rounds.map_or(0, |pending| pending.count).to_string()),
        ];
        if let Some(scheduled) = totals.scheduled_rounds {
            attributes.push(("due-rounds", scheduled.due.to_string()));
            attributes.push(("not-started-rounds", scheduled.not_started.to_string()));
        }
        let optional = [
            ("received-bytes-per-second", totals.throughput),
            ("sent-bytes-per-second", totals.sent_throughput),
            ("difference-percent", totals.difference_percent),
            ("operations-per-second", totals.operations_per_second),
            ("rounds-per-second", totals.rounds_per_second),
        ];
        attributes.extend(optional.into_iter().filter_map(|(name, value)| Some((name, value?.to_string()))));
        self.element("summary", attributes, |file| {
            file.latency("response", totals.response.as_ref())?;
            file.latency("round", totals.latency.as_ref())
        })
    }

    fn transaction(&mut self, transaction: &wb_results::net::TransactionResult) -> io::Result<()> {
        let attributes = vec![
            ("name", transaction.name.clone()),
            ("seconds", transaction.seconds.to_string()),
            ("sent-bytes", transaction.sent_bytes.to_string()),
            ("received-bytes", transaction.received_bytes.to_string()),
            ("operations", transaction.operations.to_string()),
        ];
        self.element("transaction", attributes, |file| {
            file.latency("response", transaction.response.as_ref())?;
            file.latency("round", transaction.latency.as_ref())?;
            file.latency("lag", transaction.lag.as_ref())?;
            for flowop in &transaction.flowops {
                for (side, tally) in [("client", Some(&flowop.client)), ("server", flowop.server.as_ref())] {
                    let Some(tally) = tally else { continue };
                    let mut attributes = vec![
                        ("name", flowop.name.clone()),
                        ("side", side.to_owned()),
                        ("count", tally.count.to_string()),
                        ("bytes", tally.bytes.to_string()),
                        ("timeouts", tally.timeouts.to_string()),
                        ("late", tally.late.to_string()),
                        ("reordered", tally.reordered.to_string()),
                    ];
                    attributes.extend(tally.jitter_ns.map(|jitter| ("jitter-ns", jitter.to_string())));
                    file.element("flowop", attributes, |file| file.latency("service", tally.latency.as_ref()))?;
                }
            }
            Ok(())
        })
    }

    fn latency(&mut self, kind: &str, latency: Option<&LatencySummary>) -> io::Result<()> {
        let Some(latency) = latency else { return Ok(()) };
        let p = latency.percentiles;
        let attributes = vec![
            ("of", kind.to_owned()),
            ("count", latency.count.to_string()),
            ("pending", latency.pending.to_string()),
            ("mean-ns", latency.mean_ns.to_string()),
            ("min-ns", p.min_ns.to_string()),
            ("p50-ns", p.p50_ns.to_string()),
            ("p90-ns", p.p90_ns.to_string()),
            ("p99-ns", p.p99_ns.to_string()),
            ("p99-9-ns", p.p99_9_ns.to_string()),
            ("p99-99-ns", p.p99_99_ns.to_string()),
            ("max-ns", p.max_ns.to_string()),
        ];
        self.empty("latency", attributes)
    }
}

fn start_tag<'a>(name: &'a str, attributes: &Attributes) -> BytesStart<'a> {
    let mut start = BytesStart::new(name);
    attributes.iter().for_each(|(name, value)| start.push_attribute((*name, replace_forbidden(value).as_str())));
    start
}

fn outcome_attributes(outcome: &RunStatus) -> (&'static str, Option<&str>) {
    match outcome {
        RunStatus::Completed => ("completed", None),
        RunStatus::Truncated => ("truncated", None),
        RunStatus::Interrupted => ("interrupted", None),
        RunStatus::Unsupported { reason } => ("unsupported", Some(reason)),
        RunStatus::Failed { reason } => ("failed", Some(reason)),
        RunStatus::Lost { reason } => ("lost", Some(reason)),
    }
}
