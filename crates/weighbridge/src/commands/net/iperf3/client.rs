//! The client: translates iperf3's options into a profile, and reports it as iperf3 does.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::Duration;

use serde_json::{Map, Value, json};
use wb_net::control::{ControlLimits, Credentials};
use wb_net::engine::clock;
use wb_net::engine::protocol::{EngineErrorKind, EngineProgress, Settings};
use wb_net::engine::raw_log::LatencyRecord;
use wb_net::session::client::ClientRun;
use wb_net::session::coordinator::{RunFailure, RunObserver};
use wb_net_profile::presets::{self, PresetConfig};
use wb_net_profile::{Extent, FlowopAction, Group, MAX_UDP_PAYLOAD, NetProfile, Protocol};
use wb_report::net::iperf3::json::{CpuUsage, Identity, JsonReport};
use wb_report::net::iperf3::text::TextReport;
use wb_report::net::iperf3::{Amount, Samples, Side, Test};
use wb_results::net::StrandProgress;
use wb_results::net::Usage;
use wb_results::net::{RunResult, RunStatus};
use wb_session::program::runtime;

use super::{BUSY, Output, OutputForm, event, fail, identity};
use crate::cli::net::iperf3::{Iperf3Args, Iperf3TestFlags};
use crate::commands::net::outcome::{report_outcome, start_error};
use crate::commands::net::serve::wait_for_signal;
use crate::commands::net::{child_command, random_seed, trust};
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;

/// Block size of TCP and SCTP, as in iperf3.
const STREAM_BLOCK: u32 = 128 << 10;

/// Rate of UDP in bits per second, as in iperf3.
const UDP_RATE: f64 = 1_048_576.0;

/// Size of a datagram with its number and the time of sending, as in iperf3.
const MIN_DATAGRAM: u32 = 16;

/// Both directions of the most streams that can be requested have a thread each.
const MAX_THREADS: u32 = 256;

struct Start {
    address: SocketAddr,
    profile: NetProfile,
    credentials: Credentials,
}

impl Start {
    fn new(args: &Iperf3Args, host: &str) -> Result<Self, Error> {
        let address = resolve(args, host)?;
        let profile = build_profile(args, host, address)?;
        Ok(Self { address, profile, credentials: trust::credentials(&args.trust)? })
    }
}

pub(super) fn run(args: &Iperf3Args, host: &str, output: Output, console: &Console) -> Result<Exit, Error> {
    let form = OutputForm::new(args);
    let identity = identity();
    let Start { address, profile, credentials } = match Start::new(args, host) {
        Ok(start) => start,
        Err(error) => {
            fail(form, &output, &error)?;
            return Err(error);
        }
    };
    let mut test = Test::from_profile(&profile, Side::Client, host, Some(args.port))
        .ok_or_else(|| Error::Internal("no test of iperf3".to_owned()))?;
    test.amount = amount(&args.test);
    test.target_bitrate = target_bitrate(&args.test).unwrap_or(0.0);
    test.rate_unit = args.format;
    test.title = args.test.title.clone();
    test.extra_data = args.test.extra_data.clone();
    test.mss = args.test.mss;
    let run = ClientRun {
        servers: [(host.to_owned(), address.to_string())].into(),
        port: args.port,
        limits: ControlLimits {
            connect_timeout: Duration::from_millis(args.test.connect_timeout),
            ..ControlLimits::default()
        },
        settings: Settings {
            cpus: args.affinity.iter().map(|affinity| affinity.own).collect(),
            max_threads: MAX_THREADS,
            progress_interval: clock::nanos(args.interval.length()),
            strand_progress: true,
            repeating_payload: args.test.repeating_payload,
            ..Settings::default()
        },
        server_cpus: args.affinity.and_then(|affinity| affinity.server).into_iter().collect(),
        ..ClientRun::new(profile, credentials, child_command(), random_seed())
    };
    let mut observer = Observer {
        report: TextReport::new(test, &run.profile, args.verbose.then(|| identity.clone())),
        server: Samples::new(&run.profile),
        server_events: Vec::new(),
        keep_server_events: args.test.get_server_output,
        output: &output,
        identity: &identity,
        form,
        intervals: 0,
        has_start: false,
        failure: None,
    };
    if form == OutputForm::Text {
        output.write_text(&observer.report.heading())?;
    }
    let record = match runtime()?.block_on(run.execute(wait_for_signal(), &mut observer)) {
        Ok(record) => record,
        Err(error) => return Err(failed_start(form, &output, &start_error(&error))),
    };
    let is_busy = matches!(&record.outcome.failure,
        Some(RunFailure::Engine { error, .. }) if error.kind == EngineErrorKind::Busy);
    if is_busy {
        let error =
            Error::Usage { what: BUSY.to_owned(), help: "try again later, or start another server with -p".to_owned() };
        fail(form, &output, &error)?;
        return Err(error);
    }
    let result = wb_net::result::assemble(&run, record);
    if let Some(failure) = observer.failure.take() {
        return Err(failure);
    }
    observer.finish(&result, &run.profile)?;
    Ok(match &result.outcome {
        RunStatus::Completed | RunStatus::Truncated => Exit::Success,
        RunStatus::Failed { reason } | RunStatus::Lost { reason } => {
            let help = "see the output of the server; figures cover what was received".to_owned();
            Error::Usage { what: reason.clone(), help }.report(console)
        }
        outcome => {
            report_outcome(outcome, console);
            // As iperf3, which has one status for every failure.
            Exit::Error
        }
    })
}

