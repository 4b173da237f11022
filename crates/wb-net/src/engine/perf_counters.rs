//! Hardware and software counters over flowops, by the kernel's perf events.

use perf_event::events::{Event, Hardware, Software};
use perf_event::{Builder, Counter};

/// The supported events, named as in `perf list`.
pub const SUPPORTED_EVENTS: [&str; 11] = [
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "ref-cycles",
    "context-switches",
    "cpu-migrations",
    "page-faults",
    "task-clock",
];

pub const DEFAULT_EVENTS: [&str; 2] = ["cycles", "instructions"];

#[derive(Debug)]
pub(super) struct PerfCounters {
    counters: Vec<Counter>,
    before: Vec<u64>,
}

impl PerfCounters {
    /// Opens and enables the counters of the calling thread; the error names the event and the cause.
    pub(super) fn open(names: &[String]) -> Result<Self, String> {
        let counters: Vec<Counter> = names
            .iter()
            .map(|name| open(name).map_err(|error| format!("{name}: {error}")))
            .collect::<Result<_, _>>()?;
        Ok(Self { before: vec![0; counters.len()], counters })
    }

    pub(super) fn start(&mut self) {
        for (before, counter) in self.before.iter_mut().zip(&mut self.counters) {
            *before = counter.read().unwrap_or(0);
        }
    }

    pub(super) fn add_to(&mut self, to: &mut [u64]) {
        for ((before, counter), sum) in self.before.iter().zip(&mut self.counters).zip(to) {
            *sum += counter.read().unwrap_or(0).saturating_sub(*before);
        }
    }
}

/// Checks that every event can be counted on this machine; the error names the event and the cause.
pub fn probe(names: &[String]) -> Result<(), String> {
    PerfCounters::open(names).map(|_| ())
}

fn open(name: &str) -> Result<Counter, String> {
    let built = |event: &dyn Fn() -> Builder<'static>| {
        let mut counter =
            event().include_kernel().build().or_else(|_| event().build()).map_err(|error| error.to_string())?;
        counter.enable().map_err(|error| error.to_string())?;
        Ok(counter)
    };
    fn of<E: Event + Clone + 'static>(event: E) -> impl Fn() -> Builder<'static> {
        move || Builder::new(event.clone())
    }
    match name {
        "cycles" => built(&of(Hardware::CPU_CYCLES)),
        "instructions" => built(&of(Hardware::INSTRUCTIONS)),
        "cache-references" => built(&of(Hardware::CACHE_REFERENCES)),
        "cache-misses" => built(&of(Hardware::CACHE_MISSES)),
        "branches" => built(&of(Hardware::BRANCH_INSTRUCTIONS)),
        "branch-misses" => built(&of(Hardware::BRANCH_MISSES)),
        "ref-cycles" => built(&of(Hardware::REF_CPU_CYCLES)),
        "context-switches" => built(&of(Software::CONTEXT_SWITCHES)),
        "cpu-migrations" => built(&of(Software::CPU_MIGRATIONS)),
        "page-faults" => built(&of(Software::PAGE_FAULTS)),
        "task-clock" => built(&of(Software::TASK_CLOCK)),
        _ => Err(format!("unknown event: expected one of {}", SUPPORTED_EVENTS.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn software_events_are_counted() {
        match PerfCounters::open(&["task-clock".to_owned()]) {
            Ok(mut counters) => {
                let mut sum = [0];
                counters.start();
                let until = super::super::clock::now() + 2_000_000;
                while super::super::clock::now() < until {}
                counters.add_to(&mut sum);
                assert!(sum[0] > 100_000, "{sum:?}");
            }
            Err(error) => wb_test_skip::skip!("perf events are not available: {error}"),
        }
    }

    #[test]
    fn an_unknown_event_is_reported() {
        let error = PerfCounters::open(&["cycels".to_owned()]).expect_err("it is not an event");
        assert!(error.starts_with("cycels: unknown event"), "{error}");
    }
}
