//! The Phoronix Test Suite's `composite.xml`: a cell for each result of each system, a sample for each of its runs.

use quick_xml::events::Event;
use quick_xml::reader::Reader;
use serde::Deserialize;
use wb_model::{Direction, Metric, ProfileName, TestName};

use crate::foreign::{ForeignCell, ForeignResults, ForeignSample};
use crate::naming::{mask_secrets, slug, test_name};
use crate::{Format, ReadError};

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
struct System {
    identifier: String,
    hardware: String,
    software: String,
    time_stamp: String,
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
    raw_string: String,
}

/// Parses a file: all its systems, or the requested one.
pub(crate) fn read(text: &str, requested: Option<&str>) -> Result<ForeignResults, ReadError> {
    let malformed = |reason: String| ReadError::Malformed { format: Format::Phoronix, reason };
    let suite: Suite = quick_xml::de::from_str(text).map_err(|error| malformed(error.to_string()))?;
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
    systems.retain(|system| requested.is_none_or(|requested| requested == *system));
    let mut foreign = ForeignResults::default();
    describe(&mut foreign, &suite, &systems);
    for (at, result) in suite.results.iter().enumerate() {
        if !matches!(result.display_format.as_str(), "" | "BAR_GRAPH" | "BAR_ANALYZE_GRAPH") {
            foreign
                .notes
                .push(format!("result {at} (`{}`): unsupported format {}", result.title, result.display_format));
            continue;
        }
        for entry in result.data.entries.iter().filter(|entry| systems.contains(&entry.identifier.as_str())) {
            let mut cell = result.cell(&mut foreign.secrets);
            // Several systems become several profiles.
            cell.profile = (systems.len() > 1).then(|| ProfileName::new(slug(&entry.identifier)).ok()).flatten();
            cell.samples = entry.samples(at, result).into_iter().collect();
            foreign.add(cell);
        }
    }
    foreign.require_cells("results")
}

/// Checks that a text is well-formed XML; returns the error otherwise.
pub(crate) fn check_well_formed(text: &str) -> Result<(), String> {
    let mut events = Reader::from_str(text);
    let (mut elements, mut open) = (0, 0);
    loop {
        match events.read_event() {
            Ok(Event::Eof) if elements == 0 => return Err("no XML element".to_owned()),
            Ok(Event::Eof) if open > 0 => return Err("unexpected end within an element".to_owned()),
            Ok(Event::Eof) => return Ok(()),
            Ok(Event::Empty(_)) => elements += 1,
            Ok(Event::Start(_)) => (elements, open) = (elements + 1, open + 1),
            Ok(Event::End(_)) => open -= 1,
            Ok(_) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// Adds the description of the run, and of the machine if there is only one.
fn describe(foreign: &mut ForeignResults, suite: &Suite, systems: &[&str]) {
    foreign.add_provenance("Phoronix Test Suite", Some(&suite.generated.test_client));
    if !suite.generated.title.is_empty() {
        foreign.metadata.insert("title".to_owned(), suite.generated.title.clone());
    }
    let find_system = |name: &str| suite.systems.iter().find(|system| system.identifier == name);
    let [Some(system)] = systems.iter().map(|name| find_system(name)).collect::<Vec<_>>()[..] else { return };
    foreign.add_provenance("system", Some(&system.identifier));
    foreign.add_provenance("hardware", Some(&system.hardware));
    foreign.add_provenance("software", Some(&system.software));
    foreign.add_provenance("measured at", Some(&system.time_stamp));
    let part = |text: &str, name: &str| {
        let parts = text.split(", ").find_map(|part| part.strip_prefix(name)?.strip_prefix(": "));
        parts.unwrap_or_default().to_owned()
    };
    // `6.1.0-9-amd64 (x86_64)`
    let kernel = part(&system.software, "Kernel");
    let (release, arch) = kernel.split_once(" (").unwrap_or((&kernel, ""));
    foreign.machine.kernel = release.to_owned();
    foreign.machine.arch = arch.trim_end_matches(')').to_owned();
    foreign.machine.cpu_model = part(&system.hardware, "Processor");
    foreign.add_provenance("kernel", Some(release));
}

impl TestResult {
    /// Creates a cell without samples.
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

    /// Name of the test for display, the same for all its results.
    fn subject(&self) -> String {
        if self.identifier.is_empty() { self.title.clone() } else { self.base().0.to_owned() }
    }

    /// Test and version: `pts/openssl-3.1.0` is the test `openssl`, version 3.1. The last number does not affect
    /// figures.
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

    /// Its metric. Times are latencies; other metrics that are better lower are resources.
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
    /// Its runs as samples; a single sample with the overall value if the file has no runs. A failed test has no value.
    fn samples(&self, at: usize, result: &TestResult) -> Vec<ForeignSample> {
        let sample = |run: usize, value| {
            let mut sample = ForeignSample::at(format!("result/{at}/{}/{run}", self.identifier));
            sample.push_reading(result.metric(), value);
            sample
        };
        let runs = self.raw_string.split(':').filter_map(number).enumerate();
        let samples: Vec<ForeignSample> = runs.map(|(run, value)| sample(run, Some(value))).collect();
        if !samples.is_empty() {
            return samples;
        }
        let value = number(&self.value);
        let mut only = sample(0, value);
        match value {
            Some(_) => {
                only.findings.push("the only sample is the value over all runs: the file has no single runs".to_owned())
            }
            None => only.failure = Some(format!("{}: no result in the file", result.title)),
        }
        vec![only]
    }
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite())
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
            (foreign.machine.kernel.as_str(), foreign.machine.cpu_model.as_str()),
            ("6.1.0-9", "X 1 @ 2GHz (4 Cores)")
        );
        let lower = read(&suite(&entry("a", "2", ""), "Seconds", "LIB"), None).unwrap();
        let metric = row(&lower.cells[0], 0).readings.remove(0).metric;
        assert_eq!((metric.class, metric.direction, metric.unit.as_str()), (Class::Latency, Direction::Lower, "s"));
        assert_eq!(row(&lower.cells[0], 0).findings.len(), 1);
    }

    #[test]
    fn invalid_xml_is_reported() {
        assert_eq!(check_well_formed("<?xml version=\"1.0\"?><a><b/></a>"), Ok(()));
        for broken in ["", "plain text", "<a", "<a></b>", "<a><b></b>"] {
            assert!(check_well_formed(broken).is_err(), "{broken}");
        }
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
    fn a_test_without_a_result_has_failed() {
        let foreign = read(&suite(&entry("a", "", ""), "byte/s", "HIB"), None).unwrap();
        assert!(row(&foreign.cells[0], 0).failure.is_some());
    }
}
