//! Tests whose samples another program took: `weighbridge import` records them, and nothing can be run.

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

/// A test whose samples another program took. Every sample says itself what its figures are.
#[derive(Debug)]
pub struct ForeignTest {
    test: ImportedTest,
    /// As it was written.
    text: String,
}

impl ForeignTest {
    /// Reads a definition; none where the text defines a test of another kind. `file` is what messages call it.
    ///
    /// # Errors
    /// When it says something that the definition of an imported test cannot say.
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

    /// Reads the definition in a file; none where it defines a test of another kind.
    ///
    /// # Errors
    /// When the file cannot be read, or as [`Imported::parse`].
    pub fn read(path: &Path) -> Result<Option<Self>, DefinitionError> {
        let unreadable = |source| DefinitionError::Read { path: path.to_owned(), source };
        Self::parse(&path.display().to_string(), &std::fs::read_to_string(path).map_err(unreadable)?)
    }

    fn refusal(&self) -> String {
        format!("its samples come from files of the format {}: `weighbridge import` takes them", self.test.imported)
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

    /// None that hold for every sample.
    fn metrics(&self, _params: &Params) -> Vec<Metric> {
        Vec::new()
    }

    async fn prepare(&self, _params: &Params, _site: &WorkerContext) -> Result<AnyPrepared, Failure> {
        Err(Failure::refused(self.refusal()))
    }

    async fn sample(&self, _params: &Params, _: &mut AnyPrepared, _attempt: &mut Attempt) -> Result<(), Failure> {
        Err(Failure::refused(self.refusal()))
    }

    async fn cleanup(&self, _params: &Params, _prepared: AnyPrepared, _site: &WorkerContext) -> Result<(), Failure> {
        Ok(())
    }

    fn study(&self, _params: &Params, artefacts: &Artefacts) -> Result<Measurement, Rejection> {
        let ImportedSample { values: readings, seconds, findings, provenance, .. } = artefacts.json(ARTEFACT)?;
        let mut measured = Measurement { seconds, findings, provenance, ..Measurement::default() };
        for reading in &readings {
            measured.set(reading.metric.class, &reading.metric.name, reading.value);
        }
        readings.iter().for_each(|reading| check_metric(&mut measured, &reading.metric));
        Ok(measured)
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

    const TEXT: &str = "name = \"fio-json\"\nsummary = \"s\"\nversion = 1\nimported = \"fio\"\n";

    fn studied(readings: Vec<(Metric, f64)>) -> Measurement {
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
    fn a_sample_says_what_its_figures_are() {
        let measured =
            studied(vec![(Metric::throughput("iops", "ops/s").primary(), 5.0), (Metric::check("drift", ""), -1.0)]);
        assert_eq!(measured.validity, Validity::Valid);
        assert_eq!((measured.values["throughput/iops"], measured.values["check/drift"]), (5.0, -1.0));
        assert_eq!((measured.seconds, measured.findings.len()), (Some(2.0), 1));
    }

    #[test]
    fn its_figures_are_put_to_the_questions_of_every_test() {
        let gate = |metric: Metric, value| match studied(vec![(metric, value)]).validity {
            Validity::Invalid { gate, .. } => Some(gate),
            Validity::Valid => None,
        };
        let iops = || Metric::throughput("iops", "ops/s");
        assert_eq!(gate(iops().primary(), 0.0), Some(Gate::Work));
        assert_eq!(gate(iops(), -1.0), Some(Gate::Possible));
        assert_eq!(gate(iops(), 0.0), None);
    }

    #[test]
    fn a_definition_is_told_from_those_of_other_tests() {
        assert!(ForeignTest::parse("f", "name = \"x\"\ncommand = [\"true\"]").unwrap().is_none());
        assert!(ForeignTest::parse("f", "name = ").unwrap().is_none());
        let wrong = ForeignTest::parse("f", &format!("{TEXT}command = [\"true\"]")).unwrap_err();
        assert!(wrong.to_string().starts_with("f:5:1: there is no field `command` here"), "{wrong}");
        let test = ForeignTest::parse("f", TEXT).unwrap().unwrap();
        assert!(test.unsupported(&Params::new(), &Facts::default()).unwrap().contains("weighbridge import"));
    }
}
