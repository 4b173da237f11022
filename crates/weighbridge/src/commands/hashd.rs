//! `weighbridge hashd`: runs the request workload, and reports each second.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use wb_hashd::{Hashd, HashdConfig, HashdError, HashdEvent, HashdParams, HashdReport, OpenLoop, ParamsFile};
use wb_model::{Nanos, Unit};
use wb_session::program::runtime;

use crate::cli::hashd::HashdArgs;
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;

/// How often the parameters file is read.
const POLL: Duration = Duration::from_millis(250);

/// Runs the workload for people, or with `--json` for programs.
pub(crate) fn hashd(args: &HashdArgs, console: &Console) -> Result<Exit, Error> {
    let overrides = Overrides { rps_target: args.rps_target, lat_target: args.lat_target, open_loop: args.open_loop };
    let mut file = args.params.as_ref().map(ParamsFile::new);
    let params = match file.as_mut().and_then(ParamsFile::read_if_changed) {
        Some(params) => params?,
        None => HashdParams::default(),
    };
    let config = HashdConfig {
        params: overrides.apply(params),
        dir: args.dir.clone(),
        memory: args.memory,
        seed: args.seed,
        duration: args.duration,
        keep_files: args.keep_files,
    };
    let output = if args.json { ReportFormat::Json } else { ReportFormat::Text };
    run(&config, file.as_mut(), &overrides, output, console.quiet)
}

/// Runs the workload of a configuration, and prints each report as a line of JSON.
pub(crate) fn exec(config: &HashdConfig) -> Result<Exit, Error> {
    run(config, None, &Overrides::default(), ReportFormat::Json, true)
}

/// Parameters of the command line, which take precedence over those of the file.
#[derive(Debug, Default)]
struct Overrides {
    rps_target: Option<f64>,
    lat_target: Option<Nanos>,
    open_loop: Option<f64>,
}

impl Overrides {
    fn apply(&self, mut params: HashdParams) -> HashdParams {
        params.rps_target = self.rps_target.or(params.rps_target);
        params.lat_target = self.lat_target.unwrap_or(params.lat_target);
        if let Some(rate) = self.open_loop {
            let arrivals = params.open_loop.map(|open_loop| open_loop.arrivals).unwrap_or_default();
            params.open_loop = Some(OpenLoop { rate, arrivals });
        }
        params
    }
}

/// How reports are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReportFormat {
    Text,
    Json,
}

/// What the loop waits for.
enum Event {
    Hashd(HashdEvent),
    Signal,
}

fn run(
    config: &HashdConfig,
    mut file: Option<&mut ParamsFile>,
    overrides: &Overrides,
    format: ReportFormat,
    quiet: bool,
) -> Result<Exit, Error> {
    let (sender, events) = channel();
    let is_cancelled = Arc::new(AtomicBool::new(false));
    listen_for_signals(sender.clone(), is_cancelled.clone());
    // The receiver lives until the workload has ended.
    let on_event = move |event| drop(sender.send(Event::Hashd(event)));
    let mut hashd = match Hashd::start(config, &|| is_cancelled.load(Ordering::Relaxed), on_event) {
        Ok(hashd) => hashd,
        Err(HashdError::Cancelled) => return Ok(end_of_signal(config)),
        Err(error) => return Err(error.into()),
    };
    let mut output = ReportOutput { format, quiet, lines: 0 };
    let end = run_until_end(
        &mut hashd,
        &events,
        config.duration,
        |hashd| {
            if let Some(file) = file.as_mut() {
                reload(hashd, file, overrides, quiet);
            }
        },
        &mut output,
    );
    // The workload ends before an error of the output is reported: nothing stays in any case.
    hashd.stop();
    let end = end?;
    for event in events.try_iter() {
        if let Event::Hashd(event) = event {
            output.print(&event)?;
        }
    }
    Ok(match end {
        End::Duration | End::ClosedOutput => Exit::Success,
        End::Signal => end_of_signal(config),
    })
}

/// A signal is the regular end of a workload without a duration.
fn end_of_signal(config: &HashdConfig) -> Exit {
    if config.duration.is_some() { Exit::Interrupted } else { Exit::Success }
}

/// Why the workload ends.
enum End {
    Duration,
    Signal,
    /// Nobody reads the reports any more.
    ClosedOutput,
}

