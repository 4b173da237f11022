//! Selection among the cells of a matrix, and why each cell is in or out.
//!
//! Where the two commits of libp2p/test-plans that define the language differ, the later one is followed; where the
//! suites select everything by mistake (an unknown alias, a filter that expands to nothing), this does not.

mod filter;
mod pattern;

use std::fmt;

pub use self::filter::{Filter, SelectionError};
use crate::expansion::{Cell, ImpossiblePair, Obstacle, pairs};
use crate::matrix::{Endpoint, Matrix, Suite};

/// Filters as written by a user; `None` selects all, or ignores nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SelectionFlags {
    pub test: SelectIgnore,
    pub baseline: SelectIgnore,
    /// Both sides must remain.
    pub implementation: SelectIgnore,
    /// By name of the axis. Baselines, and cells to which the axis does not apply, pass.
    pub axes: Vec<(String, SelectIgnore)>,
    /// Whether all pairs are possible in a suite that pairs endpoints only with themselves by default.
    pub full_matrix: bool,
}

/// Patterns of what to keep, and of what to drop from that.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SelectIgnore {
    pub select: Option<String>,
    pub ignore: Option<String>,
}

/// A possible cell or pair, and whether it is selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision<'m> {
    In(Cell<'m>),
    Out(Cell<'m>, Exclusion),
    Impossible(ImpossiblePair<'m>),
}

/// Why a cell is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exclusion {
    NotSelfPair,
    NotSelected(FilterKind),
    /// With the matching pattern as written.
    Ignored(FilterKind, String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilterKind {
    Test,
    Baseline,
    Implementation,
    /// With the name of the axis.
    Axis(String),
}

impl fmt::Display for FilterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Test => f.write_str("test"),
            Self::Baseline => f.write_str("baseline"),
            Self::Implementation => f.write_str("impl"),
            Self::Axis(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for Exclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSelfPair => f.write_str("not a pair of an endpoint with itself (--full-matrix-test)"),
            Self::NotSelected(FilterKind::Axis(name)) => write!(f, "no selected {name}"),
            Self::Ignored(FilterKind::Axis(name), pattern) => write!(f, "ignored {name}: {pattern}"),
            Self::NotSelected(kind) => write!(f, "not selected by --{kind}-select"),
            Self::Ignored(kind, pattern) => write!(f, "--{kind}-ignore: {pattern}"),
        }
    }
}

impl Decision<'_> {
    pub fn name(&self) -> String {
        match self {
            Self::In(cell) | Self::Out(cell, _) => cell.name(),
            Self::Impossible(pair) => format!("{} x {}", pair.dialer.id, pair.listener.id),
        }
    }

    pub fn reason(&self) -> Option<String> {
        match self {
            Self::In(_) => None,
            Self::Out(_, exclusion) => Some(exclusion.to_string()),
            Self::Impossible(ImpossiblePair { obstacle, .. }) => Some(Obstacle::to_string(obstacle)),
        }
    }

    /// Whether both endpoints are baselines.
    pub fn is_baseline(&self) -> bool {
        match self {
            Self::In(cell) | Self::Out(cell, _) => cell.is_baseline,
            Self::Impossible(pair) => pair.is_baseline,
        }
    }
}

/// Decides about each cell of a matrix, baselines first. Fails if a filter names an unknown alias or axis, an alias
/// names itself, or a pattern is invalid.
pub fn select<'m>(matrix: &'m Matrix, flags: &SelectionFlags) -> Result<Vec<Decision<'m>>, SelectionError> {
    let filters = Filters::new(matrix, flags)?;
    let mut decisions = Vec::new();
    for pair in pairs(matrix) {
        match pair {
            Ok(cells) => decisions.extend(cells.into_iter().map(|cell| match filters.exclusion(&cell) {
                None => Decision::In(cell),
                Some(exclusion) => Decision::Out(cell, exclusion),
            })),
            Err(pair) => decisions.push(Decision::Impossible(pair)),
        }
    }
    Ok(decisions)
}

fn ids(endpoints: &[Endpoint]) -> Vec<&str> {
    endpoints.iter().map(|endpoint| endpoint.id.as_str()).collect()
}

