//! `weighbridge hashd`: runs the request workload, and reports each second, or finds its parameters.

mod child;
mod output;
mod sizing;

use std::io::BufRead;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use wb_hashd::{Hashd, HashdConfig, HashdError, HashdEvent, HashdParams, OpenLoop, ParamsFile};
use wb_model::Nanos;

use crate::cli::hashd::HashdArgs;
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;
use crate::signals::listen_for_signals;

use output::{ReportFormat, ReportOutput};
pub(crate) use sizing::exec as exec_sizing;

/// How often the parameters file is read.
const POLL: Duration = Duration::from_millis(250);

pub(crate) fn hashd(args: &HashdArgs, console: &Console) -> Result<Exit, Error> {
    if let Some(path) = &args.find_params {
        return sizing::find_params(args, path, console);
    }
    let overrides = Overrides { rps_target: args.rps_target, lat_target: args.lat_target, open_loop: args.open_loop };
    let (file, params) = read_params_file(args)?;
    let config = HashdConfig {
        params: overrides.apply(params),
        dir: args.dir.clone(),
        memory: args.memory,
        seed: args.seed,
        duration: args.duration,
        keep_files: args.keep_files,
        compressibility: args.compressibility,
        fill: !args.no_fill,
    };
    let output = if args.json { ReportFormat::Json } else { ReportFormat::Text };
    run(&config, ParamsSource::File(file, overrides), output, console.quiet)
}

/// The parameters file, if there is one, and its parameters, or the default ones.
fn read_params_file(args: &HashdArgs) -> Result<(Option<ParamsFile>, HashdParams), Error> {
    let mut file = args.params.as_ref().map(ParamsFile::new);
    let params = file.as_mut().and_then(ParamsFile::read_if_changed).transpose()?;
    Ok((file, params.unwrap_or_default()))
}

/// Runs a configuration; prints each report as a line of JSON. Each JSON line on standard input has new parameters.
pub(crate) fn exec(config: &HashdConfig) -> Result<Exit, Error> {
    run(config, ParamsSource::StandardInput, ReportFormat::Json, true)
}

enum ParamsSource {
    File(Option<ParamsFile>, Overrides),
    StandardInput,
}

/// Parameters of the command line, which take precedence over those of the file.
#[derive(Debug)]
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

enum Event {
    Hashd(HashdEvent),
    /// A line of parameters.
    Params(String),
    Signal,
}

fn run(config: &HashdConfig, mut source: ParamsSource, format: ReportFormat, quiet: bool) -> Result<Exit, Error> {
    let (sender, events) = channel();
    let is_cancelled = listen_for_signals({
        let sender = sender.clone();
        // The receiver is gone once the workload has ended.
        move || drop(sender.send(Event::Signal))
    });
    if let ParamsSource::StandardInput = source {
        forward_params(sender.clone());
    }
    // The receiver lives until the workload has ended.
    let on_event = move |event| drop(sender.send(Event::Hashd(event)));
    let is_cancelled = || is_cancelled.load(Ordering::Relaxed);
    let mut hashd = match Hashd::start(config, &is_cancelled, on_event) {
        Ok(hashd) => hashd,
        Err(HashdError::Cancelled) => return Ok(end_of_signal(config)),
        Err(error) => return Err(error.into()),
    };
    let mut output = ReportOutput::new(format, quiet);
    let poll = |hashd: &mut Hashd| {
        if let ParamsSource::File(Some(file), overrides) = &mut source {
            reload(hashd, file, overrides, &is_cancelled, quiet);
        }
    };
    let end = run_until_end(&mut hashd, &events, config.duration, &is_cancelled, poll, &mut output);
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
    is_cancelled: &dyn Fn() -> bool,
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
            Ok(Event::Params(line)) => match hashd.set_params(super::exec::parse_config(&line)?, is_cancelled) {
                Err(HashdError::Cancelled) => return Ok(End::Signal),
                outcome => outcome?,
            },
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
fn reload(
    hashd: &mut Hashd,
    file: &mut ParamsFile,
    overrides: &Overrides,
    is_cancelled: &dyn Fn() -> bool,
    quiet: bool,
) {
    let Some(params) = file.read_if_changed() else { return };
    let path = file.path().display();
    match params.map(|params| hashd.set_params(overrides.apply(params), is_cancelled)) {
        // The signal is the next event.
        Ok(Err(HashdError::Cancelled)) => {}
        Ok(Ok(())) if !quiet => crate::console::message!("{path}: parameters reloaded"),
        Ok(Ok(())) => {}
        Ok(Err(error)) => crate::console::message!("warning: {path}: {error}; the previous parameters stay in force"),
        Err(diagnostic) => {
            crate::console::message!("warning: {}; the previous parameters stay in force", diagnostic.one_line());
        }
    }
}

/// Sends an event for each line of standard input, from a thread of its own.
fn forward_params(events: Sender<Event>) {
    thread::spawn(move || {
        // Without further lines, or once the workload has ended, the parameters stay as they are.
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if events.send(Event::Params(line)).is_err() {
                break;
            }
        }
    });
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
