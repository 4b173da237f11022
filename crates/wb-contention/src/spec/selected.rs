//! Benches of which results are read.

use wb_diagnostics::{Diagnostics, SourceText};
use wb_results::contention::{Bench, Instance, InstanceLabel};

use super::{BenchSpec, reader};

/// A selection of results: of a bench, of one instance of it, or of the label that is shown for it.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectedBench {
    /// The bench, with properties for `solve`.
    pub spec: BenchSpec,
    label: Option<InstanceLabel>,
}

impl SelectedBench {
    /// Parses an argument of a reading command.
    pub fn parse(text: &str) -> Result<Self, Diagnostics> {
        let source = SourceText::new("command line", text);
        let (bench, label, groups) = reader::split_instance(&source)?;
        Ok(Self { spec: BenchSpec::read(&source, bench, groups)?, label })
    }

    pub fn includes(&self, instance: &Instance) -> bool {
        is_selected(instance, self.spec.bench(), self.spec.id.as_deref(), self.label.as_ref())
    }
}

/// Whether a selection of a bench or of one instance includes an instance.
pub(super) fn is_selected(instance: &Instance, bench: Bench, id: Option<&str>, label: Option<&InstanceLabel>) -> bool {
    instance.bench == bench
        && id.is_none_or(|id| instance.id() == Some(id))
        && label.is_none_or(|label| instance.label == *label)
}
