//! Turns the suites' results into cells, and marks impossible figures as invalid, with the figures that show it.
//!
//! The rules are those of [`wb_peers::plausibility`]; this module decides to which figures of a file they apply.

use wb_model::imported::SAMPLES_ARE_MEDIANS;
use wb_model::{Gate, Metric};
use wb_peers::plausibility::{
    CEILING_MARGIN, Implausibility, asymmetric_rates, clustered_rates, clustered_times, format_rate, quantised_samples,
    rate_above_ceiling, rate_cluster, time_cluster, unit_against_magnitude,
};
use wb_stats::{Samples, outliers};

use super::{Figures, PLAUSIBLE_ROUND_TRIP, Row, Scenario, SuiteResults};
use crate::foreign::{ForeignCell, ForeignResults, ForeignSample};
use crate::naming::valid_name;

const TEST: &str = "peers";
const SUMMARY: &str =
    "transfers and round trips between two implementations, as libp2p's performance suite measured them";

/// Relative difference from which on a reported median contradicts the median of its samples.
const MEDIAN_TOLERANCE: f64 = 0.01;

pub(super) fn judge(results: SuiteResults) -> ForeignResults {
    let SuiteResults { provenance, baselines, tests, findings, notes, is_partial, is_own } = results;
    let mut foreign = ForeignResults::default();
    foreign.notes.extend(notes);
    for (name, text) in provenance {
        if name == "platform" {
            // `x86_64 (Linux)`
            foreign.machine.facts.arch = text.split(' ').next().unwrap_or_default().to_owned();
        }
        if name == "test pass" {
            foreign.metadata.insert(name.to_owned(), text.clone());
        }
        foreign.add_provenance(name, Some(text));
    }
    let ceiling = Ceiling::new(&baselines);
    for row in &baselines {
        let judged = RowJudge { row, is_baseline: true, is_partial: true, is_own, ceiling: None, findings: &findings };
        judged.add_cell(&mut foreign);
    }
    for row in &tests {
        let ceiling = ceiling.as_ref();
        let judged = RowJudge { row, is_baseline: false, is_partial, is_own, ceiling, findings: &findings };
        judged.add_cell(&mut foreign);
    }
    foreign
}

/// Highest rate of any baseline that passed.
struct Ceiling {
    rate: f64,
    baseline: String,
}

impl Ceiling {
    /// From the highest rate that a baseline's samples reach without outliers, in either direction. If its directions
    /// contradict each other, that of the slower one.
    fn new(baselines: &[Row]) -> Option<Self> {
        let rate_of = |row: &Row| {
            let [upload, download] = [0, 1].map(|index| row.figures[index].as_ref().and_then(highest_rate));
            match (upload, download) {
                (Some(upload), Some(download)) if asymmetric_rates(upload, download).is_some() => {
                    Some(upload.min(download))
                }
                (upload, download) => upload.into_iter().chain(download).reduce(f64::max),
            }
        };
        let passed = baselines.iter().filter(|row| row.has_passed());
        let rates = passed.filter_map(|row| Some((rate_of(row)?, row)));
        let (rate, row) = rates.max_by(|left, right| left.0.total_cmp(&right.0))?;
        Some(Self { rate, baseline: row.name.clone() })
    }
}

/// Within the whiskers.
fn highest_rate(figures: &Figures) -> Option<f64> {
    let of_samples = Samples::new(&figures.values()).ok().map(|samples| {
        let fence = outliers(&samples).high_fence;
        samples.sorted().iter().copied().filter(|rate| *rate <= fence).fold(samples.median(), f64::max)
    });
    of_samples.or(figures.max).or(figures.median).filter(|rate| *rate > 0.0)
}

impl Row {
    fn has_passed(&self) -> bool {
        self.status.as_deref().is_none_or(|status| status == "pass")
    }

    fn median(&self, scenario: Scenario) -> Option<f64> {
        self.figures[scenario as usize].as_ref().and_then(Figures::typical)
    }
}