/// An error before the start, which JSON contains, too.
fn failed_start(form: OutputForm, output: &Output, error: &Error) -> Error {
    let error = error.to_string().replace("`weighbridge net serve`", "`weighbridge net iperf3 -s`");
    let help = "`weighbridge net iperf3 -s` must run there, with the same token; -p selects another port".to_owned();
    let error = Error::Usage { what: error, help };
    fail(form, output, &error).err().unwrap_or(error)
}

/// The address of the server, in the requested family.
fn resolve(args: &Iperf3Args, host: &str) -> Result<SocketAddr, Error> {
    let name = host.trim_matches(['[', ']']);
    let usage =
        |what: String| Error::Usage { what, help: "give a name or an address, and -4 or -6 as it has".to_owned() };
    let addresses = (name, args.port).to_socket_addrs();
    let addresses = addresses.map_err(|error| usage(format!("cannot resolve host `{host}`: {error}")))?;
    let has_family = |address: &SocketAddr| match args.bind {
        _ if args.version4 => address.is_ipv4(),
        _ if args.version6 => address.is_ipv6(),
        Some(local) => local.is_ipv6() == address.is_ipv6(),
        None => true,
    };
    let family = if args.version6 { "IPv6" } else { "IPv4" };
    let found = addresses.into_iter().find(has_family);
    found.ok_or_else(|| usage(format!("host `{host}` has no address of the requested family ({family})")))
}

fn build_profile(args: &Iperf3Args, host: &str, address: SocketAddr) -> Result<NetProfile, Error> {
    let flags = &args.test;
    let protocol = match (flags.udp, flags.sctp) {
        (true, _) => Protocol::Udp,
        (_, true) => Protocol::Sctp,
        _ => Protocol::Tcp,
    };
    let size = flags.length.unwrap_or_else(|| if flags.udp { datagram_size(address) } else { STREAM_BLOCK });
    if flags.udp && !(MIN_DATAGRAM..=MAX_UDP_PAYLOAD).contains(&size) {
        return Err(Error::Usage {
            what: format!("invalid -l {size}: expected {MIN_DATAGRAM} to {MAX_UDP_PAYLOAD} bytes in a UDP datagram"),
            help: "a datagram has room for its number and the time of sending".to_owned(),
        });
    }
    let burst = burst(flags, size);
    let config = PresetConfig {
        local: args.bind.map(|address: IpAddr| address.to_string()),
        protocol,
        instances: flags.parallel,
        runtime: flags.time,
        no_delay: Some(flags.no_delay),
        window: flags.window,
        rate: target_bitrate(flags).map(|bits| bits / 8.0 / f64::from(size) / f64::from(burst)),
        warm_up: flags.omit,
        congestion: flags.congestion.clone(),
        mss: flags.mss,
        tos: flags.dscp.map(|code_point| code_point << 2).or(flags.tos),
        local_port: flags.cport,
        pacing: flags.fq_rate.filter(|rate| *rate > 0.0).map(|rate| (rate / 8.0) as u64),
        user_timeout: flags.snd_timeout.map(Duration::from_millis),
        dont_fragment: flags.dont_fragment,
        ..PresetConfig::new(host)
    };
    let mut profile = match (flags.reverse, flags.bidir) {
        (_, true) => presets::bidirec(&config, size),
        (true, _) => presets::maerts(&config, size),
        _ => presets::stream(&config, size),
    };
    "iperf3".clone_into(&mut profile.name);
    set_flowops(&mut profile, flags, burst);
    let blocks = match amount(flags) {
        Amount::Time(_) => return Ok(profile),
        Amount::Bytes(bytes) => bytes.div_ceil(u64::from(size)),
        Amount::Blocks(blocks) => blocks,
    };
    let parallel = u64::from(flags.parallel);
    // A round is a burst.
    let blocks = blocks.div_ceil(u64::from(burst));
    let (rounds, more) = (blocks / parallel, (blocks % parallel) as u32);
    // The first streams move a block more than the others.
    let parts = [(more, rounds + 1), (flags.parallel - more, rounds)];
    let groups = std::mem::take(&mut profile.groups);
    for group in groups {
        for (strands, rounds) in parts.into_iter().filter(|(strands, _)| *strands > 0) {
            let mut part = Group { strands, ..group.clone() };
            for transaction in &mut part.transactions {
                if transaction.moves_data() && !transaction.warm_up {
                    transaction.extent = Extent::Iterations(rounds);
                }
            }
            profile.groups.push(part);
        }
    }
    Ok(profile)
}

