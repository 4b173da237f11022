//! Prints events of the workload: reports on standard output, messages on standard error.

use wb_hashd::{HashdEvent, HashdReport};
use wb_model::Unit;

use crate::error::Error;
use crate::output::print_now;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReportFormat {
    Text,
    Json,
}

pub(super) struct ReportOutput {
    format: ReportFormat,
    quiet: bool,
    lines: usize,
}

/// Lines of text after which the header is repeated.
const HEADER_INTERVAL: usize = 20;

impl ReportOutput {
    pub(super) fn new(format: ReportFormat, quiet: bool) -> Self {
        Self { format, quiet, lines: 0 }
    }

    /// Returns false if standard output is closed.
    pub(super) fn print(&mut self, event: &HashdEvent) -> Result<bool, Error> {
        match event {
            HashdEvent::Preparing { memory, created, dir } => {
                if !self.quiet {
                    let footprint = format_bytes(*memory);
                    let files = match created {
                        0 => format!("test files in {} are used again", dir.display()),
                        created => format!("creating {} of test files in {}", format_bytes(*created), dir.display()),
                    };
                    crate::console::message!("footprint {footprint}; {files}");
                }
                Ok(true)
            }
            HashdEvent::Filling { bytes } => {
                if !self.quiet {
                    crate::console::message!("filling {} of the footprint", format_bytes(*bytes));
                }
                Ok(true)
            }
            HashdEvent::Started => Ok(true),
            HashdEvent::Report(report) => self.print_report(report),
        }
    }

    fn print_report(&mut self, report: &HashdReport) -> Result<bool, Error> {
        let text = match self.format {
            ReportFormat::Json => {
                serde_json::to_string(report).map_err(|error| Error::Internal(error.to_string()))? + "\n"
            }
            ReportFormat::Text => {
                let header = if self.lines.is_multiple_of(HEADER_INTERVAL) { HEADER } else { "" };
                format!("{header}{}\n", format_report(report))
            }
        };
        self.lines += 1;
        print_now(text.as_bytes())
    }
}

const HEADER: &str =
    "    time   rps    p50 ms    p95 ms    p99 ms  concurrency  in flight  files       anonymous   done\n";

fn format_report(report: &HashdReport) -> String {
    let latency = |of: fn(&wb_hashd::LatencyQuantiles) -> f64| {
        report.latency.as_ref().map_or_else(|| "-".to_owned(), |latency| format!("{:.1}", of(latency) * 1e3))
    };
    let concurrency = report.concurrency.map_or_else(|| "-".to_owned(), |concurrency| format!("{concurrency:.2}"));
    let mut line = format!(
        "{:6.1} s  {:<5.0}  {:>7}  {:>8}  {:>8}  {concurrency:>11}  {:>9}  {:<10}  {:<10}  {}",
        report.time,
        report.rps,
        latency(|latency| latency.p50),
        latency(|latency| latency.p95),
        latency(|latency| latency.p99),
        report.in_flight,
        format_bytes(report.file_bytes),
        format_bytes(report.anon_bytes),
        report.done,
    );
    for (count, name) in [(report.backlog, "waiting"), (report.dropped, "dropped"), (report.errors, "errors")] {
        if count > 0 {
            line += &format!("  {count} {name}");
        }
    }
    if let Some(error) = &report.error {
        line += &format!(": {error}");
    }
    line
}

pub(super) fn format_bytes(bytes: u64) -> String {
    Unit::new("B").quantity(bytes as f64).to_string()
}