impl Figures {
    fn list(&self) -> &'static str {
        if self.are_of_processes { "sampleMedians" } else { "samples" }
    }

    /// The median of the samples, or else the one in the file.
    fn typical(&self) -> Option<f64> {
        Samples::new(&self.values()).ok().map(|samples| samples.median()).or(self.median)
    }
}

struct RowJudge<'a> {
    row: &'a Row,
    is_baseline: bool,
    /// Whether scenarios that it lacks were not measured.
    is_partial: bool,
    /// Whether this program has judged the figures already.
    is_own: bool,
    ceiling: Option<&'a Ceiling>,
    /// Findings about all figures of a scenario in the file.
    findings: &'a [(Scenario, String)],
}

impl RowJudge<'_> {
    fn add_cell(&self, foreign: &mut ForeignResults) {
        let row = self.row;
        let mut cell = ForeignCell::new(valid_name(TEST), SUMMARY);
        cell.axis("dialer", &row.pair.dialer);
        cell.axis("listener", &row.pair.listener);
        for (axis, value) in &row.pair.axes {
            cell.axis(axis, value);
        }
        if row.figures.iter().flatten().any(|figures| figures.are_of_processes) {
            let what = "of the iterations of a process each";
            cell.provenance.insert(SAMPLES_ARE_MEDIANS.to_owned(), what.to_owned());
        }
        if self.is_baseline {
            cell.param("baseline", true);
        }
        let is_empty = row.figures.iter().all(Option::is_none) && row.further.is_empty();
        if !row.has_passed() {
            cell.samples.extend([self.failed_sample()]);
        } else if is_empty && row.status.is_none() {
            let mut sample = ForeignSample::at(&row.location);
            sample.failure = Some("no figures, and neither a status nor a cause in the file".to_owned());
            cell.samples.extend([sample]);
        } else if is_empty && !row.has_figures {
            foreign.omitted.push(format!("`{}`: passed, but such a file has no figures of baselines", row.name));
            return;
        } else {
            for scenario in Scenario::ALL {
                match &row.figures[scenario as usize] {
                    Some(figures) => cell.samples.extend(self.samples(scenario, figures)),
                    // Programs such as iperf do not measure everything.
                    None if self.is_partial && !is_empty => {
                        foreign.omitted.push(format!("`{}`: no figures of {}", row.name, scenario.key()));
                    }
                    None => cell.samples.extend([self.empty_sample(scenario)]),
                }
            }
            for (name, is_rate, figures) in &row.further {
                cell.samples.extend(further_samples(&row.location, name, *is_rate, figures));
            }
        }
        foreign.add(cell);
    }

    /// The sample of a row that did not pass. The suites' own files never have a cause.
    fn failed_sample(&self) -> ForeignSample {
        let row = self.row;
        let status = row.status.as_deref().unwrap_or_default();
        let figures = row.figures.iter().any(Option::is_some);
        let rest = if figures { "; its figures are ignored" } else { "" };
        let mut sample = ForeignSample::at(&row.location);
        if let (Some(gate), Some(cause)) = (row.gate, &row.cause) {
            let figures = cause.strip_prefix(&format!("{gate}: ")).unwrap_or(cause);
            sample.reject(gate, figures);
            return sample;
        }
        sample.failure = Some(match &row.cause {
            // Only this program's own files have one.
            Some(cause) => cause.clone(),
            None => format!("status `{status}` without a cause in the file{rest}"),
        });
        sample
    }

    /// The sample of a scenario that has no figures although its row passed.
    fn empty_sample(&self, scenario: Scenario) -> ForeignSample {
        let mut sample = ForeignSample::at(format!("{}/{}", self.row.location, scenario.key()));
        let status = self.row.status.as_ref().map(|status| format!("status `{status}`, but ")).unwrap_or_default();
        sample.reject(Gate::Output, format!("{status}no figures of {}", scenario.key()));
        sample
    }

    /// The samples of a scenario; its median if the file has no samples.
    fn samples(&self, scenario: Scenario, figures: &Figures) -> Vec<ForeignSample> {
        let base = format!("{}/{}", self.row.location, scenario.key());
        let mut samples: Vec<(f64, ForeignSample)> = match (&figures.samples[..], figures.median) {
            ([], Some(median)) => vec![(median, only_sample(scenario, figures, median, &base))],
            (samples, _) => {
                let list = figures.list();
                let sample = |(position, value): &(usize, f64)| {
                    let mut sample = ForeignSample::at(format!("{base}/{list}/{position}"));
                    sample.push_reading(metric(scenario), Some(*value));
                    sample.disturbances = figures.disturbances.get(position).cloned().unwrap_or_default();
                    sample.seconds = (!scenario.is_rate()).then_some(value / 1e9);
                    (*value, sample)
                };
                samples.iter().map(sample).collect()
            }
        };
        let mut findings = Vec::new();
        if !self.is_own {
            self.reject_impossible(scenario, figures, &mut samples);
            findings = self.scenario_findings(scenario, figures);
        }
        let marked = self.findings.iter().filter(|(marked, _)| *marked == scenario);
        findings.extend(marked.map(|(_, finding)| finding.clone()));
        let mut samples: Vec<ForeignSample> = samples.into_iter().map(|(_, sample)| sample).collect();
        // Findings of invalid samples are not shown.
        let position = samples.iter().position(|sample| sample.rejection.is_none()).unwrap_or_default();
        if let Some(first) = samples.get_mut(position) {
            first.findings.extend(findings);
        }
        samples
    }

    fn reject_impossible(&self, scenario: Scenario, figures: &Figures, samples: &mut [(f64, ForeignSample)]) {
        if let Some(disorder) = disordered_quartiles(figures) {
            let only_statistics = figures.samples.is_empty();
            samples
                .iter_mut()
                .filter(|_| only_statistics)
                .for_each(|(_, sample)| sample.reject(Gate::Output, &disorder));
        }
        if !scenario.is_rate() {
            for (nanos, sample) in samples.iter_mut() {
                reject(sample, unit_against_magnitude(*nanos / 1e9, PLAUSIBLE_ROUND_TRIP, "s"), "");
            }
            let seconds: Vec<f64> = figures.values().iter().map(|nanos| nanos / 1e9).collect();
            if let Some((cluster, found)) = time_cluster(&seconds, None).zip(clustered_times(&seconds, None)) {
                let clustered = samples.iter_mut().filter(|(nanos, _)| cluster.contains(nanos / 1e9));
                clustered.for_each(|(_, sample)| reject(sample, Some(found.clone()), ""));
            }
            return;
        }
        if let Some(ceiling) = self.ceiling {
            for (rate, sample) in samples.iter_mut() {
                let found = rate_above_ceiling(*rate, ceiling.rate, CEILING_MARGIN);
                reject(sample, found, &format!(" (`{}`)", ceiling.baseline));
            }
        } else if let Some(found) = self.asymmetry().filter(|_| self.is_faster(scenario)) {
            let why = if self.is_baseline { "" } else { "; the file has no figure of a baseline to compare it with" };
            samples.iter_mut().for_each(|(_, sample)| reject(sample, Some(found.clone()), why));
        }
        let rates = figures.values();
        if let Some((cluster, found)) = rate_cluster(&rates).zip(clustered_rates(&rates)) {
            let clustered = samples.iter_mut().filter(|(rate, _)| cluster.contains(1.0 / rate));
            clustered.for_each(|(_, sample)| reject(sample, Some(found.clone()), ""));
        }
    }

    fn asymmetry(&self) -> Option<Implausibility> {
        asymmetric_rates(self.row.median(Scenario::Upload)?, self.row.median(Scenario::Download)?)
    }

    /// Whether a scenario has the higher rate of upload and download.
    fn is_faster(&self, scenario: Scenario) -> bool {
        let [upload, download] = [Scenario::Upload, Scenario::Download].map(|scenario| self.row.median(scenario));
        scenario.is_rate() && (scenario == Scenario::Upload) == (upload > download)
    }

    fn scenario_findings(&self, scenario: Scenario, figures: &Figures) -> Vec<String> {
        let name = scenario.name();
        let mut findings = Vec::new();
        let count = figures.samples.len();
        if let Some(iterations) = figures.iterations.filter(|iterations| count > 0 && *iterations != count as f64) {
            let consequence = if iterations > count as f64 {
                "iterations that failed are in no figure"
            } else {
                "some are of something else"
            };
            findings.push(format!("{name}: {iterations} iterations, but {count} samples: {consequence}"));
        }
        if let Some(asymmetry) = self.asymmetry().filter(|_| self.ceiling.is_some() && self.is_faster(scenario)) {
            findings.push(asymmetry.figures);
        }
        findings.extend(statistics_findings(scenario, figures));
        if self.is_baseline && scenario.is_rate() {
            let found = quantised_samples(&figures.values(), figures.resolution);
            findings.extend(found.map(|found| {
                let first = figures.samples.first().map(|(_, rate)| format!(" ({})", format_rate(*rate)));
                format!("{name}: {}{}", found.figures, first.unwrap_or_default())
            }));
        }
        findings
    }
}

