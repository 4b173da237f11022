//! What a definition makes ready for its samples, and takes down after them.

use std::collections::BTreeMap;

use wb_agent::{Capture, Command};
use wb_model::{ParamValue, Params, Sha256};

use super::definition::{Definition, File, FileContent, Readiness, Service};
use super::params::cpu_and_core_counts;
use super::port;
use super::raw::TargetFolder;
use super::template::{Bindings, Builtin, CommandTemplate};
use crate::attempt::worker_failure;
use crate::{Failure, WorkerContext};

/// What was made ready.
#[derive(Debug)]
pub(super) struct Prepared {
    /// What placeholders stand for that a sample does not decide.
    pub(super) builtins: BTreeMap<Builtin, ParamValue>,
    /// The hashes of the programs that were built.
    pub(super) program_hashes: BTreeMap<String, String>,
    /// The servers that run.
    pub(super) services: Vec<crate::RunningService>,
}

impl Definition {
    /// Writes the files, builds, sets up and starts the servers.
    pub(super) async fn prepare(&self, params: &Params, site: &WorkerContext) -> Result<Prepared, Failure> {
        let builtins = self.builtins(params, site).await?;
        let bindings = Bindings { params, builtins };
        let built = self.build(&bindings, site).await?;
        for command in &self.setup {
            run_command(site, command, &bindings).await?;
        }
        let mut services = Vec::new();
        for service in &self.services {
            services.push(service.start(site, &bindings).await?);
        }
        Ok(Prepared { builtins: bindings.builtins, program_hashes: built, services })
    }

    /// Builds, and nothing else; the hashes of the programs.
    pub(super) async fn build_programs(
        &self,
        params: &Params,
        site: &WorkerContext,
    ) -> Result<BTreeMap<String, String>, Failure> {
        if self.built_programs.is_empty() {
            return Ok(BTreeMap::new());
        }
        let builtins = self.builtins(params, site).await?;
        self.build(&Bindings { params, builtins }, site).await
    }

    /// Writes the files and builds; the hashes of the programs.
    async fn build(&self, bindings: &Bindings<'_>, site: &WorkerContext) -> Result<BTreeMap<String, String>, Failure> {
        let folder = site.group.folder();
        for file in self.files.iter().filter(|file| file.folder == TargetFolder::Scratch) {
            file.write_to(site, folder, bindings).await?;
        }
        for command in &self.build {
            run_command(site, command, bindings).await?;
        }
        let mut built = BTreeMap::new();
        for program in &self.built_programs {
            let bytes = site.get(&site.path(program)).await?;
            built.insert(program.clone(), Sha256::of(&bytes).to_string());
        }
        Ok(built)
    }

    /// Stops the servers that know how to be stopped, and cleans up; whatever still runs ends with the site.
    pub(super) async fn clean_up(
        &self,
        params: &Params,
        prepared: Prepared,
        site: &WorkerContext,
    ) -> Result<(), Failure> {
        let bindings = Bindings { params, builtins: prepared.builtins };
        let stops = self.services.iter().filter_map(|service| service.stop.as_ref());
        for command in stops.chain(&self.cleanup) {
            run_command(site, command, &bindings).await?;
        }
        Ok(())
    }

    async fn builtins(&self, params: &Params, site: &WorkerContext) -> Result<BTreeMap<Builtin, ParamValue>, Failure> {
        let (cpus, cores) = cpu_and_core_counts(params, &site.facts);
        let mut builtins = BTreeMap::from([
            (Builtin::Scratch, ParamValue::Text(site.group.folder().to_owned())),
            (Builtin::CpuCount, ParamValue::Integer(cpus as i64)),
            (Builtin::CoreCount, ParamValue::Integer(cores as i64)),
        ]);
        if let Some(folder) = &self.folder {
            builtins.insert(Builtin::Here, ParamValue::Text(folder.clone()));
        }
        if self.needs_port {
            builtins.insert(Builtin::Port, ParamValue::Integer(port::find_free_port(site).await?.into()));
        }
        Ok(builtins)
    }
}

impl File {
    /// Writes it into a folder of the worker. It may be run, so that a script can be a file.
    pub(super) async fn write_to(
        &self,
        site: &WorkerContext,
        folder: &str,
        bindings: &Bindings<'_>,
    ) -> Result<(), Failure> {
        let path = format!("{folder}/{}", self.name);
        let bytes = match &self.content {
            FileContent::Bytes(bytes) => bytes.clone(),
            FileContent::Template(template) => template.text(bindings).map_err(Failure::refused)?.into_bytes(),
            FileContent::Missing(why) => {
                return Err(Failure::refused(format!("the run has no exact copy of the file `{}`: {why}", self.name)));
            }
        };
        site.worker().put(&path, &bytes, 0o700).await.map_err(worker_failure)
    }
}

impl Service {
    async fn start(&self, site: &WorkerContext, bindings: &Bindings<'_>) -> Result<crate::RunningService, Failure> {
        let argv = self.command.fill(bindings).map_err(Failure::refused)?;
        let name = argv.first().cloned().unwrap_or_default();
        let process = site.start_service(site.command(argv)).await?;
        match &self.ready {
            Readiness::Line(stream, pattern) => {
                let line = process.wait_for_line(*stream, self.limit, |line| pattern.is_match(line));
                let line = site.until_cancelled(line).await?.map_err(worker_failure)?;
                line.ok_or_else(|| {
                    Failure::crashed(format!(
                        "{name} ended, or was not ready after {}: no line `{pattern}`",
                        self.limit
                    ))
                })?;
            }
            Readiness::Port(port) => {
                let port = port.text(bindings).map_err(Failure::refused)?;
                let number =
                    port.parse().map_err(|_| Failure::refused(format!("`{port}` is not the number of a port")))?;
                port::wait_for_listener(site, &name, number, self.limit).await?;
            }
            Readiness::Command(command) => {
                let argv = command.fill(bindings).map_err(Failure::refused)?;
                let succeeds = || async { site.run(Command::new(argv.clone())).await.ok().map(drop) };
                site.poll_until(&name, self.limit, succeeds).await?;
            }
        }
        Ok(process)
    }
}

async fn run_command(site: &WorkerContext, command: &CommandTemplate, bindings: &Bindings<'_>) -> Result<(), Failure> {
    let argv = command.fill(bindings).map_err(Failure::refused)?;
    // Nobody reads what it writes, and there may be much of it; its last words are there if it fails.
    site.run(Command::new(argv).stdout(Capture::Hash)).await.map(drop)
}