struct Filters {
    suite: Suite,
    full_matrix: bool,
    test: Expanded,
    baseline: Expanded,
    implementation: Expanded,
    axes: Vec<(usize, String, Expanded)>,
}

#[derive(Default)]
struct Expanded {
    select: Option<Filter>,
    ignore: Option<Filter>,
}

impl Expanded {
    fn new(matrix: &Matrix, flags: &SelectIgnore, universe: &[&str]) -> Result<Self, SelectionError> {
        let expand =
            |text: &Option<String>| text.as_deref().map(|text| Filter::expand(text, matrix, universe)).transpose();
        Ok(Self { select: expand(&flags.select)?, ignore: expand(&flags.ignore)? })
    }

    /// The reason to leave a cell out, if any: `--select` must match one of `select`, `--ignore` none of `ignore`.
    fn exclusion(&self, kind: FilterKind, select: &[&str], ignore: &[&str]) -> Option<Exclusion> {
        if let Some(filter) = &self.select
            && !select.iter().any(|text| filter.find(text).is_some())
        {
            return Some(Exclusion::NotSelected(kind));
        }
        let pattern = ignore.iter().find_map(|text| self.ignore.as_ref()?.find(text))?;
        Some(Exclusion::Ignored(kind, pattern.to_owned()))
    }

    /// Like [`Self::exclusion`], but each of the texts must pass.
    fn exclusion_of_any(&self, kind: &FilterKind, texts: &[&str]) -> Option<Exclusion> {
        texts.iter().find_map(|text| self.exclusion(kind.clone(), &[text], &[text]))
    }
}

impl Filters {
    fn new(matrix: &Matrix, flags: &SelectionFlags) -> Result<Self, SelectionError> {
        let (endpoints, baselines) = (ids(&matrix.endpoints), ids(&matrix.baselines));
        // What a negation in a test filter stands for.
        let tests = match matrix.suite {
            Suite::TestPlans => endpoints.clone(),
            Suite::UnifiedTesting | Suite::Weighbridge => [&endpoints[..], &baselines].concat(),
        };
        let mut axes = Vec::new();
        for (name, flags) in &flags.axes {
            let axis = matrix.axis(name).ok_or_else(|| SelectionError::unknown_axis(name, matrix))?;
            axes.push((axis, name.clone(), Expanded::new(matrix, flags, &matrix.values(axis))?));
        }
        Ok(Self {
            suite: matrix.suite,
            full_matrix: flags.full_matrix,
            test: Expanded::new(matrix, &flags.test, &tests)?,
            baseline: Expanded::new(matrix, &flags.baseline, &baselines)?,
            implementation: Expanded::new(matrix, &flags.implementation, &endpoints)?,
            axes,
        })
    }

    fn exclusion(&self, cell: &Cell<'_>) -> Option<Exclusion> {
        let ids = [cell.dialer.id.as_str(), cell.listener.id.as_str()];
        if self.suite == Suite::UnifiedTesting && !self.full_matrix && ids[0] != ids[1] {
            return Some(Exclusion::NotSelfPair);
        }
        let name = cell.name();
        let by_name = |filter: &Expanded, kind| filter.exclusion(kind, &[&name], &[&name]);
        if cell.is_baseline {
            return match self.suite {
                Suite::TestPlans => self.baseline.exclusion(FilterKind::Baseline, &ids, &[&name]),
                Suite::UnifiedTesting | Suite::Weighbridge => self
                    .baseline
                    .exclusion_of_any(&FilterKind::Baseline, &ids)
                    .or_else(|| by_name(&self.test, FilterKind::Test)),
            };
        }
        self.implementation
            .exclusion_of_any(&FilterKind::Implementation, &ids)
            .or_else(|| {
                let mut axes = self.axes.iter();
                axes.find_map(|(axis, name, filter)| {
                    filter.exclusion_of_any(&FilterKind::Axis(name.clone()), &[cell.values[*axis]?])
                })
            })
            .or_else(|| match self.suite {
                Suite::TestPlans => self.test.exclusion(FilterKind::Test, &ids, &[&name]),
                Suite::UnifiedTesting | Suite::Weighbridge => by_name(&self.test, FilterKind::Test),
            })
    }
}
