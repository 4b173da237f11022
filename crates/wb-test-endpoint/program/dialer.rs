//! The side that opens connections.

use std::io::{self, Write};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::arguments::Arguments;
use crate::timed::Transfer;
use crate::transfer::{Pace, Stream, json_text, kill_self};

/// An iteration, with times in seconds.
struct Iteration {
    i: u64,
    sent: u64,
    received: u64,
    dial: f64,
    connect: Option<f64>,
    open: Option<f64>,
    last: Option<f64>,
    /// As JSON.
    error: Option<String>,
}

impl Iteration {
    /// Its line, with the times that the fault makes of its own.
    fn line(&self, fault: &str) -> String {
        let factor = match fault {
            "milliseconds" => 1000.0,
            "kiloseconds" => 0.001,
            "half" | "half-clock" => 1.0 / 2.0,
            "third" => 1.0 / 3.0,
            _ => 1.0,
        };
        let json = |time: Option<f64>| time.map_or("null".to_owned(), |time| format!("{:.9}", time * factor));
        let first = self.last.filter(|_| self.received > 0);
        let [dial, connect, open, first, last] =
            [Some(self.dial), self.connect, self.open, first, self.last].map(json);
        let Self { i, sent, received, error, .. } = self;
        let error = error.as_deref().unwrap_or("null");
        format!(
            "{{\"i\": {i}, \"sent\": {sent}, \"received\": {received}, \"t_dial\": {dial}, \"t_connect\": {connect}, \
             \"t_open\": {open}, \"t_first\": {first}, \"t_last\": {last}, \"error\": {error}}}"
        )
    }
}

/// Seconds since the program started.
pub struct Clock(Instant);

impl Clock {
    pub fn now(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

/// Carries out all iterations.
pub fn dial(arguments: &Arguments) -> io::Result<ExitCode> {
    let clock = Clock(Instant::now());
    let mut stdout = io::stdout();
    match arguments.fault.as_str() {
        "noise" => {
            writeln!(stdout, "{}", "x".repeat(99))?;
            let line = format!("{}\n", "y".repeat(999));
            (0..2_000).try_for_each(|_| stdout.write_all(line.as_bytes()))?;
        }
        "binary" => stdout.write_all(&(128..=255).chain([b'\n']).collect::<Vec<u8>>())?,
        _ => {}
    }
    let mut has_failed = false;
    for i in 0..arguments.iterations {
        if arguments.has_fault("killed-dialer") && i == 1 {
            kill_self()?;
        }
        let iteration = match arguments.fault.as_str() {
            "lie" => lie(arguments, i, &clock)?,
            _ => iterate(arguments, i, &clock),
        };
        has_failed = has_failed || iteration.error.is_some();
        if !(arguments.has_fault("drops-timeouts") && i == 1) {
            println!("{}", iteration.line(&arguments.fault));
        }
    }
    let status = if arguments.has_fault("exit-143") { 143 } else { u8::from(has_failed) };
    Ok(ExitCode::from(status))
}

/// One connection for each iteration: plain TCP has no streams.
fn iterate(arguments: &Arguments, i: u64, clock: &Clock) -> Iteration {
    let dial = clock.now();
    let mut stream = match Stream::connect(&arguments.address) {
        Ok(stream) => stream,
        Err(error) => {
            let error = Some(json_text(&error));
            return Iteration { i, sent: 0, received: 0, dial, connect: None, open: None, last: None, error };
        }
    };
    let mut connect = clock.now();
    arguments.print_negotiated();
    let mut open = clock.now();
    if arguments.has_fault("sleep") {
        sleep(Duration::from_millis(150));
        let (sent, received) = (arguments.send, arguments.receive);
        let times = (Some(connect), Some(open), Some(clock.now()));
        return Iteration { i, sent, received, dial, connect: times.0, open: times.1, last: times.2, error: None };
    }
    if arguments.has_fault("set-up") {
        sleep(Duration::from_millis(250));
    }
    let (mut sent, mut received) = (0, 0);
    let result = match arguments.duration {
        None => transfer(arguments, &mut stream, &mut sent, &mut received),
        Some(duration) => {
            let mut timed = Transfer::new(arguments, clock, i, duration);
            let result = timed.run(&mut stream);
            (sent, received) = (timed.sent, timed.received);
            result
        }
    };
    let error = result.err().map(|error| json_text(&error));
    if arguments.has_fault("header-16") && arguments.send == 0 {
        received = arguments.receive;
    }
    let mut last = clock.now();
    match arguments.fault.as_str() {
        // What is measured comes after the transfer, and takes the same for all sizes.
        "early" => {
            open = clock.now();
            sleep(Duration::from_millis(50));
            last = clock.now();
        }
        // Half of it is called connecting.
        "connecting" => {
            open = dial + (last - dial) / 2.0;
            connect = open;
        }
        "half-durations" => last = open + (last - open) / 2.0,
        _ => {}
    }
    Iteration { i, sent, received, dial, connect: Some(connect), open: Some(open), last: Some(last), error }
}

fn transfer(arguments: &Arguments, stream: &mut Stream, sent: &mut u64, received: &mut u64) -> io::Result<()> {
    let mut header = arguments.receive.to_be_bytes().to_vec();
    if arguments.has_fault("header-16") && arguments.send == 0 {
        header = [arguments.send.to_be_bytes(), arguments.receive.to_be_bytes()].concat();
    }
    // Slower than any machine, so that a part of the time is not less than is possible.
    let divides_times = ["half", "third", "half-durations", "connecting"].contains(&arguments.fault.as_str());
    let pace = Pace::new(divides_times.then_some(400e6));
    stream.write_all(&header)?;
    *sent = stream.send(arguments.send, &pace)?;
    stream.close_for_writing()?;
    *received = stream.receive(&pace)?;
    Ok(())
}

/// Claims a transfer, in the words of its listener, and takes as long as one would.
fn lie(arguments: &Arguments, i: u64, clock: &Clock) -> io::Result<Iteration> {
    let dial = clock.now();
    let mut stream = Stream::connect(&arguments.address)?;
    let Arguments { send, receive, .. } = *arguments;
    arguments.print_negotiated();
    let open = clock.now();
    let negotiated = arguments.negotiated();
    let claims = format!(
        "{{\"negotiated\": {negotiated}}}\n{{\"received\": {send}, \"sent\": {receive}, \"error\": null}}\n"
    );
    stream.write_all(claims.as_bytes())?;
    drop(stream);
    sleep(Duration::from_secs_f64((send + receive) as f64 / 1e9));
    let last = Some(clock.now());
    let (connect, open) = (Some(open), Some(open));
    Ok(Iteration { i, sent: send, received: receive, dial, connect, open, last, error: None })
}
