//! Describes the transfer of the program to hosts.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use wb_fleet::Transfer;
use wb_model::{Quantity, WorkerName};

/// Minimum interval between two progress lines of a transfer.
const INTERVAL: Duration = Duration::from_secs(2);

struct TransferState {
    start: Instant,
    reported: Instant,
}

#[derive(Default)]
pub(crate) struct TransferReporter(BTreeMap<WorkerName, TransferState>);

impl TransferReporter {
    /// The line to print for a state of the transfer to a host; none shortly after the last one.
    pub(crate) fn line(&mut self, host: &WorkerName, transfer: Transfer) -> Option<String> {
        let now = Instant::now();
        let state = self.0.entry(host.clone()).or_insert(TransferState { start: now, reported: now });
        let is_due = transfer.sent == 0 || transfer.sent == transfer.total || now - state.reported >= INTERVAL;
        is_due.then(|| {
            state.reported = now;
            format_transfer(transfer, now - state.start)
        })
    }
}

fn format_transfer(Transfer { sent, total, size }: Transfer, elapsed: Duration) -> String {
    let bytes = |bytes: u64| Quantity { value: bytes as f64, unit: "B" };
    match sent {
        0 if total < size => format!("sending the program, {} compressed, {} unpacked", bytes(total), bytes(size)),
        0 => format!("sending the program, {}", bytes(total)),
        sent if sent == total => format!("sent the program in {:.1} s", elapsed.as_secs_f64()),
        sent => format!("{} of {} sent", bytes(sent), bytes(total)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfer_progress_is_formatted() {
        let format = |sent: u64, total: u64| {
            format_transfer(Transfer { sent, total, size: 40_000_000 }, Duration::from_millis(1840)).to_string()
        };
        let lines = [
            format(0, 17_000_000),
            format(0, 40_000_000),
            format(5_000_000, 17_000_000),
            format(17_000_000, 17_000_000),
        ];
        insta::assert_snapshot!(lines.join("\n"), @r"
        sending the program, 16.2 MiB compressed, 38.1 MiB unpacked
        sending the program, 38.1 MiB
        4.77 MiB of 16.2 MiB sent
        sent the program in 1.8 s
        ");
    }
}
