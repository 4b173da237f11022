use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use wb_diagnostics::Diagnostic;
use wb_model::{Declaration, Facts, Metric, ParamValue, Params};
use wb_plan::{Catalog, CatalogCell, CellMatrix};

use crate::invalid_cell::InvalidCell;
use crate::{Test, TestCell};

/// Tests that can be run, by name.
#[derive(Clone, Default)]
pub struct Registry {
    tests: BTreeMap<String, RegistryEntry>,
}

/// A test that is created at its first use: a command uses few tests, and declaring all of them takes longer than the
/// rest of its start.
type RegistryEntry = Arc<LazyLock<DeclaredTest, Box<dyn FnOnce() -> DeclaredTest + Send>>>;

struct DeclaredTest {
    test: Arc<dyn Test>,
    declaration: Declaration,
}

impl Registry {
    /// Adds a test, replacing one of the same name.
    pub fn add(&mut self, test: impl Test + 'static) {
        let name = test.name().to_owned();
        self.insert(&name, || Arc::new(test));
    }

    /// Adds a test that is made at its first use, replacing one of the same name.
    pub fn insert(&mut self, name: &str, make: impl FnOnce() -> Arc<dyn Test> + Send + 'static) {
        let declare = move || {
            let test = make();
            DeclaredTest { declaration: test.declaration(), test }
        };
        self.tests.insert(name.to_owned(), Arc::new(LazyLock::new(Box::new(declare))));
    }

    pub fn test(&self, name: &str) -> Option<&Arc<dyn Test>> {
        self.tests.get(name).map(|entry| &entry.test)
    }

    /// Whether a run recorded this definition of a test: the same text with masked secrets, or `None` for a test that
    /// comes with the program.
    pub fn has_definition(&self, test: &str, recorded: Option<&[u8]>) -> bool {
        match (self.test(test).and_then(|test| test.definition()), recorded) {
            (None, None) => true,
            (Some(text), Some(recorded)) => {
                text.as_bytes() == recorded || wb_plan::masking::mask_definition(text).as_bytes() == recorded
            }
            _ => false,
        }
    }

    /// The cell of a test; `None` if there is no such test. If the parameters are invalid, the cell cannot be measured.
    pub fn test_cell(&self, test: &str, params: &Params) -> Option<Box<dyn TestCell>> {
        let test = self.test(test)?;
        // Parameters are decoded once per cell. With invalid ones it is unsupported, with the reason.
        let cell = Arc::clone(test).cell(params);
        Some(cell.unwrap_or_else(|invalid| Box::new(InvalidCell::new(Arc::clone(test), &invalid))))
    }

    /// Declarations, sorted by name.
    pub fn declarations(&self) -> impl Iterator<Item = &Declaration> {
        self.tests.values().map(|entry| &entry.declaration)
    }
}

impl Catalog for Registry {
    fn declaration(&self, test: &str) -> Option<&Declaration> {
        self.tests.get(test).map(|entry| &entry.declaration)
    }

    fn names(&self) -> Vec<&str> {
        self.tests.keys().map(String::as_str).collect()
    }

    fn is_native(&self, test: &str) -> bool {
        self.test(test).is_some_and(|test| test.is_native())
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
