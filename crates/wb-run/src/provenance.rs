//! What may explain a cell's figures: the program, the tools, the machine.

use std::collections::BTreeMap;

use wb_agent::{Worker, WorkerError};
use wb_model::{ProgramFeature, Requirement, WorkerName};
use wb_plan::{Cell, Plan};
use wb_tests::Registry;
use wb_tests::test::requested_knobs;

use crate::RunError;
use crate::worker_pool::{PooledWorker, WorkerPool};

/// Tools that were looked up on workers, by program.
#[derive(Debug, Default)]
pub struct ToolInventory {
    found: BTreeMap<(WorkerName, String), Option<wb_agent::InstalledProgram>>,
    /// Whether they have an ability, by worker, file and the ability's name.
    features: BTreeMap<(WorkerName, String, String), bool>,
}

impl ToolInventory {
    /// The provenance of a cell whose test needs these programs. What is not the same on all of several workers has the
    /// worker's name after an `@`.
    pub fn provenance(&self, cell: &Cell, requires: &[Requirement], crew: &WorkerPool) -> BTreeMap<String, String> {
        let members: Vec<&PooledWorker> = crew.of(cell).collect();
        let each: Vec<(&WorkerName, BTreeMap<String, String>)> = members
            .iter()
            .map(|member| (member.worker.name(), self.worker_provenance(member, cell, requires)))
            .collect();
        let [(_, first), ..] = &each[..] else { return BTreeMap::new() };
        let mut all: BTreeMap<String, String> = BTreeMap::new();
        for (worker, its) in &each {
            for (name, value) in its {
                let same =
                    first.get(name) == Some(value) && each.iter().all(|(_, other)| other.get(name) == Some(value));
                all.insert(if same { name.clone() } else { format!("{name}@{worker}") }, value.clone());
            }
        }
        all
    }

    fn worker_provenance(
        &self,
        PooledWorker { worker, facts, .. }: &PooledWorker,
        cell: &Cell,
        requires: &[Requirement],
    ) -> BTreeMap<String, String> {
        let mut all = BTreeMap::from([
            ("kernel".to_owned(), facts.kernel.clone()),
            ("boot".to_owned(), facts.boot_id.clone()),
            ("host".to_owned(), facts.hostname.clone()),
            ("emulated".to_owned(), facts.emulated.to_string()),
        ]);
        let needed = requires.iter().map(|need| (need.program.as_str(), program_file(cell, &need.program)));
        let replaced = cell.programs.iter().map(|(name, file)| (name.as_str(), file.as_str()));
        let all_tools: BTreeMap<&str, &str> = needed.chain(replaced).collect();
        for (program, file) in all_tools {
            let Some(Some(tool)) = self.found.get(&(worker.name().clone(), file.to_owned())) else { continue };
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
        let key = (worker.name().clone(), file.to_owned());
        if !self.found.contains_key(&key) {
            let version: Vec<&str> = version.iter().map(String::as_str).collect();
            self.found.insert(key.clone(), worker.which(file, &version).await?);
        }
        Ok(self.found.get(&key).is_some_and(Option::is_some))
    }

    /// Tries whether a program has an ability, unless that was done.
    async fn has_feature(&mut self, file: &str, ability: &ProgramFeature, worker: &Worker) -> Result<bool, RunError> {
        let key = (worker.name().clone(), file.to_owned(), ability.name.clone());
        if let Some(able) = self.features.get(&key) {
            return Ok(*able);
        }
        let arguments: Vec<&str> = ability.arguments.iter().map(String::as_str).collect();
        let able = worker.succeeds(file, &arguments).await?;
        self.features.insert(key, able);
        Ok(able)
    }
}

/// What is called when a cell's test calls a program.
fn program_file<'a>(cell: &'a Cell, program: &'a str) -> &'a str {
    cell.programs.get(program).map_or(program, String::as_str)
}

/// Looks up what the plan's tests need, and marks the cells whose programs are not there, or whose knobs cannot be set,
/// as unsupported, as are those with a worker that is lost meanwhile.
pub async fn check_requirements(
    plan: &mut Plan,
    registry: &Registry,
    crew: &WorkerPool,
) -> Result<ToolInventory, RunError> {
    let mut tools = ToolInventory::default();
    for cell in &mut plan.cells {
        let Some(test) = registry.test(cell.id.test.as_str()) else { continue };
        let requires = test.requires(&cell.params);
        let workers: Vec<Worker> = crew.of(cell).map(|member| member.worker.clone()).collect();
        for worker in workers {
            let reason = match tools.unsupported_reason(cell, &requires, &worker).await {
                Err(RunError::Worker(lost @ WorkerError::Lost { .. })) => Some(lost.to_string()),
                other => other?,
            };
            cell.unsupported = cell.unsupported.take().or(reason);
        }
    }
    Ok(tools)
}

/// The first knob of a cell that cannot be set on a worker, and why.
async fn find_unsettable_knob(cell: &Cell, worker: &Worker) -> Result<Option<String>, RunError> {
    let knobs = requested_knobs(&cell.params);
    if knobs.is_empty() {
        return Ok(None);
    }
    let refused = worker.check_knobs(knobs).await?.into_iter().next();
    Ok(refused.map(|(knob, why)| format!("the knob `{knob}` cannot be set so on {}: {why}", worker.name())))
}

impl ToolInventory {
    /// Why a cell cannot be measured on a worker.
    async fn unsupported_reason(
        &mut self,
        cell: &Cell,
        requires: &[Requirement],
        worker: &Worker,
    ) -> Result<Option<String>, RunError> {
        let missing = self.missing_program(cell, requires, worker).await?;
        Ok(missing.or(find_unsettable_knob(cell, worker).await?))
    }

    /// The first program of a cell that is not on a worker, and what brings it. All of them are looked up.
    async fn missing_program(
        &mut self,
        cell: &Cell,
        requires: &[Requirement],
        worker: &Worker,
    ) -> Result<Option<String>, RunError> {
        let mut missing = None;
        for (program, file) in &cell.programs {
            let needed = requires.iter().find(|need| need.program == *program);
            let version = needed.map(|need| need.version.as_slice()).unwrap_or_default();
            if !self.find(file, version, worker).await? {
                missing.get_or_insert_with(|| format!("there is no program `{file}` on {}", worker.name()));
            }
        }
        for need in requires {
            if !self.find(program_file(cell, &need.program), &need.version, worker).await? {
                let way_out = match need.package.as_str() {
                    "" => String::new(),
                    // A path: its file is of no package that is known.
                    package if package.contains('/') => String::new(),
                    package => format!(": `apt-get install {package}` brings it"),
                };
                missing.get_or_insert_with(|| {
                    format!("there is no program `{}` on {}{way_out}", need.program, worker.name())
                });
            } else if let Some(ability) = &need.feature
                && !self.has_feature(program_file(cell, &need.program), ability, worker).await?
            {
                missing.get_or_insert_with(|| {
                    format!("`{}` on {} lacks {}: {}", need.program, worker.name(), ability.name, ability.source)
                });
            }
        }
        Ok(missing)
    }
}
