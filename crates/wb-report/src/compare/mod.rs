//! Comparisons: what a terminal shows ([`text`]), the page ([`mod@page`]), and files for other programs and people.
//!
//! Start with [`text()`] and [`html`].

mod averages;
mod context;
mod csv;
pub(crate) mod experiment;
mod figures;
mod junit;
mod lines;
mod markdown;
mod model;
mod noise;
mod page;
mod plots;
mod totals;

pub use csv::{checks as checks_csv, groups as groups_csv};
pub use experiment::experiment_text;
pub use junit::junit;
pub use markdown::markdown;
pub use model::model_text;
pub use noise::noise_text;
pub use page::{PageOptions, html};
pub use plots::{Plot, plots};

use wb_compare::comparison::{BuildSummary, ComparisonMethod};
use wb_compare::{ComparisonResult, tolerance::averages::AverageRow, tolerance::averages::Distribution};
use wb_model::pluralize;

use crate::systems::SystemTable;
use crate::text::Style;

/// A table of averages, and over what it is: `case`.
pub type AveragesTable<'a> = (&'a str, Vec<AverageRow<'a>>);

/// The scores of the checks of a verdict, and what that is called: `losses`.
pub type ScoreDistribution<'a> = (&'a str, Option<Distribution>);

/// Which checks and groups get a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verbosity {
    /// What got worse or better, is not sure or not there.
    Changes,
    /// All.
    All,
}

/// Which builds, and what decides.
fn header(outcome: &ComparisonResult, asked: &[String], style: Style) -> String {
    let named = |build: &BuildSummary| match build.runs.len() {
        1 => build.name.clone(),
        runs => format!("{} ({})", build.name, pluralize(runs, "run")),
    };
    let [first, between @ .., last] = &outcome.builds[..] else { return String::new() };
    let history = match between.len() {
        0 => String::new(),
        builds => format!(", {} between", pluralize(builds, "build")),
    };
    let by = match outcome.method {
        Some(ComparisonMethod::Tolerance) => "tolerances decide",
        Some(ComparisonMethod::Statistical) => "statistics decide",
        None => figures::DEFAULT_METHOD_RULE,
    };
    style.indent(0, &format!("{} → {}{history}; {by}", named(first), named(last)))
        + &style.indent(0, &asked.join("; "))
        + "\n"
}

/// The comparison for a terminal: the builds, what was `asked` of them, errors, the checks and groups that `shown` selects,
/// the averages and the scores, with [`Shown::All`] the systems, what differs in the builds' surroundings, and the totals.
pub fn text(
    outcome: &ComparisonResult,
    asked: &[String],
    averages: &[AveragesTable<'_>],
    scores: &[ScoreDistribution<'_>],
    shown: Verbosity,
    style: Style,
) -> String {
    let systems = SystemTable::of_sides(&outcome.builds).filter(|_| shown == Verbosity::All);
    header(outcome, asked, style)
        + &lines::error_lines(outcome, style)
        + &lines::check_lines(outcome, shown, style)
        + &lines::group_lines(outcome, shown, style)
        + &averages::render_averages(averages, style)
        + &averages::render_scores(scores, style)
        + &systems.map_or_else(String::new, |systems| systems.text(style))
        + &totals::render_totals(outcome, style)
}
