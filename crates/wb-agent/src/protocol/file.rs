//! Files, folders and programs on a worker.

use serde::{Deserialize, Serialize};

/// A scratch folder created by the agent.
#[derive(Debug, Serialize, Deserialize)]
pub struct ScratchHandle {
    pub id: u32,
    pub path: String,
}

/// A group created by the agent.
#[derive(Debug, Serialize, Deserialize)]
pub struct GroupHandle {
    pub id: u32,
    /// The path of its scratch folder.
    #[serde(rename = "path")]
    pub folder: String,
    /// The path of its cgroup, if one could be created.
    #[serde(default)]
    pub cgroup: Option<String>,
}

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    pub name: String,
    pub kind: EntryKind,
    /// Its size in bytes.
    pub size: u64,
}

/// Type of a folder entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EntryKind {
    File,
    Folder,
    /// Anything else: a link, a device, a socket.
    Other,
}

/// A program on a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct InstalledProgram {
    /// Its path.
    pub path: String,
    /// The SHA-256 of its file, in hexadecimal digits.
    pub sha256: String,
    /// Its version as printed by the program, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}