fn run_until_end(
    hashd: &mut Hashd,
    events: &Receiver<Event>,
    duration: Option<Nanos>,
    mut poll: impl FnMut(&mut Hashd),
    output: &mut ReportOutput,
) -> Result<End, Error> {
    let mut deadline = None;
    let mut next_poll = Instant::now() + POLL;
    loop {
        let now = Instant::now();
        if deadline.is_some_and(|deadline| now >= deadline) {
            return Ok(End::Duration);
        }
        if now >= next_poll {
            poll(hashd);
            next_poll = now + POLL;
        }
        let wake = deadline.map_or(next_poll, |deadline: Instant| deadline.min(next_poll));
        match events.recv_timeout(wake.saturating_duration_since(now)) {
            Ok(Event::Signal) => return Ok(End::Signal),
            Ok(Event::Hashd(event)) => {
                if event == HashdEvent::Started {
                    deadline = duration.and_then(|duration| Instant::now().checked_add(duration.into()));
                }
                if !output.print(&event)? {
                    return Ok(End::ClosedOutput);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::Internal("the control thread of hashd has ended".to_owned()));
            }
        }
    }
}

/// Applies the parameters file if it has changed. An invalid one is reported, and changes nothing.
fn reload(hashd: &mut Hashd, file: &mut ParamsFile, overrides: &Overrides, quiet: bool) {
    let Some(params) = file.read_if_changed() else { return };
    let path = file.path().display();
    match params.map(|params| hashd.set_params(overrides.apply(params))) {
        Ok(Ok(())) if !quiet => crate::console::message!("{path}: parameters reloaded"),
        Ok(Ok(())) => {}
        Ok(Err(error)) => crate::console::message!("warning: {path}: {error}; the previous parameters stay in force"),
        Err(diagnostic) => {
            crate::console::message!("warning: {}; the previous parameters stay in force", diagnostic.one_line());
        }
    }
}

/// Sends an event for each SIGINT, SIGTERM and SIGHUP, from a thread of its own.
fn listen_for_signals(events: Sender<Event>, is_cancelled: Arc<AtomicBool>) {
    use tokio::signal::unix::{SignalKind, signal};
    let (ready, is_ready) = channel();
    thread::spawn(move || {
        let Ok(runtime) = runtime() else { return };
        runtime.block_on(async {
            let listen = |kind| signal(kind).ok();
            let (Some(mut interrupt), Some(mut terminate), Some(mut hangup)) =
                (listen(SignalKind::interrupt()), listen(SignalKind::terminate()), listen(SignalKind::hangup()))
            else {
                return;
            };
            drop(ready);
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    _ = hangup.recv() => {}
                }
                is_cancelled.store(true, Ordering::Relaxed);
                // The receiver is gone once the workload has ended.
                let _ = events.send(Event::Signal);
            }
        });
    });
    // From here on, a signal ends the workload in order. An error means that the thread is ready, or has ended.
    let _ = is_ready.recv_timeout(Duration::from_secs(5)).map(|(): ()| ());
}

/// Prints events: reports on standard output, messages on standard error.
struct ReportOutput {
    format: ReportFormat,
    quiet: bool,
    lines: usize,
}

/// Lines of text after which the header is repeated.
const HEADER_INTERVAL: usize = 20;

impl ReportOutput {
    /// Prints an event; false if standard output is closed.
    fn print(&mut self, event: &HashdEvent) -> Result<bool, Error> {
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
        let mut out = std::io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
            Err(source) => Err(Error::File { path: "standard output".to_owned(), source }),
        }
    }
}

const HEADER: &str =
    "    time   rps    p50 ms    p95 ms    p99 ms  concurrency  in flight  files       anonymous   done\n";

/// One line of text for a report.
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

fn format_bytes(bytes: u64) -> String {
    Unit::new("B").quantity(bytes as f64).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_override_the_file() {
        let overrides = Overrides { rps_target: Some(20.0), lat_target: None, open_loop: None };
        let file = HashdParams { rps_target: Some(5.0), lat_target: Nanos(1), ..HashdParams::default() };
        let params = overrides.apply(file);
        assert_eq!((params.rps_target, params.lat_target), (Some(20.0), Nanos(1)));
    }
}
