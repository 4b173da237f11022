//! Records of imported results: the test, and each sample. A sample describes the metric of each of its figures, so
//! that it can be read years later without the program that imported it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Gate, Metric, Sha256, TestName};

pub const SAMPLE_ARTEFACT: &str = "imported.json";

/// Provenance key of an imported cell; its value is the format of the imported files.
pub const IMPORTED_FROM: &str = "imported from";

/// Provenance key of an imported cell each of whose samples is the median of the iterations of a process.
pub const SAMPLES_ARE_MEDIANS: &str = "samples are medians";

/// A test whose samples were taken by another program, as defined by `tests.d/NAME.toml` of the run folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportedTest {
    pub name: TestName,
    pub summary: String,
    /// Version of the import; raised when such results are read differently.
    pub version: u32,
    /// The format of the imported files.
    pub imported: String,
}

/// A sample taken by another program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedSample {
    /// Source of the sample.
    pub origin: ImportOrigin,
    /// The figures.
    pub values: Vec<ImportedValue>,
    /// Duration of its measured part in seconds, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Findings, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// The gate that the figures failed when they were imported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejection: Option<ImportRejection>,
    /// Provenance of the figures: host, kernel, versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub provenance: BTreeMap<String, String>,
}

/// Why the figures of an imported sample are invalid, from what else its file has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImportRejection {
    /// The failed check.
    pub gate: Gate,
    /// The figures that failed it.
    pub figures: String,
}

/// Source of an imported sample; no source is imported twice.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct ImportOrigin {
    /// Hash of the file.
    pub sha256: Sha256,
    /// Location in the file: `jobs/2`.
    pub location: String,
}

/// A figure with its metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedValue {
    /// The metric.
    #[serde(flatten)]
    pub metric: Metric,
    /// The figure, in the metric's unit.
    pub value: f64,
}

/// Samples of one cell from one file, as columns: a file may have millions of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
// Earlier versions recorded an attempt for each sample, which is read like any other.
pub struct ImportedSamples {
    /// The number of samples.
    pub count: u32,
    /// Where they are in the file, in order.
    pub locations: Vec<LocationRange>,
    /// The figures.
    pub columns: Vec<ImportedColumn>,
    /// The duration of the measured part of each in seconds; empty if none is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seconds: Vec<Option<f64>>,
    /// Findings, one sentence each, with the positions of the samples that have it, from 0.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub findings: BTreeMap<String, Vec<u32>>,
    /// The positions of samples whose figures failed a gate when they were imported, ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejections: Vec<(u32, ImportRejection)>,
    /// The positions of samples that failed, ascending, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<(u32, String)>,
    /// The positions of samples whose command ended with a status other than 0 although the program went on, ascending,
    /// with the status. Whether they failed shows only beside the others of their cell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exit_statuses: Vec<(u32, i32)>,
    /// What disturbed samples where they were measured, each with their positions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub disturbances: BTreeMap<String, Vec<u32>>,
}

/// One metric of imported samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedColumn {
    /// The metric.
    #[serde(flatten)]
    pub metric: Metric,
    /// The figure of each sample, in the metric's unit; null where a sample has none.
    pub values: Vec<Option<f64>>,
}

/// Consecutive samples in a file: `results/0/times/17` is the prefix `results/0/times/` and the number 17.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LocationRange {
    /// The location without the number.
    pub prefix: String,
    /// The number of the first sample; absent for a single location that does not end in a number.
    pub first: Option<u64>,
    /// The number of samples.
    pub count: u32,
}

/// Splits a location into its prefix and the number at its end, if it ends in one as [`u64`] is written.
pub fn split_location(location: &str) -> (&str, Option<u64>) {
    let digits = location.bytes().rev().take_while(u8::is_ascii_digit).count();
    // A number with leading zeros would not be the same text again.
    let zeros = location[location.len() - digits..].bytes().take_while(|byte| *byte == b'0').count();
    let digits = if zeros == digits { digits.min(1) } else { digits - zeros };
    let (prefix, number) = location.split_at(location.len() - digits);
    match number.parse() {
        Ok(number) => (prefix, Some(number)),
        Err(_) => (location, None),
    }
}

impl LocationRange {
    fn location(&self, position: u32) -> String {
        let number = self.first.map(|first| (first.saturating_add(u64::from(position))).to_string());
        self.prefix.clone() + &number.unwrap_or_default()
    }
}

