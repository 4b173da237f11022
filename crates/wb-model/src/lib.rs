//! Core types of Weighbridge: identifiers, quantities, metrics, outcomes, declarations, facts, parameters of io.cost.
//!
//! All other crates use these types. This crate has no access to files, processes, clocks or statistics; whatever needs
//! one of those belongs elsewhere.
//!
//! Start with [`id`] (identifiers of cells) and [`metric_key`] (keys of their metrics), then read [`declaration`]
//! (declarations of tests) and [`outcome`] (outcomes of measurements).

#![forbid(unsafe_code)]

pub mod attempt_setup;
pub mod case;
pub mod cpu_list;
pub mod criteria;
pub mod declaration;
pub mod facts;
pub mod id;
pub mod imported;
pub mod io_cost;
pub mod key;
pub mod lenient_number;
pub mod metric;
pub mod metric_key;
pub mod name;
pub mod outcome;
pub mod param;
pub mod pbench;
pub mod placement;
pub mod quantity;
pub mod roles;
pub mod secrets;
pub mod system;
pub mod text;
pub mod unit;
pub mod worker_suffix;

pub use attempt_setup::{AttemptSetup, ProcessEnvironment};
pub use case::{Case, unescape_lossy};
pub use criteria::{Criteria, MAX_THRESHOLD_PERCENT};
pub use declaration::{Declaration, ProgramFeature, Requirement, Scope};
pub use facts::Facts;
pub use id::{CellId, ParseIdError, Serial};
pub use io_cost::{IocostModel, IocostQos};
pub use key::{DefinitionKey, MATRIX_FILE, Sha256};
pub use metric::{Aggregate, Class, Direction, Metric};
pub use metric_key::MetricKey;
pub use name::{InvalidName, ProfileName, TestName, WorkerName};
pub use outcome::{AttemptOutcome, AttemptPurpose, CellOutcome, Gate, MetricPrecision, Validity};
pub use param::{Axis, Param, ParamKind, ParamValue, Params};
pub use placement::{Aslr, HugePages, Placement};
pub use quantity::{Bytes, Count, Nanos};
pub use roles::{Roles, Topology};
pub use system::System;
pub use text::{escape_bidi_controls, escape_controls, is_bidi_control, is_unprintable};
pub use unit::{CommonUnit, Quantity, Unit, pluralize};
pub use worker_suffix::{merge_workers, strip_worker, with_worker};
