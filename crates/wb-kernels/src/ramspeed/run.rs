//! Passes of one operation over arrays in memory.

use super::operands::{OperandRun, runs};
use super::pass::select_pass;
use crate::thread_team::{self, TeamThread, TimeSpan};
use crate::work::measure;
use crate::{Error, HugePagePolicy, Isa, MappedMemory, Probe, Residency, Work, cpus, opaque};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Operation of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// c = a
    Copy,
    /// c = 3a
    Scale,
    /// c = a + b
    Add,
    /// c = a + 3b
    Triad,
}

/// Type of the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WordType {
    /// `i64`
    Integer,
    /// `f64`
    Floating,
}

/// Configuration of a ramspeed run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// Operation of a pass.
    pub mode: Mode,
    /// Type of the words.
    pub kind: WordType,
    /// Whether stores bypass the caches.
    #[serde(default)]
    pub non_temporal: bool,
    /// Bytes of each array; rounded down to whole cache lines.
    pub bytes: u64,
    /// The CPUs, one per thread.
    pub cpus: Vec<usize>,
    /// Instruction set of the measured loops.
    pub isa: Isa,
    /// Huge-page policy of the arrays.
    #[serde(default)]
    pub huge_pages: HugePagePolicy,
    /// Amount of measured work; an iteration is one pass.
    pub work: Work,
}

/// Result of a ramspeed run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RamspeedReport {
    /// Operation of a pass.
    pub mode: Mode,
    /// Type of the words.
    pub kind: WordType,
    /// Whether stores bypassed the caches.
    pub non_temporal: bool,
    /// Number of threads, one per CPU of the configuration.
    pub threads: usize,
    /// Instruction set of the measured loops.
    pub isa: Isa,
    /// Bytes of each array.
    pub array_bytes: u64,
    /// Number of measured passes.
    pub passes: u64,
    /// Bytes moved in the measured passes, as STREAM counts them.
    pub bytes_moved: u64,
    /// Wall time of the passes, from the common start to the last thread's end.
    pub seconds: f64,
    /// Each thread's own time, in the order of the CPUs.
    pub thread_seconds: Vec<f64>,
    /// Millions (10⁶) of bytes moved per second.
    pub mb_per_s: f64,
    /// Comparison of the result with the closed form.
    pub check: ResultCheck,
    /// Size of all three arrays and of their huge pages, after the run.
    pub residency: Residency,
    /// The probe of the calibration.
    pub probe: Probe,
}

/// Number of words that were checked after the run, and of those that were wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ResultCheck {
    /// Words that were compared with the expected value.
    pub words: u64,
    /// Words that differ from the expected value; 0 in a correct run.
    pub mismatches: u64,
}

impl Mode {
    /// Number of arrays that a pass reads and writes.
    #[must_use]
    pub fn arrays(self) -> u64 {
        match self {
            Self::Copy | Self::Scale => 2,
            Self::Add | Self::Triad => 3,
        }
    }

    pub(super) fn expected(self, a: u64, b: u64) -> u64 {
        match self {
            Self::Copy => a,
            Self::Scale => 3 * a,
            Self::Add => a + b,
            Self::Triad => a + 3 * b,
        }
    }
}

impl WordType {
    /// The word that represents a small integer, of at most 31 bits.
    pub(super) fn word(self, number: u64) -> u64 {
        match self {
            Self::Integer => number,
            // Through 32 bits: vector units convert these in one instruction.
            Self::Floating => f64::from(number as i32).to_bits(),
        }
    }
}

