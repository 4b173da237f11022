//! The programs. Each module draws options for one, runs it, and knows where its own report has the figures; [`files`]
//! has files that others measured instead.

mod compare_perf;
mod files;
mod fio;
mod google_benchmark;
mod hyperfine;
mod iperf3;
mod net_iperf3;
mod net_kernel;
mod shipped;

use std::process::Command;
use std::time::Duration;

use rand::Rng;
use rand::seq::IndexedRandom;

use crate::case::{CaseError, Runner};

/// What both sides of a network share; it leaves no machine.
const TOKEN: &str = "conformance-on-one-machine";

/// The longest wait for a server.
const PATIENCE: Duration = Duration::from_secs(10);

/// A program whose figures weighbridge has, by importing its files or by running it.
pub(crate) trait Subject: Sync {
    fn name(&self) -> &'static str;

    /// `None` if it is not there.
    fn version(&self) -> Option<String>;

    /// What is printed in the place of the version if it is not there.
    fn absence(&self) -> &'static str {
        "not installed"
    }

    /// The number of cases, unless it is the requested one.
    fn cases(&self) -> Option<u32> {
        None
    }

    fn run(&self, runner: &mut Runner) -> Result<(), CaseError>;
}

pub(crate) const ALL: [&dyn Subject; 14] = [
    &files::Files,
    &compare_perf::ComparePerf,
    &fio::Fio,
    &google_benchmark::GoogleBenchmark,
    &hyperfine::Hyperfine,
    &iperf3::Iperf3,
    &net_iperf3::NetIperf3,
    &net_kernel::NetKernel,
    &shipped::SYSBENCH_CPU,
    &shipped::SYSBENCH_MEMORY,
    &shipped::OPENSSL,
    &shipped::SEVEN_ZIP,
    &shipped::REDIS,
    &shipped::STRESS_NG,
];

/// The begin of the first line that a program prints of itself.
fn version_of(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(26).collect::<String>().trim_end().to_owned())
}

fn one_of<T: Copy>(random: &mut (impl Rng + ?Sized), values: &[T]) -> T {
    *values.choose(random).expect("a list of values has one")
}
