//! Transfers of a fixed time.

use std::io::{self, Read, Write};
use std::thread::sleep;
use std::time::Duration;

use crate::arguments::Arguments;
use crate::dialer::Clock;
use crate::transfer::{BLOCK, Stream};

/// What a dialer asks for that ends the transfer itself.
pub const UNLIMITED: u64 = u64::MAX;

/// Bytes per second of a paced transfer: so few that a busy machine keeps up.
const RATE: f64 = 50e6;

/// Bytes of a write: so few that even a slow transfer reports often.
const WRITE: usize = 16384;

/// A transfer while it runs.
pub struct Transfer<'a> {
    arguments: &'a Arguments,
    clock: &'a Clock,
    i: u64,
    begin: f64,
    /// What its fault makes of the seconds that it is to take.
    duration: f64,
    /// The seconds of the transfer at which its rate allows more.
    due: f64,
    reported: f64,
    pub sent: u64,
    pub received: u64,
}

impl<'a> Transfer<'a> {
    pub fn new(arguments: &'a Arguments, clock: &'a Clock, i: u64, duration: f64) -> Self {
        let duration = match arguments.fault.as_str() {
            "early-end" => duration / 2.0,
            "late-end" | "half-clock" => duration * 2.0,
            _ => duration,
        };
        let begin = clock.now();
        Self { arguments, clock, i, begin, duration, due: 0.0, reported: begin, sent: 0, received: 0 }
    }

    /// Sends or receives until the time is over.
    pub fn run(&mut self, stream: &mut Stream) -> io::Result<()> {
        match self.arguments.direction.as_str() {
            "upload" => {
                stream.write_all(&0_u64.to_be_bytes())?;
                while self.has_time() {
                    stream.write_all(&BLOCK[..WRITE])?;
                    let copies = if self.arguments.has_fault("counts-twice") { 2 } else { 1 };
                    self.moved(WRITE as u64 * copies, 0);
                }
                self.report();
                stream.close_for_writing()?;
                stream.read_to_end(&mut Vec::new())?;
            }
            _ => {
                stream.write_all(&UNLIMITED.to_be_bytes())?;
                stream.close_for_writing()?;
                let mut buffer = vec![0; BLOCK.len()];
                while self.has_time() {
                    match stream.read(&mut buffer)? {
                        0 => return Err(io::Error::other("the listener ended the transfer")),
                        length => self.moved(0, length as u64),
                    }
                }
                self.report();
            }
        }
        Ok(())
    }

    fn has_time(&self) -> bool {
        self.clock.now() < self.begin + self.duration
    }

    fn moved(&mut self, sent: u64, received: u64) {
        self.sent += sent;
        self.received += received;
        if self.clock.now() >= self.reported + self.arguments.interval {
            self.report();
        }
        self.wait(sent + received);
    }

    /// Waits until the rate of this moment allows more.
    fn wait(&mut self, moved: u64) {
        let seconds = self.clock.now() - self.begin;
        let rate = match self.arguments.fault.as_str() {
            // It grows until the end.
            "never-steady" => RATE * (seconds / self.duration).max(0.02),
            "slow-start" if seconds < 0.4 * self.duration => RATE / 10.0,
            "slow-start" | "half-clock" | "counts-twice" | "paced" => RATE,
            _ => return,
        };
        // What a busy machine delays is not caught up: that would be a burst.
        self.due = self.due.max(seconds) + moved as f64 / rate;
        sleep(Duration::from_secs_f64(self.due - seconds));
    }

    fn report(&mut self) {
        let now = self.clock.now();
        if now <= self.reported || self.arguments.has_fault("no-reports") {
            return;
        }
        self.reported = now;
        let at = now * if self.arguments.has_fault("half-clock") { 0.5 } else { 1.0 };
        let Self { i, sent, received, .. } = self;
        println!("{{\"i\": {i}, \"at\": {at:.9}, \"sent\": {sent}, \"received\": {received}}}");
    }
}
