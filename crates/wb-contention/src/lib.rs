#![forbid(unsafe_code)]
pub mod bench;
pub mod distribution;
pub mod figures;
pub mod iocost;
pub mod latency_table;
pub mod parameters;
pub mod passive;
pub mod percentile;
pub mod series;
pub mod spec;
pub mod system;
pub use bench::Bench;
pub use iocost::{IocostModel, IocostQos, QosOverride};
pub use passive::{Passive, PassiveArea};
pub use percentile::{LATENCY_PERCENTILES, PERCENTILES, Percentile, TIME_PERCENTILES};
pub use series::Series;
pub use spec::BenchSpec;
