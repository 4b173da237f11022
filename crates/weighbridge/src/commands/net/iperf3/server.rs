//! The server, which reports each test as iperf3's does.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use wb_net::session::limits::{RateLimit, SessionLimits};
use wb_net::session::server::{ServerEvent, SessionOutcome};
use wb_report::net::iperf3::json::{CpuUsage, Identity, JsonReport};
use wb_report::net::iperf3::text::{TextReport, listening};
use wb_report::net::iperf3::{Side, Test};

use super::{BUSY, Output, OutputForm, fail, identity};
use crate::cli::net::iperf3::Iperf3Args;
use crate::commands::net::serve::{ServerConfig, ServerEnd, SessionLog, run_server};
use crate::commands::net::trust;
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;

/// Serves one test after the other.
pub(super) fn run(args: &Iperf3Args, output: Output, console: &Console) -> Result<Exit, Error> {
    let form = OutputForm::new(args);
    let any = if args.version4 { Ipv4Addr::UNSPECIFIED.into() } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
    let config = ServerConfig {
        address: SocketAddr::new(args.bind.unwrap_or(any), args.port),
        credentials: trust::credentials(&args.trust)?,
        limits: SessionLimits {
            sessions: 1,
            rate: args.server_bitrate_limit.map(|limit| RateLimit {
                bits_per_second: limit.bits_per_second,
                over: Duration::from_secs(limit.seconds.into()),
            }),
            ..SessionLimits::default()
        },
        cpus: args.affinity.iter().map(|affinity| affinity.own).collect(),
        client_cpus: true,
        // As with iperf3, a firewall has to permit one port only.
        one_port: true,
        progress_interval: Some(args.interval.length()),
        once: args.one_off,
        idle_limit: args.idle_timeout.map(|seconds| Duration::from_secs(seconds.into())),
    };
    let reporter = Arc::new(Reporter {
        port: args.port,
        form,
        format: args.format,
        log: SessionLog::default(),
        once: args.one_off,
        verbose: args.verbose,
        state: Mutex::default(),
        output,
    });
    let (listening, idle, events) = (reporter.clone(), reporter.clone(), reporter.clone());
    let on_idle = move || {
        if let Err(error) = idle.announce() {
            error.warn();
        }
    };
    let end = run_server(config, move |_| listening.announce(), move |event| events.report(event), on_idle);
    match end {
        Ok(ServerEnd::Once | ServerEnd::Idle) => Ok(Exit::Success),
        // As iperf3, which has one status for every end before its time.
        Ok(ServerEnd::Signal(_)) => {
            let error = Error::Usage {
                what: "interrupt - the server has terminated".to_owned(),
                help: "`-1` ends a server after one test".to_owned(),
            };
            Ok(error.report(console))
        }
        Err(error) => {
            fail(form, &reporter.output, &error)?;
            Err(error)
        }
    }
}

struct Reporter {
    port: u16,
    form: OutputForm,
    format: wb_report::net::iperf3::RateUnit,
    once: bool,
    verbose: bool,
    output: Output,
    /// What iperf3 has no line for.
    log: SessionLog,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    tests: u64,
    running: Option<RunningTest>,
}

struct RunningTest {
    report: TextReport,
    identity: Identity,
    cpu: CpuUsage,
}

impl Reporter {
    fn announce(&self) -> Result<(), Error> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.tests += 1;
        match self.form {
            OutputForm::Text => self.output.write_text(&listening(self.port, state.tests)),
            OutputForm::Json | OutputForm::JsonStream => Ok(()),
        }
    }

    fn report(&self, event: &ServerEvent) {
        if let Err(error) = self.handle(event) {
            // The test goes on; its client has the figures, too.
            error.warn();
        }
    }

    fn handle(&self, event: &ServerEvent) -> Result<(), Error> {
        match event {
            ServerEvent::RunAccepted(from, assignment) => {
                let profile = &assignment.profile;
                let host = from.ip().to_canonical().to_string();
                let Some(mut test) = Test::from_profile(profile, Side::Server, &host, Some(from.port())) else {
                    return Ok(());
                };
                test.rate_unit = self.format;
                let identity = identity();
                let report = TextReport::new(test, profile, self.verbose.then(|| identity.clone()));
                if self.form == OutputForm::Text {
                    self.output.write_text(&report.heading())?;
                }
                let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                state.running = Some(RunningTest { report, identity, cpu: CpuUsage::default() });
                Ok(())
            }
            ServerEvent::StrandProgress(_, progress) => {
                let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(running) = &mut state.running else { return Ok(()) };
                let lines = running.report.push(progress);
                if self.form == OutputForm::Text { self.output.write_text(&lines) } else { Ok(()) }
            }
            ServerEvent::RunMeasured(_, usage, seconds) => {
                let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(running) = &mut state.running {
                    running.cpu = CpuUsage { host: Some(*usage), remote: None, seconds: *seconds };
                }
                Ok(())
            }
            ServerEvent::SessionEnded(_, outcome) => {
                let running = self.state.lock().unwrap_or_else(PoisonError::into_inner).running.take();
                if let Some(running) = running {
                    self.finish(running, outcome)?;
                }
                if !matches!(outcome, SessionOutcome::Done) {
                    self.log.print(event);
                }
                if self.once { Ok(()) } else { self.announce() }
            }
            ServerEvent::Busy(from, _) => {
                // The test that is running goes on, and is reported.
                self.log.print_refusal(*from, &BUSY);
                Ok(())
            }
            ServerEvent::Refused(..) => {
                self.log.print(event);
                Ok(())
            }
            ServerEvent::SessionStarted(..) => Ok(()),
        }
    }

    fn finish(&self, running: RunningTest, outcome: &SessionOutcome) -> Result<(), Error> {
        let RunningTest { mut report, identity, cpu } = running;
        match self.form {
            OutputForm::Text => self.output.write_text(&report.summary(None, None, cpu)),
            OutputForm::Json | OutputForm::JsonStream => {
                let json = JsonReport {
                    test: report.test(),
                    identity: &identity,
                    samples: report.samples(),
                    other: None,
                    cpu,
                };
                let mut document = json.document();
                if let SessionOutcome::Failed(reason) = outcome {
                    document.insert("error".to_owned(), json!(reason));
                }
                self.output.write_json(&document, self.form == OutputForm::Json)
            }
        }
    }
}
