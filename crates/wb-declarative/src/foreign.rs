use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde::de::IgnoredAny;
use wb_diagnostics::SourceText;
use wb_model::imported::{ImportedRow, ImportedSample, ImportedTest, SAMPLE_ARTEFACT};
use wb_model::{Declaration, Facts, Metric, Nanos, Params, Scope};
use wb_plan::CatalogCell;
use wb_test::test::AnyPrepared;
use wb_test::{
    Artefacts, Attempt, Failure, InvalidParams, Measurement, Rejection, SharedParams, Test, TestCell, WorkerContext,
    measure_imported,
};

use crate::{DefinitionError, read_text, toml_diagnostic};

/// A test whose samples were taken by another program: `weighbridge import` records them, and it cannot be run. Each
/// sample has the metadata of its figures.
#[derive(Debug)]
pub struct ForeignTest {
    test: ImportedTest,
    text: String,
}

impl ForeignTest {
    /// Parses a definition; none if the text defines a test of another kind. `file` is its name in messages.
    pub fn parse(file: &str, text: &str) -> Result<Option<Self>, DefinitionError> {
        #[derive(Deserialize)]
        struct Kind {
            imported: Option<IgnoredAny>,
        }
        match toml::from_str(text) {
            Ok(Kind { imported: Some(_) }) => {}
            _ => return Ok(None),
        }
        let test = toml::from_str(text).map_err(|error| toml_diagnostic(&SourceText::new(file, text), &error))?;
        Ok(Some(Self { test, text: text.to_owned() }))
    }

    /// Reads a definition from a file, which is part of the run folder `run` if there is one; none if it defines a test
    /// of another kind.
    pub fn read(path: &Path, run: Option<&Path>) -> Result<Option<Self>, DefinitionError> {
        let unreadable = |source| DefinitionError::Read { path: path.to_owned(), source };
        Self::parse(&path.display().to_string(), &read_text(path, run).map_err(unreadable)?)
    }
}

// A test like any other, which knows nothing but the format: so neither study, report nor comparison deals with
// imports.
impl Test for ForeignTest {
    fn name(&self) -> &str {
        self.test.name.as_str()
    }

    fn declaration(&self) -> Declaration {
        let ImportedTest { name, summary, version, .. } = self.test.clone();
        Declaration { name, summary, version, params: Vec::new(), scope: Scope::Sample, requires: Vec::new() }
    }

    fn definition(&self) -> Option<&str> {
        Some(&self.text)
    }

    fn import_format(&self) -> Option<&str> {
        Some(&self.test.imported)
    }

    fn cell(self: Arc<Self>, _params: &Params) -> Result<Box<dyn TestCell>, InvalidParams> {
        Ok(Box::new(ForeignCell { test: self, shared: SharedParams::default() }))
    }
}

struct ForeignCell {
    test: Arc<ForeignTest>,
    shared: SharedParams,
}

impl ForeignCell {
    fn refusal(&self) -> String {
        let format = &self.test.test.imported;
        format!("cannot be run: its samples are imported from {format} files with `weighbridge import`")
    }
}

impl CatalogCell for ForeignCell {
    fn unsupported(&self, _facts: &Facts) -> Option<String> {
        Some(self.refusal())
    }

    fn estimate(&self, _min_time: Nanos) -> Nanos {
        Nanos(0)
    }
}

#[async_trait]
impl TestCell for ForeignCell {
    fn test(&self) -> &dyn Test {
        self.test.as_ref()
    }

    fn shared_params(&self) -> &SharedParams {
        &self.shared
    }

    fn metrics(&self) -> Vec<Metric> {
        // They may differ from sample to sample.
        Vec::new()
    }

    async fn prepare(&self, _context: &WorkerContext) -> Result<AnyPrepared, Failure> {
        Err(Failure::refused(self.refusal()))
    }

    async fn sample(&self, _: &mut AnyPrepared, _attempt: &mut Attempt) -> Result<(), Failure> {
        Err(Failure::refused(self.refusal()))
    }

    async fn cleanup(&self, _prepared: AnyPrepared, _context: &WorkerContext) -> Result<(), Failure> {
        Ok(())
    }

    fn study(&self, artefacts: &Artefacts) -> Result<Measurement, Rejection> {
        let ImportedSample { values, seconds, findings, rejection, provenance, .. } =
            artefacts.json(SAMPLE_ARTEFACT)?;
        let row = ImportedRow {
            values: values.iter().map(|reading| (&reading.metric, reading.value)).collect(),
            seconds,
            findings: findings.iter().map(String::as_str).collect(),
            rejection: rejection.as_ref(),
            failure: None,
            exit_status: 0,
            disturbances: Vec::new(),
        };
        Ok(measure_imported(&row, &provenance))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use wb_model::imported::{ImportOrigin, ImportRejection, ImportedValue};
    use wb_model::{Gate, Sha256, Validity};

    use super::*;
    use wb_test_artefacts::value;

    const TEXT: &str = "name = \"fio-json\"\nsummary = \"s\"\nversion = 1\nimported = \"fio\"\n";

    fn cell() -> Box<dyn TestCell> {
        Arc::new(ForeignTest::parse("f", TEXT).unwrap().unwrap()).cell(&Params::new()).unwrap()
    }

    fn study(readings: Vec<(Metric, f64)>) -> Measurement {
        study_rejected(readings, None)
    }

    fn study_rejected(readings: Vec<(Metric, f64)>, rejection: Option<ImportRejection>) -> Measurement {
        let folder = tempfile::tempdir().unwrap();
        let sample = ImportedSample {
            origin: ImportOrigin { sha256: Sha256::digest(b""), location: "jobs/0".to_owned() },
            values: readings.into_iter().map(|(metric, value)| ImportedValue { metric, value }).collect(),
            seconds: Some(2.0),
            findings: vec!["it is warm".to_owned()],
            rejection,
            provenance: BTreeMap::new(),
        };
        std::fs::write(folder.path().join(SAMPLE_ARTEFACT), serde_json::to_vec(&sample).unwrap()).unwrap();
        wb_test::evaluate::evaluate(cell().as_ref(), &cell().metrics(), &Artefacts::new(folder.path()))
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
        assert_eq!(gate(iops(), -1.0), Some(Gate::Plausibility));
        assert_eq!(gate(iops(), 0.0), None);
    }

    #[test]
    fn a_sample_that_was_rejected_when_it_was_imported_is_invalid_and_keeps_its_figures() {
        let rejection = ImportRejection { gate: Gate::Plausibility, figures: "22 times the baseline".to_owned() };
        let measurement = study_rejected(vec![(Metric::throughput("download", "B/s"), 5.0)], Some(rejection));
        assert_eq!(measurement.validity.to_string(), "invalid (plausibility: 22 times the baseline)");
        assert_eq!(value(&measurement, "throughput/download"), 5.0);
    }

    #[test]
    fn a_definition_is_distinguished_from_those_of_other_tests() {
        assert!(ForeignTest::parse("f", "name = \"x\"\ncommand = [\"true\"]").unwrap().is_none());
        assert!(ForeignTest::parse("f", "name = ").unwrap().is_none());
        let error = ForeignTest::parse("f", &format!("{TEXT}command = [\"true\"]")).unwrap_err();
        assert!(error.to_string().starts_with("f:5:1: unknown field `command`"), "{error}");
        assert!(cell().unsupported(&Facts::default()).unwrap().contains("weighbridge import"));
    }
}
