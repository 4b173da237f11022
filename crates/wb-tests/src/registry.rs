//! Registry of all tests.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use wb_diagnostics::Diagnostic;
use wb_model::{Declaration, Facts, Metric, ParamValue, Params};
use wb_plan::{Catalog, CatalogCell, CellMatrix};
use wb_record::RunFolder;

use crate::declarative::{self, DeclarativeTest, DefinitionError};
use crate::fio::Fio;
use crate::fio_libblkio::FioLibblkio;
use crate::fio_nbd::FioNbd;
use crate::foreign::ForeignTest;
use crate::himeno::Himeno;
use crate::invalid_cell::InvalidCell;
use crate::linpack::Linpack;
use crate::net::Net;
use crate::peers::Peers;
use crate::ramspeed::Ramspeed;
use crate::ramspeed_sweep::RamspeedSweep;
use crate::redis::Redis;
use crate::uperf::Uperf;
use crate::{Test, TestCell};

/// Tests whose workload is this program itself.
const NATIVE: [&str; 6] = ["himeno", "linpack", "net", "ramspeed", "ramspeed-sweep", "uperf"];

/// The tests that can be run, by name.
#[derive(Clone, Default)]
pub struct Registry {
    tests: BTreeMap<String, RegistryEntry>,
}

#[derive(Clone)]
struct RegistryEntry {
    test: Arc<dyn Test>,
    declaration: Arc<Declaration>,
}

impl Registry {
    /// The tests that come with the program.
    pub fn built_in() -> Self {
        let mut registry = Self::default();
        registry.add(Fio);
        registry.add(FioNbd);
        registry.add(FioLibblkio);
        registry.add(Himeno);
        registry.add(Ramspeed);
        registry.add(RamspeedSweep);
        registry.add(Linpack);
        registry.add(Redis);
        registry.add(Net::default());
        registry.add(Uperf);
        registry.add(Peers::default());
        declarative::builtin_tests().for_each(|test| registry.add(test));
        registry
    }

    /// Adds every test that a `*.toml` file in a folder defines, in the order of file names. Files that are invalid, or
    /// define a test that an earlier file of the folder defines, are skipped, and their errors returned.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn add_folder(&mut self, folder: &Path) -> Result<Vec<DefinitionError>, DefinitionError> {
        self.add_definitions(folder, None)
    }

    /// Adds the tests that a run recorded, as [`Self::add_folder`] does; none if it recorded no tests. The run may come
    /// from somebody else, so nothing outside of its folder is read.
    ///
    /// # Errors
    /// If the folder of its definitions cannot be read.
    pub fn add_run(&mut self, run: &RunFolder) -> Result<Vec<DefinitionError>, DefinitionError> {
        match run.tests_folder().is_dir() {
            true => self.add_definitions(&run.tests_folder(), Some(run.path())),
            false => Ok(Vec::new()),
        }
    }

    fn add_definitions(&mut self, folder: &Path, run: Option<&Path>) -> Result<Vec<DefinitionError>, DefinitionError> {
        let unreadable = |source| DefinitionError::Read { path: folder.to_owned(), source };
        let entries = std::fs::read_dir(folder).map_err(unreadable)?;
        let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
        paths.sort();
        let mut files: BTreeMap<String, String> = BTreeMap::new();
        let mut skipped = Vec::new();
        for path in paths {
            let test = match read_definition(&path, run) {
                Ok(test) => test,
                Err(error) => {
                    skipped.push(error);
                    continue;
                }
            };
            let (name, file) = (test.declaration().name.to_string(), path.display().to_string());
            match files.get(&name) {
                Some(first) => {
                    skipped.push(DefinitionError::Duplicate { test: name, first: first.clone(), second: file });
                }
                None => {
                    files.insert(name, file);
                    self.insert(test);
                }
            }
        }
        Ok(skipped)
    }

    /// Adds a test, replacing one of the same name.
    pub fn add(&mut self, test: impl Test + 'static) {
        self.insert(Arc::new(test));
    }

    fn insert(&mut self, test: Arc<dyn Test>) {
        let declaration = Arc::new(test.declaration());
        let name = declaration.name.as_str().to_owned();
        self.tests.insert(name, RegistryEntry { test, declaration });
    }

    /// The test of this name.
    pub fn test(&self, name: &str) -> Option<&Arc<dyn Test>> {
        self.tests.get(name).map(|entry| &entry.test)
    }

    /// Whether a run recorded this definition of a test: the same text, with its secrets masked. `None` stands for one
    /// that comes with the program.
    pub fn has_definition(&self, test: &str, recorded: Option<&[u8]>) -> bool {
        match (self.test(test).and_then(|test| test.definition()), recorded) {
            (None, None) => true,
            (Some(text), Some(recorded)) => {
                text.as_bytes() == recorded || wb_plan::masking::mask_definition(text).as_bytes() == recorded
            }
            _ => false,
        }
    }

    /// The cell of a test with these effective parameters; `None` if there is no such test. If the parameters are invalid,
    /// the cell cannot be measured.
    pub fn test_cell(&self, test: &str, params: &Params) -> Option<Box<dyn TestCell>> {
        let test = self.test(test)?;
        let cell = Arc::clone(test).cell(params);
        Some(cell.unwrap_or_else(|invalid| Box::new(InvalidCell::new(Arc::clone(test), &invalid))))
    }

    /// The declarations, by name.
    pub fn declarations(&self) -> impl Iterator<Item = &Declaration> {
        self.tests.values().map(|entry| entry.declaration.as_ref())
    }
}

