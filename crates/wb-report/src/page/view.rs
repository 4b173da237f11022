//! What the template of a run's page is given.

use std::collections::BTreeMap;

use serde::Serialize;
use wb_study::result::Study;

use super::Extras;
use super::group::GroupView;
use super::held::HeldView;
use super::pieces::{Fact, Ids, Pair, pair};
use crate::groups::groups;
use crate::links::{self, BASES, Link};
use crate::systems::SystemTable;
use crate::words;

/// The page.
#[derive(Serialize)]
pub(super) struct Page {
    title: String,
    tally: String,
    facts: Vec<Fact>,
    machine: Vec<Pair>,
    held: Option<HeldView>,
    groups: Vec<GroupView>,
    systems: Option<SystemTable>,
    findings: Vec<Pair>,
    answers: Vec<AnswerView>,
    changes: Vec<ChangeView>,
    provenance: Vec<Pair>,
    commands: Vec<Pair>,
}

#[derive(Serialize)]
struct AnswerView {
    name: String,
    figure: String,
    because: String,
}

#[derive(Serialize)]
struct ChangeView {
    path: String,
    before: Option<String>,
    after: Option<String>,
}

impl Page {
    pub(super) fn new(study: &Study, extras: &Extras) -> Self {
        let common = common_provenance(study);
        let mut ids = Ids::default();
        let groups = groups(study);
        let views = groups.iter().enumerate().map(|(at, group)| GroupView::new(group, at, extras, &common, &mut ids));
        Self {
            title: study.run.name.clone(),
            tally: words::tally(study),
            facts: facts(study),
            machine: study.run.machine.iter().map(|(name, text)| pair(name, text)).collect(),
            held: extras.held.as_ref().map(HeldView::new),
            groups: views.collect(),
            systems: SystemTable::of_run(study),
            findings: findings(study),
            answers: answers(study),
            changes: changes(study),
            provenance: common.iter().map(|(name, text)| pair(*name, *text)).collect(),
            commands: extras.reproduce.iter().map(|command| pair(&command.what, &command.line)).collect(),
        }
    }
}

fn facts(study: &Study) -> Vec<Fact> {
    let run = &study.run;
    let fact = |name: &str, text: Vec<Link>| Fact { name: name.to_owned(), text };
    let share = words::workload_share(study).map(|share| format!(", {share}")).unwrap_or_default();
    let said = |name: &str| run.metadata.get(name).map(String::as_str);
    let mut facts = vec![
        fact("plan", vec![Link::none(&run.plan)]),
        fact("started", vec![Link::none(run.started.replace('T', " ").replace('Z', " UTC"))]),
        fact("took", vec![Link::none(format!("{}{share}", words::duration(run.seconds)))]),
        fact("weighbridge", vec![Link::none(&run.version)]),
    ];
    let base = BASES.into_iter().find_map(said);
    let machine = |name: &String| Link::to(name, base.map(|base| links::machine(base, name)).as_deref());
    if base.is_some() || run.machines.len() > 1 {
        facts.push(fact("machine", run.machines.iter().map(machine).collect()));
    }
    // Where it can be seen is where its build leads.
    let elsewhere = |name: &str| BASES.contains(&name) || (name == "url" && said("build").is_some());
    for (name, text) in run.metadata.iter().filter(|(name, _)| !elsewhere(name)) {
        let to = match name.as_str() {
            "build" => said("url"),
            "url" => Some(text.as_str()),
            _ => None,
        };
        facts.push(fact(name, vec![Link::to(text, to)]));
    }
    facts
}

fn findings(study: &Study) -> Vec<Pair> {
    let of = |cell: &wb_study::result::CellResult| {
        let name = words::cell_name(&cell.cell);
        cell.findings.iter().map(move |finding| pair(name.clone(), finding)).collect::<Vec<_>>()
    };
    study.cells.iter().flat_map(of).collect()
}

fn answers(study: &Study) -> Vec<AnswerView> {
    let view = |answer: &wb_study::result::Conclusion| AnswerView {
        name: format!("{} {}", answer.test, answer.name),
        figure: answer.unit.figure(answer.value).to_string(),
        because: answer.because.clone(),
    };
    study.answers.iter().map(view).collect()
}

fn changes(study: &Study) -> Vec<ChangeView> {
    let view = |change: &wb_study::result::EnvironmentChange| ChangeView {
        path: change.place(),
        before: change.before.clone(),
        after: change.after.clone(),
    };
    study.changes.iter().map(view).collect()
}

/// What is the same in every cell that says it, and is said by more than one.
fn common_provenance(study: &Study) -> BTreeMap<&str, &str> {
    let mut said: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, text) in study.cells.iter().flat_map(|cell| &cell.provenance) {
        said.entry(name).or_default().push(text);
    }
    let agreed = said.into_iter().filter(|(_, texts)| texts.len() > 1 && texts.iter().all(|text| *text == texts[0]));
    agreed.map(|(name, texts)| (name, texts[0])).collect()
}
