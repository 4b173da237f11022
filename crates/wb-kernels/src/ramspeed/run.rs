//! Passes of one operation over arrays in memory.

use super::{
    operands::{OperandRun, runs},
    pass::select_pass,
};
use crate::{
    Error, HugePagePolicy, Isa, MappedMemory, Probe, Residency, Work, cpus, opaque,
    thread_team::{self, TeamThread, TimeSpan},
    work::measure,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a pass does.
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

/// What the words are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WordType {
    /// `i64`
    Integer,
    /// `f64`
    Floating,
}

/// How ramspeed is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// What a pass does.
    pub mode: Mode,
    /// What the words are.
    pub kind: WordType,
    /// Whether stores go past the caches.
    #[serde(default)]
    pub non_temporal: bool,
    /// Bytes of each array; rounded down to whole cache lines.
    pub bytes: u64,
    /// One CPU for each thread.
    pub cpus: Vec<usize>,
    /// Instructions of the measured loops.
    pub isa: Isa,
    /// Pages of the arrays.
    #[serde(default)]
    pub huge_pages: HugePagePolicy,
    /// How much is measured; an iteration is one pass.
    pub work: Work,
}

/// What ramspeed measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Report {
    /// What a pass does.
    pub mode: Mode,
    /// What the words are.
    pub kind: WordType,
    /// Whether stores went past the caches.
    pub non_temporal: bool,
    /// Threads, one for each CPU given.
    pub threads: usize,
    /// Instructions of the measured loops.
    pub isa: Isa,
    /// Bytes of each array.
    pub array_bytes: u64,
    /// Measured passes.
    pub passes: u64,
    /// Bytes moved in the measured passes, as STREAM counts them.
    pub bytes_moved: u64,
    /// Wall time of the passes, from the common start to the last thread's end.
    pub seconds: f64,
    /// Each thread's own time, in the order of the CPUs.
    pub thread_seconds: Vec<f64>,
    /// Millions (10⁶) of bytes moved per second.
    pub mb_per_s: f64,
    /// The result against the closed form.
    pub check: ResultCheck,
    /// All three arrays and the pages they were on, after the run.
    pub residency: Residency,
    /// The calibration.
    pub probe: Probe,
}

/// How many words were checked after the run and how many were wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ResultCheck {
    /// Words compared with what they have to be.
    pub words: u64,
    /// Words that were something else. Any is wrong.
    pub mismatches: u64,
}

impl Mode {
    /// Arrays that a pass touches.
    #[must_use]
    pub fn arrays(self) -> u64 {
        match self {
            Self::Copy | Self::Scale => 2,
            Self::Add | Self::Triad => 3,
        }
    }

    /// The result for operands `a` and `b`.
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
    /// The word that stands for a small whole number.
    pub(super) fn word(self, number: u64) -> u64 {
        match self {
            Self::Integer => number,
            // From 32 bits: vector units convert those at once.
            Self::Floating => f64::from(number as i32).to_bits(),
        }
    }
}

