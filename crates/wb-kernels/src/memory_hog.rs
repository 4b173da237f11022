//! A process whose memory grows at a given rate: a neighbour without limits, or a balloon that takes memory away.
//!
//! Pages are filled with random bytes, which do not compress. If the process waits for memory, in reclaim or for swap,
//! it falls behind; it catches up with up to [`MAX_DEBT`], and the rest is counted as lost. So the difference between
//! the requested and the reached growth is known, as for `mem-hog` of resctl-demo's bandit.

use std::thread;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes written between two looks at the clock: short even where a page takes a millisecond.
const STEP: usize = 64 << 10;
/// How far growth may be behind; the rest is counted as lost.
const MAX_DEBT: Duration = Duration::from_secs(1);
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// Bytes that are allocated at once, so that growing copies nothing.
const AREA: usize = 16 << 20;
/// Reading touches one word of each page.
const PAGE: usize = 4096;

/// What a memory hog is started with
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MemoryHogConfig {
    /// Size up to which it grows, in bytes
    pub max_bytes: u64,
    /// Bytes per second by which it grows; as fast as possible if not given
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growth: Option<u64>,
    /// Whether it reads its pages again in turn, as many bytes as it writes, so that those that were swapped out come
    /// back
    #[serde(default)]
    pub read: bool,
}

/// What a memory hog has done since its start
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct MemoryHogReport {
    /// Time since the start, in seconds
    pub time: f64,
    /// Its size: bytes written
    pub bytes: u64,
    /// Bytes that it should have grown by and could not in time
    pub lost: u64,
    /// Bytes in pages that were read again
    pub reread: u64,
}

/// Grows the memory, then keeps its size. Calls `on_report` once a second; the first error of that ends it.
pub fn run<E>(config: &MemoryHogConfig, mut on_report: impl FnMut(&MemoryHogReport) -> Result<(), E>) -> Result<(), E> {
    let start = Instant::now();
    let mut growth = Growth::new(config.growth);
    let mut memory = Memory::new();
    let mut report = MemoryHogReport::default();
    let mut next_report = REPORT_INTERVAL;
    loop {
        let now = start.elapsed();
        if now >= next_report {
            report = MemoryHogReport { time: now.as_secs_f64(), lost: growth.lost as u64, ..report };
            on_report(&report)?;
            // A hog that was stopped for seconds reports once, not for each of them.
            next_report = now + REPORT_INTERVAL;
        }
        // Whole pages are written.
        let room = config.max_bytes.saturating_sub(report.bytes) / PAGE as u64 * PAGE as u64;
        let step = STEP.min(usize::try_from(room).unwrap_or(STEP));
        if step == 0 {
            if config.read {
                report.reread += memory.reread(STEP);
            } else {
                thread::sleep(next_report.saturating_sub(now));
            }
            continue;
        }
        if let Some(wait) = growth.wait(now, step) {
            thread::sleep(wait.min(next_report.saturating_sub(now)));
            continue;
        }
        memory.write(step);
        report.bytes += step as u64;
        if config.read {
            report.reread += memory.reread(step);
        }
    }
}

struct Growth {
    rate: Option<f64>,
    /// Bytes that are due and not yet written.
    debt: f64,
    /// Bytes that will not be written any more.
    lost: f64,
    last: Duration,
}

impl Growth {
    fn new(rate: Option<u64>) -> Self {
        Self { rate: rate.map(|rate| rate as f64), debt: 0.0, lost: 0.0, last: Duration::ZERO }
    }

    /// The time until the next step is due; `None` if it is now, in which case it is taken as done.
    fn wait(&mut self, now: Duration, step: usize) -> Option<Duration> {
        let rate = self.rate?;
        self.debt += rate * now.saturating_sub(self.last).as_secs_f64();
        self.last = now;
        let excess = self.debt - (rate * MAX_DEBT.as_secs_f64()).max(step as f64);
        if excess > 0.0 {
            self.lost += excess;
            self.debt -= excess;
        }
        let missing = step as f64 - self.debt;
        if missing > 0.0 {
            // A rate of zero waits for the next report.
            return Some(Duration::try_from_secs_f64(missing / rate).unwrap_or(REPORT_INTERVAL));
        }
        self.debt -= step as f64;
        None
    }
}

/// Memory in which all pages have the same random bytes but for the first word: no page compresses, and none equals
/// another.
struct Memory {
    areas: Vec<Vec<u64>>,
    page: Vec<u64>,
    pages: u64,
    /// Word at which reading continues, over all areas.
    position: usize,
}

impl Memory {
    fn new() -> Self {
        let mut seed = 0;
        let page = (0..PAGE / size_of::<u64>()).map(|_| next_random(&mut seed)).collect();
        Self { areas: Vec::new(), page, pages: 0, position: 0 }
    }

    fn write(&mut self, bytes: usize) {
        for _ in 0..bytes / PAGE {
            if self.areas.last().is_none_or(|area| area.len() == area.capacity()) {
                self.areas.push(Vec::with_capacity(AREA / size_of::<u64>()));
            }
            self.page[0] = self.pages;
            self.pages += 1;
            if let Some(area) = self.areas.last_mut() {
                area.extend_from_slice(&self.page);
            }
        }
    }

    /// Reads a word of each of the next pages, and returns the size of the pages.
    fn reread(&mut self, bytes: usize) -> u64 {
        const WORDS: usize = AREA / size_of::<u64>();
        let mut touched = 0;
        for _ in 0..bytes / PAGE {
            let area = self.areas.get(self.position / WORDS);
            let Some(word) = area.and_then(|area| area.get(self.position % WORDS)) else {
                self.position = 0;
                continue;
            };
            std::hint::black_box(*word);
            self.position += PAGE / size_of::<u64>();
            touched += PAGE as u64;
        }
        touched
    }
}

/// The next word of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut word = *state;
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_that_was_missed_is_lost_beyond_a_second_of_it() {
        let second = Duration::from_secs(1);
        let mut growth = Growth::new(Some(1_000_000));
        assert_eq!(growth.wait(Duration::ZERO, 1000), Some(Duration::from_millis(1)));
        assert_eq!(growth.wait(second, 1000), None);
        assert_eq!((growth.debt, growth.lost), (999_000.0, 0.0));
        assert_eq!(growth.wait(11 * second, 1000), None);
        assert_eq!((growth.debt, growth.lost), (999_000.0, 9_999_000.0));
    }

    #[test]
    fn without_a_rate_every_step_is_due() {
        assert_eq!(Growth::new(None).wait(Duration::ZERO, STEP), None);
    }

    #[test]
    fn it_stops_growing_at_its_size_and_reads_its_pages_again() {
        let config = MemoryHogConfig { max_bytes: 3 << 20, growth: None, read: true };
        let ended: Result<(), MemoryHogReport> = run(&config, |report| Err(*report));
        let report = ended.unwrap_err();
        assert_eq!((report.bytes, report.lost), (3 << 20, 0));
        assert!(report.reread > 3 << 20 && report.time >= 1.0, "{report:?}");
    }

    #[test]
    fn pages_are_random_and_areas_do_not_move() {
        let mut memory = Memory::new();
        memory.write(AREA);
        let first = memory.areas[0].as_ptr();
        memory.write(AREA + PAGE);
        assert_eq!((memory.areas.len(), memory.areas[0].as_ptr()), (3, first));
        let page = |number: usize| &memory.areas[0][number * PAGE / 8..(number + 1) * PAGE / 8];
        assert!(page(0) != page(1) && page(1)[1..].iter().all(|word| *word != 0));
    }
}
