use std::path::PathBuf;
use std::process::ExitStatus;

use super::nearest_difference::NearestDifference;
use super::state::DifferenceShare;

/// Why a bisection cannot be started or continued.
#[derive(Debug, thiserror::Error)]
pub enum BisectError {
    #[error("git {command}: {message}")]
    Git { command: String, message: String, repo: PathBuf },
    #[error("cannot read repository `{}`: {cause}", .repo.display())]
    UnreadableRepository { repo: PathBuf, cause: String },
    #[error("unknown revision `{name}`")]
    UnknownRevision { name: String, repo: PathBuf },
    #[error("the repository has uncommitted changes: {0}")]
    UncommittedChanges(String),
    #[error("a bisection of the repository is already in progress")]
    InProgress,
    #[error("bad revision {bad} is not after good revision {good}")]
    WrongOrder { bad: String, good: String },
    #[error("not a bisection folder: {}", .0.display())]
    NotABisection(PathBuf),
    #[error("{} holds a bisection with other settings", .0.display())]
    OtherBisection(PathBuf),
    #[error("{}: invalid step in line {line}: {error}", .path.display())]
    InvalidStep {
        path: PathBuf,
        /// From 1.
        line: usize,
        error: serde_json::Error,
    },
    #[error(transparent)]
    UnrecordableStep(serde_json::Error),
    #[error("{revision}: {reason}")]
    EndpointNotMeasured { revision: String, reason: String },
    #[error("the good and the bad revision have no check in common")]
    NoCommonCheck,
    #[error("no significant difference between the good and the bad revision{}", describe(.nearest))]
    NoDifference {
        /// The difference that came nearest to a verdict, if there is one.
        nearest: Option<NearestDifference>,
    },
    #[error(
        "the good and the bad revision are single values that differ too little to classify others: results of one revision are \
         assumed to differ by {run_noise} %"
    )]
    SingleValues {
        /// How much runs are assumed to differ, in percent.
        run_noise: f64,
        /// The number of runs of each that would be enough, if they differ as assumed.
        runs: usize,
    },
    /// Every revision that is left was skipped, in the bisection in this folder.
    #[error("only revisions that cannot be built, measured or classified are left")]
    OnlySkippedLeft(PathBuf),
    #[error("no single commit explains the difference: the search led to {revision}, which {}", .difference.describe_refuted())]
    NoSingleCommit {
        revision: String,
        /// Its difference from its parent.
        difference: DifferenceShare,
    },
    #[error("cannot confirm the first bad revision: {revision}: {reason}")]
    NotConfirmed {
        /// The revision that could not be measured.
        revision: String,
        reason: String,
    },
    #[error("git bisect ended with {status}")]
    GitBisect { status: ExitStatus, log: PathBuf },
}

impl BisectError {
    /// Whether the bisection was started but cannot find the revision.
    pub(crate) fn is_incomplete(&self) -> bool {
        matches!(
            self,
            Self::EndpointNotMeasured { .. }
                | Self::NoCommonCheck
                | Self::NoDifference { .. }
                | Self::SingleValues { .. }
                | Self::OnlySkippedLeft(_)
                | Self::NoSingleCommit { .. }
                | Self::NotConfirmed { .. }
                | Self::GitBisect { .. }
        )
    }

    pub(crate) fn help(&self) -> Option<String> {
        let help = match self {
            Self::Git { repo, .. } => {
                return Some(format!("the command ran in {}; --repo selects the repository", repo.display()));
            }
            Self::UnknownRevision { repo, .. } => {
                return Some(format!("expected a commit, branch or tag of {}", repo.display()));
            }
            Self::UnreadableRepository { .. } => "--repo selects the repository",
            Self::SingleValues { runs, .. } => {
                return Some(format!(
                    "--runs {runs} would be enough if they differ as much, and shows how much they do; --run-noise PERCENT says \
                     what is known of it; --force continues without"
                ));
            }
            Self::OnlySkippedLeft(folder) => {
                return Some(format!(
                    "`weighbridge bisect show --into {}` shows why each was skipped",
                    folder.display()
                ));
            }
            Self::GitBisect { log, .. } => {
                return Some(format!("its log is {}; run the same command again to resume", log.display()));
            }
            Self::NoSingleCommit { .. } => {
                "several commits may each cause a part, or runs vary too much: more --runs, or samples, show more"
            }
            Self::UnrecordableStep(_) | Self::NotConfirmed { .. } => return None,
            Self::UncommittedChanges(_) => "commit or stash them: other revisions will be checked out",
            Self::InProgress => "`git bisect reset` ends it",
            Self::WrongOrder { .. } => "--good is a revision before the change, --bad one after it",
            Self::NotABisection(_) => "`weighbridge bisect run --into DIR …` starts a bisection",
            Self::OtherBisection(_) => "`weighbridge bisect show` shows them; choose another folder with --into",
            Self::InvalidStep { .. } => "remove that line; its revision is then measured again",
            Self::EndpointNotMeasured { .. } => {
                "the good and the bad revision must be built and measured; name another one"
            }
            Self::NoCommonCheck => "--good-results and --bad-results must be results of the tests measured here",
            Self::NoDifference { nearest } => {
                let advice = nearest.as_ref().and_then(NearestDifference::advice);
                return Some(advice.map_or_else(String::new, |advice| advice + "; ") + "--force continues without");
            }
        };
        Some(help.to_owned())
    }
}

fn describe(nearest: &Option<NearestDifference>) -> String {
    nearest.as_ref().map_or_else(String::new, |nearest| format!(": {}", nearest.describe()))
}