impl ImportedSamples {
    pub fn push(
        &mut self,
        location: &str,
        readings: &[ImportedValue],
        seconds: Option<f64>,
        findings: Vec<String>,
        rejection: Option<ImportRejection>,
        failure: Option<String>,
    ) {
        let position = self.count;
        self.push_location(location);
        for ImportedValue { metric, value } in readings {
            let column = match self.columns.iter().position(|column| column.metric == *metric) {
                Some(index) => &mut self.columns[index],
                None => {
                    self.columns.push(ImportedColumn { metric: metric.clone(), values: Vec::new() });
                    let last = self.columns.len() - 1;
                    &mut self.columns[last]
                }
            };
            column.values.resize(position as usize + 1, None);
            column.values[position as usize] = Some(*value);
        }
        if seconds.is_some() {
            self.seconds.resize(position as usize, None);
            self.seconds.push(seconds);
        }
        for finding in findings {
            self.findings.entry(finding).or_default().push(position);
        }
        self.rejections.extend(rejection.map(|rejection| (position, rejection)));
        self.failures.extend(failure.map(|failure| (position, failure)));
        self.count += 1;
    }

    pub fn set_last_exit_status(&mut self, status: i32) {
        if let Some(last) = self.count.checked_sub(1).filter(|_| status != 0) {
            self.exit_statuses.push((last, status));
        }
    }

    pub fn set_last_disturbances(&mut self, disturbances: Vec<String>) {
        for (last, disturbance) in self.count.checked_sub(1).into_iter().cycle().zip(disturbances) {
            self.disturbances.entry(disturbance).or_default().push(last);
        }
    }

    fn push_location(&mut self, location: &str) {
        let (prefix, number) = split_location(location);
        match (self.locations.last_mut(), number) {
            (Some(LocationRange { prefix: last, first: Some(first), count }), Some(number))
                if *last == prefix && first.checked_add(u64::from(*count)) == Some(number) =>
            {
                *count += 1;
            }
            _ => self.locations.push(LocationRange { prefix: prefix.to_owned(), first: number, count: 1 }),
        }
    }

    pub fn locations(&self) -> impl Iterator<Item = String> {
        self.locations.iter().flat_map(|range| (0..range.count).map(|position| range.location(position)))
    }

    /// A sample without its source; `None` if there are fewer.
    pub fn sample(&self, position: u32) -> Option<ImportedRow<'_>> {
        let index = position as usize;
        (position < self.count).then(|| ImportedRow {
            values: self
                .columns
                .iter()
                .filter_map(|column| Some((&column.metric, (*column.values.get(index)?)?)))
                .collect(),
            seconds: self.seconds.get(index).copied().flatten(),
            findings: texts_of(&self.findings, position),
            disturbances: texts_of(&self.disturbances, position),
            rejection: find(&self.rejections, position),
            failure: find(&self.failures, position).map(String::as_str),
            exit_status: find(&self.exit_statuses, position).copied().unwrap_or_default(),
        })
    }

    /// Checks samples that somebody else recorded for the invariants that [`Self::push`] maintains.
    pub fn check(&self) -> Result<(), &'static str> {
        let count = self.count as usize;
        let located = self.locations.iter().map(|range| u64::from(range.count)).sum::<u64>();
        if located != u64::from(self.count) {
            return Err("their number is not that of their locations");
        }
        let figures = self.columns.iter().map(|column| column.values.len()).sum::<usize>();
        if count > figures + self.rejections.len() + self.failures.len() {
            return Err("there are fewer figures than samples");
        }
        if self.columns.iter().any(|column| column.values.len() > count) || self.seconds.len() > count {
            return Err("there are more figures than samples");
        }
        let rejected = self.rejections.iter().map(|(position, _)| *position).collect();
        let failed = self.failures.iter().map(|(position, _)| *position).collect();
        let unsuccessful = self.exit_statuses.iter().map(|(position, _)| *position).collect();
        let listed =
            self.findings.values().chain(self.disturbances.values()).chain([&rejected, &failed, &unsuccessful]);
        let is_valid = |positions: &Vec<u32>| {
            positions.is_sorted_by(|one, next| one < next) && positions.last().is_none_or(|last| *last < self.count)
        };
        if listed.clone().all(is_valid) { Ok(()) } else { Err("positions are not ascending, or beyond their number") }
    }

    /// Keeps the samples at these positions, which are ascending.
    pub fn select(&self, kept: &[u32]) -> Self {
        let mut selected = Self::default();
        let new_position = |position: u32| kept.binary_search(&position).ok().map(|index| index as u32);
        let locations: Vec<String> = self.locations().collect();
        kept.iter().for_each(|position| selected.push_location(&locations[*position as usize]));
        let pick = |values: &[Option<f64>]| -> Vec<Option<f64>> {
            kept.iter().map(|position| values.get(*position as usize).copied().flatten()).collect()
        };
        let columns = self.columns.iter();
        let columns =
            columns.map(|column| ImportedColumn { metric: column.metric.clone(), values: pick(&column.values) });
        selected.columns = columns.filter(|column| column.values.iter().any(Option::is_some)).collect();
        if !self.seconds.is_empty() {
            selected.seconds = pick(&self.seconds);
        }
        let pick_texts = |texts: &BTreeMap<String, Vec<u32>>| -> BTreeMap<String, Vec<u32>> {
            let picked = texts.iter().map(|(text, positions)| {
                (text.clone(), positions.iter().filter_map(|position| new_position(*position)).collect::<Vec<u32>>())
            });
            picked.filter(|(_, positions)| !positions.is_empty()).collect()
        };
        selected.findings = pick_texts(&self.findings);
        selected.disturbances = pick_texts(&self.disturbances);
        let rejections = self.rejections.iter();
        selected.rejections =
            rejections.filter_map(|(position, one)| Some((new_position(*position)?, one.clone()))).collect();
        let failures = self.failures.iter();
        selected.failures =
            failures.filter_map(|(position, one)| Some((new_position(*position)?, one.clone()))).collect();
        let statuses = self.exit_statuses.iter();
        selected.exit_statuses =
            statuses.filter_map(|(position, status)| Some((new_position(*position)?, *status))).collect();
        selected.count = kept.len() as u32;
        selected
    }

    /// Marks samples without figures as failed.
    pub fn fail_empty(&mut self) {
        let mut has_figure = vec![false; self.count as usize];
        for column in &self.columns {
            let present = column.values.iter().map(Option::is_some);
            has_figure.iter_mut().zip(present).for_each(|(any, present)| *any |= present);
        }
        let mut empty: Vec<(u32, String)> = Vec::new();
        for (position, location) in (0..).zip(self.locations()).filter(|(index, _)| !has_figure[*index as usize]) {
            if find(&self.rejections, position).is_none() && find(&self.failures, position).is_none() {
                empty.push((position, format!("no figures at {location}")));
            }
        }
        self.failures.extend(empty);
        self.failures.sort_by_key(|(position, _)| *position);
    }
}

