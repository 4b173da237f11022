//! What may explain a cell's figures: the program, the tools, the machine.

use std::collections::BTreeMap;

use wb_agent::Worker;
use wb_model::{Facts, Requirement};
use wb_plan::Plan;
use wb_tests::Registry;

use crate::RunError;

/// Tools that were looked up on a worker, by program.
#[derive(Debug, Default)]
pub struct Tools {
    found: BTreeMap<String, Option<wb_agent::Tool>>,
}

impl Tools {
    /// The provenance of a cell that needs these programs.
    pub fn provenance(&self, requires: &[Requirement], facts: &Facts) -> BTreeMap<String, String> {
        let mut all = BTreeMap::from([
            ("kernel".to_owned(), facts.kernel.clone()),
            ("boot".to_owned(), facts.boot_id.clone()),
            ("host".to_owned(), facts.hostname.clone()),
            ("emulated".to_owned(), facts.emulated.to_string()),
        ]);
        for tool in requires.iter().filter_map(|need| self.found.get(&need.program)?.as_ref()) {
            let name = tool.path.rsplit('/').next().unwrap_or(&tool.path);
            all.insert(format!("{name} path"), tool.path.clone());
            all.insert(format!("{name} sha256"), tool.sha256.clone());
            if let Some(version) = &tool.version {
                all.insert(format!("{name} version"), version.clone());
            }
        }
        all
    }
}

/// Looks up what the plan's tests need, and marks the cells whose programs are not there as unsupported.
pub async fn require(plan: &mut Plan, registry: &Registry, worker: &Worker) -> Result<Tools, RunError> {
    let mut tools = Tools::default();
    for cell in &mut plan.cells {
        let Some(test) = registry.test(cell.id.test.as_str()) else { continue };
        for need in test.requires(&cell.params) {
            if !tools.found.contains_key(&need.program) {
                let version: Vec<&str> = need.version.iter().map(String::as_str).collect();
                tools.found.insert(need.program.clone(), worker.which(&need.program, &version).await?);
            }
            let there = tools.found.get(&need.program).is_some_and(Option::is_some);
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
