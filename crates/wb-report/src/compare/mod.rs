//! Comparisons: what a terminal shows ([`text`]), the page ([`mod@page`]), and files for other programs and people.
//!
//! Start with [`text()`] and [`html`].

mod averages;
mod context;
mod csv;
mod figures;
pub(crate) mod held;
mod junit;
mod lines;
mod markdown;
mod model;
mod noise;
mod page;
mod plots;
mod totals;

pub use csv::{checks as checks_csv, groups as groups_csv};
pub use held::held_text;
pub use junit::junit;
pub use markdown::markdown;
pub use model::model_text;
pub use noise::noise_text;
pub use page::{PageOptions, html};
pub use plots::{Plot, plots};

use wb_compare::outcome::{BuildTold, Method};
use wb_compare::{Outcome, tolerance::averages::AverageRow, tolerance::averages::Distribution};
use wb_model::counted;

use crate::systems::SystemTable;
use crate::text::Style;

/// A table of averages, and over what it is: `case`.
pub type Averages<'a> = (&'a str, Vec<AverageRow<'a>>);

/// The scores of the checks of a verdict, and what that is called: `losses`.
pub type Scores<'a> = (&'a str, Option<Distribution>);

/// Which checks and groups get a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// What got worse or better, is not sure or not there.
    Changes,
    /// All.
    All,
}

/// Which builds, and what decides.
fn head(outcome: &Outcome, asked: &[String], style: Style) -> String {
    let named = |build: &BuildTold| match build.runs.len() {
        1 => build.name.clone(),
        runs => format!("{} ({})", build.name, counted(runs, "run")),
    };
    let [first, between @ .., last] = &outcome.builds[..] else { return String::new() };
    let history = match between.len() {
        0 => String::new(),
        builds => format!(", {} between", counted(builds, "build")),
    };
    let by = match outcome.method {
        Some(Method::Tolerance) => "tolerances decide",
        Some(Method::Statistical) => "statistics decide",
        None => figures::BY_EVIDENCE,
    };
    style.indented(0, &format!("{} → {}{history}; {by}", named(first), named(last)))
        + &style.indented(0, &asked.join("; "))
        + "\n"
}

/// The comparison for a terminal: the builds, what was `asked` of them, errors, the checks and groups that `shown` selects,
/// the averages and the scores, with [`Shown::All`] the systems, what differs in the builds' surroundings, and the totals.
pub fn text(
    outcome: &Outcome,
    asked: &[String],
    averages: &[Averages<'_>],
    scores: &[Scores<'_>],
    shown: Shown,
    style: Style,
) -> String {
    let systems = SystemTable::of_sides(&outcome.builds).filter(|_| shown == Shown::All);
    head(outcome, asked, style)
        + &lines::errors(outcome, style)
        + &lines::checks(outcome, shown, style)
        + &lines::groups(outcome, shown, style)
        + &averages::tables(averages, style)
        + &averages::scores(scores, style)
        + &systems.map_or_else(String::new, |systems| systems.text(style))
        + &totals::totals(outcome, style)
}
