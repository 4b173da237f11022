//! Pure statistics of samples: what was measured, how sure it is, and when there are enough.
//!
//! Numbers in, numbers out. It must not know what a sample is of: no metric, unit, direction, host, clock or file.
//!
//! Start with [`Samples`], the only way in: whatever takes one cannot fail. Then [`Summary`], [`median_interval`], and
//! [`Rule`], which decides after every sample whether another one is needed; [`ratio`] holds two sides against each
//! other. `docs/statistics.md` tells why these
//! were chosen and what they were seen to be worth.

mod blocks;
mod dip;
mod dip_null;
mod hierarchical;
mod interval;
mod multiple;
mod nested;
mod noisy;
mod outliers;
mod pairs;
mod rank_sum;
mod replicates;
mod rule;
mod samples;
mod share;
mod shift;
mod summary;
mod trend;

pub use blocks::{Looked, Looks};
pub use dip::{Dip, dip, joint_dip};
pub use hierarchical::{Drawn, hierarchical_ratio};
pub use interval::{CONFIDENCE, Interval, STOPPING_CONFIDENCE, median_interval, quantile_interval};
pub use multiple::{Discoveries, benjamini_hochberg, selected_confidence};
pub use nested::{Sources, sources};
pub use noisy::NoisyRatio;
pub use outliers::{Outliers, outliers};
pub use pairs::{PairError, PairedRatio, paired_ratio};
pub use rank_sum::{least_p, rank_sum_p};
pub use replicates::{Replicates, RunNoise, median_variance};
pub use rule::{Budget, Decision, Rule, Spread, Stop};
pub use samples::{SampleError, Samples};
pub use share::Share;
pub use shift::{Ratio, TwoSides, ratio};
pub use summary::Summary;
pub use trend::{Trend, TrendMethod, joint_trend, trend};
