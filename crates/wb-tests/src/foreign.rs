//! Tests whose samples were taken by another program: `weighbridge import` records them, and they cannot be run.

use std::collections::BTreeMap;
use std::path::Path;

use async_trait::async_trait;
use serde::Deserialize;
use serde::de::IgnoredAny;
use wb_model::imported::{ARTEFACT, ImportedSample, ImportedTest};
use wb_model::{Declaration, Facts, Metric, Nanos, ParamValue, Params, Requirement, Scope};
use wb_stats::SamplingRule;

use crate::declarative::DefinitionError;
use crate::evaluate::check_metric;
use crate::test::AnyPrepared;
use crate::{Artefacts, Attempt, Conclusion, Failure, Measurement, Rejection, StudiedCell, Test, WorkerContext};

/// A test whose samples were taken by another program. Each sample has the metadata of its figures.
#[derive(Debug)]
pub struct ForeignTest {
    test: ImportedTest,
    /// Text of the definition.
    text: String,
}

impl ForeignTest {
    /// Parses a definition; none if the text defines a test of another kind. `file` is its name in messages.
    ///
    /// # Errors
    /// If the definition of an imported test is invalid.
    pub fn parse(file: &str, text: &str) -> Result<Option<Self>, DefinitionError> {
        #[derive(Deserialize)]
        struct Kind {
            imported: Option<IgnoredAny>,
        }
        match toml::from_str(text) {
            Ok(Kind { imported: Some(_) }) => {}
            _ => return Ok(None),
        }
        let test = toml::from_str(text).map_err(|error| DefinitionError::malformed(file, text, &error))?;
        Ok(Some(Self { test, text: text.to_owned() }))
    }

    /// Reads a definition from a file; none if it defines a test of another kind.
    ///
    /// # Errors
    /// If the file cannot be read, or as for [`ForeignTest::parse`].
    pub fn read(path: &Path) -> Result<Option<Self>, DefinitionError> {
        let unreadable = |source| DefinitionError::Read { path: path.to_owned(), source };
        Self::parse(&path.display().to_string(), &std::fs::read_to_string(path).map_err(unreadable)?)
    }

    fn refusal(&self) -> String {
        format!("cannot be run: its samples are imported from {} files with `weighbridge import`", self.test.imported)
    }
}

#[async_trait]
impl Test for ForeignTest {
    fn declaration(&self) -> Declaration {
        let ImportedTest { name, summary, version, .. } = self.test.clone();
        Declaration { name, summary, version, params: Vec::new(), scope: Scope::Sample, requires: Vec::new() }
    }

    fn definition(&self) -> Option<&str> {
        Some(&self.text)
    }

    fn requires(&self, _params: &Params) -> Vec<Requirement> {
        Vec::new()
    }

    fn resolve(&self, _given: &Params, _facts: &Facts) -> BTreeMap<String, Vec<ParamValue>> {
        BTreeMap::new()
    }

    fn unsupported(&self, _params: &Params, _facts: &Facts) -> Option<String> {
        Some(self.refusal())
    }

    fn rule(&self, _params: &Params) -> Option<SamplingRule> {
        None
    }

    fn estimate(&self, _params: &Params, _min_time: Nanos) -> Nanos {
        Nanos(0)
    }

    /// None: the metrics may differ from sample to sample.
    fn metrics(&self, _params: &Params) -> Vec<Metric> {
        Vec::new()
    }

    async fn prepare(&self, _params: &Params, _context: &WorkerContext) -> Result<AnyPrepared, Failure> {
        Err(Failure::refused(self.refusal()))
    }

    async fn sample(&self, _params: &Params, _: &mut AnyPrepared, _attempt: &mut Attempt) -> Result<(), Failure> {
        Err(Failure::refused(self.refusal()))
    }

    async fn cleanup(&self, _params: &Params, _prepared: AnyPrepared, _context: &WorkerContext) -> Result<(), Failure> {
        Ok(())
    }

    fn study(&self, _params: &Params, artefacts: &Artefacts) -> Result<Measurement, Rejection> {
        let ImportedSample { values: readings, seconds, findings, provenance, .. } = artefacts.json(ARTEFACT)?;
        let mut measurement = Measurement { intervals: seconds, findings, provenance, ..Measurement::default() };
        for reading in &readings {
            measurement.set(reading.metric.class, &reading.metric.name, reading.value);
        }
        readings.iter().for_each(|reading| check_metric(&mut measurement, &reading.metric));
        Ok(measurement)
    }

    fn solve(&self, _cells: &[StudiedCell<'_>]) -> Vec<Conclusion> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use wb_model::imported::{ImportOrigin, ImportedValue};
    use wb_model::{Gate, Sha256, Validity};

    use super::*;
    use crate::testing::value;

    const TEXT: &str = "name = \"fio-json\"\nsummary = \"s\"\nversion = 1\nimported = \"fio\"\n";

    fn study(readings: Vec<(Metric, f64)>) -> Measurement {
        let folder = tempfile::tempdir().unwrap();
        let sample = ImportedSample {
            origin: ImportOrigin { sha256: Sha256::of(b""), location: "jobs/0".to_owned() },
            values: readings.into_iter().map(|(metric, value)| ImportedValue { metric, value }).collect(),
            seconds: Some(2.0),
            findings: vec!["it is warm".to_owned()],
            provenance: BTreeMap::new(),
        };
        std::fs::write(folder.path().join(ARTEFACT), serde_json::to_vec(&sample).unwrap()).unwrap();
        let test = ForeignTest::parse("f", TEXT).unwrap().unwrap();
        crate::evaluate::evaluate(&test, &Params::new(), &Artefacts::new(folder.path()))
    }

    #[test]
    fn a_sample_has_the_metadata_of_its_figures() {
        let measurement =
            study(vec![(Metric::throughput("iops", "ops/s").primary(), 5.0), (Metric::check("drift", ""), -1.0)]);
        assert_eq!(measurement.validity, Validity::Valid);
        assert_eq!((value(&measurement, "throughput/iops"), value(&measurement, "check/drift")), (5.0, -1.0));
        assert_eq!((measurement.intervals, measurement.findings.len()), (Some(2.0), 1));
    }

    #[test]
    fn figures_pass_the_gates_of_every_test() {
        let gate = |metric: Metric, value| match study(vec![(metric, value)]).validity {
            Validity::Invalid { gate, .. } => Some(gate),
            Validity::Valid => None,
        };
        let iops = || Metric::throughput("iops", "ops/s");
        assert_eq!(gate(iops().primary(), 0.0), Some(Gate::Work));
        assert_eq!(gate(iops(), -1.0), Some(Gate::Possible));
        assert_eq!(gate(iops(), 0.0), None);
    }

    #[test]
    fn a_definition_is_distinguished_from_those_of_other_tests() {
        assert!(ForeignTest::parse("f", "name = \"x\"\ncommand = [\"true\"]").unwrap().is_none());
        assert!(ForeignTest::parse("f", "name = ").unwrap().is_none());
        let error = ForeignTest::parse("f", &format!("{TEXT}command = [\"true\"]")).unwrap_err();
        assert!(error.to_string().starts_with("f:5:1: unknown field `command`"), "{error}");
        let test = ForeignTest::parse("f", TEXT).unwrap().unwrap();
        assert!(test.unsupported(&Params::new(), &Facts::default()).unwrap().contains("weighbridge import"));
    }
}