fn find<T>(listed: &[(u32, T)], position: u32) -> Option<&T> {
    listed.binary_search_by_key(&position, |(position, _)| *position).ok().map(|index| &listed[index].1)
}

fn texts_of(texts: &BTreeMap<String, Vec<u32>>, position: u32) -> Vec<&str> {
    let has = |positions: &Vec<u32>| positions.binary_search(&position).is_ok();
    texts.iter().filter(|(_, positions)| has(positions)).map(|(text, _)| text.as_str()).collect()
}

#[derive(Debug, Clone, PartialEq)]
pub struct ImportedRow<'a> {
    pub values: Vec<(&'a Metric, f64)>,
    /// Duration of its measured part in seconds, if known.
    pub seconds: Option<f64>,
    pub findings: Vec<&'a str>,
    pub disturbances: Vec<&'a str>,
    pub rejection: Option<&'a ImportRejection>,
    pub failure: Option<&'a str>,
    /// The status with which its command ended although the program went on; 0 of programs that record none.
    pub exit_status: i32,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(locations: &[&str]) -> ImportedSamples {
        let mut samples = ImportedSamples::default();
        for (index, location) in locations.iter().enumerate() {
            let value = ImportedValue { metric: Metric::latency("time", "s"), value: index as f64 };
            let values = if index % 3 == 2 { &[][..] } else { std::slice::from_ref(&value) };
            let findings = if index % 2 == 0 { vec!["even".to_owned()] } else { Vec::new() };
            samples.push(location, values, None, findings, None, (index == 1).then(|| "late".to_owned()));
            samples.set_last_exit_status(i32::from(index == 4));
            samples.set_last_disturbances(if index % 2 == 0 { vec!["steal".to_owned()] } else { Vec::new() });
        }
        samples
    }

    #[test]
    fn locations_are_the_same_texts_again() {
        let locations =
            ["a/0", "a/1", "a/2", "a/4", "b/007", "b/008", "x", "", "a/10", "18446744073709551616", "0", "00"];
        let samples = samples(&locations);
        assert_eq!(samples.locations().collect::<Vec<_>>(), locations);
        assert_eq!((samples.locations[0].count, samples.locations.len()), (3, 9));
    }

    #[test]
    fn selected_samples_are_those_that_were_added() {
        let all = samples(&["a/0", "a/1", "a/2", "a/3", "a/4", "a/5"]);
        let some = all.select(&[1, 2, 4]);
        assert_eq!(some.locations().collect::<Vec<_>>(), ["a/1", "a/2", "a/4"]);
        for (new, old) in [(0, 1), (1, 2), (2, 4)] {
            assert_eq!(some.sample(new), all.sample(old));
        }
        assert_eq!(all.select(&[0, 1, 2, 3, 4, 5]).sample(5), all.sample(5));
    }

    #[test]
    fn samples_without_figures_fail() {
        let mut all = samples(&["a/0", "a/1", "a/2"]);
        all.fail_empty();
        let failures = [(1, "late".to_owned()), (2, "no figures at a/2".to_owned())];
        assert_eq!(all.failures, failures);
    }
}
