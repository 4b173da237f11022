//! The programs. Each module draws options for one, runs it, and knows where its own report has the figures.

mod fio;
mod hyperfine;
mod iperf3;
mod shipped;

use std::process::Command;

use rand::Rng;
use rand::seq::IndexedRandom;

use crate::case::{CaseError, Runner};

/// A program whose figures weighbridge has, by importing its files or by running it.
pub(crate) trait Subject: Sync {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Its version; `None` if it is not installed.
    fn version(&self) -> Option<String>;

    /// Runs it with random options, and compares all figures.
    fn run(&self, runner: &mut Runner) -> Result<(), CaseError>;
}

/// All programs.
pub(crate) const ALL: [&dyn Subject; 8] = [
    &fio::Fio,
    &hyperfine::Hyperfine,
    &iperf3::Iperf3,
    &shipped::SYSBENCH_CPU,
    &shipped::SYSBENCH_MEMORY,
    &shipped::OPENSSL,
    &shipped::SEVEN_ZIP,
    &shipped::REDIS,
];

/// The begin of the first line that a program prints of itself.
fn version_of(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(26).collect::<String>().trim_end().to_owned())
}

/// One of several values.
fn one_of<T: Copy>(random: &mut impl Rng, values: &[T]) -> T {
    *values.choose(random).expect("a list of values has one")
}
