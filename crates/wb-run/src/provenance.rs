//! What may explain a cell's figures: the program, the tools, the machine.

use std::collections::BTreeMap;

use wb_agent::Worker;
use wb_model::{Facts, Requirement};
use wb_plan::{Cell, Plan};
use wb_tests::Registry;

use crate::RunError;

/// Tools that were looked up on a worker, by program.
#[derive(Debug, Default)]
pub struct Tools {
    found: BTreeMap<String, Option<wb_agent::Tool>>,
}

impl Tools {
    /// The provenance of a cell whose test needs these programs.
    pub fn provenance(&self, cell: &Cell, requires: &[Requirement], facts: &Facts) -> BTreeMap<String, String> {
        let mut all = BTreeMap::from([
            ("kernel".to_owned(), facts.kernel.clone()),
            ("boot".to_owned(), facts.boot_id.clone()),
            ("host".to_owned(), facts.hostname.clone()),
            ("emulated".to_owned(), facts.emulated.to_string()),
        ]);
        let needed = requires.iter().map(|need| (need.program.as_str(), file(cell, &need.program)));
        let replaced = cell.programs.iter().map(|(name, file)| (name.as_str(), file.as_str()));
        let all_tools: BTreeMap<&str, &str> = needed.chain(replaced).collect();
        for (program, file) in all_tools {
            let Some(Some(tool)) = self.found.get(file) else { continue };
            let name = program.rsplit('/').next().unwrap_or(program);
            all.insert(format!("{name} path"), tool.path.clone());
            all.insert(format!("{name} sha256"), tool.sha256.clone());
            if let Some(version) = &tool.version {
                all.insert(format!("{name} version"), version.clone());
            }
        }
        all
    }

    /// Looks up a program, unless that was done; whether it is there.
    async fn find(&mut self, file: &str, version: &[String], worker: &Worker) -> Result<bool, RunError> {
        if !self.found.contains_key(file) {
            let version: Vec<&str> = version.iter().map(String::as_str).collect();
            self.found.insert(file.to_owned(), worker.which(file, &version).await?);
        }
        Ok(self.found.get(file).is_some_and(Option::is_some))
    }
}

/// What is called when a cell's test calls a program.
fn file<'a>(cell: &'a Cell, program: &'a str) -> &'a str {
    cell.programs.get(program).map_or(program, String::as_str)
}

/// Looks up what the plan's tests need, and marks the cells whose programs are not there as unsupported.
pub async fn require(plan: &mut Plan, registry: &Registry, worker: &Worker) -> Result<Tools, RunError> {
    let mut tools = Tools::default();
    for cell in &mut plan.cells {
        let Some(test) = registry.test(cell.id.test.as_str()) else { continue };
        for (program, file) in cell.programs.clone() {
            let needed = test.requires(&cell.params).into_iter().find(|need| need.program == program);
            let version = needed.map(|need| need.version).unwrap_or_default();
            if !tools.find(&file, &version, worker).await? && cell.unsupported.is_none() {
                cell.unsupported = Some(format!("there is no program `{file}` on {}", worker.name()));
            }
        }
        for need in test.requires(&cell.params) {
            let file = file(cell, &need.program).to_owned();
            let there = tools.find(&file, &need.version, worker).await?;
            if !there && cell.unsupported.is_none() {
                let way_out = match need.package.as_str() {
                    "" => String::new(),
                    package => format!(": `apt-get install {package}` brings it"),
                };
                cell.unsupported =
                    Some(format!("there is no program `{}` on {}{way_out}", need.program, worker.name()));
            }
        }
    }
    Ok(tools)
}
