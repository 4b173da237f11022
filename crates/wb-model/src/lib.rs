//! The words of Weighbridge as types: identifiers, quantities, metrics, outcomes, declarations, facts.
//!
//! Everything above speaks in these types. This crate knows no file, no process, no clock and no
//! statistics; whatever needs one of those belongs elsewhere.
//!
//! Start with [`id`] (how a measured thing is named), then [`declaration`] (what a test says of
//! itself) and [`outcome`] (what can come of measuring).

pub mod case;
pub mod cpu_list;
pub mod declaration;
pub mod facts;
pub mod id;
pub mod imported;
pub mod key;
pub mod metric;
pub mod name;
pub mod outcome;
pub mod param;
pub mod placement;
pub mod quantity;
pub mod secrets;
pub mod surroundings;
pub mod system;
pub mod team;
pub mod unit;
pub mod wording;

pub use case::{Case, unescaped};
pub use declaration::{Ability, Declaration, Requirement, Scope};
pub use facts::Facts;
pub use id::{CellId, MetricId, Serial};
pub use key::{DefinitionKey, Sha256};
pub use metric::{Aggregate, Class, Direction, Metric};
pub use name::{BadName, ProfileName, TestName, WorkerName};
pub use outcome::{AttemptOutcome, CellOutcome, Gate, Purpose, Validity};
pub use param::{Axis, Param, ParamKind, Params, Value};
pub use placement::{Aslr, HugePages, Placement};
pub use quantity::{Bytes, Nanos};
pub use surroundings::{Found, Surroundings};
pub use system::System;
pub use team::{Sides, Team};
pub use unit::{Figure, Unit, counted};
