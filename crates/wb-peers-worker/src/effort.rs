//! Whether the time of a transfer depends on its bytes, and whether all of that time is reported: a scenario against its
//! probe, which transfers a part of its bytes.
//!
//! One pair of processes is no basis for a conclusion. A suspicious scenario is measured again, in rounds, and a sample
//! becomes invalid only if the fault is certain over all of them.

use wb_model::Quantity;
use wb_model::outcome::Gate;
use wb_net::ceiling::Ceiling;
use wb_peers::plausibility::format_time;
use wb_stats::{Samples, Shift, difference};
use wb_test::Measurement;

use super::cell::PeersCell;
use super::gates::{max_rate, raw_rate};
use super::params::ScenarioRun;
use super::sample::{probe_name, repeat_prefix};
use super::study::{ScenarioOutput, median};
use super::timing::Gaps;

/// Confidence of the intervals of differences; each of the two ends is exceeded with half of the rest.
const CONFIDENCE: f64 = 0.98;
/// Share of the time of further bytes that may be missing from the reported times: some programs free memory, or write
/// logs, between iterations.
const UNREPORTED_SHARE: f64 = 0.2;
/// Unreported time that is worth a repetition, in seconds. The agent reads the lines of a process that prints often in
/// steps of 10 ms.
const MIN_UNREPORTED: f64 = 0.005;
/// Time beyond what is reported that shows in the run times of processes, in seconds: their start and their end vary.
const MIN_UNREPORTED_PROCESS: f64 = 0.02;
/// A transfer that takes less than its probe by more than this share of it shows a disturbance, not a sleep.
const DISTURBED_SHARE: f64 = 0.2;
/// Share of the time of a transfer that does not depend on its bytes from which on this is notable.
const NOTABLE_SETUP: f64 = 0.5;
/// The share that more bytes should bring it down to.
const SMALL_SETUP: f64 = 0.1;

/// A scenario and its probe, with their repetitions.
pub(super) struct SizeComparison<'a> {
    name: String,
    full: Vec<&'a ScenarioOutput>,
    part: Vec<&'a ScenarioOutput>,
    /// Bytes per second that no transfer exceeds.
    max_rate: f64,
}

struct Slope {
    /// Of an iteration of the scenario.
    bytes: f64,
    /// Bytes beyond those of the probe.
    further: f64,
    /// Seconds that the further bytes took, as reported.
    shift: Shift,
    /// Seconds that they take at least.
    required: f64,
    /// Median of an iteration of the probe, in seconds.
    part: f64,
    /// The same of the scenario.
    full: f64,
}

fn shift(part: &[f64], full: &[f64]) -> Option<Shift> {
    Some(difference(&Samples::new(part).ok()?, &Samples::new(full).ok()?, CONFIDENCE))
}

fn durations(all: &[&ScenarioOutput]) -> Vec<f64> {
    all.iter().flat_map(|scenario| scenario.durations()).collect()
}

fn is_unreported(missing: f64, reported: f64) -> bool {
    missing > UNREPORTED_SHARE * (missing + reported.max(0.0))
}

impl<'a> SizeComparison<'a> {
    pub(super) fn new(cell: &PeersCell, run: &ScenarioRun, all: &'a [ScenarioOutput], ceiling: &Ceiling) -> Self {
        let name = run.scenario.name().to_owned();
        let named = |name: &str| {
            let prefix = repeat_prefix(name);
            let is_of = |scenario: &&ScenarioOutput| scenario.name == name || scenario.name.starts_with(&prefix);
            all.iter().filter(is_of).collect()
        };
        let (full, part) = (named(&name), named(&probe_name(&name)));
        Self { full, part, max_rate: max_rate(cell, raw_rate(run, ceiling), ceiling), name }
    }

    fn slope(&self) -> Option<Slope> {
        let (full, part) = (self.full.first()?, self.part.first()?);
        let (bytes, further) = (full.run.bytes() as f64, full.run.bytes().saturating_sub(part.run.bytes()) as f64);
        let [part, full] = [&self.part, &self.full].map(|all| durations(all));
        Some(Slope {
            bytes,
            further,
            shift: shift(&part, &full)?,
            required: further / self.max_rate,
            part: median(&part)?,
            full: median(&full)?,
        })
    }

    /// The repetitions, which have equally many iterations of both sizes.
    fn rounds(&self) -> impl Iterator<Item = (&'a ScenarioOutput, &'a ScenarioOutput)> {
        self.full.iter().zip(&self.part).skip(1).map(|(full, part)| (*full, *part))
    }

