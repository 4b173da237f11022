//! The data for the template of a run's page.

use std::collections::BTreeMap;

use serde::Serialize;
use wb_results::{CellResult, Study};

use super::RunExtras;
use super::components::{IdGenerator, NamedLinks, NamedText, named_text};
use super::experiment::ExperimentView;
use super::group::GroupView;
use crate::findings::group_findings;
use crate::groups::group_cells;
use crate::links::{self, BASE_URL_KEYS, Hyperlink};
use crate::phrasing;
use crate::systems::SystemTable;

/// Number of cells from which the page has only a row for each: a page with charts and details takes ten times as much.
const MANY_CELLS: usize = 1000;

/// Number of values of samples from which the page has charts of the first primary metric alone: each value is drawn up
/// to four times.
const MANY_VALUES: usize = 8000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    Full,
    FewCharts,
    /// Only a row in the overview.
    Rows,
}

#[derive(Serialize)]
pub(super) struct RunPage {
    title: String,
    tally: String,
    /// How to see what the page leaves out because there is too much.
    omission: Option<String>,
    facts: Vec<NamedLinks>,
    machine: Vec<NamedText>,
    experiment: Option<ExperimentView>,
    groups: Vec<GroupView>,
    systems: Option<SystemTable>,
    findings: Vec<NamedText>,
    solutions: Vec<SolutionView>,
    changes: Vec<ChangeView>,
    provenance: Vec<NamedText>,
    commands: Vec<NamedText>,
}

#[derive(Serialize)]
struct SolutionView {
    name: String,
    figure: String,
    explanation: String,
}

#[derive(Serialize)]
struct ChangeView {
    path: String,
    before: Option<String>,
    after: Option<String>,
}

impl Detail {
    fn new(study: &Study) -> Self {
        let values = |cell: &CellResult| cell.metrics.len() * (cell.attempts.len() + cell.series_count());
        let values: usize = study.cells.iter().map(values).sum();
        if study.cells.len() > MANY_CELLS {
            Self::Rows
        } else if values > MANY_VALUES {
            Self::FewCharts
        } else {
            Self::Full
        }
    }

    fn omission(self, study: &Study) -> Option<String> {
        match self {
            Self::Full => None,
            Self::FewCharts => Some(
                "Charts of one metric alone, since there are many samples: `report --select NAME` shows those \
                      of all metrics of some cells."
                    .to_owned(),
            ),
            Self::Rows => {
                let cells = study.cells.len();
                Some(format!(
                    "One row each, since there are {cells} cells: `report --select NAME` shows all of some of them."
                ))
            }
        }
    }
}

impl RunPage {
    pub(super) fn new(study: &Study, extras: &RunExtras) -> Self {
        let common = common_provenance(study);
        let mut ids = IdGenerator::default();
        let groups = group_cells(study);
        let detail = Detail::new(study);
        let views = groups
            .iter()
            .enumerate()
            .map(|(index, group)| GroupView::new(group, index, extras, &common, detail, &mut ids));
        Self {
            omission: detail.omission(study),
            title: study.run.name.clone(),
            tally: [Some(phrasing::outcome_counts(study)), phrasing::describe_failures(&phrasing::all_failures(study))]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join("; "),
            facts: run_facts(study),
            machine: study.run.properties.iter().map(|(name, text)| named_text(name, text)).collect(),
            experiment: extras.experiment.as_ref().map(ExperimentView::new),
            groups: views.collect(),
            systems: SystemTable::of_run(study),
            findings: findings(study),
            solutions: answers(study),
            changes: changes(study),
            provenance: common.iter().map(|(name, text)| named_text(*name, *text)).collect(),
            commands: extras.commands.iter().map(|command| named_text(&command.purpose, &command.line)).collect(),
        }
    }
}

fn run_facts(study: &Study) -> Vec<NamedLinks> {
    let run = &study.run;
    let fact = |name: &str, text: Vec<Hyperlink>| NamedLinks { name: name.to_owned(), text };
    let metadata = |name: &str| run.metadata.get(name).map(String::as_str);
    let started = vec![Hyperlink::plain(run.started.replace('T', " ").replace('Z', " UTC"))];
    let mut facts = vec![fact("plan", vec![Hyperlink::plain(&run.plan)])];
    if phrasing::is_import(study) {
        facts.push(fact("imported at", started))
    } else {
        facts.extend([
            fact("started", started),
            fact("took", vec![Hyperlink::plain(phrasing::describe_duration(study))]),
        ])
    }
    let imports = phrasing::describe_imports(study);
    facts.extend(imports.iter().map(|line| {
        let (name, text) = line.split_once(" from ").unwrap_or(("imported", line));
        fact(name, vec![Hyperlink::plain(text)])
    }));
    facts.push(fact("weighbridge", vec![Hyperlink::plain(&run.version)]));
    if let Some(reason) = &run.unmeasured {
        facts.push(fact("nothing is measured", vec![Hyperlink::plain(reason)]));
    }
    let base = BASE_URL_KEYS.into_iter().find_map(metadata);
    let machine = |name: &String| Hyperlink::new(name, base.map(|base| links::machine_url(base, name)).as_deref());
    if base.is_some() || run.machines.len() > 1 {
        facts.push(fact("machine", run.machines.iter().map(machine).collect()));
    }
    // The URL of the run is shown as the link of its build.
    let is_hidden = |name: &str| BASE_URL_KEYS.contains(&name) || (name == "url" && metadata("build").is_some());
    for (name, text) in run.metadata.iter().filter(|(name, _)| !is_hidden(name)) {
        let to = match name.as_str() {
            "build" => metadata("url"),
            "url" => Some(text.as_str()),
            _ => None,
        };
        facts.push(fact(name, vec![Hyperlink::new(text, to)]));
    }
    facts.extend(run.checksum_note().map(|note| fact("journal", vec![Hyperlink::plain(note)])));
    facts
}

fn findings(study: &Study) -> Vec<NamedText> {
    group_findings(&study.cells).into_iter().map(|group| named_text(group.cells, group.text)).collect()
}

fn answers(study: &Study) -> Vec<SolutionView> {
    let view = |answer: &wb_results::Conclusion| SolutionView {
        name: format!("{} {}", answer.cells, answer.name),
        figure: phrasing::format_conclusion(answer),
        explanation: answer.explanation.clone(),
    };
    study.conclusions.iter().map(view).collect()
}

fn changes(study: &Study) -> Vec<ChangeView> {
    let view = |change: &wb_results::EnvironmentChange| ChangeView {
        path: change.path_with_worker(),
        before: change.before.clone(),
        after: change.after.clone(),
    };
    study.environment_changes.iter().map(view).collect()
}

/// Provenance that several cells have and that is the same in all of them.
fn common_provenance(study: &Study) -> BTreeMap<&str, &str> {
    let mut values: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, text) in study.cells.iter().flat_map(|cell| &cell.provenance) {
        values.entry(name).or_default().push(text);
    }
    let common = values.into_iter().filter(|(_, texts)| texts.len() > 1 && texts.iter().all(|text| *text == texts[0]));
    common.map(|(name, texts)| (name, texts[0])).collect()
}
