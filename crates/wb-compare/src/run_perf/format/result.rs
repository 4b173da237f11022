//! `result.json` in pbench's format: a list of iterations.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;
use wb_model::pbench::{is_failed_iteration, quote_non_finite};
use wb_model::{Class, MetricKey};
use wb_results::comparison::AttemptCounts;

use super::iteration::{ClientAggregate, ClientMetric, Entries, Iteration, IterationParameters, PbenchData};
use crate::build::MeasuredValue;
use crate::interner::Symbol;
use crate::source::WarningKind;
use crate::source::parsed_result::{ParsedMetric, ParsedResult};

/// Failed iterations (`NAME-failN`) are skipped unless `include_incorrect`; warnings about individual iterations and
/// metrics are part of the result.
pub(crate) fn parse(text: &str, include_incorrect: bool) -> Result<ParsedResult, serde_json::Error> {
    let mut reader = IterationReader { include_incorrect, ..IterationReader::default() };
    let text = quote_non_finite(text);
    let mut json = serde_json::Deserializer::from_str(&text);
    reader.deserialize(&mut json)?;
    json.end()?;
    let IterationReader { mut parsed, incomplete, without_aggregate, .. } = reader;
    parsed.warnings.extend((incomplete > 0).then_some(WarningKind::Incomplete(incomplete)));
    if let Some(first) = without_aggregate.first() {
        parsed.warnings.push(WarningKind::NoAggregate { metrics: without_aggregate.len(), first: first.clone() });
    }
    Ok(parsed)
}

/// Processes the iterations one by one, so that the deserialised form of a whole file is never in memory beside its
/// text.
#[derive(Default)]
struct IterationReader {
    parsed: ParsedResult,
    include_incorrect: bool,
    incomplete: usize,
    without_aggregate: Vec<String>,
}

impl<'de> DeserializeSeed<'de> for &mut IterationReader {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for &mut IterationReader {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of iterations")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut iterations: A) -> Result<(), A::Error> {
        while let Some(iteration) = iterations.next_element::<Iteration<'de>>()? {
            self.add_iteration(iteration);
        }
        Ok(())
    }
}

impl IterationReader {
    fn add_iteration(&mut self, iteration: Iteration<'_>) {
        let (Some(name), Some(PbenchData { parameters: Some(parameters), throughput, latency })) =
            (iteration.iteration_name, iteration.iteration_data)
        else {
            self.incomplete += 1;
            return;
        };
        if !self.include_incorrect && is_failed_iteration(&name.0) {
            return;
        }
        let primary = primary_metrics(&parameters);
        let params_index = self.intern_params(&parameters);
        let case = self.parsed.names.intern(&name.0);
        for (class, metrics) in [(Class::Throughput, throughput), (Class::Latency, latency)] {
            self.add_metrics(case, class, metrics, &primary, params_index);
        }
    }

    fn add_metrics(
        &mut self,
        case: Symbol,
        class: Class,
        metrics: Entries<'_, ClientAggregate>,
        primary_metrics: &[String],
        params_index: usize,
    ) {
        for (name, ClientAggregate(all)) in metrics.0 {
            let Some(ClientMetric { mean, stddevpct, samples }) = all else {
                let key = MetricKey::new(class, &name.0);
                self.without_aggregate.push(format!("{}/{key}", self.parsed.names.resolve(case)));
                continue;
            };
            // A metric of which nothing was computed is as good as absent.
            if mean.0 == MeasuredValue::Missing && stddevpct.0 == MeasuredValue::Missing {
                continue;
            }
            let first = self.parsed.samples.len();
            self.parsed.samples.extend(samples.iter().filter_map(|sample| sample.value.0.number()));
            let metric = self.parsed.names.intern(&name.0);
            self.parsed.metrics.push(ParsedMetric {
                case,
                class,
                metric,
                unit: None,
                mean: mean.0,
                stddev_percent: stddevpct.0,
                primary: primary_metrics.iter().any(|primary| *primary == name.0),
                threshold: None,
                params: params_index,
                disturbed: 0,
                failures: AttemptCounts::default(),
                findings: None,
                samples: first..self.parsed.samples.len(),
            });
        }
    }

