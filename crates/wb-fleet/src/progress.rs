//! Progress of sending the program to hosts.

use std::fmt;
use std::sync::Arc;

use wb_model::WorkerName;

/// The program on its way to a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// How much is sent, in bytes.
    pub sent: u64,
    /// How much is to be sent, in bytes.
    pub total: u64,
    /// How much it takes there, in bytes.
    pub size: u64,
}

impl Transfer {
    /// Whether it is compressed on the way.
    pub fn is_compressed(&self) -> bool {
        self.total < self.size
    }
}

type Observer = dyn Fn(&WorkerName, Transfer) + Send + Sync;

/// An observer of transfers, called before the first byte and after each part; none by default.
#[derive(Clone, Default)]
pub struct Progress(Option<Arc<Observer>>);

impl Progress {
    /// Calls this function, which must not block.
    pub fn new(observer: impl Fn(&WorkerName, Transfer) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(observer)))
    }

    pub(crate) fn report(&self, host: &WorkerName, transfer: Transfer) {
        if let Some(observer) = &self.0 {
            observer(host, transfer);
        }
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Progress").field(&self.0.is_some()).finish()
    }
}
