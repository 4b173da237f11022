//! The block-size sweep: reading or writing blocks of growing size over and over, each thread its
//! own. Where the curve drops, a cache ends.

use super::blocks::select_loop;
use crate::{
    Error, HugePagePolicy, Isa, MappedMemory, Probe, Residency, Work, cpus, opaque,
    thread_team::{self, TimeSpan},
    work::measure,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What is done with a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Every word is loaded and added up.
    Read,
    /// Every word is stored.
    Write,
}

/// How the sweep is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// What is done with a block.
    pub op: Access,
    /// Bytes of the smallest block.
    #[serde(default = "one_kibibyte")]
    pub min_bytes: u64,
    /// Bytes of the largest block of each thread.
    pub max_bytes: u64,
    /// Whether there is a block between each two powers of two (1.5 times the smaller).
    #[serde(default)]
    pub half_steps: bool,
    /// One CPU for each thread.
    pub cpus: Vec<usize>,
    /// Instructions of the measured loops.
    pub isa: Isa,
    /// Pages of the blocks.
    #[serde(default)]
    pub huge_pages: HugePagePolicy,
    /// Seconds that each block is measured.
    pub seconds: f64,
}

fn one_kibibyte() -> u64 {
    1024
}

/// What the sweep measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Report {
    /// What was done with a block.
    pub op: Access,
    /// Threads, each with blocks of its own.
    pub threads: usize,
    /// Instructions of the measured loops.
    pub isa: Isa,
    /// The curve, small to large.
    pub points: Vec<SweepPoint>,
    /// All blocks and the pages they were on, after the run.
    pub residency: Residency,
}

/// One block size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SweepPoint {
    /// Bytes of each thread's block.
    pub block_bytes: u64,
    /// Measured passes over it.
    pub passes: u64,
    /// Wall time of the passes, from the common start to the last thread's end.
    pub seconds: f64,
    /// Millions (10⁶) of bytes per second, all threads together.
    pub mb_per_s: f64,
    /// Threads whose sum of what was read, or whose block after writing, was wrong. Any is wrong.
    pub mismatches: u64,
    /// The calibration.
    pub probe: Probe,
}

/// Measures one block size after the other.
///
/// # Errors
/// An instruction set or CPU that is not there, sizes that make no sense, or memory that is
/// lacking.
pub fn run(config: &Config) -> Result<Report, Error> {
    config.isa.require()?;
    cpus::check(&config.cpus)?;
    let sizes = sizes(config)?;
    let threads = config.cpus.len();
    let stride = sizes.last().map_or(0, |&largest| largest.next_multiple_of(4096) as usize);
    let memory = MappedMemory::map(stride.saturating_mul(threads), config.huge_pages)?;
    let blocks = Blocks { config, memory: &memory, stride };
    blocks.initialize()?;
    let points = sizes.into_iter().map(|bytes| blocks.measure(bytes)).collect::<Result<_, _>>()?;
    Ok(Report { op: config.op, threads, isa: config.isa, points, residency: memory.residency()? })
}

/// A block is a multiple of this: a cache line.
const GRAIN: u64 = 64;

/// Powers of two, half steps if asked, and both ends.
fn sizes(config: &Config) -> Result<Vec<u64>, Error> {
    let (min, max) = (config.min_bytes / GRAIN * GRAIN, config.max_bytes / GRAIN * GRAIN);
    if min == 0 || max < min {
        let Config { min_bytes, max_bytes, .. } = config;
        return Err(Error::Config(format!(
            "blocks of {min_bytes} to {max_bytes} bytes: the smallest needs {GRAIN} bytes, the largest no less"
        )));
    }
    let powers = (0..63).map(|power| 1u64 << power);
    let mut sizes: Vec<u64> = powers
        .flat_map(|size| [Some(size), config.half_steps.then_some(size + size / 2)])
        .flatten()
        .filter(|size| (min..=max).contains(size) && size % GRAIN == 0)
        .chain([min, max])
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    Ok(sizes)
}

/// Each thread's memory.
struct Blocks<'a> {
    config: &'a Config,
    memory: &'a MappedMemory,
    stride: usize,
}

