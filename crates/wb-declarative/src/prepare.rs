//! Preparation before the samples of a definition, and cleanup after them.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use wb_agent::{Capture, CleanupCommand, Command};
use wb_model::{ParamValue, Params, Sha256};
use wb_test::attempt::check_success;
use wb_test::port;
use wb_test::{Failure, WorkerContext};

use super::definition::{Definition, File, FileContent, Readiness, Service};
use super::params::cpu_and_core_counts;
use super::raw::TargetFolder;
use super::template::{Bindings, Builtin, CommandTemplate};

/// How much later than its output the end of a process may be seen.
const END_AFTER_OUTPUT: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(super) struct Prepared {
    /// Values that do not depend on a sample.
    pub(super) builtins: BTreeMap<Builtin, ParamValue>,
    pub(super) program_hashes: BTreeMap<String, String>,
    pub(super) services: Vec<wb_test::RunningService>,
}

impl Definition {
    pub(super) async fn prepare(&self, params: &Params, context: &WorkerContext) -> Result<Prepared, Failure> {
        let builtins = self.builtins(params, context).await?;
        let bindings = Bindings { params, builtins };
        let cleanup = self.cleanup_commands(&bindings)?;
        if !cleanup.is_empty() {
            context.group.set_cleanup(&cleanup).await?;
        }
        let program_hashes = self.build(&bindings, context).await?;
        for command in &self.setup {
            run_command(context, command, &bindings).await?;
        }
        let mut services = Vec::new();
        for service in &self.services {
            services.push(service.start(context, &bindings).await?);
        }
        Ok(Prepared { builtins: bindings.builtins, program_hashes, services })
    }

    /// Builds the programs without further preparation; returns their hashes.
    pub(super) async fn build_programs(
        &self,
        params: &Params,
        context: &WorkerContext,
    ) -> Result<BTreeMap<String, String>, Failure> {
        if self.built_programs.is_empty() {
            return Ok(BTreeMap::new());
        }
        let builtins = self.builtins(params, context).await?;
        self.build(&Bindings { params, builtins }, context).await
    }

    /// Writes the files and runs the build commands; returns the hashes of the programs.
    async fn build(
        &self,
        bindings: &Bindings<'_>,
        context: &WorkerContext,
    ) -> Result<BTreeMap<String, String>, Failure> {
        let folder = context.group.folder();
        for file in self.files.iter().filter(|file| file.folder == TargetFolder::Scratch) {
            file.write_to(context, folder, bindings).await?;
        }
        for command in &self.build {
            run_command(context, command, bindings).await?;
        }
        let mut program_hashes = BTreeMap::new();
        for program in &self.built_programs {
            let bytes = context.get(&context.path(program)).await?;
            program_hashes.insert(program.clone(), Sha256::digest(&bytes).to_string());
        }
        Ok(program_hashes)
    }

    /// Commands that undo the preparation: those of `cleanup`, and those that stop servers (which end with the context
    /// in any case).
    fn cleanup_commands(&self, bindings: &Bindings<'_>) -> Result<Vec<CleanupCommand>, Failure> {
        let stops = self.services.iter().filter_map(|service| Some((service.stop.as_ref()?, true)));
        let commands = stops.chain(self.cleanup.iter().map(|command| (command, false)));
        commands
            .map(|(command, may_fail)| Ok(CleanupCommand { argv: command.fill(bindings)?, may_fail }))
            .collect::<Result<_, String>>()
            .map_err(Failure::refused)
    }

    /// Runs the cleanup commands, and withdraws each from the agent, which would run it if the controller were killed.
    /// Remaining processes end with the context.
    pub(super) async fn clean_up(
        &self,
        params: &Params,
        prepared: Prepared,
        context: &WorkerContext,
    ) -> Result<(), Failure> {
        let bindings = Bindings { params, builtins: prepared.builtins };
        let commands = self.cleanup_commands(&bindings)?;
        let mut first_failure = None;
        for (index, command) in commands.iter().enumerate() {
            match context.run(Command::new(command.argv.clone()).stdout(Capture::Hash)).await {
                Ok(_) => {}
                // The agent runs the rest.
                Err(failure @ (Failure::Cancelled | Failure::Lost { .. })) => return Err(failure),
                Err(failure) => first_failure = first_failure.or(Some(failure)),
            }
            // Run here rather than by the agent, so that a failure belongs to the sample.
            context.group.set_cleanup(&commands[index + 1..]).await?;
        }
        first_failure.map_or(Ok(()), Err)
    }

