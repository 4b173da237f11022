//! `weighbridge net uperf`: uperf's options and output, over this program's engine.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use wb_net::engine::clock;
use wb_net::engine::protocol::EngineProgress;
use wb_net::engine::raw_log::LatencyRecord;
use wb_net::session::client::ClientRun;
use wb_net::session::coordinator::RunObserver;
use wb_net::session::limits::SessionLimits;
use wb_net_profile::{NetProfile, StrandKind};
use wb_report::net::ResultSections;
use wb_report::net::uperf::{ProgressLine, result_text, separator, timestamped_line};
use wb_results::net::RunResult;
use wb_session::program::runtime;

use super::outcome::{report_outcome, start_error};
use super::response_log::{ResponseLayout, ResponseLog};
use super::run::engine_settings;
use super::serve::{ServerConfig, SessionLog, run_server, wait_for_signal};
use super::{check, child_command, random_seed, trust};
use crate::cli::net::uperf::UperfArgs;
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{self, print_bytes, print_text};

pub(super) fn uperf(args: &UperfArgs, console: &Console) -> Result<Exit, Error> {
    match &args.profile {
        _ if args.version => {
            print_text(&format!("weighbridge {}, with the options of uperf 1.0.8\n", env!("CARGO_PKG_VERSION")))?;
            Ok(Exit::Success)
        }
        Some(profile) => run_master(args, profile, console),
        None => serve(args),
    }
}

fn serve(args: &UperfArgs) -> Result<Exit, Error> {
    let config = ServerConfig {
        address: SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), args.port),
        credentials: trust::credentials(&args.trust)?,
        limits: SessionLimits::default(),
        cpus: Vec::new(),
        client_cpus: false,
        one_port: false,
        progress_interval: None,
        once: false,
        idle_limit: None,
    };
    let (log, verbose) = (SessionLog::default(), args.verbose);
    run_server(
        config,
        |_| Ok(()),
        move |event| {
            if verbose || event.is_failure() {
                log.print(event);
            }
        },
        || {},
    )?;
    Ok(Exit::Success)
}

fn run_master(args: &UperfArgs, path: &Path, console: &Console) -> Result<Exit, Error> {
    let (profile, mut notes) = check::load_profile(path, &[])?;
    let create = |path| ResponseLog::create(path, ResponseLayout::Uperf);
    let mut responses = args.raw.as_ref().map(create).transpose()?;
    if let Some(responses) = &mut responses {
        responses.start_profile(&profile, None);
    }
    let (mut settings, note) = engine_settings(&args.events, args.counters);
    notes.extend(note);
    settings.progress_interval = args.interval.0;
    settings.flowop_cpu = args.cpu;
    settings.raw = responses.is_some();
    settings.totals_only = args.no_statistics;
    let credentials = trust::credentials(&args.trust)?;
    let run =
        ClientRun { port: args.port, settings, ..ClientRun::new(profile, credentials, child_command(), random_seed()) };
    print_text(&starting_line(&run.profile))?;
    let mut observer = TransactionProgress::new(&run.profile, args.timestamped, responses.as_mut());
    let record = runtime()?.block_on(run.execute(wait_for_signal(), &mut observer));
    let result = wb_net::result::assemble(&run, record.map_err(|error| start_error(&error))?);
    observer.finish(&result)?;
    let has_flowops = args.all || args.flowops || args.cpu || args.counters || !args.events.is_empty();
    let sections = ResultSections {
        groups: args.all || args.groups,
        threads: args.all || args.threads,
        transactions: args.all || args.transactions,
        flowops: has_flowops,
        netstat: true,
        nested: false,
    };
    let ended = args.timestamped.then(millis_of_day);
    print_text(&result_text(&run.profile, &result, sections, ended))?;
    responses.map_or(Ok(()), ResponseLog::finish)?;
    if args.verbose {
        notes.push(format!("seed {}", result.seed));
        notes.extend(result.machines.iter().map(|machine| format!("{}: {}", machine.name, machine.executor)));
    }
    for note in notes.iter().chain(&result.notes) {
        crate::console::message!("note: {note}");
    }
    Ok(report_outcome(&result.outcome, console))
}

fn starting_line(profile: &NetProfile) -> String {
    let strands =
        |kind| profile.groups.iter().filter(|group| group.kind == kind).map(|group| group.strands).sum::<u32>();
    let counts = [(strands(StrandKind::Thread), "threads"), (strands(StrandKind::Process), "processes")];
    let counts: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, unit)| format!("{count} {unit}")).collect();
    format!("Starting {} running profile:{} ...   0.00 seconds\n", counts.join(", "), profile.name)
}