/// Blocks that are sent at once: with a rate, as many as `-b` says, or as the rate has in the time of `--pacing-timer`.
fn burst(flags: &Iperf3TestFlags, size: u32) -> u32 {
    let Some(rate) = target_bitrate(flags) else { return 1 };
    let by_timer = |microseconds: u32| (rate * f64::from(microseconds) / 1e6 / 8.0 / f64::from(size)).round() as u32;
    let burst = flags.bitrate.and_then(|rate| rate.burst);
    burst.or(flags.pacing_timer.map(by_timer)).unwrap_or(1).max(1)
}

/// Sets what presets do not have: bursts, time limits, and the ports of further groups.
fn set_flowops(profile: &mut NetProfile, flags: &Iperf3TestFlags, burst: u32) {
    let mut strands: u16 = 0;
    for group in &mut profile.groups {
        for flowop in group.transactions.iter_mut().flat_map(|transaction| &mut transaction.flowops) {
            match &mut flowop.action {
                FlowopAction::Connect(endpoint) => {
                    endpoint.local_port = endpoint.local_port.map(|port| port.saturating_add(strands));
                }
                FlowopAction::Send(_) => flowop.count = burst.into(),
                FlowopAction::Receive(message) => {
                    flowop.count = burst.into();
                    message.timeout = flags.rcv_timeout.map(Duration::from_millis).or(message.timeout);
                }
                _ => {}
            }
        }
        strands = strands.saturating_add(group.strands as u16);
    }
}

fn amount(flags: &Iperf3TestFlags) -> Amount {
    match (flags.bytes, flags.blockcount) {
        (Some(bytes), _) => Amount::Bytes(bytes),
        (None, Some(blocks)) => Amount::Blocks(blocks),
        (None, None) => Amount::Time(flags.time),
    }
}

/// Bits per second of each stream, if limited.
fn target_bitrate(flags: &Iperf3TestFlags) -> Option<f64> {
    flags.bitrate.map(|rate| rate.bits_per_second).or(flags.udp.then_some(UDP_RATE)).filter(|rate| *rate > 0.0)
}

/// Payload of a packet on the route beside the headers of TCP, which iperf3 takes for UDP; 1460 if the MTU is unknown.
fn datagram_size(server: SocketAddr) -> u32 {
    let (any, headers): (SocketAddr, u32) =
        if server.is_ipv4() { (([0; 4], 0).into(), 52) } else { (([0_u16; 8], 0).into(), 72) };
    let mtu = UdpSocket::bind(any).and_then(|socket| {
        socket.connect(server)?;
        let mtu = match server {
            SocketAddr::V4(_) => rustix::net::sockopt::ip_mtu(&socket),
            SocketAddr::V6(_) => rustix::net::sockopt::ipv6_mtu(&socket),
        };
        Ok(mtu?)
    });
    mtu.map_or(1460, |mtu| mtu.saturating_sub(headers).clamp(1, 32 << 10))
}

struct Observer<'a> {
    report: TextReport,
    server: Samples,
    server_events: Vec<Vec<StrandProgress>>,
    keep_server_events: bool,
    output: &'a Output,
    identity: &'a Identity,
    form: OutputForm,
    /// Those that have been printed.
    intervals: usize,
    has_start: bool,
    /// Why the output could not be written; the run goes on.
    failure: Option<Error>,
}

impl RunObserver for Observer<'_> {
    fn on_progress(&mut self, _: Option<&str>, _: EngineProgress) {}
    fn on_transaction(&mut self, _: usize, _: usize) {}
    fn on_latencies(&mut self, _: &[LatencyRecord]) {}

    fn on_strand_progress(&mut self, host: Option<&str>, progress: &[StrandProgress]) {
        if host.is_some() {
            for sample in progress {
                self.server.push(sample);
            }
            if self.keep_server_events {
                self.server_events.push(progress.to_vec());
            }
            return;
        }
        let text = self.report.push(progress);
        let written = match self.form {
            OutputForm::Text => self.output.write_text(&text),
            OutputForm::Json => Ok(()),
            OutputForm::JsonStream => self.stream_intervals(false),
        };
        self.failure = self.failure.take().or(written.err());
    }
}