    /// Whether something looks wrong, so that it has to be measured again.
    pub(super) fn is_suspicious(&self) -> bool {
        let Some(slope) = self.slope() else { return false };
        let [part, full] = [&self.part, &self.full].map(|all| Gaps::new(all));
        let is_missing = |part: &[f64], full: &[f64]| {
            shift(part, full)
                .is_some_and(|gap| gap.estimate > MIN_UNREPORTED && is_unreported(gap.estimate, slope.shift.estimate))
        };
        let processes = self.full.first().zip(self.part.first()).filter(|_| full.observed.is_empty());
        let is_process_longer = processes.is_some_and(|(full, part)| {
            let missing = full.unaccounted() - part.unaccounted();
            missing > MIN_UNREPORTED_PROCESS && is_unreported(missing, full.accounted() - part.accounted())
        });
        slope.shift.estimate < slope.required
            || is_missing(&part.reported, &full.reported)
            || is_missing(&part.observed, &full.observed)
            || is_missing(&part.connecting, &full.connecting)
            || is_process_longer
    }

    /// Checks that the time depends on the bytes, and that it is reported; only for repeated measurements.
    pub(super) fn check(&self, measurement: &mut Measurement) {
        let Some(slope) = self.slope() else { return };
        if self.rounds().next().is_some() {
            self.check_slope(measurement, &slope);
            // Nothing can be missing from times of which it is not known that the bytes need any.
            if slope.shift.interval.is_some_and(|interval| interval.low > 0.0) {
                self.check_gaps(measurement, &slope);
            }
        }
        self.note_setup(measurement, &slope);
    }

    fn check_slope(&self, measurement: &mut Measurement, slope: &Slope) {
        let Slope { bytes, further, shift, required, part, .. } = slope;
        let (name, more) = (&self.name, Quantity { value: *further, unit: "B" });
        let is_disturbed = shift.estimate < -DISTURBED_SHARE * part;
        match shift.interval {
            Some(interval) if interval.high < *required && !is_disturbed => measurement.reject(
                Gate::Effort,
                format!(
                    "{name}: {more} more took {} more, at most {}, and cannot take less than {}: the time does not depend \
                     on them",
                    format_time(shift.estimate),
                    format_time(interval.high),
                    format_time(*required)
                ),
            ),
            Some(interval) if interval.low <= 0.0 => {
                // As many bytes as would take longer than the times vary.
                let needed = bytes * f64::max(2.0 * (interval.high - interval.low) / required, 2.0);
                measurement.findings.push(format!(
                    "{name}: {more} more took between {} and {} more, so that these times do not show whether they depend \
                     on the bytes; {} would",
                    format_time(interval.low),
                    format_time(interval.high),
                    size(needed)
                ));
            }
            _ => {}
        }
    }

    fn check_gaps(&self, measurement: &mut Measurement, slope: &Slope) {
        let [part, full] = [&self.part, &self.full].map(|all| Gaps::new(all));
        let clocks = [
            ("between iterations by the dialer's own clock", &part.reported, &full.reported),
            ("between their lines by the clock of the harness", &part.observed, &full.observed),
            ("in connecting", &part.connecting, &full.connecting),
        ];
        for (clock, part, full) in clocks {
            let Some(gap) = shift(part, full) else { continue };
            let certain = gap.interval.map_or(0.0, |interval| interval.low);
            measurement.require(
                certain <= 0.0 || gap.estimate < MIN_UNREPORTED || !is_unreported(certain, slope.shift.estimate),
                Gate::Plausibility,
                || {
                    format!(
                        "{}: further bytes took {} more as reported, and {} {clock} that no iteration reports: times that \
                         are divided, or of a part of the transfer, or work on the payload between iterations, which \
                         belongs before the first",
                        self.name,
                        format_time(slope.shift.estimate),
                        format_time(gap.estimate)
                    )
                },
            );
        }
        if full.observed.is_empty() {
            self.check_processes(measurement);
        }
    }

