//! Pure statistics of samples: summaries, confidence intervals, comparisons and stopping rules.
//!
//! Numbers in, numbers out. Must not depend on what a sample measures: no metric, unit, direction, host, clock or file.
//!
//! Start with [`Samples`], the validated input: functions that take it do not fail. Then [`Summary`],
//! [`median_interval`], and [`SamplingRule`], which decides after every sample whether another one is needed; [`ratio`]
//! compares the location of two sides, [`PairedShift`] that of pairs, [`mean_ratio()`] their means, [`tail_ratio`]
//! their tails, [`FisherExact`] their failures; [`RunPrior`] adds the noise between runs. `docs/statistics.md` explains
//! the choice of methods and evaluates them by simulation.

#![forbid(unsafe_code)]

mod brunner_munzel;
mod dependence;
mod dip;
mod dip_null;
mod estimate;
mod fisher;
mod group_sequential;
mod hodges_lehmann;
mod initial_transient;
mod interval;
mod mean_ratio;
mod mean_shift;
mod median_ratio;
mod multiple_testing;
mod outliers;
mod paired_ratio;
mod paired_shift;
mod paired_tail;
mod position;
mod proportion;
mod rank_sum;
mod replicates;
mod run_modes;
mod run_prior;
mod samples;
mod sampling_rule;
mod selection;
mod signed_rank;
mod student;
mod summary;
mod tail;
mod tail_rank;
mod trend;
mod unimodal;
mod variance_components;
mod variance_estimate;
mod von_neumann;

pub use dependence::{Dependence, DependenceCheck, MIN_SAMPLES_FOR_DEPENDENCE, dependence, widening};
pub use dip::{Dip, dip, joint_dip};
pub use estimate::{Estimate, NoInterval, median_correlation};
pub use fisher::FisherExact;
pub use group_sequential::{ExclusionP, GroupSequentialTest, LogRatios};
pub use hodges_lehmann::{HodgesLehmann, Ratio, Shift, difference, ratio};
pub use initial_transient::{InitialTransient, MIN_SAMPLES_FOR_TRANSIENT, initial_transient};
pub use interval::{
    CONFIDENCE, Interval, MIN_SAMPLES_FOR_INTERVAL, STOPPING_CONFIDENCE, median_interval, quantile_interval,
    widened_median_interval,
};
pub use mean_ratio::{mean_difference_variance, mean_ratio, paired_mean_ratio, pooled_mean_ratio};
pub use mean_shift::MeanShift;
pub use median_ratio::{QuantileRatio, median_ratio, quantile_ratio};
pub use multiple_testing::{Discoveries, DiscoveryFamily, benjamini_hochberg, holm, selected_confidence};
pub use outliers::{Outliers, outliers};
pub use paired_ratio::{PairError, PairedRatio, paired_ratio};
pub use paired_shift::{PairedShift, paired_widening};
pub use paired_tail::{paired_tail_p, paired_tail_ratio};
pub use position::{Ends, LevelStatistic, Share};
pub use proportion::{Proportion, ProportionDifference};
pub use rank_sum::{min_p_value, rank_sum_p};
pub use replicates::{Replicates, RunNoise, median_variance};
pub use run_modes::RunModes;
pub use run_prior::{NoiseSource, RunPrior, WeightedRun};
pub use samples::{SampleError, Samples};
pub use sampling_rule::{Budget, Dispersion, SamplingDecision, SamplingRule, Stop};
pub use signed_rank::signed_rank_p;
pub use student::StudentRatio;
pub use summary::Summary;
pub use tail::{pooled_quantile_p, tail_level, tail_p, tail_ratio};
pub use trend::{Trend, TrendMethod, joint_trend, trend};
pub use variance_components::{VarianceComponents, variance_components};
pub use variance_estimate::VarianceEstimate;