/// Reads the definition of a test of any kind, which is part of the run folder `run` if there is one.
fn read_definition(path: &Path, run: Option<&Path>) -> Result<Arc<dyn Test>, DefinitionError> {
    match ForeignTest::read(path, run)? {
        Some(test) => Ok(Arc::new(test)),
        None => Ok(Arc::new(DeclarativeTest::read(path, run)?)),
    }
}

impl Catalog for Registry {
    fn declaration(&self, test: &str) -> Option<&Declaration> {
        self.tests.get(test).map(|entry| entry.declaration.as_ref())
    }

    fn names(&self) -> Vec<&str> {
        self.tests.keys().map(String::as_str).collect()
    }

    fn is_native(&self, test: &str) -> bool {
        NATIVE.contains(&test)
    }

    fn knob(&self, name: &str) -> Option<&'static str> {
        wb_knobs::tune::find(name).map(|knob| knob.name())
    }

    fn knobs(&self) -> Vec<&'static str> {
        wb_knobs::knobs::all().iter().map(|knob| knob.name()).collect()
    }

    fn check_knob(&self, knob: &str, value: &str) -> Result<(), String> {
        wb_knobs::tune::KnobSetting::new(knob, value.to_owned())?.check_value()
    }

    fn resolve(&self, test: &str, given: &Params, facts: &Facts) -> BTreeMap<String, Vec<ParamValue>> {
        self.test(test).map(|test| test.resolve(given, facts)).unwrap_or_default()
    }

    fn matrix(&self, test: &str, given: &Params) -> Result<Option<CellMatrix>, Diagnostic> {
        self.test(test).map_or(Ok(None), |test| test.matrix(given))
    }

    fn metrics(&self, test: &str, params: &Params) -> Vec<Metric> {
        self.test_cell(test, params).map(|cell| cell.metrics()).unwrap_or_default()
    }

    fn cell(&self, test: &str, params: &Params) -> Option<Box<dyn CatalogCell>> {
        Some(self.test_cell(test, params)?)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_declaration_is_complete() {
        for declaration in Registry::built_in().declarations() {
            let test = &declaration.name;
            assert!(!declaration.summary.is_empty(), "{test}");
            let mut names = BTreeSet::new();
            for param in &declaration.params {
                assert!(!param.help.is_empty(), "{test}: {} has no help", param.name);
                for name in std::iter::once(&param.name).chain(&param.aliases) {
                    assert!(names.insert(name), "{test}: duplicate name `{name}`");
                    let reserved = ["name", "id", "tools"].contains(&name.as_str());
                    assert!(!reserved, "{test}: `{name}` is reserved in plans");
                }
                let is_optional = ["env", "before"].contains(&param.name.as_str());
                let has_value = is_optional || param.default.is_some() || param.resolved_from.is_some();
                assert!(
                    has_value,
                    "{test}: `{}` has neither a default nor a description of how it is resolved",
                    param.name
                );
            }
        }
    }

    #[test]
    fn every_declared_size_and_count_is_read_in_every_notation() {
        use wb_model::ParamKind;
        let registry = Registry::built_in();
        let mut checked = 0;
        for declaration in registry.declarations() {
            for param in &declaration.params {
                let mut kind = &param.kind;
                while let ParamKind::List { of } = kind {
                    kind = of;
                }
                let notations: &[&str] = match kind {
                    ParamKind::Integer { max: Some(max), .. } if *max < 2000 => &["10", "1e1", "0.01k", "100e-1"],
                    ParamKind::Integer { .. } | ParamKind::Count => &["2000", "2k", "2K", "2e3", "0.002M"],
                    ParamKind::Bytes { .. } => &["2097152", "2m", "2M", "2MiB", "2048k", "2.097152e6"],
                    ParamKind::Duration { .. } => &["3600", "1h", "60min", "3.6e3", "3600s"],
                    _ => continue,
                };
                let read = |text: &&str| kind.normalise(&ParamValue::Text((*text).to_owned()));
                let values: Vec<_> = notations.iter().map(read).collect();
                let same = values.iter().all(|value| *value == values[0]);
                // A smaller range than that of its type refuses all of them alike.
                let refused = values
                    .iter()
                    .all(|value| value.as_ref().is_err_and(|error| error.message.contains(": expected at ")));
                assert!(refused || (same && values[0].is_ok()), "{}:{}: {values:?}", declaration.name, param.name);
                checked += 1;
            }
        }
        assert!(checked > 80, "{checked}");
    }

    #[test]
    fn digits_mean_the_same_with_and_without_quotes() {
        for declaration in Registry::built_in().declarations() {
            for param in &declaration.params {
                for typed in ["007", "+7", "-0", "00", "7"] {
                    let recorded = |value: &str| {
                        let spec = format!("{}:{}={value}", declaration.name, param.name);
                        param.kind.normalise(&wb_plan::spec::parse(&spec).unwrap().params[0].value.value())
                    };
                    let (bare, quoted) = (recorded(typed), recorded(&format!("\"{typed}\"")));
                    assert_eq!(bare, quoted, "{} {} {typed}", declaration.name, param.name);
                    if param.kind == wb_model::ParamKind::Text {
                        assert_eq!(bare.unwrap(), ParamValue::Text(typed.to_owned()));
                    }
                }
            }
        }
    }

    #[test]
    fn native_tests_are_built_in() {
        let registry = Registry::built_in();
        assert!(NATIVE.iter().all(|test| registry.declaration(test).is_some()));
    }

    #[test]
    fn every_built_in_plan_can_be_expanded() {
        let cpu = |id| wb_model::facts::Cpu { id, core: id, package: 0, node: 0 };
        let memory = wb_model::Bytes(16 << 30);
        let facts = Facts {
            cpus: vec![cpu(0), cpu(1)],
            memory,
            memory_available: memory,
            arch: "x86_64".into(),
            ..Facts::default()
        };
        let (registry, profile) = (Registry::built_in(), wb_model::ProfileName::new("Localhost").unwrap());
        for name in wb_plan::builtin::names() {
            let plan = wb_plan::builtin::plan(name).unwrap().unwrap();
            let all = wb_plan::Selection::default();
            for workers in [Some(wb_plan::PlanWorkers::local(facts.clone())), None] {
                let plan = wb_plan::expand(&plan.requests, &plan.sampling, &registry, workers.as_ref(), &profile, &all)
                    .unwrap();
                let unsupported: Vec<&String> =
                    plan.cells.iter().filter_map(|cell| cell.unsupported.as_ref()).collect();
                assert_eq!(unsupported, [""; 0], "{name}");
                let open = plan.cells.iter().filter(|cell| cell.key.is_none()).count();
                assert!(workers.is_none() || open == 0, "{name}: {open} cells are open");
            }
        }
    }

    #[test]
    fn a_cell_with_invalid_parameters_is_unsupported_and_its_samples_are_rejected() {
        let params = Params::from([("threads".to_owned(), ParamValue::Integer(-1))]);
        let cell = Registry::built_in().test_cell("himeno", &params).unwrap();
        let reason = cell.unsupported(&Facts::default()).unwrap();
        assert!(reason.starts_with("`threads`: invalid value: integer `-1`, expected u32"), "{reason}");
        let rejection = cell.study(&crate::Artefacts::new(Path::new("/nosuch"))).unwrap_err();
        assert_eq!(rejection.to_string(), format!("output: {reason}"));
    }

    #[test]
    fn every_test_has_a_primary_metric_and_those_with_several_figures_have_more() {
        let registry = Registry::built_in();
        for declaration in registry.declarations() {
            let defaults: Params =
                declaration.params.iter().filter_map(|p| Some((p.name.clone(), p.default.clone()?))).collect();
            let metrics = registry.test_cell(declaration.name.as_str(), &defaults).unwrap().metrics();
            let expected = match declaration.name.as_str() {
                "peers" => 3,
                // Arithmetic and memory.
                "hpcc" => 2,
                _ => 1,
            };
            assert_eq!(metrics.iter().filter(|metric| metric.primary).count(), expected, "{}", declaration.name);
        }
    }
}
