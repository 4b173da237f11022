//! The workload of a sizing: a process of its own, which the kernel may kill when memory runs out.

use std::io::{BufRead, BufReader, Read, Write};
use std::ops::ControlFlow;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use wb_hashd::sizing::{DisturbanceMonitor, Observation, SizingConfig, SizingError, SizingWorkload, WindowEnd};
use wb_hashd::{HashdParams, HashdReport};
use wb_sys::SysRoot;

/// How often a signal is noticed.
const POLL: Duration = Duration::from_millis(200);

/// A workload that is started when it is needed, and again after it was killed.
pub(super) struct ChildWorkload {
    config: SizingConfig,
    program: PathBuf,
    is_cancelled: Arc<AtomicBool>,
    running: Option<RunningChild>,
    resident_bytes: u64,
}

impl ChildWorkload {
    pub(super) fn new(config: SizingConfig, program: PathBuf, is_cancelled: Arc<AtomicBool>) -> Self {
        Self { config, program, is_cancelled, running: None, resident_bytes: 0 }
    }

    /// The process with these parameters; `None` if it has ended before it got them.
    fn with_params(&mut self, params: &HashdParams) -> Result<&mut RunningChild, SizingError> {
        let running = match self.running.take() {
            Some(mut running) => {
                running.set_params(params)?;
                running
            }
            None => RunningChild::start(&self.program, &self.config, params)?,
        };
        Ok(self.running.insert(running))
    }
}

impl SizingWorkload for ChildWorkload {
    fn observe(
        &mut self,
        params: &HashdParams,
        on_report: &mut dyn FnMut(&HashdReport) -> ControlFlow<()>,
    ) -> Result<Observation, SizingError> {
        let is_cancelled = self.is_cancelled.clone();
        let is_cpu_faked = self.config.params.fake_cpu_load;
        let running = self.with_params(params)?;
        let mut monitor = None;
        let end = loop {
            if is_cancelled.load(Ordering::Relaxed) {
                break WindowEnd::Cancelled;
            }
            match running.reports.recv_timeout(POLL) {
                Ok(report) => {
                    if report.changes != running.changes || report.is_filling {
                        continue;
                    }
                    monitor.get_or_insert_with(|| DisturbanceMonitor::begin(&SysRoot::real(), running.process.id()));
                    let is_over = on_report(&report).is_break();
                    if is_over {
                        self.resident_bytes = report.resident_bytes;
                        break WindowEnd::Observed;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    running.wait_for_kill()?;
                    break WindowEnd::Killed;
                }
            }
        };
        if end != WindowEnd::Observed {
            self.running = None;
            self.resident_bytes = 0;
        }
        let disturbance = monitor.map(|monitor| monitor.end(is_cpu_faked)).unwrap_or_default();
        Ok(Observation { end, disturbance })
    }

    fn resident_bytes(&self) -> u64 {
        self.resident_bytes
    }
}

/// `weighbridge-agent exec hashd`. Dropping it ends the process.
struct RunningChild {
    process: Child,
    params: Option<ChildStdin>,
    reports: Receiver<HashdReport>,
    /// How often it was given other parameters.
    changes: u64,
}

impl RunningChild {
    fn start(program: &Path, config: &SizingConfig, params: &HashdParams) -> Result<Self, SizingError> {
        let config = to_json(&config.workload(params.clone()))?;
        let mut process = Command::new(program)
            .args(["exec", "hashd", &config])
            // A process of its own, which gets other parameters over its input: when memory runs out, the kernel kills
            // the largest process of a control group, which is a result and not the end of the sizing.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C ends the sizing, which then ends its process.
            .process_group(0)
            .spawn()
            .map_err(|error| ended(&error))?;
        let (sender, reports) = channel();
        let output = process.stdout.take();
        thread::spawn(move || {
            let lines = output.into_iter().flat_map(|output| BufReader::new(output).lines()).map_while(Result::ok);
            let parsed = lines.map_while(|line| serde_json::from_str(&line).ok());
            // The receiver is gone once the process is not needed any more.
            parsed.map_while(|report| sender.send(report).ok()).for_each(drop);
        });
        let params = process.stdin.take();
        Ok(Self { process, params, reports, changes: 0 })
    }

    /// A process that has ended meanwhile is noticed when its reports are read.
    fn set_params(&mut self, params: &HashdParams) -> Result<(), SizingError> {
        let line = to_json(params)? + "\n";
        self.changes += 1;
        match self.params.as_mut().map(|params| params.write_all(line.as_bytes())) {
            Some(Err(error)) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(ended(&error)),
            _ => Ok(()),
        }
    }

    /// Waits for the end of a process that has closed its output. Fails if it was not killed, but ended by itself.
    fn wait_for_kill(&mut self) -> Result<(), SizingError> {
        let status = self.process.wait().map_err(|error| ended(&error))?;
        if status.signal() == Some(Signal::KILL.as_raw()) {
            return Ok(());
        }
        let mut message = String::new();
        if let Some(mut output) = self.process.stderr.take() {
            // The status is reported anyway.
            let _ = output.read_to_string(&mut message);
        }
        Err(SizingError::Ended { message: end_message(status, &message) })
    }
}

impl Drop for RunningChild {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = kill_process(Pid::from_child(&self.process), Signal::TERM);
        let _ = self.process.wait();
    }
}

/// The first line of what it printed, or its status.
fn end_message(status: ExitStatus, output: &str) -> String {
    match output.lines().find(|line| !line.is_empty()) {
        Some(line) => line.trim_start_matches("error: ").to_owned(),
        None => status.to_string(),
    }
}

fn ended(error: &dyn std::fmt::Display) -> SizingError {
    SizingError::Ended { message: error.to_string() }
}

fn to_json(value: &impl serde::Serialize) -> Result<String, SizingError> {
    serde_json::to_string(value).map_err(|error| ended(&error))
}
