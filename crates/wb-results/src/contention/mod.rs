//! Results of contention benches: what each found, the lines that pages draw, and the machine that was measured.
//!
//! What computes them from measurements, and what writes them as text, is in `wb_contention`.
//!
//! Start with [`BenchResult`].

mod bench;
mod bench_result;
mod distribution;
mod fitted_series;
mod instance;
mod io;
mod iocost_qos;
mod iocost_tune;
mod latency_table;
mod mem_hog;
mod memory_profile;
mod parameters;
mod passive;
mod percentile;
mod polyline;
mod protection;
mod qos_override;
mod resource_use;
mod series;
mod solution;
mod spec_text;
mod storage;
mod system;
mod time_scale;

pub use bench::{Bench, Versions};
pub use bench_result::{Answer, BenchResult};
pub use distribution::Distribution;
pub use fitted_series::FittedSeries;
pub use instance::{Instance, InstanceLabel};
pub use io::{IoLatencies, IoRates, LatencyKind};
pub use iocost_qos::{QosAnswer, QosFigures, QosStageAnswer};
pub use iocost_tune::{SolutionAnswer, TuneAnswer};
pub use latency_table::{LatencyRow, LatencyTable};
pub use mem_hog::{HogSpeed, MemHog, MemHogTune};
pub use memory_profile::{MemoryProfile, at_profile};
pub use parameters::{HashdParameters, IocostParameters};
pub use passive::{Passive, PassiveArea, UnknownArea};
pub use percentile::{LATENCY_PERCENTILES, PERCENTILES, ParsePercentileError, Percentile, TIME_PERCENTILES};
pub use polyline::{Point, Polyline};
pub use protection::{HogAnswer, HogTuneAnswer, ProtectionAnswer, ScenarioAnswer};
pub use qos_override::QosOverride;
pub use resource_use::ResourceUse;
pub use series::{OverTime, Series, UnknownSeries};
pub use solution::{Solution, SolvedQos, Target};
pub use spec_text::SpecText;
pub use storage::StorageAnswer;
pub use system::{Device, SystemInfo};
pub use time_scale::{ParseTimeScaleError, TimeScale};
