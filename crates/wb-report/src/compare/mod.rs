//! Renders comparisons for the terminal ([`text`]), as a page ([`mod@page`]), and in other file formats.
//!
//! Start with [`text()`] and [`html`].

mod averages;
mod change_size;
mod context;
mod csv;
pub(crate) mod experiment;
mod failures;
mod figures;
mod findings;
mod headline;
mod junit;
mod lines;
mod markdown;
mod model;
mod noise;
mod page;
mod parts;
mod plots;
mod short_names;
mod threshold_range;
mod totals;
mod wording;

pub use csv::{ComparisonCsv, csv};
pub use experiment::experiment_text;
pub use headline::headline;
pub use junit::junit;
pub use markdown::markdown;
pub use model::model_text;
pub use noise::noise_text;
pub use page::{PageOptions, html};
pub use plots::{Plot, plots};
pub use threshold_range::format_threshold;

use wb_compare::run_perf::tolerance::averages::{Distribution, SummaryRow};
use wb_model::pluralize;
use wb_results::comparison::{BuildSummary, ComparisonResult};

use crate::systems::SystemTable;
use crate::text::Style;

/// A table of averages with the name of its grouping, such as `case`.
pub type AveragesTable<'a> = (&'a str, Vec<SummaryRow<'a>>);

/// The distribution of the scores of a verdict's checks, with its name, such as `regressed`.
pub type ScoreDistribution<'a> = (&'a str, Option<Distribution>);

/// Selection of checks and groups to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verbosity {
    /// Checks and groups that are better or worse, inconclusive or missing.
    Changes,
    All,
}

fn header(outcome: &ComparisonResult, options: &[String], style: Style) -> String {
    let named = |build: &BuildSummary| match build.runs.len() {
        1 => build.name.clone(),
        runs => format!("{} ({})", build.name, pluralize(runs, "run")),
    };
    let [first, between @ .., last] = &outcome.builds[..] else { return String::new() };
    let history = match between.len() {
        0 => String::new(),
        builds => format!(", {} between", pluralize(builds, "build")),
    };
    let by = figures::describe_method(outcome);
    style.sentence(&headline(outcome))
        + "\n"
        + &style.indent(0, &format!("{} → {}{history}; {by}", named(first), named(last)))
        + &style.indent(0, &options.join("; "))
        + "\n"
}

/// Renders a comparison for a terminal: the builds, the requested `options`, errors, the checks and groups selected by
/// `verbosity`, averages and scores, with [`Verbosity::All`] the systems, other differences between the builds, and the
/// totals.
pub fn text(
    outcome: &ComparisonResult,
    options: &[String],
    averages: &[AveragesTable<'_>],
    scores: &[ScoreDistribution<'_>],
    verbosity: Verbosity,
    style: Style,
) -> String {
    let systems = SystemTable::of_sides(&outcome.builds).filter(|_| verbosity == Verbosity::All);
    // Different parts of one run have no common average.
    let averages = if outcome.within_run.is_some() { &[] } else { averages };
    let tables = averages::render_averages(averages, style) + &averages::render_scores(scores, style);
    let excluded = if tables.is_empty() { String::new() } else { averages::render_excluded(outcome, averages, style) };
    header(outcome, options, style)
        + &lines::error_lines(outcome, style)
        + &lines::check_lines(outcome, verbosity, style)
        + &lines::group_lines(outcome, verbosity, style)
        + &figures::unmatched_note(outcome).map_or_else(String::new, |note| style.remark("note", &note))
        + &figures::secondary_note(outcome).map_or_else(String::new, |note| style.remark("note", &note))
        + &lines::finding_lines(outcome, style)
        + &tables
        + &excluded
        + &systems.map_or_else(String::new, |systems| systems.text(style))
        + &totals::render_totals(outcome, style)
}
