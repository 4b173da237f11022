//! Describes the models used for checks and their tolerated values.

use wb_compare::comparison::{BuildCheck, BuildHistory};
use wb_compare::run_perf::tolerance::score::ScoreTerm;
use wb_model::pluralize;
use wb_results::comparison::ComparisonMethod;

use super::check_table::CheckTable;
use super::display_unit::DisplayUnit;
use super::figures::format_value;
use crate::page::components::{NamedText, named_text};

/// The name of each model's file: its last component, or the whole path if another model has the same name.
pub(super) fn model_names(history: &BuildHistory<'_>) -> Vec<String> {
    let files: Vec<_> = history.tolerances.model_files().collect();
    let last = |index: usize| files[index]?.file_name();
    let name = |index: usize| {
        let is_unique = files.iter().enumerate().all(|(other, _)| other == index || last(other) != last(index));
        match (files[index], last(index)) {
            (Some(_), Some(last)) if is_unique => last.to_string_lossy().into_owned(),
            (Some(file), _) => file.display().to_string(),
            (None, _) => format!("model {}", index + 1),
        }
    };
    (0..files.len()).map(name).collect()
}

pub(super) fn model_facts(history: &BuildHistory<'_>) -> Vec<NamedText> {
    let checks = &history.tolerances.checks;
    let mut counts = vec![(0, 0); history.tolerances.model_files().len()];
    for (index, check) in checks.iter().enumerate() {
        for model in history.tolerances.limits(index).models {
            counts[model].0 += 1;
            counts[model].1 += usize::from(check.primary);
        }
    }
    let primary = checks.iter().filter(|check| check.primary).count();
    let files = history.tolerances.model_files().zip(model_names(history));
    let describe = |((file, name), (all, of_primary)): ((Option<_>, String), (usize, usize))| {
        let file: Option<&std::path::Path> = file;
        let name = file.map_or(name, |file| file.display().to_string());
        let text =
            format!("{name}, covers {all} of {} ({of_primary} of {primary} primary)", pluralize(checks.len(), "check"));
        named_text("model", text)
    };
    files.zip(counts).map(describe).collect()
}

pub(super) fn term_name(term: ScoreTerm, models: &[String]) -> String {
    match term {
        ScoreTerm::Model(index) => models[index].clone(),
        ScoreTerm::ModelRaw(index) => format!("raw against the average of {}", models[index]),
        ScoreTerm::Raw | ScoreTerm::BuildsAverage | ScoreTerm::NOutOfResults => term.to_string(),
    }
}

pub(super) fn is_scored(table: &CheckTable<'_>, row: usize) -> bool {
    let is_scored = |judged: BuildCheck<'_>| judged.decided_by == ComparisonMethod::Tolerance;
    table.judged().any(|column| table.result(row, column).is_some_and(is_scored))
}

pub(super) fn format_range((low, high): (f64, f64), measure: &DisplayUnit) -> String {
    format!("{} to {}", format_value(low / measure.divisor), format_value(high / measure.divisor))
}