/// Runs one operation on its own threads. Fails also for arrays smaller than a cache line per thread.
pub fn run(config: &Config) -> Result<RamspeedReport, Error> {
    config.isa.require()?;
    cpus::check_available(&config.cpus)?;
    if config.non_temporal && !cfg!(target_arch = "x86_64") {
        let way_out = "use ordinary stores";
        return Err(Error::Unsupported { operation: "a non-temporal store", isa: config.isa, hint: way_out });
    }
    let arrays = Arrays::map(config)?;
    let measured = measure(config.work, |passes| arrays.run(config, passes))?;
    let (check, spans) = measured.value;
    let array_bytes = (arrays.words * WORD) as u64;
    let bytes_moved = config.mode.arrays() * array_bytes * measured.iterations;
    Ok(RamspeedReport {
        mode: config.mode,
        kind: config.kind,
        non_temporal: config.non_temporal,
        threads: config.cpus.len(),
        isa: config.isa,
        array_bytes,
        passes: measured.iterations,
        bytes_moved,
        seconds: measured.seconds,
        thread_seconds: spans.iter().map(|span| span.duration().as_secs_f64()).collect(),
        mb_per_s: bytes_moved as f64 / measured.seconds / 1e6,
        check,
        residency: arrays.memory.residency()?,
        probe: measured.probe,
    })
}

const WORD: usize = size_of::<u64>();
/// Words in a cache line: threads never share one.
pub(super) const LINE: usize = 8;
/// Words by which an array begins beyond a whole number of pages. A stored line then never has the page offset of a
/// line that is loaded soon after, which the CPU would take for the same line (4K aliasing).
const ARRAY_OFFSET: usize = 20 * LINE;

/// The result and two operands.
struct Arrays {
    memory: MappedMemory,
    words: usize,
    stride: usize,
}

impl Arrays {
    fn map(config: &Config) -> Result<Self, Error> {
        let lines = usize::try_from(config.bytes / 64).unwrap_or(usize::MAX);
        let threads = config.cpus.len();
        if lines < threads {
            return Err(Error::Config(format!(
                "invalid array size of {} bytes: expected a cache line of 64 bytes or more for each of {threads} threads",
                config.bytes
            )));
        }
        let words = lines.saturating_mul(LINE);
        let stride = words.saturating_add(511) / 512 * 512 + ARRAY_OFFSET;
        let bytes = stride.saturating_mul(3 * WORD);
        Ok(Self { memory: MappedMemory::map(bytes, config.huge_pages)?, words, stride })
    }

    /// The address of an array: 0 is the result, 1 and 2 are the operands.
    fn array(&self, index: usize) -> *mut u64 {
        self.memory.as_ptr().cast::<u64>().wrapping_add(index * self.stride)
    }

    fn run(&self, config: &Config, passes: u64) -> Result<(Duration, (ResultCheck, Vec<TimeSpan>)), Error> {
        let results = thread_team::run(&config.cpus, |thread| self.run_thread(thread, config, passes))?;
        let check = results.iter().fold(ResultCheck::default(), |sum, (check, _)| ResultCheck {
            words: sum.words + check.words,
            mismatches: sum.mismatches + check.mismatches,
        });
        let spans: Vec<_> = results.into_iter().map(|(_, span)| span).collect();
        Ok((TimeSpan::wall_time(&spans), (check, spans)))
    }

