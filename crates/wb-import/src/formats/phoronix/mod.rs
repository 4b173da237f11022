//! The Phoronix Test Suite's `composite.xml`: a cell for each result of each system, a sample for each of its runs.

mod system;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use wb_model::{Direction, Gate, Metric, ProfileName, TestName};

use self::system::System;
use crate::foreign::{ForeignCell, ForeignResults, ForeignSample};
use crate::format::{Format, FormatDefinition};
use crate::naming::{mask_secrets, slug, test_name};
use crate::{ReadError, xml};
use wb_model::lenient_number::parse_number;

/// Name under which a cell's provenance has the identifier of its system.
const SYSTEM: &str = "system";

#[derive(Deserialize)]
struct Suite {
    #[serde(rename = "Generated", default)]
    generated: Generated,
    #[serde(rename = "System", default)]
    systems: Vec<System>,
    #[serde(rename = "Result", default)]
    results: Vec<TestResult>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Generated {
    title: String,
    test_client: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct TestResult {
    identifier: String,
    title: String,
    app_version: String,
    arguments: String,
    description: String,
    scale: String,
    /// HIB: higher is better; LIB: lower is better.
    proportion: String,
    display_format: String,
    data: Data,
}

#[derive(Default, Deserialize)]
struct Data {
    #[serde(rename = "Entry", default)]
    entries: Vec<Entry>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Entry {
    identifier: String,
    value: String,
    /// Value of each run, separated by colons.
    raw_string: String,
    #[serde(rename = "JSON")]
    attributes: String,
}

pub(crate) const FORMAT: Format = Format::new(&FormatDefinition {
    system_properties: &["system", "hardware"],
    encode: |text| Some(format!(">{}<", quick_xml::escape::escape(text))),
    ..FormatDefinition::json(
        "phoronix",
        1,
        |text| text.contains("<PhoronixTestSuite"),
        |text, options| read(text, options.system),
    )
});

fn read(text: &str, requested: Option<&str>) -> Result<ForeignResults, ReadError> {
    let suite: Suite = xml::parse(text).map_err(|reason| ReadError::Malformed { format: FORMAT, reason })?;
    let mut systems: Vec<&str> = Vec::new();
    for entry in suite.results.iter().flat_map(|result| &result.data.entries) {
        if !systems.contains(&entry.identifier.as_str()) {
            systems.push(&entry.identifier);
        }
    }
    if let Some(requested) = requested.filter(|requested| !systems.contains(requested)) {
        let available = systems.iter().map(|system| (*system).to_owned()).collect();
        return Err(ReadError::UnknownSystem { requested: requested.to_owned(), known: available });
    }
    let mut foreign = ForeignResults::default();
    for (index, result) in suite.results.iter().enumerate() {
        if !matches!(result.display_format.as_str(), "" | "BAR_GRAPH" | "BAR_ANALYZE_GRAPH") {
            foreign
                .notes
                .push(format!("result {index} (`{}`): unsupported format {}", result.title, result.display_format));
            continue;
        }
        let entries = result.data.entries.iter().enumerate();
        for (position, entry) in entries {
            let mut cell = result.cell(&mut foreign.secrets);
            // Several systems become several profiles.
            if systems.len() > 1 {
                cell.profile = ProfileName::new(slug(&entry.identifier)).ok();
                cell.provenance = suite.system_provenance(&entry.identifier);
            }
            let earlier =
                result.data.entries[..position].iter().filter(|earlier| earlier.identifier == entry.identifier);
            let number = match earlier.count() {
                0 => String::new(),
                earlier => format!("#{}", earlier + 1),
            };
            let location = format!("result/{index}/{}{number}", entry.identifier);
            cell.samples = entry.samples(&location, result).into_iter().collect();
            foreign.add_apart(cell);
        }
    }
    if let (Some(requested), 2..) = (requested, systems.len()) {
        // A system's cells have the same names without the others.
        foreign.disambiguate();
        foreign.retain(|cell| cell.provenance.get(SYSTEM).is_some_and(|system| system == requested));
        for cell in &mut foreign.cells {
            cell.profile = None;
            cell.provenance.clear();
        }
        systems.retain(|system| *system == requested);
    }
    describe(&mut foreign, &suite, &systems);
    foreign.require_cells("results")
}

fn describe(foreign: &mut ForeignResults, suite: &Suite, systems: &[&str]) {
    foreign.add_provenance("Phoronix Test Suite", Some(&suite.generated.test_client));
    if !suite.generated.title.is_empty() {
        foreign.metadata.insert("title".to_owned(), suite.generated.title.clone());
    }
    if let [name] = systems {
        foreign.provenance.extend(suite.system_provenance(name));
        foreign.machine = suite.system(name).map(System::machine).unwrap_or_default();
    } else {
        let known = systems.iter().filter_map(|name| suite.system(name));
        foreign.machines = known.map(|system| (system.identifier.clone(), system.machine())).collect();
    }
}

impl Suite {
    fn system(&self, name: &str) -> Option<&System> {
        self.systems.iter().find(|system| system.identifier == name)
    }

    fn system_provenance(&self, name: &str) -> BTreeMap<String, String> {
        let mut all = vec![(SYSTEM, name)];
        if let Some(system) = self.system(name) {
            let System { hardware, software, time_stamp, .. } = system;
            all.extend([("hardware", hardware.as_str()), ("software", software), ("measured at", time_stamp)]);
            all.push(("kernel", system.kernel()));
        }
        let known = all.into_iter().filter(|(_, value)| !value.trim().is_empty());
        known.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }
}

impl TestResult {
    fn cell(&self, secrets: &mut Vec<(String, String)>) -> ForeignCell {
        let (test, version) = self.test();
        let mut cell = ForeignCell::new(test, format!("{}, as the Phoronix Test Suite measured it", self.subject()));
        if let Some(version) = version {
            cell.param("profile-version", version);
        }
        let arguments = mask_secrets(&self.arguments, secrets);
        cell.param("arguments", arguments.as_str());
        cell.set_unmasked("arguments", &self.arguments, &arguments);
        let mut unnamed = Vec::new();
        for part in self.description.split(" - ").filter(|part| !part.trim().is_empty()) {
            match part.split_once(": ") {
                Some((name, value)) => cell.axis(name.trim(), value.trim()),
                None => unnamed.push(part.trim()),
            }
        }
        if !unnamed.is_empty() {
            cell.own_axis("description", unnamed.join(" - "));
        }
        cell.own_axis("scale", &self.scale);
        cell
    }

    /// Name for display, the same for all results of the test.
    fn subject(&self) -> String {
        if self.identifier.is_empty() { self.title.clone() } else { self.base().0.to_owned() }
    }

    /// `pts/openssl-3.1.0` is the test `openssl`, version 3.1. The last number does not affect figures.
    fn test(&self) -> (TestName, Option<String>) {
        let (name, version) = self.base();
        let version = version.map(|version| version.splitn(3, '.').take(2).collect::<Vec<_>>().join("."));
        (test_name("pts", if name.is_empty() { &self.title } else { name }), version)
    }

    fn base(&self) -> (&str, Option<&str>) {
        let own = self.identifier.rsplit('/').next().unwrap_or_default();
        let is_version = |text: &str| text.starts_with(|c: char| c.is_ascii_digit()) && text.contains('.');
        match own.rsplit_once('-') {
            Some((name, version)) if is_version(version) => (name, Some(version)),
            _ => (own, None),
        }
    }

    /// Times are latencies; other metrics that are better lower are resources.
    fn metric(&self) -> Metric {
        let (unit, is_time) = match self.scale.as_str() {
            "Seconds" | "seconds" | "Second" | "s" => ("s", true),
            "Milliseconds" | "ms" | "Average Latency in Milliseconds" => ("ms", true),
            "Microseconds" | "us" | "usec" => ("us", true),
            "Nanoseconds" | "ns" => ("ns", true),
            scale => (scale, scale.starts_with("ns/") || scale.starts_with("ms/") || scale.starts_with("us/")),
        };
        let metric = match (self.proportion.as_str(), is_time) {
            ("LIB", true) => Metric::latency("result", unit),
            ("LIB", false) => Metric::resource("result", unit),
            _ => Metric::throughput("result", unit),
        };
        let direction = match self.proportion.as_str() {
            "HIB" => Direction::Higher,
            "LIB" => Direction::Lower,
            _ => Direction::Neither,
        };
        metric.direction(direction).primary()
    }
}

impl Entry {
    /// A sample for each run; one with the overall value if the file has no runs. A failed test has no value.
    fn samples(&self, location: &str, result: &TestResult) -> Vec<ForeignSample> {
        let sample = |run: usize, text: &str| {
            let mut sample = ForeignSample::at(format!("{location}/{run}"));
            match parse_number(text) {
                Ok(value) => sample.push_reading(result.metric(), Some(value)),
                Err(reason) => sample.reject(Gate::Output, reason),
            }
            sample
        };
        let runs: Vec<&str> = self.raw_string.split(':').filter(|run| !run.trim().is_empty()).collect();
        let failure = match self.error() {
            None if runs.is_empty() && self.value.trim().is_empty() => Some("no result in the file".to_owned()),
            error => error,
        };
        if let Some(failure) = failure {
            let failure = Some(format!("{}: {failure}", result.title));
            return vec![ForeignSample { failure, ..ForeignSample::at(format!("{location}/0")) }];
        }
        if runs.is_empty() {
            let mut only = sample(0, &self.value);
            if only.rejection.is_none() {
                let finding = "the only sample is the value over all runs: the file has no single runs";
                only.findings.push(finding.to_owned());
            }
            return vec![only];
        }
        let mut samples: Vec<ForeignSample> = runs.iter().enumerate().map(|(run, text)| sample(run, text)).collect();
        if self.is_contradiction(&runs) {
            let figures = format!("the value is {}, its runs are {}", self.value.trim(), self.raw_string.trim());
            samples.iter_mut().for_each(|sample| sample.reject(Gate::Plausibility, figures.as_str()));
        }
        samples
    }

    fn error(&self) -> Option<String> {
        let attributes: Value = serde_json::from_str(&self.attributes).ok()?;
        let message = attributes.get("error")?.as_str()?.split_whitespace().collect::<Vec<_>>().join(" ");
        (!message.is_empty()).then_some(message)
    }

    /// Whether the value is none that the Test Suite computes from runs: an average, the lowest or the highest.
    fn is_contradiction(&self, runs: &[&str]) -> bool {
        let values: Result<Vec<f64>, String> = runs.iter().map(|run| parse_number(run)).collect();
        let (Ok(value), Ok(mut values)) = (parse_number(&self.value), values) else { return false };
        values.sort_by(f64::total_cmp);
        let mean = |to: fn(f64) -> f64, from: fn(f64) -> f64| {
            from(values.iter().map(|value| to(*value)).sum::<f64>() / values.len() as f64)
        };
        let [lowest, .., highest] = values[..] else { return differs(value, values[0], self.rounding(runs)) };
        let median = (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0;
        let means = [mean(|x| x, |x| x), mean(f64::ln, f64::exp), mean(f64::recip, f64::recip)];
        let rounding = self.rounding(runs);
        [lowest, highest, median].iter().chain(&means).all(|computed| differs(value, *computed, rounding))
    }

    /// How much the value and its runs may be rounded together.
    fn rounding(&self, runs: &[&str]) -> f64 {
        let unit = |text: &str| {
            let decimals = text.trim().split_once(['.', ',']).map_or(0, |(_, decimals)| decimals.len());
            10_f64.powi(-i32::try_from(decimals).unwrap_or(i32::MAX))
        };
        (unit(&self.value) + runs.iter().map(|run| unit(run)).fold(0.0, f64::max)) / 2.0
    }
}

/// Whether values differ by more than the rounding, and by 1 %. A mean of logarithms may be no number.
fn differs(value: f64, computed: f64, rounding: f64) -> bool {
    let difference = (value - computed).abs();
    difference.is_nan() || difference > rounding.max(0.01 * computed.abs())
}

#[cfg(test)]
mod tests {
    use wb_model::Class;

    use super::*;
    use crate::foreign::row;

    fn suite(entries: &str, scale: &str, proportion: &str) -> String {
        format!(
            "<?xml version=\"1.0\"?><PhoronixTestSuite><Generated><Title>t</Title></Generated>\
             <System><Identifier>a</Identifier><Hardware>Processor: X 1 @ 2GHz (4 Cores), Memory: 8GB</Hardware>\
             <Software>OS: Debian 12, Kernel: 6.1.0-9 (x86_64)</Software></System>\
             <Result><Identifier>pts/openssl-3.1.2</Identifier><Title>OpenSSL</Title><Arguments>sha256</Arguments>\
             <Description>Algorithm: SHA256</Description><Scale>{scale}</Scale><Proportion>{proportion}</Proportion>\
             <DisplayFormat>BAR_GRAPH</DisplayFormat><Data>{entries}</Data></Result></PhoronixTestSuite>"
        )
    }

    fn entry(system: &str, value: &str, raw: &str) -> String {
        format!("<Entry><Identifier>{system}</Identifier><Value>{value}</Value><RawString>{raw}</RawString></Entry>")
    }

    #[test]
    fn runs_are_samples_and_the_proportion_is_the_direction() {
        let foreign = read(&suite(&entry("a", "2", "1:2:3"), "byte/s", "HIB"), None).unwrap();
        let [cell] = &foreign.cells[..] else { panic!("{foreign:?}") };
        assert_eq!(
            (cell.test.as_str(), cell.samples.count, cell.axes.join(" ")),
            ("pts-openssl", 3, "Algorithm scale".into())
        );
        assert_eq!(cell.params["profile-version"].to_string(), "3.1");
        let metric = row(cell, 0).readings.remove(0).metric;
        assert_eq!((metric.class, metric.direction, metric.primary), (Class::Throughput, Direction::Higher, true));
        assert_eq!(
            (foreign.machine.facts.kernel.as_str(), foreign.machine.facts.cpu_model.as_str()),
            ("6.1.0-9", "X 1 @ 2GHz (4 Cores)")
        );
        let lower = read(&suite(&entry("a", "2", ""), "Seconds", "LIB"), None).unwrap();
        let metric = row(&lower.cells[0], 0).readings.remove(0).metric;
        assert_eq!((metric.class, metric.direction, metric.unit.as_str()), (Class::Latency, Direction::Lower, "s"));
        assert_eq!(row(&lower.cells[0], 0).findings.len(), 1);
    }

    #[test]
    fn systems_are_profiles_unless_one_is_selected() {
        let text = suite(&(entry("a", "2", "1:3") + &entry("New kernel", "4", "4:4")), "byte/s", "HIB");
        let profiles = |system| -> Vec<Option<String>> {
            let cells = read(&text, system).unwrap().cells;
            cells.into_iter().map(|cell| cell.profile.map(|profile| profile.to_string())).collect()
        };
        assert_eq!(profiles(None), [Some("a".to_owned()), Some("New-kernel".to_owned())]);
        assert_eq!(profiles(Some("a")), [None]);
        let error = read(&text, Some("b")).unwrap_err();
        assert_eq!(error.to_string(), "unknown system `b`: expected one of a, New kernel");
    }

    #[test]
    fn the_name_of_a_result_does_not_depend_on_what_else_its_system_has() {
        let both = suite(&(entry("a", "2", "1:3") + &entry("b", "4", "4:4")), "Seconds", "LIB");
        let result = &both[both.find("<Result>").unwrap()..both.find("</PhoronixTestSuite>").unwrap()];
        let cases = |text: &str, system| -> Vec<String> {
            let options = crate::ReadOptions { system, ..Default::default() };
            let cells = crate::read(text, options).unwrap().1.cells;
            cells.iter().map(|cell| cell.case().to_string()).collect()
        };
        let with_arguments = |result: &str, arguments: &str| {
            result.replace("<Arguments>sha256</Arguments>", &format!("<Arguments>{arguments}</Arguments>"))
        };
        // Of the second result, only `a` has a value.
        let only_a = result.replace(&entry("b", "4", "4:4"), "");
        let (with, without) = ("Algorithm=SHA256,arguments=sha256,scale=Seconds", "Algorithm=SHA256,scale=Seconds");
        for (first, second, in_a, in_b) in [
            ("sha256", "", [with, without], with),
            ("", "sha256", [without, with], without),
            ("sha256", "md5", [with, "Algorithm=SHA256,arguments=md5,scale=Seconds"], with),
        ] {
            let results = with_arguments(result, first) + &with_arguments(&only_a, second);
            let text = both.replace(result, &results);
            assert_eq!(cases(&text, Some("a")), in_a, "{text}");
            assert_eq!(cases(&text, Some("b")), [in_b], "{text}");
        }
    }

    fn samples(value: &str, raw: &str) -> Vec<ForeignSample> {
        let text = suite(&entry("a", value, raw), "Seconds", "LIB");
        let foreign = crate::read(&text, crate::ReadOptions::default()).unwrap().1;
        foreign.cells[0].rows().collect()
    }

    #[test]
    fn decimal_commas_are_read_unless_they_are_ambiguous() {
        let values = |value: &str, raw: &str| -> Vec<Option<f64>> {
            let value_of = |sample: &ForeignSample| sample.readings.first().map(|reading| reading.value);
            samples(value, raw).iter().map(value_of).collect()
        };
        assert_eq!(values("12,5", "12,4:12,5:12,6"), [Some(12.4), Some(12.5), Some(12.6)]);
        assert_eq!(values("12,5", ""), [Some(12.5)]);
        for (value, raw) in [("1,234", ""), ("1,234", "1,234"), ("", "1,234")] {
            let rejection = samples(value, raw).remove(0).rejection.unwrap();
            assert!(rejection.figures.starts_with("`1,234` is ambiguous"), "{rejection:?}");
        }
    }

    #[test]
    fn a_value_that_its_runs_contradict_is_invalid() {
        for (value, raw) in [("50", "5:5:5"), ("5", "50"), ("8", "5:5:10"), ("0.5", "5:6:7"), ("-5", "5:5")] {
            assert!(samples(value, raw).iter().all(|sample| sample.rejection.is_some()), "{value} {raw}");
        }
        for (value, raw) in [
            ("5", "5:5:5"),
            ("6.67", "5:5:10"),
            ("5", "5:5:10"),
            ("10", "5:5:10"),
            ("6.3", "5:5:10"),
            ("6", "5:5:10"),
            ("0.33", "0.333:0.334"),
            ("52.00", "51.4:52.3:52.3"),
            ("", "5:50"),
            ("0", "0:0:0"),
        ] {
            assert!(samples(value, raw).iter().all(|sample| sample.rejection.is_none()), "{value} {raw}");
        }
    }

    #[test]
    fn the_own_error_text_is_the_cause_of_a_failed_attempt() {
        let failed =
            entry("a", "", "").replace("</Entry>", "<JSON>{&quot;error&quot;:&quot;no\\n disk&quot;}</JSON></Entry>");
        let foreign = read(&suite(&failed, "Seconds", "LIB"), None).unwrap();
        assert_eq!(row(&foreign.cells[0], 0).failure.as_deref(), Some("OpenSSL: no disk"));
    }

    #[test]
    fn entries_and_results_of_one_name_are_cells_apart() {
        let cases = |text: &str| -> Vec<(String, Vec<String>)> {
            let foreign = crate::read(text, crate::ReadOptions::default()).unwrap().1;
            let describe = |cell: &ForeignCell| (cell.case().to_string(), cell.samples.locations().collect());
            foreign.cells.iter().map(describe).collect()
        };
        let case = |number: u32, locations: [&str; 2]| {
            let name = format!("Algorithm=SHA256,occurrence={number},scale=Seconds");
            (name, locations.map(str::to_owned).to_vec())
        };
        let entries = entry("a", "5", "5:5") + &entry("a", "9", "9:9");
        let expected = [case(1, ["result/0/a/0", "result/0/a/1"]), case(2, ["result/0/a#2/0", "result/0/a#2/1"])];
        assert_eq!(cases(&suite(&entries, "Seconds", "LIB")), expected);
        let one = suite(&entry("a", "5", "5:5"), "Seconds", "LIB");
        let result = &one[one.find("<Result>").unwrap()..one.find("</PhoronixTestSuite>").unwrap()];
        let expected = [case(1, ["result/0/a/0", "result/0/a/1"]), case(2, ["result/1/a/0", "result/1/a/1"])];
        assert_eq!(cases(&one.replace(result, &result.repeat(2))), expected);
    }

    #[test]
    fn every_error_of_xml_has_its_position() {
        for (broken, expected) in [
            ("&eacute;", "line 2, column 9: unknown entity `eacute`"),
            ("<b>", "line 2, column "),
            ("</b>", "line 2, column "),
            ("<", "line 2, column "),
        ] {
            let text = format!("<PhoronixTestSuite>\n<Result>{broken}</Result></PhoronixTestSuite>");
            let error = read(&text, None).err().unwrap().to_string();
            assert!(error.contains(expected), "{broken}: {error}");
        }
        for (valid, message) in [
            ("<Result><Title>a<b/></Title></Result>", "unexpected tag"),
            ("<Result><Title>a</Title><Title>b</Title></Result>", "duplicate field `Title`"),
        ] {
            let error =
                read(&format!("<PhoronixTestSuite>{valid}</PhoronixTestSuite>"), None).err().unwrap().to_string();
            assert!(error.contains("line 1, column ") && error.contains(message), "{error}");
        }
    }

    #[test]
    fn a_test_without_a_result_has_failed() {
        let foreign = read(&suite(&entry("a", "", ""), "byte/s", "HIB"), None).unwrap();
        assert!(row(&foreign.cells[0], 0).failure.is_some());
    }
}
