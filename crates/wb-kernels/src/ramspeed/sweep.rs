//! The block-size sweep: every thread repeatedly reads or writes its own block, for increasing block sizes. The curve
//! drops where the blocks exceed a cache.

use super::blocks::select_loop;
use crate::thread_team::{self, TimeSpan};
use crate::work::measure;
use crate::{Error, HugePagePolicy, Isa, MappedMemory, Probe, Residency, Work, cpus, opaque};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How a block is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Every word is loaded and added up.
    Read,
    /// Every word is stored.
    Write,
}

/// Configuration of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// How a block is accessed.
    pub op: Access,
    /// Bytes of the smallest block.
    #[serde(default = "one_kibibyte")]
    pub min_bytes: u64,
    /// Bytes of the largest block.
    pub max_bytes: u64,
    /// Whether to measure a block size between any two powers of two (1.5 times the smaller).
    #[serde(default)]
    pub half_steps: bool,
    /// The CPUs, one per thread.
    pub cpus: Vec<usize>,
    /// Instruction set of the measured loops.
    pub isa: Isa,
    /// Huge-page policy of the blocks.
    #[serde(default)]
    pub huge_pages: HugePagePolicy,
    /// Seconds to measure each block size.
    pub seconds: f64,
}

fn one_kibibyte() -> u64 {
    1024
}

/// Result of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SweepReport {
    /// How a block was accessed.
    pub op: Access,
    /// Number of threads, each with its own block.
    pub threads: usize,
    /// Instruction set of the measured loops.
    pub isa: Isa,
    /// The points of the curve, by ascending block size.
    pub points: Vec<SweepPoint>,
    /// Size of all blocks and of their huge pages, after the run.
    pub residency: Residency,
}

/// The result of one block size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SweepPoint {
    /// Bytes of each thread's block.
    pub block_bytes: u64,
    /// Number of measured passes over the block.
    pub passes: u64,
    /// Wall time of the passes, from the common start to the last thread's end.
    pub seconds: f64,
    /// Millions (10⁶) of bytes per second, all threads together.
    pub mb_per_s: f64,
    /// Number of threads whose sum of the read words, or whose block after writing, is wrong; 0 in a correct run.
    pub mismatches: u64,
    /// The probe of the calibration.
    pub probe: Probe,
}

/// Measures one block size after the other.
pub fn run(config: &Config) -> Result<SweepReport, Error> {
    config.isa.require()?;
    cpus::check_available(&config.cpus)?;
    let sizes = sizes(config)?;
    let threads = config.cpus.len();
    let stride = sizes.last().map_or(0, |&largest| largest.next_multiple_of(4096) as usize);
    let memory = MappedMemory::map(stride.saturating_mul(threads), config.huge_pages)?;
    let blocks = Blocks { config, memory: &memory, stride };
    blocks.initialize()?;
    let points = sizes.into_iter().map(|bytes| blocks.measure(bytes)).collect::<Result<_, _>>()?;
    Ok(SweepReport { op: config.op, threads, isa: config.isa, points, residency: memory.residency()? })
}

/// Block sizes are multiples of a cache line.
const GRAIN: u64 = 64;

/// The block sizes: powers of two, half steps if configured, and both ends.
fn sizes(config: &Config) -> Result<Vec<u64>, Error> {
    let (min, max) = (config.min_bytes / GRAIN * GRAIN, config.max_bytes / GRAIN * GRAIN);
    if min == 0 || max < min {
        let Config { min_bytes, max_bytes, .. } = config;
        return Err(Error::Config(format!(
            "invalid block sizes {min_bytes} to {max_bytes} bytes: expected a smallest block of {GRAIN} bytes or more, \
                and a largest one of no less"
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

struct Blocks<'a> {
    config: &'a Config,
    memory: &'a MappedMemory,
    stride: usize,
}

impl Blocks<'_> {
    fn block(&self, thread: usize) -> *mut u64 {
        self.memory.as_ptr().wrapping_add(thread * self.stride).cast()
    }

    /// Each thread writes to its own memory; word `k` is `k + 1`.
    fn initialize(&self) -> Result<(), Error> {
        thread_team::run(&self.config.cpus, |thread| {
            let block = self.block(thread.index);
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
        let results = thread_team::run(&self.config.cpus, |thread| {
            let block = self.block(thread.index);
            // SAFETY: the instruction set was checked; the block is this thread's alone and its memory is at least as
            // long. One pass beforehand brings it into the caches.
            unsafe { kernel(opaque::pointer(block), words, 1) };
            // SAFETY: as above.
            let (sum, span) = thread.time(|| unsafe { kernel(opaque::pointer(block), words, passes) });
            // SAFETY: as above, and no thread writes it any more.
            let words = unsafe { std::slice::from_raw_parts(block, words) };
            let correct = match self.config.op {
                Access::Read => {
                    sum == words.iter().fold(0u64, |sum, word| sum.wrapping_add(*word)).wrapping_mul(passes)
                }
                Access::Write => words.iter().all(|&word| word == passes),
            };
            (correct, span)
        })?;
        let spans: Vec<_> = results.iter().map(|(_, span)| *span).collect();
        Ok((TimeSpan::wall_time(&spans), results.iter().filter(|(correct, _)| !correct).count() as u64))
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
    fn invalid_sizes_are_refused() {
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