    /// The same by the run time of the processes, for those that print all lines at their end.
    fn check_processes(&self, measurement: &mut Measurement) {
        let (full, part): (Vec<_>, Vec<_>) = self.rounds().unzip();
        let [of_part, of_full] =
            [&part, &full].map(|all| all.iter().map(|scenario| scenario.unaccounted()).collect::<Vec<_>>());
        let Some(Shift { interval: Some(interval), .. }) = shift(&of_part, &of_full) else { return };
        let reported = full.iter().zip(&part).map(|(full, part)| full.accounted() - part.accounted());
        let Some(reported) = median(&reported.collect::<Vec<_>>()) else { return };
        let missing = interval.low;
        measurement.require(missing < MIN_UNREPORTED_PROCESS || !is_unreported(missing, reported), Gate::Plausibility, || {
            format!(
                "{}: further bytes took {} more as reported, and their processes at least {} beyond that: times that are \
                 divided, or of a part of the transfer",
                self.name,
                format_time(reported),
                format_time(missing)
            )
        });
    }

    /// Adds a finding if most of the time does not depend on the bytes, with the size that would do.
    fn note_setup(&self, measurement: &mut Measurement, slope: &Slope) {
        let Slope { bytes, further, shift, full, .. } = slope;
        let setup = full - shift.estimate / further * bytes;
        let is_certain = shift.interval.is_some_and(|interval| interval.low > 0.0);
        if is_certain && setup > NOTABLE_SETUP * full {
            let needed = setup * (1.0 - SMALL_SETUP) / SMALL_SETUP * further / shift.estimate;
            measurement.findings.push(format!(
                "{}: {} of {} do not depend on the bytes, so that the rate is that of setting up; with {} it would be a \
                 tenth of the time",
                self.name,
                format_time(setup),
                format_time(*full),
                size(needed)
            ));
        }
    }
}