/// Runs one operation on its own threads and reports.
///
/// # Errors
/// An instruction set or CPU that is not there, arrays smaller than a line for each thread, or
/// memory that is lacking.
pub fn run(config: &Config) -> Result<Report, Error> {
    config.isa.require()?;
    cpus::check(&config.cpus)?;
    if config.non_temporal && !cfg!(target_arch = "x86_64") {
        let way_out = "measure with ordinary stores";
        return Err(Error::Unsupported { what: "a non-temporal store", isa: config.isa, way_out });
    }
    let arrays = Arrays::map(config)?;
    let measured = measure(config.work, |passes| arrays.run(config, passes))?;
    let (check, spans) = measured.value;
    let array_bytes = (arrays.words * WORD) as u64;
    let bytes_moved = config.mode.arrays() * array_bytes * measured.iterations;
    Ok(Report {
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
/// Arrays begin a page plus this many lines apart, so that the line that is stored never has the
/// page offset of one that is loaded soon after: the CPU would take it for the same.
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
                "{} bytes are less than a cache line for each of {threads} threads",
                config.bytes
            )));
        }
        let words = lines.saturating_mul(LINE);
        let stride = words.saturating_add(511) / 512 * 512 + ARRAY_OFFSET;
        let bytes = stride.saturating_mul(3 * WORD);
        Ok(Self { memory: MappedMemory::map(bytes, config.huge_pages)?, words, stride })
    }

    /// Where an array begins: 0 is the result, 1 and 2 the operands.
    fn array(&self, index: usize) -> *mut u64 {
        self.memory.as_ptr().cast::<u64>().wrapping_add(index * self.stride)
    }

    fn run(&self, config: &Config, passes: u64) -> Result<(Duration, (ResultCheck, Vec<TimeSpan>)), Error> {
        let results = thread_team::run(&config.cpus, |member| self.run_thread(member, config, passes))?;
        let check = results.iter().fold(ResultCheck::default(), |sum, (check, _)| ResultCheck {
            words: sum.words + check.words,
            mismatches: sum.mismatches + check.mismatches,
        });
        let spans: Vec<_> = results.into_iter().map(|(_, span)| span).collect();
        Ok((TimeSpan::wall_time(&spans), (check, spans)))
    }

    fn run_thread(&self, member: &TeamThread<'_>, config: &Config, passes: u64) -> (ResultCheck, TimeSpan) {
        let share = member.share(self.words / LINE);
        let (first, words) = (share.start * LINE, share.len() * LINE);
        let [to, a, b] = [0, 1, 2].map(|index| self.array(index).wrapping_add(first));
        let word = |number| config.kind.word(number);
        for OperandRun { at, words, operands } in runs(first, words) {
            for k in 0..words {
                // SAFETY: `at + k` is in this member's share of each array; shares do not overlap.
                unsafe {
                    to.add(at + k).write(u64::MAX);
                    a.add(at + k).write(word(operands[0] + k as u64));
                    b.add(at + k).write(word(operands[1] + k as u64));
                }
            }
        }
        let pass = select_pass(config.mode, config.kind, config.non_temporal, config.isa);
        let ((), span) = member.time(|| {
            for _ in 0..passes {
                // SAFETY: the instruction set was required; the arrays are this member's share,
                // which begins at a line.
                unsafe { pass(opaque::pointer(to), a, b, words) }
            }
        });
        // SAFETY: this member's share of the result, which nobody writes any more.
        let result = unsafe { std::slice::from_raw_parts(to, words) };
        let wrong = |OperandRun { at, words, operands: [a, b] }: OperandRun| {
            let found = result[at..at + words].iter().zip(0..);
            found.filter(|&(found, k)| *found != word(config.mode.expected(a + k, b + k))).count() as u64
        };
        (ResultCheck { words: words as u64, mismatches: runs(first, words).map(wrong).sum() }, span)
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
    fn every_mode_kind_isa_and_store_ends_in_the_closed_form() {
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
    fn a_pass_that_does_not_happen_is_found() {
        let config = config(Mode::Triad, 1, Work::Iterations(1));
        let arrays = Arrays::map(&config).unwrap();
        let (_, (check, _)) = arrays.run(&config, 0).unwrap();
        assert_eq!(check.mismatches, check.words);
    }

    #[test]
    fn a_time_is_filled_and_the_figures_agree() {
        let report = run(&config(Mode::Copy, 2, Work::Seconds(0.02))).unwrap();
        assert!(report.seconds >= 0.02);
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
    fn a_configuration_survives_json() {
        let json = r#"{"mode":"triad","kind":"floating","non-temporal":true,"bytes":1024,"cpus":[0],"isa":"sse2","work":{"iterations":2}}"#;
        let config: Config = serde_json::from_str(json).unwrap();
        assert_eq!((config.mode, config.non_temporal, config.bytes), (Mode::Triad, true, 1024));
    }
}
