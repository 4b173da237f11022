//! Progress as a person wants it: one moving line on a terminal, plain lines elsewhere.

use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};
use wb_model::{CellId, Purpose, counted, unescaped};
use wb_run::Progress;

use crate::commands::{estimate, group_by_reason, lasting};
use crate::console::Console;

/// Whoever tells the user how a run goes on.
pub(crate) struct Watcher {
    bar: Option<ProgressBar>,
    quiet: bool,
    folder: PathBuf,
    begun: bool,
    ended: usize,
    cells: usize,
}

impl Watcher {
    /// A watcher for a run in this folder.
    pub(crate) fn new(console: &Console, folder: &Path) -> Self {
        let bar = console.animate.then(|| {
            let style =
                ProgressStyle::with_template("{bar:20} {wide_msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::new(1000).with_style(style)
        });
        Self { bar, quiet: console.quiet, folder: folder.to_owned(), begun: false, ended: 0, cells: 0 }
    }

    /// Whether the run got as far as measuring.
    pub(crate) fn begun(&self) -> bool {
        self.begun
    }

    /// Tells one thing.
    pub(crate) fn tell(&mut self, progress: &Progress) {
        match progress {
            Progress::Started { cells, complete, unsupported, duration } => {
                self.cells = *cells;
                self.begun = true;
                self.line(&format!("recording in {}", self.folder.display()));
                let already = if *complete > 0 { format!(", {complete} complete already") } else { String::new() };
                let left = match (*cells, estimate(*duration)) {
                    (0, _) => "nothing to measure".to_owned(),
                    (_, None) => format!("{} to measure{already}", counted(*cells, "cell")),
                    (_, Some(time)) => format!("{} to measure{already}; {time}", counted(*cells, "cell")),
                };
                self.line(&left);
                let unsupported =
                    unsupported.iter().map(|(cell, reason)| (name(cell), format!("unsupported: {reason}")));
                group_by_reason(unsupported).iter().for_each(|line| self.line(line));
            }
            Progress::Noted(note) => self.line(note),
            Progress::Warned(what) => self.print(&format!("warning: {what}")),
            Progress::AttemptStarted { cell, purpose, sample, wanted, cell_seconds, seconds } => {
                let what = match purpose {
                    Purpose::WarmUp => "warm-up".to_owned(),
                    Purpose::Sample => format!("sample {sample}, at least {wanted} wanted"),
                };
                if let Some(bar) = &self.bar {
                    let gone = bar.elapsed().as_secs_f64();
                    bar.set_position((1000.0 * gone / (gone + seconds).max(f64::MIN_POSITIVE)) as u64);
                    let (all, own) = (lasting(*seconds), lasting(*cell_seconds));
                    bar.set_message(format!(
                        "{all} left, {}/{} cells done · {}: {what}, {own} left",
                        self.ended,
                        self.cells,
                        name(cell)
                    ));
                }
            }
            Progress::AttemptEnded { cell, purpose, sample, outcome, invalid, value, disturbances } => {
                if !outcome.is_completed() {
                    self.line(&format!("{}: {outcome}", name(cell)));
                } else if let Some(invalid) = invalid {
                    self.line(&format!("{}: {invalid}", name(cell)));
                } else if *purpose == Purpose::Sample && self.bar.is_none() {
                    let figure = value.as_ref().map(|(metric, value)| metric.unit.figure(*value).to_string());
                    let disturbed = if disturbances.is_empty() { "" } else { ", disturbed" };
                    self.line(&format!("{}: sample {sample}: {}{disturbed}", name(cell), figure.unwrap_or_default()));
                }
            }
            Progress::CellEnded { cell, by } => {
                self.ended += 1;
                self.line(&format!("{}: done: {by}", name(cell)));
            }
        }
    }

    /// Takes the moving line away.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn line(&self, text: &str) {
        if !self.quiet {
            self.print(text);
        }
    }

    /// Prints a line above the moving one.
    fn print(&self, text: &str) {
        match &self.bar {
            Some(bar) => {
                bar.println(text);
                crate::console::write_log(text);
            }
            None => crate::console::tell!("{text}"),
        }
    }
}

/// A cell as people read it.
fn name(cell: &CellId) -> String {
    unescaped(&cell.to_string())
}
