//! Parts of one run as the sides of a comparison: its workers, its tests, or its cells with different values of a
//! parameter.
//!
//! [`split`] makes two builds of the build of one run. The first has the reference: the cells with one level of a
//! [`Factor`]. The second has every cell with another level that has a counterpart there. A counterpart is a cell that
//! differs in the factor alone. Metrics are named after the judged cell, so that each pair of cells is a check of its
//! own and all of them are one family. Both sides are of one run, so that the noise between runs plays no part, and
//! samples of the same round form pairs.

mod error;
mod families;
mod sides;
mod units;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use wb_results::comparison::WithinRunSummary;

use crate::build::{Builds, InternedCell, MetricIndex};
use crate::distinct::distinct;
use crate::exit_status::fail_beside_successes;
pub use error::WithinRunError;
pub(crate) use families::MetricFamily;
use units::{Unit, Units};

/// What parts of a run differ in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Factor {
    Worker,
    /// The test in the plan: the id of each, or its name and position.
    Id,
    Param {
        /// As given by the user.
        name: String,
        /// Its name in each test that has another one for it.
        by_test: BTreeMap<String, String>,
    },
}

impl Factor {
    pub fn name(&self) -> &str {
        match self {
            Self::Worker => "worker",
            Self::Id => "id",
            Self::Param { name, .. } => name,
        }
    }

    fn label(&self, level: &str) -> String {
        match self {
            Self::Worker | Self::Id => level.to_owned(),
            Self::Param { name, .. } => format!("{name}={level}"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitOptions {
    pub factor: Factor,
    /// The level of the reference; by default the first one, in the order of the plan, that has a counterpart.
    pub reference: Option<String>,
    /// Parameters in which counterparts may differ as well.
    pub allow_different: BTreeSet<String>,
    /// Parameters that only name the cells of a test, by their values: what differs in the factor differs in them, too.
    pub cell_names: BTreeMap<String, BTreeSet<String>>,
}

/// What the builds of a comparison within one run are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithinRun {
    pub summary: WithinRunSummary,
    /// The level of the judged side of each metric, as an index of the summary's levels.
    levels: Vec<usize>,
    pub(crate) families: Vec<MetricFamily>,
    /// From each judged cell to that of the reference.
    counterparts: HashMap<InternedCell, InternedCell>,
}

impl WithinRun {
    /// The names of both sides of a metric: the reference and the judged one.
    pub fn sides(&self, row: MetricIndex) -> [&str; 2] {
        [&self.summary.reference, &self.summary.judged[self.levels[row.index()]]]
    }

    pub(crate) fn counterpart(&self, judged: InternedCell) -> Option<InternedCell> {
        self.counterparts.get(&judged).copied()
    }
}

/// Splits the build of one run, read with [`schedule`](crate::ReadOptions::schedule), into reference and judged parts.
pub fn split(builds: Builds, options: &SplitOptions) -> Result<Builds, WithinRunError> {
    let run_count = builds.list().iter().map(|build| build.runs.len()).sum();
    let ([build], 1) = (builds.list(), run_count) else { return Err(WithinRunError::NotOneRun(run_count)) };
    let run = build.name.clone();
    let units = Units::new(&builds, options);
    units.check(&builds, options, &run)?;
    let reference = units.reference(options, &run)?;
    let (pairs, unmatched) = units.pair(&reference);
    let all = units.all();
    if !pairs.iter().any(|&[one, other]| all[one].has_common_metric(&all[other], &builds)) {
        let sides = pairs[0].map(|index| all[index].describe_metrics(&builds));
        return Err(WithinRunError::NoCommonMetric { factor: options.factor.name().to_owned(), sides });
    }
    let levels = distinct(pairs.iter().map(|&[_, judged]| all[judged].level.as_str()));
    let unmatched = unmatched.into_iter().map(|index| builds.cell_name(all[index].cell)).collect::<BTreeSet<_>>();
    let summary = WithinRunSummary {
        run,
        by: options.factor.name().to_owned(),
        reference: options.factor.label(&reference),
        judged: levels.iter().map(|level| options.factor.label(level)).collect(),
        unmatched: unmatched.into_iter().collect(),
    };
    let pairs: Vec<(usize, [Unit; 2])> = pairs
        .iter()
        .map(|pair| {
            let level = levels.iter().position(|level| *level == all[pair[1]].level).unwrap_or_default();
            (level, pair.map(|index| all[index].clone()))
        })
        .collect();
    let machines = match (&options.factor, &levels[..]) {
        (Factor::Worker, [judged]) => Some([reference.as_str(), *judged]),
        _ => None,
    };
    let mut builds = sides::build(builds, summary, machines, options.factor == Factor::Id, &pairs);
    fail_beside_successes(&mut builds);
    Ok(builds)
}
