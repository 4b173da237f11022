//! Bytes that the kernel counted on the interfaces of a worker: a witness that does not depend on the endpoints.

use serde::{Deserialize, Serialize};
use wb_test::{Attempt, Failure, WorkerContext};

/// Bytes on all interfaces of a network namespace, since they exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct InterfaceBytes {
    pub(super) received: u64,
    pub(super) sent: u64,
}

/// What the kernel counted while a dialer ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Traffic {
    pub(super) before: InterfaceBytes,
    pub(super) after: InterfaceBytes,
    /// Whether both sides are on this worker: then each byte leaves it and arrives, whoever sent it.
    #[serde(default)]
    pub(super) is_loopback: bool,
}

impl InterfaceBytes {
    pub(super) async fn read(context: &WorkerContext) -> Result<Self, Failure> {
        let table = context.get("/proc/net/dev").await?;
        Ok(Self::parse(&String::from_utf8_lossy(&table)))
    }

    /// Sums the columns of bytes in the text of `/proc/net/dev`.
    fn parse(table: &str) -> Self {
        let mut sum = Self::default();
        for line in table.lines() {
            let Some((_, figures)) = line.split_once(':') else { continue };
            let figures: Vec<u64> = figures.split_whitespace().map_while(|figure| figure.parse().ok()).collect();
            if let [received, _, _, _, _, _, _, _, sent, ..] = figures[..] {
                sum.received = sum.received.wrapping_add(received);
                sum.sent = sum.sent.wrapping_add(sent);
            }
        }
        sum
    }
}

impl Traffic {
    pub(super) async fn since(before: InterfaceBytes, attempt: &Attempt) -> Result<Self, Failure> {
        let after = InterfaceBytes::read(&attempt.context).await?;
        let is_loopback = attempt.context.server(0).worker().name() == attempt.context.worker().name();
        Ok(Self { before, after, is_loopback })
    }

    /// Bytes that left the worker meanwhile, with everything else that ran on it.
    pub(super) fn sent(&self) -> u64 {
        self.after.sent.wrapping_sub(self.before.sent)
    }

    pub(super) fn received(&self) -> u64 {
        self.after.received.wrapping_sub(self.before.received)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn all_interfaces_are_summed() {
        let table = "Inter-|   Receive  |  Transmit\n face |bytes packets errs\n    \
            lo: 100 1 0 0 0 0 0 0 100 1 0 0 0 0 0 0\n  eth0: 7 1 0 0 0 0 0 0 30 1 0 0 0 0 0 0\n";
        assert_eq!(InterfaceBytes::parse(table), InterfaceBytes { received: 107, sent: 130 });
    }

    proptest! {
        #[test]
        fn no_table_panics(table: String) {
            let _ = InterfaceBytes::parse(&table);
        }
    }
}
