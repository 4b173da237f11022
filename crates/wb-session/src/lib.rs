//! Measurement sessions: what happens between a request and its results.
//!
//! A session connects to hosts, prepares them, applies profiles, runs the plan in each, publishes and studies the
//! results; bisections and experiments with variants consist of sessions. The crate takes typed options, reports to an
//! [`EventSink`] and returns results: it parses no command line and prints nothing. It must not depend on `wb-report`.
//!
//! Start with [`MeasureSession`], then [`hosts`].

#![forbid(unsafe_code)]

pub mod bisect;
pub mod contention;
pub mod definitions;
pub mod error;
pub mod event;
mod hash_cache;
pub mod hosts;
pub mod knob_sets;
mod measure;
pub mod numbers;
pub mod options;
pub mod preview;
mod profile_run;
pub mod program;
pub mod publishing;
pub mod remote;
pub mod request;
mod result;
mod secrets;
pub mod variants;
pub mod worker_program;

pub use error::{ErrorClass, SessionError, describe_empty_selection};
pub use event::{EventSink, HostEvent, KeptRun, SessionEvent};
pub use measure::MeasureSession;
pub use options::{HostOptions, HostSelection, PreparationOptions, RunFolderOptions, SessionOptions};
pub use request::MeasureRequest;
pub use result::{MeasureResult, SessionStatus};
pub use secrets::{SecretError, declare_all as declare_secrets};
