//! The configuration of the workload, and its reports.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{Bytes, Nanos};

use crate::{HashdParams, HashdReport};

/// What hashd is started with
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct HashdConfig {
    /// Parameters at the start
    pub params: HashdParams,
    /// Folder of test files and logs; a new one in /var/tmp if not given
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dir: Option<PathBuf>,
    /// Memory footprint at a `mem-frac` of 1; four times the machine's memory, or as much as fits, if not given
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
    /// Seed of all random choices
    pub seed: u64,
    /// How long to run; until a signal if not given
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Nanos>,
    /// Whether test files and logs stay in `dir`, to be used again
    pub keep_files: bool,
    /// Part of the footprint's data that is zero, so that it compresses
    pub compressibility: f64,
    /// Whether the footprint in use is filled, as far as memory permits, before requests start
    pub fill: bool,
}

impl Default for HashdConfig {
    fn default() -> Self {
        Self {
            params: HashdParams::default(),
            dir: None,
            memory: None,
            seed: 0,
            duration: None,
            keep_files: false,
            compressibility: 0.0,
            fill: true,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum HashdEvent {
    /// The footprint was determined, and test files are created.
    Preparing {
        /// Footprint at a `mem-frac` of 1, in bytes.
        memory: u64,
        /// Bytes of test files that are written.
        created: u64,
        dir: PathBuf,
    },
    Filling {
        /// Bytes of the footprint that fit into memory.
        bytes: u64,
    },
    Started,
    Report(Box<HashdReport>),
}
