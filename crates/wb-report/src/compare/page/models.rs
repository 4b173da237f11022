//! The models that checks are judged by, and the values that they tolerate.

use wb_compare::comparison::{BuildHistory, ComparisonMethod};
use wb_compare::tolerance::score::ScoreTerm;
use wb_model::pluralize;

use super::display_unit::DisplayUnit;
use super::figures::format_value;
use crate::page::components::{NamedText, named_text};

/// The name of each model's file: its last part, or all of it where another one's is the same.
pub(super) fn model_names(history: &BuildHistory<'_>) -> Vec<String> {
    let files: Vec<_> = history.tolerances.model_files().collect();
    let last = |at: usize| files[at]?.file_name();
    let name = |at: usize| {
        let is_alone = files.iter().enumerate().all(|(other, _)| other == at || last(other) != last(at));
        match (files[at], last(at)) {
            (Some(_), Some(last)) if is_alone => last.to_string_lossy().into_owned(),
            (Some(file), _) => file.display().to_string(),
            (None, _) => format!("model {}", at + 1),
        }
    };
    (0..files.len()).map(name).collect()
}

/// How many checks each model knows.
pub(super) fn model_facts(history: &BuildHistory<'_>) -> Vec<NamedText> {
    let checks = &history.tolerances.checks;
    let mut known = vec![(0, 0); history.tolerances.model_files().len()];
    for (at, check) in checks.iter().enumerate() {
        for model in history.tolerances.limits(at).models {
            known[model].0 += 1;
            known[model].1 += usize::from(check.primary);
        }
    }
    let primary = checks.iter().filter(|check| check.primary).count();
    let files = history.tolerances.model_files().zip(model_names(history));
    let told = |((file, name), (all, of_primary)): ((Option<_>, String), (usize, usize))| {
        let file: Option<&std::path::Path> = file;
        let name = file.map_or(name, |file| file.display().to_string());
        let text =
            format!("{name}, knows {all} of {} ({of_primary} of {primary} primary)", pluralize(checks.len(), "check"));
        named_text("model", text)
    };
    files.zip(known).map(told).collect()
}

/// A part of a score, with the name of its model.
pub(super) fn term_name(term: ScoreTerm, models: &[String]) -> String {
    match term {
        ScoreTerm::Model(at) => models[at].clone(),
        ScoreTerm::ModelRaw(at) => format!("raw against the average of {}", models[at]),
        ScoreTerm::Raw | ScoreTerm::BuildsAverage | ScoreTerm::NOutOfResults => term.to_string(),
    }
}

/// Whether a check is judged by its score in any build.
pub(super) fn is_scored(history: &BuildHistory<'_>, check: usize) -> bool {
    let mut builds = 1..history.builds.list().len();
    builds.any(|build| {
        history.build_check(check, build).is_some_and(|judged| judged.decided_by == ComparisonMethod::Tolerance)
    })
}

/// A range of values: `950 to 1050`.
pub(super) fn format_range((low, high): (f64, f64), measure: &DisplayUnit) -> String {
    format!("{} to {}", format_value(low / measure.divisor), format_value(high / measure.divisor))
}
