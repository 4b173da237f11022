//! Maps values to pixels, and chooses ticks.

use wb_model::Unit;
use wb_stats::Summary;

use super::with_minus;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScaleKind {
    Linear,
    Log,
}

/// Mapping of values in a unit to pixels along an axis.
#[derive(Debug, Clone)]
pub(crate) struct Scale {
    unit: Unit,
    kind: ScaleKind,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    pub(crate) at: f64,
    pub(crate) label: String,
}

/// Ratio of the largest to the smallest value from which scales are logarithmic: a linear one hides small values.
const LOG_THRESHOLD: f64 = 10.0;

/// The values that a scale must contain to show a summary: its range, and its interval, which may extend beyond all
/// samples. An end at or below zero is cut off if all samples are above zero: it would make the scale linear.
pub(crate) fn extent(summary: &Summary) -> impl Iterator<Item = f64> {
    let ends = summary.median_interval.into_iter().flat_map(|interval| [interval.low, interval.high]);
    let is_cut = |end: &f64| *end <= 0.0 && summary.min > 0.0;
    let ends: Vec<f64> = ends.filter(|end| !is_cut(end)).collect();
    [summary.min, summary.max].into_iter().chain(ends)
}

impl Scale {
    /// A scale that fits these values, logarithmic if they differ more than tenfold. It spans at least `min_span`, a
    /// fraction of their middle, so that noise does not fill the width of a chart.
    pub(crate) fn fit(unit: &Unit, values: impl IntoIterator<Item = f64>, min_span: f64) -> Self {
        let finite = values.into_iter().filter(|value| value.is_finite());
        // Subnormal numbers have too few digits to be divided.
        let finite = finite.map(|value| if value.is_subnormal() { 0.0 } else { value });
        let (low, high) = finite.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
        let (low, high) = if low > high { (0.0, 1.0) } else { (low, high) };
        if low > 0.0 && high / low > LOG_THRESHOLD {
            // By logarithms: the ratio of two values may be too large for a number, and the padded ones, too.
            let pad = ((high.ln() - low.ln()) * 0.03).exp();
            let (low, high) = ((low / pad).max(f64::MIN_POSITIVE), (high * pad).min(f64::MAX));
            return Self { unit: unit.clone(), kind: ScaleKind::Log, low, high, from: 0.0, to: 1.0 };
        }
        let middle = (low + high) / 2.0;
        let min_width = if middle == 0.0 { 1.0 } else { middle.abs() * min_span };
        let half = ((high - low) * 1.06).max(min_width) / 2.0;
        let floor = if low >= 0.0 { 0.0 } else { f64::MIN };
        let low = (middle - half).max(floor);
        Self { unit: unit.clone(), kind: ScaleKind::Linear, low, high: middle + half, from: 0.0, to: 1.0 }
    }

    pub(crate) fn linear_between(unit: &Unit, low: f64, high: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self { unit: unit.clone(), kind: ScaleKind::Linear, low, high, from: 0.0, to: 1.0 }
    }

    /// Creates a logarithmic scale between two values above 0.
    pub(crate) fn log_between(unit: &Unit, low: f64, high: f64) -> Self {
        let low = low.max(f64::MIN_POSITIVE);
        Self { kind: ScaleKind::Log, ..Self::linear_between(unit, low, high.max(low * 2.0)) }
    }

    /// Sets the pixels to which the ends of the domain are mapped.
    pub(crate) fn with_range(mut self, from: f64, to: f64) -> Self {
        (self.from, self.to) = (from, to);
        self
    }

    pub(crate) fn is_log(&self) -> bool {
        self.kind == ScaleKind::Log
    }