impl Observer<'_> {
    fn json(&self, cpu: CpuUsage) -> JsonReport<'_> {
        JsonReport {
            test: self.report.test(),
            identity: self.identity,
            samples: self.report.samples(),
            other: Some(&self.server),
            cpu,
        }
    }

    /// Prints the documents of intervals of which nothing more is counted; at the end of all.
    fn stream_intervals(&mut self, is_final: bool) -> Result<(), Error> {
        let json = self.json(CpuUsage::default());
        let (test, samples) = (self.report.test(), self.report.samples());
        let has_interval = test.streams.iter().all(|stream| !samples.intervals(stream.id).is_empty());
        if !self.has_start && has_interval {
            self.output.write_json(&event("start", json.start()), false)?;
        }
        let counts = test.streams.iter().map(|stream| samples.intervals(stream.id).len());
        let complete = if is_final { counts.min().unwrap_or(0) } else { samples.settled(test) };
        for index in self.intervals..complete {
            let interval = if is_final { json.final_interval(index) } else { json.interval(index) };
            if let Some(interval) = interval {
                self.output.write_json(&event("interval", interval), false)?;
            }
        }
        self.has_start |= has_interval;
        self.intervals = complete;
        Ok(())
    }

    fn finish(&mut self, result: &RunResult, profile: &NetProfile) -> Result<(), Error> {
        let sum = |usage: fn(&wb_results::net::GroupResult) -> Usage| {
            result.groups.iter().map(usage).fold(Usage::default(), |mut sum, usage| {
                sum.add(usage);
                sum
            })
        };
        // A server that was lost has reported nothing.
        let has_report = !matches!(result.outcome, RunStatus::Lost { .. });
        let cpu = CpuUsage {
            host: Some(sum(|group| group.client_usage)),
            remote: has_report.then(|| sum(|group| group.server_usage)),
            seconds: result.totals.seconds,
        };
        let failure = match &result.outcome {
            RunStatus::Completed | RunStatus::Truncated => None,
            RunStatus::Interrupted => Some("interrupt - the client has terminated".to_owned()),
            RunStatus::Unsupported { reason } | RunStatus::Failed { reason } | RunStatus::Lost { reason } => {
                Some(reason.clone())
            }
        };
        let warning = result.rate_shortfall();
        let json = self.json(cpu);
        match self.form {
            OutputForm::Text => {
                let mut text = self.report.summary(Some(&self.server), warning.as_deref(), cpu);
                if self.keep_server_events {
                    text += "\nServer output:\n";
                    text += &self.server_text(profile);
                }
                if failure.is_none() {
                    text += "\niperf Done.\n";
                }
                self.output.write_text(&text)
            }
            OutputForm::Json => {
                let mut document = json.document();
                if self.keep_server_events {
                    document.insert("server_output_json".to_owned(), Value::Object(self.server_json(cpu)));
                }
                if let Some(warning) = warning {
                    document.insert("warning".to_owned(), json!(warning));
                }
                if let Some(failure) = failure {
                    document.insert("error".to_owned(), json!(failure));
                }
                self.output.write_json(&document, true)
            }
            OutputForm::JsonStream => {
                let end = json.end();
                self.stream_intervals(true)?;
                if let Some(warning) = warning {
                    self.output.write_json(&event("warning", json!(warning)), false)?;
                }
                self.output.write_json(&event("end", end), false)?;
                match failure {
                    Some(failure) => self.output.write_json(&event("error", json!(failure)), false),
                    None => Ok(()),
                }
            }
        }
    }

    fn server_test(&self) -> Test {
        let own =
            self.report.test().streams.first().and_then(|stream| self.report.samples().first_connection(stream.id));
        let address = own.and_then(|own| own.local.parse::<SocketAddr>().ok());
        self.report.test().other_side(&address.map(|address| address.ip().to_string()).unwrap_or_default())
    }

    /// What the server prints, from what it reported.
    fn server_text(&self, profile: &NetProfile) -> String {
        let mut report = TextReport::new(self.server_test(), profile, None);
        let lines: String = self.server_events.iter().map(|samples| report.push(samples)).collect();
        lines + &report.summary(None, None, CpuUsage::default())
    }

    fn server_json(&self, cpu: CpuUsage) -> Map<String, Value> {
        let cpu = CpuUsage { host: cpu.remote, remote: cpu.host, seconds: cpu.seconds };
        let (test, samples) = (&self.server_test(), &self.server);
        JsonReport { test, identity: self.identity, samples, other: Some(self.report.samples()), cpu }.document()
    }
}
