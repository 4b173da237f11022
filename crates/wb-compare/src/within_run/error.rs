//! Why parts of a run cannot be compared.

use wb_diagnostics::{help_with_suggestion, suggest};

use crate::unknown_name::UnknownName;

/// Parts of a run that cannot be compared. `varying` are the parameters with several values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WithinRunError {
    #[error("--by compares parts of one run: expected one run folder, found {0}")]
    NotOneRun(usize),
    #[error("no cell of `{run}` was measured by several workers")]
    NoWorkers { run: String, profiles: Vec<String> },
    #[error("no cell of `{run}` has a parameter `{name}`")]
    NoParam { run: String, name: String, varying: Vec<String>, profiles: Vec<String> },
    #[error("nothing to compare: `{0}` has no results")]
    NoResults(String),
    #[error("nothing to compare: all cells of `{run}` have `{name}={value}`")]
    OneValue { run: String, name: String, value: String, varying: Vec<String> },
    #[error("nothing to compare: all cells of `{run}` are of the test `{test}`")]
    OneTest {
        run: String,
        /// The id of the test, or its name and position.
        test: String,
        varying: Vec<String>,
    },
    #[error("no two cells of `{run}` differ in {factor} alone{}", also(others))]
    NoCounterparts {
        run: String,
        factor: String,
        /// Whether `factor` is a parameter.
        is_param: bool,
        /// The parameters in which the most similar cells differ as well.
        others: Vec<String>,
    },
    #[error(transparent)]
    UnknownLevel(#[from] UnknownName),
    #[error("no cell of `{run}` has a counterpart with {reference}")]
    NothingToJudge { run: String, reference: String },
    #[error("the cells that differ in {factor} have no metric in common: {} and {}", sides[0], sides[1])]
    NoCommonMetric {
        factor: String,
        /// A cell of each side, with its metrics.
        sides: [String; 2],
    },
}

fn describe_varying(varying: &[String]) -> String {
    match varying {
        [] => "no parameter varies in this run; --by worker and --by id compare workers and tests".to_owned(),
        varying => format!("parameters that vary in this run: {}", varying.join(", ")),
    }
}

/// Several profiles were not measured at the same time: they are compared as builds are, with the noise between runs.
fn compare_profiles(run: &str, profiles: &[String]) -> Option<String> {
    let [first, second, ..] = profiles else { return None };
    Some(format!(
        "`weighbridge compare a={run} b={run} --map {first}={second}` compares its profiles {first} and {second}"
    ))
}

fn also(others: &[String]) -> String {
    if others.is_empty() {
        String::new()
    } else {
        format!(": the most similar ones also differ in {}", others.join(", "))
    }
}

impl WithinRunError {
    /// Whether the run has nothing to compare, which is no mistake in the command line: an unknown parameter or value
    /// is one, and so is another number of runs.
    pub fn is_nothing_comparable(&self) -> bool {
        match self {
            Self::NotOneRun(_) | Self::NoParam { .. } | Self::UnknownLevel(_) => false,
            Self::NoWorkers { .. }
            | Self::NoResults(_)
            | Self::OneValue { .. }
            | Self::OneTest { .. }
            | Self::NoCounterparts { .. }
            | Self::NothingToJudge { .. }
            | Self::NoCommonMetric { .. } => true,
        }
    }

    pub fn help(&self) -> Option<String> {
        match self {
            Self::NotOneRun(_) => {
                Some("without --by, run folders are compared with each other: `weighbridge compare OLD NEW`".to_owned())
            }
            Self::NoWorkers { run, profiles } => {
                Some(compare_profiles(run, profiles).unwrap_or_else(|| {
                    "`run --hosts HOST,HOST` measures on several workers at the same time".to_owned()
                }))
            }
            Self::NoParam { run, name, varying, profiles } => {
                let help = help_with_suggestion(suggest(name, varying).as_ref(), &describe_varying(varying));
                let further = compare_profiles(run, profiles).map(|further| format!("; {further}"));
                Some(help + &further.unwrap_or_default())
            }
            Self::OneValue { varying, .. } | Self::OneTest { varying, .. } => Some(describe_varying(varying)),
            Self::NoCounterparts { is_param: true, others, .. } if !others.is_empty() => {
                Some(format!("--allow-different {} compares them all the same", others.join(",")))
            }
            Self::NoCounterparts { is_param: false, .. } => {
                Some("--select limits the comparison to cells that have a counterpart".to_owned())
            }
            Self::UnknownLevel(unknown) => Some(unknown.help()),
            Self::NothingToJudge { .. } => Some("--reference names another one".to_owned()),
            Self::NoResults(_) | Self::NoCounterparts { .. } | Self::NoCommonMetric { .. } => None,
        }
    }
}
