use wb_compare::calibrate::InvalidSample;
use wb_compare::sequential_test::{InvalidBlock, SequentialTestError};
use wb_model::MetricKey;

/// Why an experiment cannot be made or evaluated.
#[derive(Debug, thiserror::Error)]
pub enum VariantsError {
    #[error("--min-blocks {0} is more than --max-blocks {1}")]
    BlockLimits(usize, usize),
    #[error("`{0}` has no primary metric")]
    NoPrimaryMetric(String),
    #[error("{variants} variants have {cells} cells in the case `{case}`")]
    UnevenCase { variants: usize, cells: usize, case: String },
    /// No sequential test has this error rate and number of blocks.
    #[error(transparent)]
    Design(#[from] SequentialTestError),
    #[error("{metric}: {cause}")]
    Evaluation { metric: MetricKey, cause: InvalidMeasurement },
    /// The session ended without a plan, although it reported success.
    #[error("no plan was made")]
    NoPlan,
    /// The request has several tests, or one that is not registered.
    #[error("expected one known test, not {0}")]
    NotOneTest(String),
}

#[derive(Debug, thiserror::Error)]
pub enum InvalidMeasurement {
    #[error(transparent)]
    Block(#[from] InvalidBlock),
    #[error(transparent)]
    Sample(#[from] InvalidSample),
}

impl VariantsError {
    pub(crate) fn help(&self) -> Option<String> {
        let help = match self {
            Self::BlockLimits(..) => "raise --max-blocks (default: 30)",
            Self::NoPrimaryMetric(_) => "choose another test",
            Self::UnevenCase { .. } => "a variant takes one value per parameter; use lists in the test itself",
            Self::Design(_) => "--max-blocks is the maximum number of blocks, --error-rate the error rate in percent",
            Self::Evaluation { .. } => "all samples are in the run folder; `weighbridge format` shows them",
            Self::NoPlan | Self::NotOneTest(_) => return None,
        };
        Some(help.to_owned())
    }
}
