//! Tables of systems: the machines of a run, or the two sides of a comparison.

use serde::Serialize;
use wb_model::System;
use wb_results::Study;
use wb_results::comparison::BuildSummary;

use crate::text::{Style, definition_list};

#[derive(Serialize)]
pub(crate) struct SystemTable {
    caption: &'static str,
    columns: Vec<String>,
    rows: Vec<PropertyRow>,
}

#[derive(Serialize)]
struct PropertyRow {
    name: String,
    /// By column; a single one if it is the same in all.
    values: Vec<Option<String>>,
}

impl SystemTable {
    /// The table of a run's machines; `None` without any property.
    pub(crate) fn of_run(study: &Study) -> Option<Self> {
        let systems = &study.run.systems;
        Self::new("hardware and software", systems.iter().map(|system| (system.host.clone(), system)).collect())
    }

    pub(crate) fn of_sides(builds: &[BuildSummary]) -> Option<Self> {
        let [first, .., last] = builds else { return None };
        let columns = [first, last].into_iter().flat_map(|build| {
            let systems = distinct_systems(build);
            let is_one = systems.len() == 1;
            let name = |system: &System| {
                if is_one || system.host.is_empty() {
                    build.name.clone()
                } else {
                    format!("{}: {}", build.name, system.host)
                }
            };
            systems.into_iter().map(|system| (name(system), system)).collect::<Vec<_>>()
        });
        Self::new("hardware and software of the first build and the last", columns.collect())
    }

    fn new(caption: &'static str, columns: Vec<(String, &System)>) -> Option<Self> {
        // The order of properties follows the longest list.
        let mut lists: Vec<&[(String, String)]> = columns.iter().map(|(_, system)| &system.properties[..]).collect();
        lists.sort_by_key(|properties| std::cmp::Reverse(properties.len()));
        let mut names: Vec<&String> = Vec::new();
        for (name, _) in lists.into_iter().flatten() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let row = |name: &&String| {
            let mut texts: Vec<Option<String>> =
                columns.iter().map(|(_, system)| system.get(name).map(str::to_owned)).collect();
            texts.dedup();
            // Without adjacent duplicates, a single value remains only if it is the same in all.
            if texts.len() > 1 {
                texts = columns.iter().map(|(_, system)| system.get(name).map(str::to_owned)).collect();
            }
            PropertyRow { name: (*name).clone(), values: texts }
        };
        let rows: Vec<PropertyRow> = names.iter().map(row).collect();
        (!rows.is_empty()).then(|| Self { caption, columns: columns.into_iter().map(|(name, _)| name).collect(), rows })
    }

    /// Renders equal values once, differing ones by column.
    pub(crate) fn text(&self, style: Style) -> String {
        let text = |row: &PropertyRow| match &row.values[..] {
            [common] => common.clone().unwrap_or_default(),
            texts => {
                let or_unknown = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
                texts.iter().map(or_unknown).collect::<Vec<_>>().join(" → ")
            }
        };
        let pairs: Vec<(&str, String)> = self.rows.iter().map(|row| (row.name.as_str(), text(row))).collect();
        style.heading("systems") + &definition_list(pairs, style)
    }
}

fn distinct_systems(build: &BuildSummary) -> Vec<&System> {
    let mut systems: Vec<&System> = Vec::new();
    for system in build.runs.iter().flat_map(|run| &run.systems) {
        if !systems.contains(&system) {
            systems.push(system);
        }
    }
    systems
}

pub(crate) fn system_text(system: &System, style: Style) -> String {
    let title = format!("system {}", system.host);
    let pairs = system.properties.iter().map(|(name, text)| (name.as_str(), text.clone()));
    style.heading(title.trim_end()).trim_start().to_owned() + &definition_list(pairs, style)
}

#[cfg(test)]
mod tests {
    use wb_results::comparison::RunSummary;

    use super::*;

    fn system(host: &str, properties: &[(&str, &str)]) -> System {
        let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        System { host: host.to_owned(), properties: properties.iter().map(owned).collect() }
    }

    fn build(name: &str, systems: &[System]) -> BuildSummary {
        let run = |system: &System| RunSummary { systems: vec![system.clone()], ..RunSummary::default() };
        BuildSummary { name: name.to_owned(), runs: systems.iter().map(run).collect(), errors: vec![], samples: None }
    }

    #[test]
    fn equal_properties_of_both_sides_are_shown_once() {
        let old = system("anvil", &[("processor", "EPYC"), ("kernel", "6.1"), ("governor", "powersave")]);
        let new = system("anvil", &[("processor", "EPYC"), ("kernel", "6.2"), ("compiler", "gcc 12")]);
        let table = SystemTable::of_sides(&[build("old", &[old.clone(), old]), build("new", &[new])]).unwrap();
        assert_eq!(table.columns, ["old", "new"]);
        let plain = Style { width: 80, colour: false, is_terminal: true };
        insta::assert_snapshot!(table.text(plain), @r"

        systems
          processor  EPYC
          kernel     6.1 → 6.2
          governor   powersave → unknown
          compiler   unknown → gcc 12
        ");
    }

    #[test]
    fn each_machine_of_a_side_has_a_column() {
        let (one, other) = (system("anvil", &[("memory", "1 GiB")]), system("sledge", &[("memory", "2 GiB")]));
        let table = SystemTable::of_sides(&[build("old", &[one.clone(), other]), build("new", &[one])]).unwrap();
        assert_eq!(table.columns, ["old: anvil", "old: sledge", "new"]);
        let texts: Vec<Option<&str>> = table.rows[0].values.iter().map(Option::as_deref).collect();
        assert_eq!(texts, [Some("1 GiB"), Some("2 GiB"), Some("1 GiB")]);
        assert!(SystemTable::of_sides(&[build("old", &[]), build("new", &[])]).is_none());
    }
}
