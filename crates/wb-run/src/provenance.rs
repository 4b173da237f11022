//! Provenance of a cell's figures: programs, tools, machine.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use wb_agent::{Command, Worker, WorkerError};
use wb_knobs::tune::{KnobRefusal, KnobSetting};
use wb_model::{ProgramFeature, Requirement, WorkerName, merge_workers};
use wb_plan::{Cell, Plan};
use wb_test::TestCell;

use crate::RunError;
use crate::worker_pool::{PooledWorker, WorkerPool};

#[derive(Debug, Default)]
pub struct ToolInventory {
    found: BTreeMap<(WorkerName, String), Option<wb_agent::InstalledProgram>>,
    /// Whether programs have a feature, by worker, file and name of the feature.
    features: BTreeMap<(WorkerName, String, String), bool>,
}

impl ToolInventory {
    /// Returns the provenance of a cell whose test requires these programs. Values that differ between workers have
    /// `@WORKER` in their names.
    pub fn provenance(&self, cell: &Cell, requires: &[Requirement], pool: &WorkerPool) -> BTreeMap<String, String> {
        let members: Vec<&PooledWorker> = pool.of(cell).collect();
        let each: Vec<(&WorkerName, BTreeMap<String, String>)> = members
            .iter()
            .map(|member| (member.worker.name(), self.worker_provenance(member, cell, requires)))
            .collect();
        merge_workers(each.iter().map(|(worker, values)| (*worker, values)))
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
        let required = requires.iter().map(|need| (need.program.as_str(), program_file(cell, &need.program)));
        let replaced = cell.programs.iter().map(|(name, file)| (name.as_str(), file.as_str()));
        let all_tools: BTreeMap<&str, &str> = required.chain(replaced).collect();
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

    /// Looks up a program, with caching; returns whether it exists.
    async fn find(&mut self, file: &str, version: &[String], worker: &Worker) -> Result<bool, RunError> {
        let key = (worker.name().clone(), file.to_owned());
        if !self.found.contains_key(&key) {
            let version: Vec<&str> = version.iter().map(String::as_str).collect();
            self.found.insert(key.clone(), worker.which(file, &version).await?);
        }
        Ok(self.found.get(&key).is_some_and(Option::is_some))
    }

    async fn has_feature(&mut self, file: &str, feature: &ProgramFeature, worker: &Worker) -> Result<bool, RunError> {
        let key = (worker.name().clone(), file.to_owned(), feature.name.clone());
        if let Some(is_supported) = self.features.get(&key) {
            return Ok(*is_supported);
        }
        let argv = [file].into_iter().chain(feature.arguments.iter().map(String::as_str));
        let is_supported = worker.succeeds(Command::new(argv).inherit(&feature.inherit)).await?;
        self.features.insert(key, is_supported);
        Ok(is_supported)
    }
}

/// Returns the file that runs when a cell's test calls a program: the program or its replacement.
fn program_file<'a>(cell: &'a Cell, program: &'a str) -> &'a str {
    cell.programs.get(program).map_or(program, String::as_str)
}

/// Looks up the programs that the plan's tests require. Marks a cell as unsupported if a program of it is missing, a
/// knob of it cannot be set, or its worker is lost meanwhile. `test_cells` are the cells of the plan, in its order.
/// Fails if no host offers the value of a knob: it is misspelt. What guests offer is known only once they run, when the
/// earlier profiles may be measured already; their cells are marked instead.
pub async fn check_requirements(
    plan: &mut Plan,
    test_cells: &[Box<dyn TestCell>],
    pool: &WorkerPool,
) -> Result<ToolInventory, RunError> {
    let mut tools = ToolInventory::default();
    let mut offers = KnobOffers::default();
    for (cell, test_cell) in plan.cells.iter_mut().zip(test_cells) {
        let members: Vec<PooledWorker> = pool.of(cell).cloned().collect();
        for PooledWorker { worker, console, .. } in members {
            let knobs = &test_cell.shared_params().knobs;
            let checked = async {
                let missing = tools.missing_program(cell, &test_cell.requires(), &worker).await?;
                let refused = if knobs.is_empty() { Vec::new() } else { worker.check_knobs(knobs.clone()).await? };
                Ok((missing, refused))
            };
            let (missing, refused) = match checked.await {
                Err(RunError::Worker(lost @ WorkerError::Lost { .. })) => (Some(lost.to_string()), Vec::new()),
                other => other?,
            };
            if console.is_none() {
                offers.add(knobs, &refused, worker.name());
            }
            let refused = refused.first();
            let unsettable = refused.map(|(setting, KnobRefusal { reason, .. })| {
                format!("cannot set the knob `{}` on {}: {reason}", setting.key(), worker.name())
            });
            cell.unsupported = cell.unsupported.take().or(missing).or(unsettable);
        }
    }
    offers.check().map(|()| tools)
}

/// Which values of knobs the hosts offer.
#[derive(Default)]
struct KnobOffers {
    /// The host that was queried first and its reason, by setting; none if a host may accept the value.
    unknown: BTreeMap<KnobSetting, Option<(WorkerName, String)>>,
}

impl KnobOffers {
    fn add(&mut self, knobs: &[KnobSetting], refused: &[(KnobSetting, KnobRefusal)], host: &WorkerName) {
        for setting in knobs {
            let refusal = refused.iter().find(|(refused, refusal)| refused == setting && refusal.is_unknown_value);
            let reason = refusal.map(|(_, refusal)| (host.clone(), refusal.reason.clone()));
            match self.unknown.entry(setting.clone()) {
                Entry::Vacant(entry) => drop(entry.insert(reason)),
                Entry::Occupied(mut entry) if reason.is_none() => drop(entry.insert(None)),
                Entry::Occupied(_) => {}
            }
        }
    }

    fn check(self) -> Result<(), RunError> {
        match self.unknown.into_iter().find_map(|(setting, refusal)| Some((setting.key(), refusal?))) {
            Some((knob, (host, reason))) => Err(RunError::UnknownKnobValue { knob, host, reason }),
            None => Ok(()),
        }
    }
}

impl ToolInventory {
    /// Returns the first program of a cell that is missing on a worker, with the package that contains it. All programs
    /// are looked up.
    async fn missing_program(
        &mut self,
        cell: &Cell,
        requires: &[Requirement],
        worker: &Worker,
    ) -> Result<Option<String>, RunError> {
        let mut missing = None;
        for (program, file) in &cell.programs {
            let requirement = requires.iter().find(|need| need.program == *program);
            let version = requirement.map(|need| need.version.as_slice()).unwrap_or_default();
            if !self.find(file, version, worker).await? {
                missing.get_or_insert_with(|| format!("no such program on {}: `{file}`", worker.name()));
            }
        }
        for need in requires {
            if !self.find(program_file(cell, &need.program), &need.version, worker).await? {
                let help = match need.package.as_str() {
                    "" => String::new(),
                    // A path: the package of the file is unknown.
                    package if package.contains('/') => String::new(),
                    package => format!("; `apt-get install {package}` installs it"),
                };
                missing
                    .get_or_insert_with(|| format!("no such program on {}: `{}`{help}", worker.name(), need.program));
            } else if let Some(feature) = &need.feature
                && !self.has_feature(program_file(cell, &need.program), feature, worker).await?
            {
                missing.get_or_insert_with(|| {
                    format!("`{}` on {} lacks {}: {}", need.program, worker.name(), feature.name, feature.source)
                });
            }
        }
        Ok(missing)
    }
}
