//! The messages of a new process to the one that launches it, over a socket that keeps their boundaries.

/// Descriptor of the starter's end of the socket.
pub(crate) const SOCKET: i32 = 3;
/// What the launching process sends to release the new one.
pub(crate) const RELEASE: [u8; 1] = *b"g";
/// Size of an encoded message in bytes.
pub(crate) const MESSAGE_SIZE: usize = 16;
/// Exit status of a process that does not execute its program, as in shells.
pub(crate) const EXIT_NOT_EXECUTED: i32 = 127;

/// A setup step that a new process performs before it executes the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum LaunchStep {
    /// Start the starter.
    Starter = 1,
    /// Create the process.
    Process,
    /// Leave the terminal and the process group.
    Session,
    /// Set the parent-death signal.
    ParentDeath,
    /// Join the cgroups.
    Cgroup,
    /// Bind memory to nodes.
    MemoryNodes,
    /// Bind to CPUs.
    Cpus,
    /// Disable transparent huge pages.
    HugePages,
    /// Disable address randomisation.
    Aslr,
    /// Connect the standard streams.
    Streams,
    /// Enter the working folder.
    Folder,
    /// Wait to be released.
    Gate,
    /// Execute the program.
    Program,
}

/// A message of a new process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Message {
    /// It exists, with this process id.
    Created(u32),
    /// It is set up and waits to be released.
    Held,
    /// It executes its program at this time, by CLOCK_MONOTONIC in nanoseconds.
    Started(u64),
    /// A step failed, with this errno.
    Failed(u32, u32),
}

impl Message {
    /// Encodes it: its kind, the step of a failure, and its value.
    pub(crate) fn encode(self) -> [u8; MESSAGE_SIZE] {
        let (kind, step, value) = match self {
            Self::Created(pid) => (1, 0, pid as u64),
            Self::Held => (2, 0, 0),
            Self::Started(ns) => (3, 0, ns),
            Self::Failed(step, errno) => (4, step, errno as u64),
        };
        ((kind as u128) | ((step as u128) << 32) | ((value as u128) << 64)).to_ne_bytes()
    }

    /// Decodes it; none if no process sends that.
    pub(crate) fn decode(bytes: [u8; MESSAGE_SIZE]) -> Option<Self> {
        let number = u128::from_ne_bytes(bytes);
        let (kind, step, value) = (number as u32, (number >> 32) as u32, (number >> 64) as u64);
        match kind {
            1 => Some(Self::Created(value as u32)),
            2 => Some(Self::Held),
            3 => Some(Self::Started(value)),
            4 => Some(Self::Failed(step, value as u32)),
            _ => None,
        }
    }
}