/// A number of bytes, rounded up to a power of two.
fn size(bytes: f64) -> String {
    Quantity { value: bytes.log2().ceil().exp2(), unit: "B" }.to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use wb_model::Validity;
    use wb_results::Scenario;

    use super::*;
    use crate::output::{EndpointOutput, Iteration};
    use crate::sample::{dials, repeats};
    use crate::traffic::{InterfaceBytes, Traffic};

    const CEILING: Ceiling =
        Ceiling { upload: 4e9, download: 4e9, min_round_trip: 10e-6, median_round_trip: 15e-6, steadiness: 1.0 };
    /// Bytes per second of the endpoint.
    const RATE: f64 = 1e9;

    /// An endpoint: the time that its iterations take, and the time that it reports.
    #[derive(Debug, Clone, Copy)]
    struct Model {
        /// Seconds to set up a stream.
        setup: f64,
        /// Bytes per second.
        rate: f64,
        /// Largest part of the time that is added to it by chance.
        noise: f64,
        /// Seconds between iterations.
        gap: f64,
        /// What all times are divided by.
        all_by: f64,
        /// What durations are divided by.
        durations_by: f64,
        /// Whether all lines are printed at the end.
        is_buffered: bool,
        /// The share of each iteration that is reported as connecting; 0: it does not connect.
        connecting: f64,
    }

    const HONEST: Model = Model {
        setup: 0.0,
        rate: RATE,
        noise: 0.05,
        gap: 0.001,
        all_by: 1.0,
        durations_by: 1.0,
        is_buffered: false,
        connecting: 0.0,
    };

    impl Model {
        fn output(&self, name: String, run: ScenarioRun, seed: usize) -> ScenarioOutput {
            let (mut clock, mut arrivals, mut iterations) = (0.1, Vec::new(), Vec::new());
            for i in 0..run.iterations as usize {
                let chance = ((i * 7919 + seed * 104_729) % 1000) as f64 / 1000.0;
                let seconds = (self.setup + run.bytes() as f64 / self.rate) * (1.0 + self.noise * chance);
                let dial = clock + self.gap;
                let open = dial + self.connecting * seconds;
                clock = dial + seconds;
                let seconds = clock - open;
                let connects = |time: f64| (self.connecting > 0.0).then_some(time / self.all_by);
                arrivals.push(clock + 0.000_2);
                iterations.push(Iteration {
                    i: i as u64,
                    sent: run.sizes().0,
                    received: run.sizes().1,
                    t_dial: connects(dial),
                    t_connect: connects(open),
                    t_open: Some(open / self.all_by),
                    t_first: None,
                    t_last: Some((open + seconds / self.durations_by) / self.all_by),
                    error: None,
                });
            }
            if self.is_buffered {
                arrivals.fill(clock);
            }
            let zero = InterfaceBytes::default();
            ScenarioOutput {
                name,
                run,
                output: EndpointOutput { iterations, ..EndpointOutput::default() },
                traffic: Traffic { before: zero, after: zero, is_loopback: false },
                elapsed: clock + 0.1 + 0.01 * (seed % 3) as f64,
                arrivals,
                progress_arrivals: Vec::new(),
            }
        }

        /// The verdict of a sample of uploads, whether it was repeated, and its findings.
        fn judge(&self) -> (Validity, bool, Vec<String>) {
            let cell = PeersCell::new(Arc::default(), &wb_model::Params::new()).unwrap();
            let run = cell.scenario_runs().into_iter().find(|run| run.scenario == Scenario::Upload).unwrap();
            let seeded = |list: Vec<(String, ScenarioRun)>, seed: usize| {
                let of_run = list.into_iter().filter(|(_, one)| one.scenario == Scenario::Upload).enumerate();
                of_run.map(|(index, (name, run))| self.output(name, run, seed + index)).collect::<Vec<_>>()
            };
            let mut all = seeded(dials(&cell), 0);
            let is_suspicious = SizeComparison::new(&cell, &run, &all, &CEILING).is_suspicious();
            if is_suspicious {
                all.extend(seeded(repeats(&cell), 10));
            }
            let mut measurement = Measurement::default();
            SizeComparison::new(&cell, &run, &all, &CEILING).check(&mut measurement);
            (measurement.validity, is_suspicious, measurement.findings)
        }
    }

    fn gate(validity: Validity) -> Option<(Gate, String)> {
        match validity {
            Validity::Valid => None,
            Validity::Invalid { gate, figures } => Some((gate, figures)),
        }
    }

    #[test]
    fn a_steady_endpoint_is_not_measured_again() {
        assert_eq!(HONEST.judge(), (Validity::Valid, false, Vec::new()));
    }

    #[test]
    fn setting_up_each_stream_is_no_lie_and_the_size_that_would_do_is_named() {
        let (validity, _, findings) = Model { setup: 0.25, noise: 0.01, ..HONEST }.judge();
        assert_eq!(validity, Validity::Valid);
        assert!(findings[0].contains("do not depend on the bytes") && findings[0].contains("GiB"), "{findings:?}");
        // Where the set-up varies by more than the transfer takes, nothing is known, and nothing is held against it.
        let (validity, _, findings) = Model { setup: 0.25, noise: 1.0, ..HONEST }.judge();
        assert_eq!(validity, Validity::Valid, "{findings:?}");
    }

    #[test]
    fn a_time_that_does_not_depend_on_the_bytes_is_found() {
        let (validity, is_repeated, _) = Model { setup: 0.15, rate: 1e15, noise: 0.01, ..HONEST }.judge();
        let (gate, figures) = gate(validity).unwrap();
        assert!(gate == Gate::Effort && figures.ends_with("the time does not depend on them"), "{figures}");
        assert!(is_repeated);
    }

    #[test]
    fn divided_times_are_found_however_they_are_printed() {
        // With all lines at the end, the run times of processes remain, which vary.
        for (by, is_buffered) in [(1.5, false), (2.0, false), (3.0, false), (2.0, true), (3.0, true)] {
            for model in [Model { all_by: by, ..HONEST }, Model { durations_by: by, ..HONEST }] {
                let model = Model { is_buffered, ..model };
                let (gate, figures) = gate(model.judge().0).unwrap_or_else(|| panic!("valid: {model:?}"));
                assert!(gate == Gate::Plausibility && figures.contains("divided"), "{model:?}: {figures}");
            }
        }
    }

    #[test]
    fn a_part_of_a_transfer_that_is_called_connecting_is_found() {
        for (connecting, is_buffered) in [(0.3, false), (0.5, false), (0.5, true), (0.8, false)] {
            let model = Model { connecting, is_buffered, ..HONEST };
            let (gate, figures) = gate(model.judge().0).unwrap_or_else(|| panic!("valid: {model:?}"));
            assert!(gate == Gate::Plausibility && figures.contains("in connecting"), "{model:?}: {figures}");
        }
    }

    proptest! {
        /// Whatever setting up and gaps take, and however much they vary.
        #[test]
        fn no_honest_endpoint_is_accused(
            setup in 0.0..2.0_f64, rate in 1e6..3e9_f64, noise in 0.0..2.0_f64, gap in 0.0..1.0_f64, is_buffered: bool,
        ) {
            let model = Model { setup, rate, noise, gap, is_buffered, ..HONEST };
            prop_assert_eq!(model.judge().0, Validity::Valid);
        }
    }
}