    /// Interns the parameters of the benchmarks, those of the second and later ones prefixed with their index (`1.bs`),
    /// and pbench's tuned profile. Returns the index of the set.
    fn intern_params(&mut self, parameters: &IterationParameters<'_>) -> usize {
        let names = &mut self.parsed.names;
        let mut params = Vec::new();
        for (index, benchmark) in parameters.benchmark.iter().enumerate() {
            for (name, value) in &benchmark.0 {
                let name =
                    if index == 0 { names.intern(&name.0) } else { names.intern(&format!("{index}.{}", name.0)) };
                params.push((name, names.intern(&text(value))));
            }
        }
        let profile = names.intern("profile");
        let profiles = parameters.user.iter().filter_map(|user| user.profile.as_ref());
        params.extend(profiles.map(|text| (profile, names.intern(&text.0))));
        self.parsed.intern_params(params)
    }
}

/// Any value as text; a string without quotes and escapes.
fn text(value: &RawValue) -> std::borrow::Cow<'_, str> {
    let raw = value.get();
    match raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"')) {
        Some(inner) if !inner.contains('\\') => inner.into(),
        Some(_) => serde_json::from_str::<String>(raw).map_or(raw.into(), Into::into),
        None => raw.into(),
    }
}

fn primary_metrics(parameters: &IterationParameters<'_>) -> Vec<String> {
    let entries = parameters.benchmark.iter().flat_map(|benchmark| &benchmark.0);
    entries.filter(|(name, _)| name.0 == "primary_metric").map(|(_, value)| text(value).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULT_JSON: &str = r#"[
        {"iteration_name": "read-4KiB", "iteration_data": {
            "parameters": {"benchmark": [{"bs": "4k", "primary_metric": "iops_sec", "max_stddevpct": 5, "a\"b": "x\ny"}],
                           "user": [{"cmdline": "x", "profile": "Tuned"}]},
            "latency": {"lat": [{"client_hostname": "a", "mean": 7, "stddevpct": 1}]},
            "throughput": {"iops_sec": [
                {"client_hostname": "a", "mean": 1, "stddevpct": 2},
                {"client_hostname": "all", "mean": 10.5, "stddevpct": "3.5", "samples": [
                    {"timeseries": [{"date": 1, "value": 99}], "value": 10},
                    {"value": "11"}, {"timeseries": [{"value": 98}]}]}]}}},
        {"iteration_name": "read-4KiB-fail1", "iteration_data": {"parameters": {},
            "throughput": {"iops_sec": [{"client_hostname": "all", "mean": "odd"}]}}},
        {"iteration_name": "no data"}]"#;

    #[test]
    fn the_aggregate_over_all_clients_is_read_without_time_series() {
        let parsed = parse(RESULT_JSON, false).unwrap();
        let [metric] = &parsed.metrics[..] else { panic!("{parsed:?}") };
        assert_eq!((metric.mean, metric.stddev_percent), (MeasuredValue::Known(10.5), MeasuredValue::Known(3.5)));
        assert!(metric.primary);
        assert_eq!(parsed.samples, [10.0, 11.0]);
        let params: Vec<_> = parsed.params[metric.params]
            .iter()
            .map(|(name, value)| (parsed.names.resolve(*name), parsed.names.resolve(*value)))
            .collect();
        let expected = [
            ("a\"b", "x\ny"),
            ("bs", "4k"),
            ("max_stddevpct", "5"),
            ("primary_metric", "iops_sec"),
            ("profile", "Tuned"),
        ];
        assert_eq!(params, expected);
        let no_aggregate = WarningKind::NoAggregate { metrics: 1, first: "read-4KiB/latency/lat".to_owned() };
        assert_eq!(parsed.warnings, [WarningKind::Incomplete(1), no_aggregate]);
    }

    #[test]
    fn a_number_that_is_not_finite_is_an_invalid_value() {
        for number in ["NaN", "Infinity", "-Infinity"] {
            let parsed = parse(&RESULT_JSON.replace("10.5", number), false).unwrap();
            let metric = &parsed.metrics[0];
            assert_eq!((metric.mean, metric.stddev_percent), (MeasuredValue::Invalid, MeasuredValue::Known(3.5)));
        }
    }

    #[test]
    fn a_failed_iteration_is_only_read_on_request() {
        let parsed = parse(RESULT_JSON, true).unwrap();
        assert_eq!(parsed.metrics.len(), 2);
        assert_eq!(
            (parsed.metrics[1].mean, parsed.metrics[1].stddev_percent),
            (MeasuredValue::Invalid, MeasuredValue::Missing)
        );
        assert!(!parsed.metrics[1].primary);
    }
}