/// Samples of a scenario that the suites do not have.
fn further_samples(location: &str, name: &str, is_rate: bool, figures: &Figures) -> Vec<ForeignSample> {
    let metric = if is_rate {
        Metric::throughput(name, Scenario::Upload.unit()).primary()
    } else {
        Metric::latency(name, Scenario::RoundTrip.unit()).primary()
    };
    let list = figures.list();
    let sample = |(position, value): &(usize, f64)| {
        let mut sample = ForeignSample::at(format!("{location}/scenarios/{name}/{list}/{position}"));
        sample.push_reading(metric.clone(), Some(*value));
        sample.disturbances = figures.disturbances.get(position).cloned().unwrap_or_default();
        sample
    };
    figures.samples.iter().map(sample).collect()
}

fn reject(sample: &mut ForeignSample, found: Option<Implausibility>, explanation: &str) {
    if let Some(found) = found {
        sample.reject(found.rule.gate(), format!("{}{explanation}", found.figures));
    }
}

fn metric(scenario: Scenario) -> Metric {
    if scenario.is_rate() {
        Metric::throughput(scenario.name(), scenario.unit()).primary()
    } else {
        Metric::latency(scenario.name(), scenario.unit()).primary()
    }
}

/// The median as a sample, with the other statistics as checks.
fn only_sample(scenario: Scenario, figures: &Figures, median: f64, base: &str) -> ForeignSample {
    let mut sample = ForeignSample::at(format!("{base}/median"));
    sample.push_reading(metric(scenario), Some(median));
    let name = scenario.name();
    let statistics =
        [("low-whisker", figures.min), ("q1", figures.q1), ("q3", figures.q3), ("high-whisker", figures.max)];
    for (statistic, value) in statistics {
        sample.push_reading(Metric::check(&format!("{name}-{statistic}"), scenario.unit()), value);
    }
    sample.push_reading(Metric::check(&format!("{name}-outliers"), ""), figures.outliers);
    let n = figures.iterations.map_or_else(|| "all".to_owned(), |n| n.to_string());
    let outliers = figures.outliers.filter(|outliers| *outliers > 0.0 && ends_at_whiskers(figures));
    let whiskers = outliers.map(|outliers| {
        let noun = if outliers == 1.0 { "outlier is" } else { "outliers are" };
        format!("; its min and max are whiskers, and {outliers} {noun} beyond them")
    });
    let whiskers = whiskers.unwrap_or_default();
    sample.findings.push(format!("{name}: the only sample is the median of {n} iterations{whiskers}"));
    sample
}