/// Prints the progress of transactions as uperf does: one line that changes, on a terminal, or lines for scripts. As
/// there, the transactions are those of the first group, counted from 1, and counts begin with each.
pub(super) struct TransactionProgress<'a> {
    profile: &'a NetProfile,
    timestamped: bool,
    is_terminal: bool,
    run_start: u64,
    /// The transaction of the first group, and when it began.
    transaction: usize,
    began: u64,
    /// Counts of each machine, and their sums when the transaction began.
    counts: BTreeMap<Option<String>, EngineProgress>,
    before: (u64, u64),
    /// The machines that have reported since the last line, of how many.
    reported: BTreeSet<Option<String>>,
    machines: usize,
    responses: Option<&'a mut ResponseLog>,
    /// Why a line could not be printed; the run goes on.
    failure: Option<Error>,
}

impl<'a> TransactionProgress<'a> {
    pub(super) fn new(profile: &'a NetProfile, timestamped: bool, responses: Option<&'a mut ResponseLog>) -> Self {
        let is_terminal = output::is_terminal();
        Self {
            profile,
            timestamped,
            is_terminal,
            run_start: clock::now(),
            transaction: 0,
            began: clock::now(),
            counts: BTreeMap::new(),
            before: (0, 0),
            reported: BTreeSet::new(),
            machines: 1 + wb_net_profile::mirror::hosts(profile).len(),
            responses,
            failure: None,
        }
    }

    /// Bytes received by all machines and executions of this one, as far as they are known.
    fn totals(&self) -> (u64, u64) {
        let operations = self.counts.get(&None).map_or(0, |counts| counts.operations);
        (self.counts.values().map(|counts| counts.received).sum(), operations)
    }

    fn print_line(&mut self) {
        let name = format!("Txn{}", self.transaction + 1);
        let (bytes, operations) = self.totals();
        let (bytes, operations) = (bytes.saturating_sub(self.before.0), operations.saturating_sub(self.before.1));
        let text = if self.timestamped {
            timestamped_line(millis_of_day(), &name, bytes, operations)
        } else if self.is_terminal {
            let seconds = clock::now().saturating_sub(self.began) as f64 / 1e9;
            format!("\r{}", ProgressLine { bytes, seconds, operations }.line(&name))
        } else {
            return;
        };
        self.failure = self.failure.take().or(print_bytes(text.as_bytes()).err());
    }

    pub(super) fn finish(&mut self, result: &RunResult) -> Result<(), Error> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        if self.timestamped {
            self.print_line();
            let all = || result.groups.iter().flat_map(|group| &group.transactions);
            let bytes = all().map(|transaction| transaction.received_bytes).sum();
            let operations = all().map(|transaction| transaction.operations).sum();
            let line = timestamped_line(millis_of_day(), "Total", bytes, operations);
            return print_text(&format!("\n{}{line}\n", separator()));
        }
        if self.is_terminal { print_bytes(format!("\r{:79}\r", "").as_bytes()) } else { Ok(()) }
    }
}

impl RunObserver for TransactionProgress<'_> {
    fn on_progress(&mut self, host: Option<&str>, progress: EngineProgress) {
        let host = host.map(str::to_owned);
        // One line for the reports of all machines, as they arrive at about the same time.
        if self.reported.contains(&host) {
            self.print_line();
            self.reported.clear();
        }
        self.counts.insert(host.clone(), progress);
        self.reported.insert(host);
        if self.reported.len() == self.machines {
            self.print_line();
            self.reported.clear();
        }
    }

    fn on_ended(&mut self, host: Option<&str>, progress: EngineProgress) {
        self.counts.insert(host.map(str::to_owned), progress);
    }

    fn on_transaction(&mut self, group: usize, transaction: usize) {
        if group > 0 || self.profile.groups.is_empty() {
            return;
        }
        if self.timestamped && transaction > 0 {
            self.print_line();
            self.failure = self.failure.take().or(print_text("\n").err());
        }
        self.before = self.totals();
        (self.transaction, self.began) = (transaction, clock::now());
        self.print_line();
    }

    fn on_latencies(&mut self, times: &[LatencyRecord]) {
        if let Some(responses) = &mut self.responses {
            responses.append(self.run_start, times);
        }
    }
}

fn millis_of_day() -> f64 {
    // A clock before 1970 has no such time.
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1e3
}