    async fn builtins(
        &self,
        params: &Params,
        context: &WorkerContext,
    ) -> Result<BTreeMap<Builtin, ParamValue>, Failure> {
        let (cpus, cores) = cpu_and_core_counts(params, &context.facts);
        let mut builtins = BTreeMap::from([
            (Builtin::Scratch, ParamValue::Text(context.group.folder().to_owned())),
            (Builtin::CpuCount, ParamValue::Integer(cpus as i64)),
            (Builtin::CoreCount, ParamValue::Integer(cores as i64)),
        ]);
        if let Some(folder) = &self.folder {
            builtins.insert(Builtin::DefinitionFolder, ParamValue::Text(folder.clone()));
        }
        if self.needs_port {
            builtins.insert(Builtin::Port, ParamValue::Integer(port::find_free_port(context).await?.into()));
        }
        Ok(builtins)
    }
}

impl File {
    /// Makes the file executable, so that it can be a script.
    pub(super) async fn write_to(
        &self,
        context: &WorkerContext,
        folder: &str,
        bindings: &Bindings<'_>,
    ) -> Result<(), Failure> {
        let path = format!("{folder}/{}", self.name);
        let bytes = match &self.content {
            FileContent::Bytes(bytes) => bytes.clone(),
            FileContent::Template(template) => template.text(bindings).map_err(Failure::refused)?.into_bytes(),
            FileContent::Missing(reason) => {
                return Err(Failure::refused(format!(
                    "missing exact copy of file `{}` in the run: {reason}",
                    self.name
                )));
            }
        };
        context.worker().put(&path, &bytes, 0o700).await.map_err(Failure::from)
    }
}

impl Service {
    async fn start(
        &self,
        context: &WorkerContext,
        bindings: &Bindings<'_>,
    ) -> Result<wb_test::RunningService, Failure> {
        let argv = self.command.fill(bindings).map_err(Failure::refused)?;
        let name = argv.first().cloned().unwrap_or_default();
        let process = context.start_service(context.command(argv)).await?;
        let ready = {
            let mut ready = pin!(self.wait_until_ready(context, &process, &name, bindings));
            tokio::select! {
                ready = &mut ready => ready,
                ended = process.wait(None) => {
                    // A server that goes on in the background ends with success.
                    check_success(&name, &ended?)?;
                    ready.await
                }
            }
        };
        if ready.is_err() {
            // The end of its output is noticed before its own end, which says more.
            if let Ok(ended) = tokio::time::timeout(END_AFTER_OUTPUT, process.wait(None)).await {
                check_success(&name, &ended?)?;
            }
        }
        ready.map(|()| process)
    }

    async fn wait_until_ready(
        &self,
        context: &WorkerContext,
        process: &wb_test::RunningService,
        name: &str,
        bindings: &Bindings<'_>,
    ) -> Result<(), Failure> {
        match &self.ready {
            Readiness::Line(stream, pattern) => {
                let line = process.wait_for_line(*stream, self.limit, |line| pattern.is_match(line));
                let line = context.until_cancelled(line).await??;
                line.map(drop).ok_or_else(|| {
                    Failure::crashed(format!("{name} exited, or not ready within {}: no line `{pattern}`", self.limit))
                })
            }
            Readiness::Port(port) => {
                let port = port.text(bindings).map_err(Failure::refused)?;
                let number = port.parse().map_err(|_| Failure::refused(format!("invalid port number `{port}`")))?;
                port::wait_for_listener(context, name, number, self.limit).await
            }
            Readiness::Command(command) => {
                let argv = command.fill(bindings).map_err(Failure::refused)?;
                let succeeds = || async { context.run(Command::new(argv.clone())).await.ok().map(drop) };
                context.poll_until(name, self.limit, succeeds).await
            }
        }
    }
}

async fn run_command(
    context: &WorkerContext,
    command: &CommandTemplate,
    bindings: &Bindings<'_>,
) -> Result<(), Failure> {
    let argv = command.fill(bindings).map_err(Failure::refused)?;
    // The output is not used and may be large; its end is available after a failure.
    context.run(Command::new(argv).stdout(Capture::Hash)).await.map(drop)
}
