//! What is told while a run goes: a line per interval.

use std::{
    collections::BTreeMap,
    io::Write,
    time::{Duration, Instant},
};

use wb_net::{
    engine::{raw::RawTime, work::Progress},
    language::Profile,
    session::coordinate::Observer,
};

use super::super::print_text;

/// Tells of progress and keeps response times.
pub(super) struct Live<'a> {
    profile: &'a Profile,
    shown: bool,
    began: Instant,
    last: BTreeMap<Option<String>, Progress>,
    raw: Option<&'a mut dyn Write>,
    /// What went wrong when response times were written.
    pub(super) failed: Option<std::io::Error>,
}

impl<'a> Live<'a> {
    /// Shows lines only if they are wanted.
    pub(super) fn new(profile: &'a Profile, shown: bool, raw: Option<&'a mut dyn Write>) -> Self {
        Self { profile, shown, began: Instant::now(), last: BTreeMap::new(), raw, failed: None }
    }
}

impl Observer for Live<'_> {
    fn progress(&mut self, host: Option<&str>, progress: Progress) {
        let before = self.last.insert(host.map(str::to_owned), progress).unwrap_or_default();
        let (true, None) = (self.shown && before.at > 0, host) else { return };
        let seconds = (progress.at - before.at) as f64 / 1e9;
        let rate = |now: u64, before: u64| (now - before) as f64 * 8.0 / seconds / 1e9;
        let line = format!(
            "{:>8.1} s  sent {:>8.3} Gbit/s  received {:>8.3} Gbit/s  {:>10.0} operations/s\n",
            self.began.elapsed().as_secs_f64(),
            rate(progress.sent, before.sent),
            rate(progress.received, before.received),
            (progress.operations - before.operations) as f64 / seconds,
        );
        // Whoever has stopped reading does not stop the run.
        let _: Result<(), _> = print_text(&line);
    }

    fn transaction(&mut self, _: usize, _: usize) {}

    fn raw(&mut self, times: &[RawTime]) {
        let Some(file) = &mut self.raw else { return };
        for time in times {
            let group = &self.profile.groups[time.group as usize];
            let mut flowops = group.transactions.iter().flat_map(|transaction| &transaction.flowops);
            let name = flowops.nth(time.place as usize).map_or("", |flowop| flowop.name.as_str());
            let line = writeln!(file, "{} {} {} {name} {}", time.at, group.name, time.strand, time.took);
            if let Err(error) = line {
                self.failed.get_or_insert(error);
            }
        }
    }
}

/// As a duration.
pub(super) fn duration(nanos: wb_model::Nanos) -> Duration {
    Duration::from_nanos(nanos.0)
}