impl Blocks<'_> {
    fn block(&self, thread: usize) -> *mut u64 {
        self.memory.as_ptr().wrapping_add(thread * self.stride).cast()
    }

    /// Every thread writes its own memory first: word `k` is `k + 1`.
    fn initialize(&self) -> Result<(), Error> {
        thread_team::run(&self.config.cpus, |member| {
            let block = self.block(member.index);
            for k in 0..self.stride / 8 {
                // SAFETY: inside this thread's memory.
                unsafe { block.add(k).write(k as u64 + 1) }
            }
        })
        .map(drop)
    }

    fn measure(&self, bytes: u64) -> Result<SweepPoint, Error> {
        let measured = measure(Work::Seconds(self.config.seconds), |passes| self.run(bytes, passes))?;
        let moved = bytes * measured.iterations * self.config.cpus.len() as u64;
        Ok(SweepPoint {
            block_bytes: bytes,
            passes: measured.iterations,
            seconds: measured.seconds,
            mb_per_s: moved as f64 / measured.seconds / 1e6,
            mismatches: measured.value,
            probe: measured.probe,
        })
    }

    fn run(&self, bytes: u64, passes: u64) -> Result<(Duration, u64), Error> {
        let words = bytes as usize / 8;
        let kernel = select_loop(self.config.op, self.config.isa);
        let results = thread_team::run(&self.config.cpus, |member| {
            let block = self.block(member.index);
            // SAFETY: the instruction set was required; the block is this thread's alone and its
            // memory is longer. One pass beforehand brings it into the caches that hold it.
            unsafe { kernel(opaque::pointer(block), words, 1) };
            // SAFETY: as above.
            let (sum, span) = member.time(|| unsafe { kernel(opaque::pointer(block), words, passes) });
            // SAFETY: as above, and nobody writes it any more.
            let found = unsafe { std::slice::from_raw_parts(block, words) };
            let right = match self.config.op {
                Access::Read => {
                    sum == found.iter().fold(0u64, |sum, word| sum.wrapping_add(*word)).wrapping_mul(passes)
                }
                Access::Write => found.iter().all(|&word| word == passes),
            };
            (right, span)
        })?;
        let spans: Vec<_> = results.iter().map(|(_, span)| *span).collect();
        Ok((TimeSpan::wall_time(&spans), results.iter().filter(|(right, _)| !right).count() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(op: Access, isa: Isa) -> Config {
        let cpus = cpus::allowed().into_iter().cycle().take(2).collect();
        Config {
            op,
            min_bytes: 1024,
            max_bytes: 10_000,
            half_steps: true,
            cpus,
            isa,
            huge_pages: HugePagePolicy::Inherit,
            seconds: 1e-4,
        }
    }

    #[test]
    fn sizes_are_powers_of_two_half_steps_and_both_ends() {
        let config = config(Access::Read, Isa::Scalar);
        assert_eq!(sizes(&config).unwrap(), [1024, 1536, 2048, 3072, 4096, 6144, 8192, 9984]);
        assert_eq!(
            sizes(&Config { half_steps: false, min_bytes: 1100, ..config }).unwrap(),
            [1088, 2048, 4096, 8192, 9984]
        );
    }

    #[test]
    fn sizes_that_make_no_sense_are_refused() {
        for (min_bytes, max_bytes) in [(0, 100), (63, 100), (2048, 1024)] {
            assert!(matches!(
                run(&Config { min_bytes, max_bytes, ..config(Access::Read, Isa::Scalar) }),
                Err(Error::Config(_))
            ));
        }
    }

    #[test]
    fn every_isa_reads_and_writes_every_word_on_every_pass() {
        for isa in Isa::available() {
            for op in [Access::Read, Access::Write] {
                let report = run(&config(op, isa)).unwrap();
                assert_eq!(report.points.len(), 8);
                assert!(
                    report.points.iter().all(|point| point.mismatches == 0 && point.mb_per_s > 0.0),
                    "{isa} {op:?}"
                );
            }
        }
    }
}
