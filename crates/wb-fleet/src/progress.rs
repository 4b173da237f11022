use std::fmt;
use std::sync::Arc;

use wb_model::WorkerName;

/// State of the transfer of the program to a host, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    pub sent: u64,
    pub total: u64,
    /// Size of the program on the host, in bytes.
    pub size: u64,
}

impl Transfer {
    pub fn is_compressed(&self) -> bool {
        self.total < self.size
    }
}

type Observer = dyn Fn(&WorkerName, Transfer) + Send + Sync;

/// Observer of transfers, called before the first byte and after each part; none by default.
#[derive(Clone, Default)]
pub struct Progress(Option<Arc<Observer>>);

impl Progress {
    /// Creates an observer from a function, which must not block.
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