    fn run_thread(&self, thread: &TeamThread<'_>, config: &Config, passes: u64) -> (ResultCheck, TimeSpan) {
        let share = thread.share(self.words / LINE);
        let (first, words) = (share.start * LINE, share.len() * LINE);
        let [to, a, b] = [0, 1, 2].map(|index| self.array(index).wrapping_add(first));
        let word = |number| config.kind.word(number);
        for OperandRun { at, words, operands } in runs(first, words) {
            for k in 0..words {
                // SAFETY: `at + k` is in this thread's share of each array; shares do not overlap.
                unsafe {
                    to.add(at + k).write(u64::MAX);
                    a.add(at + k).write(word(operands[0] + k as u64));
                    b.add(at + k).write(word(operands[1] + k as u64));
                }
            }
        }
        let pass = select_pass(config.mode, config.kind, config.non_temporal, config.isa);
        let ((), span) = thread.time(|| {
            for _ in 0..passes {
                // SAFETY: the instruction set was checked; the arrays are this thread's share, which begins at a cache
                // line.
                unsafe { pass(opaque::pointer(to), a, b, words) }
            }
        });
        // SAFETY: this thread's share of the result, which no thread writes any more.
        let result = unsafe { std::slice::from_raw_parts(to, words) };
        let mismatches = |OperandRun { at, words, operands: [a, b] }: OperandRun| {
            let actual = result[at..at + words].iter().zip(0..);
            actual.filter(|&(actual, k)| *actual != word(config.mode.expected(a + k, b + k))).count() as u64
        };
        (ResultCheck { words: words as u64, mismatches: runs(first, words).map(mismatches).sum() }, span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(mode: Mode, threads: usize, work: Work) -> Config {
        Config {
            mode,
            kind: WordType::Floating,
            non_temporal: false,
            bytes: 1 << 20,
            cpus: cpus::allowed().into_iter().cycle().take(threads).collect(),
            isa: Isa::widest(),
            huge_pages: HugePagePolicy::Inherit,
            work,
        }
    }

    #[test]
    fn every_mode_kind_isa_and_store_matches_the_closed_form() {
        for mode in [Mode::Copy, Mode::Scale, Mode::Add, Mode::Triad] {
            for isa in Isa::available() {
                for (kind, non_temporal) in [(WordType::Integer, false), (WordType::Floating, true)] {
                    let config = Config { kind, non_temporal, isa, ..config(mode, 2, Work::Iterations(3)) };
                    let report = run(&config).unwrap();
                    assert_eq!(report.check, ResultCheck { words: 1 << 17, mismatches: 0 }, "{config:?}");
                    assert_eq!(report.bytes_moved, (3 * mode.arrays()) << 20);
                }
            }
        }
    }

    #[test]
    fn shares_that_do_not_divide_are_complete() {
        let report = run(&Config { bytes: 64 * 7 + 63, ..config(Mode::Triad, 5, Work::Iterations(1)) }).unwrap();
        assert_eq!((report.array_bytes, report.check.words, report.check.mismatches), (448, 56, 0));
    }

    #[test]
    fn a_skipped_pass_is_detected() {
        let config = config(Mode::Triad, 1, Work::Iterations(1));
        let arrays = Arrays::map(&config).unwrap();
        let (_, (check, _)) = arrays.run(&config, 0).unwrap();
        assert_eq!(check.mismatches, check.words);
    }

    #[test]
    fn the_figures_of_a_run_agree() {
        // How long it takes is tested in `work`, without a clock: a machine may speed up all the time.
        let report = run(&config(Mode::Copy, 2, Work::Seconds(0.02))).unwrap();
        assert!((report.mb_per_s * 1e6 * report.seconds / report.bytes_moved as f64 - 1.0).abs() < 1e-9);
        assert_eq!(report.thread_seconds.len(), 2);
        assert!(report.residency.bytes >= 3 << 20);
    }

    #[test]
    fn arrays_too_small_or_too_large_are_refused() {
        let small = Config { bytes: 100, ..config(Mode::Copy, 2, Work::Iterations(1)) };
        assert!(matches!(run(&small), Err(Error::Config(_))));
        let large = Config { bytes: u64::MAX, ..config(Mode::Copy, 2, Work::Iterations(1)) };
        assert!(matches!(run(&large), Err(Error::Memory { .. } | Error::Map { .. })));
    }

    #[test]
    fn a_configuration_is_read_from_json() {
        let json = r#"{"mode":"triad","kind":"floating","non-temporal":true,"bytes":1024,"cpus":[0],"isa":"sse2","work":{"iterations":2}}"#;
        let config: Config = serde_json::from_str(json).unwrap();
        assert_eq!((config.mode, config.non_temporal, config.bytes), (Mode::Triad, true, 1024));
    }
}