/// Whether min and max are within 1.5 interquartile ranges of the quartiles, as the last samples there. Some programs
/// print the extremes instead.
fn ends_at_whiskers(figures: &Figures) -> bool {
    let Figures { min: Some(min), q1: Some(q1), q3: Some(q3), max: Some(max), resolution, .. } = *figures else {
        return false;
    };
    let reach = 1.5 * (q3 - q1) + resolution;
    min >= q1 - reach && max <= q3 + reach
}

fn disordered_quartiles(figures: &Figures) -> Option<String> {
    let named = [
        ("min", figures.min),
        ("q1", figures.q1),
        ("median", figures.median),
        ("q3", figures.q3),
        ("max", figures.max),
    ];
    let known: Vec<(&str, f64)> = named.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    let pair = known.windows(2).find(|pair| pair[0].1 > pair[1].1)?;
    Some(format!("{} is above {}", pair[0].0, pair[1].0))
}

/// Contradictions between samples and the statistics of the file.
fn statistics_findings(scenario: Scenario, figures: &Figures) -> Vec<String> {
    let Ok(samples) = Samples::new(&figures.values()) else { return Vec::new() };
    let name = scenario.name();
    let unit = wb_model::Unit::new(scenario.unit());
    let format = |value: f64| if scenario.is_rate() { format_rate(value) } else { unit.quantity(value).to_string() };
    let mut findings = Vec::new();
    findings.extend(disordered_quartiles(figures).map(|disorder| format!("{name}: in the file, {disorder}")));
    // The file's figures are rounded.
    let differs = |stated: f64, actual: f64| {
        (stated - actual).abs() > f64::max(actual.abs() * MEDIAN_TOLERANCE, figures.resolution)
    };
    if let Some(median) = figures.median.filter(|median| differs(*median, samples.median())) {
        let (stated, actual) = (format(median), format(samples.median()));
        findings.push(format!("{name}: the file has a median of {stated}, its samples have {actual}"));
    }
    let ends = [("min", figures.min, samples.min()), ("max", figures.max, samples.max())];
    let differing = ends.into_iter().filter_map(|(end, stated, actual)| {
        let stated = stated.filter(|stated| differs(*stated, actual))?;
        let is_within = (samples.min()..=samples.max()).contains(&stated);
        Some((is_within, format!("{end} is {}, the samples' is {}", format(stated), format(actual))))
    });
    let (whiskers, beyond): (Vec<_>, Vec<_>) = differing.partition(|(is_within, _)| *is_within);
    for (found, explanation) in [
        (whiskers, "min and max of the file are whiskers"),
        (beyond, "the file lacks samples, or its statistics are of others"),
    ] {
        if !found.is_empty() {
            let texts: Vec<String> = found.into_iter().map(|(_, text)| text).collect();
            findings.push(format!("{name}: {}: {explanation}", texts.join(", ")));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::libp2p::Pair;

    const GBIT: f64 = 125e6;

    fn figures(samples: &[f64]) -> Option<Figures> {
        let samples = samples.iter().map(|rate| rate * GBIT).enumerate().collect();
        Some(Figures { samples, resolution: 0.01 * GBIT, ..Figures::default() })
    }

    fn latencies(millis: &[f64]) -> Option<Figures> {
        Some(Figures { samples: millis.iter().map(|ms| ms * 1e6).enumerate().collect(), ..Figures::default() })
    }

    fn row(name: &str, status: &str, figures: [Option<Figures>; 3]) -> Row {
        let (pair, status) = (Pair::parse(name).unwrap(), Some(status.to_owned()));
        let (location, name) = (format!("testResults/{name}"), name.to_owned());
        Row { location, name, pair, status, cause: None, gate: None, further: Vec::new(), figures, has_figures: true }
    }

    fn passed(figures: [Option<Figures>; 3]) -> Row {
        row("a x b (tcp, tls, yamux)", "pass", figures)
    }

    fn baseline(figures: [Option<Figures>; 3]) -> Row {
        row("iperf x iperf (tcp)", "pass", figures)
    }

    /// The only test's samples: location, and why they are invalid or failed.
    fn judged(baselines: Vec<Row>, test: Row) -> Vec<(String, String)> {
        let results = SuiteResults { baselines, tests: vec![test], ..SuiteResults::default() };
        let foreign = judge(results);
        let samples: Vec<ForeignSample> = foreign.cells.last().unwrap().rows().collect();
        let reason = |sample: &ForeignSample| {
            let rejection =
                sample.rejection.as_ref().map(|rejection| format!("{}: {}", rejection.gate, rejection.figures));
            rejection.or(sample.failure.clone())
        };
        samples.iter().filter_map(|sample| Some((sample.location.clone(), reason(sample)?))).collect()
    }

    fn findings(baselines: Vec<Row>, test: Row) -> Vec<String> {
        let results = SuiteResults { baselines, tests: vec![test], ..SuiteResults::default() };
        let cells = judge(results).cells;
        cells.iter().flat_map(|cell| cell.rows()).flat_map(|sample| sample.findings).collect()
    }

    #[test]
    fn rates_above_the_best_baseline_are_invalid() {
        let best = || baseline([figures(&[8.58, 8.4, 8.6]), figures(&[8.5, 8.55, 8.52]), None]);
        let test = passed([figures(&[3.5, 3.6]), figures(&[194.0, 3.6]), latencies(&[0.3, 0.31])]);
        let [(location, reason)] = &judged(vec![best()], test)[..] else { panic!("one is invalid") };
        assert!(location.ends_with("download/samples/0"), "{location}");
        assert_eq!(
            reason,
            "plausibility: 194 Gbit/s is 22.56 times the 8.60 Gbit/s of the best baseline, expected at most 1.05 times \
             (`iperf x iperf (tcp)`)"
        );
        let possible = passed([figures(&[9.0]), figures(&[0.3]), latencies(&[0.3])]);
        assert_eq!(judged(vec![best()], possible), []);
    }

    #[test]
    fn a_failed_baseline_is_no_ceiling() {
        let failed = row("iperf x iperf (tcp)", "fail", [figures(&[1.0]), None, None]);
        assert_eq!(judged(vec![failed], passed([figures(&[3.0]), figures(&[3.0]), latencies(&[0.3])])), []);
    }

    #[test]
    fn a_baseline_that_contradicts_itself_is_the_ceiling_of_its_slower_direction() {
        let odd = baseline([figures(&[8.5, 8.6]), figures(&[190.0, 195.0]), None]);
        let invalid = judged(vec![odd], passed([figures(&[3.0]), figures(&[194.0]), latencies(&[0.3])]));
        assert!(invalid[0].1.contains("the 8.60 Gbit/s of the best baseline"), "{invalid:?}");
    }

    #[test]
    fn asymmetry_is_invalid_without_baselines_and_a_finding_below_a_ceiling() {
        let test = || passed([figures(&[0.3, 0.31]), figures(&[8.0, 8.1]), latencies(&[0.3])]);
        let invalid = judged(Vec::new(), test());
        assert_eq!(invalid.len(), 2);
        assert!(invalid.iter().all(|(location, _)| location.contains("download")), "{invalid:?}");
        assert!(invalid[0].1.ends_with("the file has no figure of a baseline to compare it with"), "{invalid:?}");
        let best = || baseline([figures(&[8.58, 8.6]), None, None]);
        assert_eq!(judged(vec![best()], test()), []);
        assert!(findings(vec![best()], test()).iter().any(|finding| finding.contains("times the upload")));
    }

    #[test]
    fn samples_at_a_time_limit_are_invalid() {
        let limited = latencies(&[12.0, 5000.0, 15.0, 5001.0, 11.0, 5003.0]);
        let invalid = judged(Vec::new(), passed([figures(&[3.0]), figures(&[3.0]), limited]));
        assert_eq!(invalid.len(), 3);
        assert!(invalid[0].1.starts_with("effort: 3 of 6 samples took 5.00 s within 1 %"), "{invalid:?}");
        let rates = figures(&[0.859, 2.0, 0.859, 2.4, 0.8591, 3.0]);
        assert_eq!(judged(Vec::new(), passed([rates, figures(&[3.0]), latencies(&[0.3])])).len(), 3);
    }

    #[test]
    fn figures_of_another_unit_are_invalid() {
        let invalid = judged(Vec::new(), passed([figures(&[3.0]), figures(&[3.0]), latencies(&[87_957.0])]));
        let [(_, reason)] = &invalid[..] else { panic!("{invalid:?}") };
        assert!(reason.starts_with("output: 88.0 s is not between 1 µs and 10 s"), "{reason}");
    }

    #[test]
    fn null_figures_are_invalid_where_the_status_is_pass_and_failures_keep_their_status() {
        let invalid = judged(Vec::new(), passed([figures(&[3.0]), None, latencies(&[0.3])]));
        let [(_, reason)] = &invalid[..] else { panic!("{invalid:?}") };
        assert_eq!(reason, "output: status `pass`, but no figures of download");
        let failed = judged(Vec::new(), row("a x b (tcp)", "fail", [None, None, None]));
        assert_eq!(failed[0].1, "status `fail` without a cause in the file");
    }

    #[test]
    fn iterations_without_samples_and_whiskers_are_findings() {
        let mut upload = figures(&[3.0, 3.1, 3.2, 3.1, 9.0]).unwrap();
        (upload.iterations, upload.max, upload.median) = (Some(10.0), Some(3.2 * GBIT), Some(5.0 * GBIT));
        let found = findings(Vec::new(), passed([Some(upload), figures(&[3.0]), latencies(&[0.3])]));
        assert_eq!(
            found,
            [
                "upload: 10 iterations, but 5 samples: iterations that failed are in no figure",
                "upload: in the file, median is above max",
                "upload: max is 3.20 Gbit/s, the samples' is 9 Gbit/s: min and max of the file are whiskers",
                "upload: the file has a median of 5 Gbit/s, its samples have 3.10 Gbit/s",
            ]
        );
    }

    #[test]
    fn extremes_are_not_called_whiskers() {
        let statistics = |max: f64| {
            let [min, q1, median, q3] = [2.9, 3.0, 3.1, 3.2].map(|rate| Some(rate * GBIT));
            let outliers = Some(1.0);
            Some(Figures { min, q1, median, q3, max: Some(max * GBIT), outliers, ..Figures::default() })
        };
        let found = |max: f64| findings(Vec::new(), passed([statistics(max), figures(&[3.0]), latencies(&[0.3])]));
        let beginning = "upload: the only sample is the median of all iterations";
        assert_eq!(found(3.4)[0], format!("{beginning}; its min and max are whiskers, and 1 outlier is beyond them"));
        assert_eq!(found(9.0)[0], beginning);
    }

    #[test]
    fn the_clock_of_a_baseline_is_a_finding() {
        let best = baseline([figures(&[8.58, 8.58, 8.58]), None, None]);
        let found = findings(vec![best], passed([figures(&[3.0]), figures(&[3.0]), latencies(&[0.3])]));
        assert!(found[0].starts_with("upload: all 3 samples are equal"), "{found:?}");
    }

    #[test]
    fn quartiles_out_of_order_are_invalid() {
        let upload = Figures { q1: Some(9.0), median: Some(8.0), ..Figures::default() };
        let invalid = judged(Vec::new(), passed([Some(upload), figures(&[3.0]), latencies(&[0.3])]));
        assert!(invalid.iter().any(|(_, reason)| reason == "output: q1 is above median"), "{invalid:?}");
    }
}
