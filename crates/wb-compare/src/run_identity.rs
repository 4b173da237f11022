//! The identity of a run, by which its copies are recognised.

use std::collections::BTreeSet;
use std::path::PathBuf;

use wb_model::Sha256;

/// What no two independent runs have in common.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RunIdentity {
    /// Without symbolic links.
    pub(crate) folder: PathBuf,
    /// `None` of run-perf's folders, and if the journal is empty.
    pub(crate) journal: Option<Sha256>,
    /// The files that samples were imported from.
    pub(crate) imported: BTreeSet<Sha256>,
}

impl RunIdentity {
    /// Whether both are one run, or have samples of one file.
    pub(crate) fn is_same_run(&self, other: &Self) -> bool {
        let is_same_journal = self.journal.is_some() && self.journal == other.journal;
        self.folder == other.folder || is_same_journal || !self.imported.is_disjoint(&other.imported)
    }
}