    pub(crate) fn domain(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    pub(crate) fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// The position of a value; values out of range are drawn at an end.
    pub(crate) fn position(&self, value: f64) -> f64 {
        let fraction = match self.kind {
            ScaleKind::Linear => (value - self.low) / (self.high - self.low),
            // The end of an interval may be below zero, although no sample is.
            ScaleKind::Log => (value.max(f64::MIN_POSITIVE).ln() - self.low.ln()) / (self.high.ln() - self.low.ln()),
        };
        self.from + fraction.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// About `count` ticks at round values, and the unit if their labels omit it.
    pub(crate) fn ticks(&self, count: usize) -> (Vec<Tick>, String) {
        let (values, step) = match self.kind {
            ScaleKind::Linear => self.linear_ticks(count.max(2)),
            ScaleKind::Log => (self.log_ticks(count.max(2)), 0.0),
        };
        let (labels, unit) =
            if step > 0.0 { self.common_labels(&values, step) } else { self.labels_with_units(&values) };
        let ticks = values
            .iter()
            .zip(labels)
            .map(|(value, label)| Tick { at: self.position(*value), label: with_minus(&label) });
        (ticks.collect(), unit)
    }

    fn linear_ticks(&self, count: usize) -> (Vec<f64>, f64) {
        let rough = (self.high - self.low) / count as f64;
        let step = if self.unit.is_binary() {
            rough.log2().ceil().exp2()
        } else {
            let decade = 10f64.powf(rough.log10().floor());
            [1.0, 2.0, 5.0]
                .into_iter()
                .map(|factor| factor * decade)
                .find(|step| *step >= rough)
                .unwrap_or(10.0 * decade)
        };
        let (first, last) = ((self.low / step).ceil(), (self.high / step + 1e-9).floor());
        let multiples = (0..=count + 1).map(|index| first + index as f64).take_while(|multiple| *multiple <= last);
        (multiples.map(|multiple| multiple * step).collect(), step)
    }

    fn log_ticks(&self, count: usize) -> Vec<f64> {
        let base: f64 = if self.unit.is_binary() { 2.0 } else { 10.0 };
        let powers = |multiples: &[f64], every: i32| -> Vec<f64> {
            let (first, last) = (self.low.log(base).floor() as i32, self.high.log(base).ceil() as i32);
            let exponents = (first..=last).filter(|power| power.rem_euclid(every) == 0);
            let values = exponents.flat_map(|power| multiples.iter().map(move |multiple| multiple * base.powi(power)));
            values.filter(|value| *value >= self.low * 0.999 && *value <= self.high * 1.001).collect()
        };
        let dense = if self.unit.is_binary() { &[1.0][..] } else { &[1.0, 2.0, 5.0][..] };
        let choices =
            std::iter::once(powers(dense, 1)).chain([1, 2, 5, 10, 20, 50, 100, 200].map(|every| powers(&[1.0], every)));
        let fitting = choices.filter(|values| values.len() <= count + 1).max_by_key(Vec::len);
        fitting.unwrap_or_default()
    }

    /// Labels with a common prefix and the decimals that the step requires; the unit is returned separately.
    fn common_labels(&self, values: &[f64], step: f64) -> (Vec<String>, String) {
        let largest = values.iter().copied().fold(0.0, |largest: f64, value| largest.max(value.abs()));
        let (factor, suffix) = self.unit.readable(largest);
        let decimals = (-(step / factor).log10().floor()).clamp(0.0, 9.0) as usize;
        (values.iter().map(|value| format!("{:.decimals$}", value / factor)).collect(), suffix)
    }

    /// Labels each with its own prefix; the unit is omitted and returned if all have the same.
    fn labels_with_units(&self, values: &[f64]) -> (Vec<String>, String) {
        let texts: Vec<(String, String)> = values.iter().map(|value| plain_figure(&self.unit, *value)).collect();
        let first = texts.first().map(|(_, suffix)| suffix.clone()).unwrap_or_default();
        if texts.iter().all(|(_, suffix)| *suffix == first) {
            return (texts.into_iter().map(|(number, _)| number).collect(), first);
        }
        (texts.into_iter().map(|(number, suffix)| format!("{number} {suffix}")).collect(), String::new())
    }
}

/// A round value without trailing zeros, and its unit.
fn plain_figure(unit: &Unit, value: f64) -> (String, String) {
    let text = unit.quantity(value).to_string();
    let (number, suffix) = text.split_once(' ').unwrap_or((&text, ""));
    let number = if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    (number.to_owned(), suffix.to_owned())
}

/// Ticks at round times on a scale in seconds.
pub(crate) fn time_ticks(scale: &Scale, count: usize) -> Vec<Tick> {
    const STEPS: [f64; 14] =
        [1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 14_400.0];
    let (low, high) = scale.domain();
    let rough = (high - low) / count.max(1) as f64;
    let step = STEPS.into_iter().find(|step| *step >= rough).unwrap_or_else(|| (rough / 14_400.0).ceil() * 14_400.0);
    let times =
        (0..=2 * count + 2).map(|index| ((low / step).ceil() + index as f64) * step).take_while(|time| *time <= high);
    times.map(|time| Tick { at: scale.position(time), label: crate::phrasing::format_elapsed(time) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Widened intervals may end beyond all samples, and left the chart.
    #[test]
    fn ends_of_intervals_beyond_all_samples_are_in_the_scale_and_below_zero_they_are_cut_off() {
        let summary = |values: &[f64], low: f64, high: f64| Summary {
            median_interval: Some(wb_stats::Interval { low, high, confidence: 0.97 }),
            ..Summary::of_unordered(&wb_stats::Samples::new(values).unwrap())
        };
        let near = summary(&[10.0, 11.0, 12.0], 8.0, 14.0);
        let scale = Scale::fit(&Unit::new("s"), extent(&near), 0.1);
        assert!(scale.contains(8.0) && scale.contains(14.0));
        let far = summary(&[1.0, 30.0, 90.0], -20.0, 100.0);
        let scale = Scale::fit(&Unit::new("s"), extent(&far), 0.1).with_range(0.0, 100.0);
        assert!(scale.is_log() && scale.contains(100.0));
        assert_eq!((scale.position(-20.0), scale.position(0.0)), (0.0, 0.0));
        assert!(extent(&summary(&[-1.0, 2.0, 3.0], -5.0, 4.0)).any(|end| end == -5.0));
    }

    #[test]
    fn every_range_has_few_ticks_within_it() {
        let magnitudes = || (-323..=308).step_by(29).map(|exponent| format!("1e{exponent}").parse::<f64>().unwrap());
        for (low, high) in magnitudes().flat_map(|low| magnitudes().map(move |high| (low, high))) {
            for unit in ["s", "B"] {
                let scale = Scale::fit(&Unit::new(unit), [low, high], 0.1);
                let (ticks, _) = scale.ticks(6);
                assert!(ticks.len() <= 8, "{low:e} to {high:e}: {}", ticks.len());
                assert!(ticks.iter().all(|tick| (0.0..=1.0).contains(&tick.at)), "{low:e} to {high:e}");
            }
        }
    }

    fn labels(scale: &Scale, count: usize) -> String {
        let (ticks, unit) = scale.ticks(count);
        let labels: Vec<String> = ticks.into_iter().map(|tick| tick.label).collect();
        format!("{} [{unit}]", labels.join(" "))
    }

    #[test]
    fn labels_of_close_values_are_round_and_distinct() {
        let unit = Unit::new("mflops");
        assert_eq!(labels(&Scale::fit(&unit, [4210.0, 4225.0], 0.001), 4), "4.210 4.215 4.220 4.225 [Gflops]");
        assert_eq!(labels(&Scale::fit(&unit, [900.0, 4225.0], 0.1), 4), "1 2 3 4 [Gflops]");
        assert_eq!(labels(&Scale::linear_between(&Unit::new("ns"), 0.0, 2e6), 4), "0.0 0.5 1.0 1.5 2.0 [ms]");
        assert_eq!(labels(&Scale::linear_between(&Unit::new("MiB"), 0.0, 2048.0), 4), "0.0 0.5 1.0 1.5 2.0 [GiB]");
        assert_eq!(labels(&Scale::linear_between(&Unit::new("mW"), 0.0, 400.0), 4), "0 100 200 300 400 [mW]");
    }

    #[test]
    fn tenfold_ranges_are_logarithmic() {
        let scale = Scale::fit(&Unit::new("MB/s"), [900.0, 212_000.0], 0.1);
        assert!(scale.is_log());
        assert_eq!(labels(&scale, 4), "1 10 100 [GB/s]");
        assert!(!Scale::fit(&Unit::new("MB/s"), [0.0, 212_000.0], 0.1).is_log());
        let sizes = Scale::log_between(&Unit::new("B"), 1024.0, 268_435_456.0);
        assert_eq!(labels(&sizes, 6), "1 KiB 32 KiB 1 MiB 32 MiB []");
    }

    #[test]
    fn values_that_are_not_finite_still_yield_a_scale() {
        let scale = Scale::fit(&Unit::new("s"), [f64::NAN], 0.1).with_range(0.0, 100.0);
        assert!((0.0..=100.0).contains(&scale.position(f64::INFINITY)));
        assert!(!scale.ticks(4).0.is_empty());
        assert!(Scale::fit(&Unit::new("s"), [0.0, 0.0], 0.1).position(0.0).is_finite());
    }
}
