//! Progress output of a run: a progress bar on a terminal, plain lines elsewhere.

use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};
use wb_model::{AttemptPurpose, CellId, pluralize, unescape_lossy};
use wb_run::Progress;

use crate::console::{Console, clean};
use crate::format::{format_duration, format_estimate, group_by_reason, with_unestimated};

const BAR_STEPS: u64 = 1000;

pub(crate) struct ProgressReporter {
    bar: Option<ProgressBar>,
    quiet: bool,
    folder: PathBuf,
    cells_done: usize,
    cells: usize,
}

impl ProgressReporter {
    pub(crate) fn new(console: &Console, folder: &Path) -> Self {
        let bar = console.animate.then(|| {
            let style =
                ProgressStyle::with_template("{bar:20} {wide_msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::new(BAR_STEPS).with_style(style)
        });
        Self { bar, quiet: console.quiet, folder: folder.to_owned(), cells_done: 0, cells: 0 }
    }

    pub(crate) fn report(&mut self, progress: &Progress) {
        match progress {
            Progress::Started { cells, complete, unsupported, duration, unestimated } => {
                self.cells = *cells;
                self.print_unless_quiet(&format!("recording in {}", self.folder.display()));
                let done = if *complete > 0 { format!(", {complete} already complete") } else { String::new() };
                let remaining = match (*cells, with_unestimated(format_estimate(*duration), *unestimated)) {
                    (0, _) => "nothing to measure".to_owned(),
                    (_, None) => format!("{} to measure{done}", pluralize(*cells, "cell")),
                    (_, Some(time)) => format!("{} to measure{done}; {time}", pluralize(*cells, "cell")),
                };
                self.print_unless_quiet(&remaining);
                let unsupported =
                    unsupported.iter().map(|(cell, reason)| (cell_name(cell), format!("unsupported: {reason}")));
                group_by_reason(unsupported).iter().for_each(|line| self.print_unless_quiet(line));
            }
            Progress::Note(note) => self.print_unless_quiet(note),
            Progress::Warning(message) => self.print(&format!("warning: {message}")),
            Progress::AttemptStarted { cell, purpose, sample, min_samples, cell_seconds, seconds } => {
                let step = match purpose {
                    AttemptPurpose::WarmUp => "warm-up".to_owned(),
                    AttemptPurpose::Sample => {
                        format!("{sample} of at least {} taken", pluralize(*min_samples, "sample"))
                    }
                };
                if let Some(bar) = &self.bar {
                    let elapsed = bar.elapsed().as_secs_f64();
                    let share = elapsed / (elapsed + seconds).max(f64::MIN_POSITIVE);
                    bar.set_position((share * BAR_STEPS as f64) as u64);
                    let (total, of_cell) = (format_duration(*seconds), format_duration(*cell_seconds));
                    bar.set_message(format!(
                        "{total} left, {}/{} cells done · {step}, {of_cell} left · {}",
                        self.cells_done,
                        self.cells,
                        // Last, as a long one is cut off.
                        clean(&cell_name(cell))
                    ));
                }
            }
            Progress::AttemptEnded { cell, purpose, sample, outcome, invalid, value, disturbances } => {
                if !outcome.is_completed() {
                    self.print_unless_quiet(&format!("{}: {outcome}", cell_name(cell)));
                } else if let Some(invalid) = invalid {
                    self.print_unless_quiet(&format!("{}: {invalid}", cell_name(cell)));
                } else if *purpose == AttemptPurpose::Sample && self.bar.is_none() {
                    let figure = value.as_ref().map(|(metric, value)| metric.unit.quantity(*value).to_string());
                    let disturbed = if disturbances.is_empty() { "" } else { ", disturbed" };
                    self.print_unless_quiet(&format!(
                        "{}: sample {sample}: {}{disturbed}",
                        cell_name(cell),
                        figure.unwrap_or_default()
                    ));
                }
            }
            Progress::CellEnded { cell, reason } => {
                self.cells_done += 1;
                self.print_unless_quiet(&format!("{}: done: {reason}", cell_name(cell)));
            }
        }
    }

    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn print_unless_quiet(&self, text: &str) {
        if !self.quiet {
            self.print(text);
        }
    }

    /// Prints a line above the progress bar.
    fn print(&self, text: &str) {
        match &self.bar {
            Some(bar) => {
                let text = clean(text);
                bar.println(&text);
                crate::console::write_log(&text);
            }
            None => crate::console::message!("{text}"),
        }
    }
}

pub(crate) fn cell_name(cell: &CellId) -> String {
    unescape_lossy(&cell.to_string())
}
