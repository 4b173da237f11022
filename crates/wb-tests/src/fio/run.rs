//! Running fio, and what can keep it from running.

use wb_agent::Command;
use wb_model::ProgramFeature;

use super::job::HISTOGRAM_LOG_PREFIX;
use crate::attempt::worker_failure;
use crate::{Attempt, Failure, WorkerContext};

/// Under this name fio's output is kept.
pub const OUTPUT_NAME: &str = "fio";
/// Under this name the job file is kept.
pub const JOB_FILE: &str = "fio.job";

/// Under this name it is kept how much memory was available.
pub const MEMORY_FILE: &str = "memory.json";

/// Keeps how much memory the worker had for a page cache when the run was planned.
pub fn record_memory(attempt: &mut Attempt) -> Result<(), Failure> {
    let json = serde_json::to_vec(&attempt.context.facts.memory_available);
    attempt.add_artefact(MEMORY_FILE, json.map_err(|error| Failure::crashed(error.to_string()))?);
    Ok(())
}

/// Runs a job file. It, fio's report, and the logs are kept.
pub async fn run(attempt: &mut Attempt, job_file: &str, ioengine: &str) -> Result<(), Failure> {
    attempt.add_artefact(JOB_FILE, job_file);
    let path = attempt.context.path(JOB_FILE);
    attempt.context.put(&path, job_file.as_bytes()).await?;
    let command = attempt.context.command(["fio", "--output-format=json+", "--eta=never", &path]);
    attempt.run(OUTPUT_NAME, command).await.map_err(|failure| refuse_denied_engine(failure, ioengine))?;
    let folder = attempt.context.group.folder().to_owned();
    for entry in attempt.context.worker().list(&folder).await.map_err(worker_failure)? {
        if entry.name.starts_with(&format!("{HISTOGRAM_LOG_PREFIX}_clat_hist.")) {
            let log = attempt.context.get(&format!("{folder}/{}", entry.name)).await?;
            attempt.add_artefact(&entry.name, log);
        }
    }
    attempt.record_work(1);
    Ok(())
}

/// Runs a program of the user's before a sample, if there is one.
pub async fn run_pre_iteration_script(attempt: &mut Attempt, program: &str) -> Result<(), Failure> {
    if program.is_empty() {
        return Ok(());
    }
    let said = attempt.context.run(Command::new([program])).await?;
    attempt.add_artefact("pre-iteration-script.stdout", said);
    Ok(())
}

/// The ability to drive an engine that distributions often leave out, one with options of its own.
pub(crate) fn engine_ability(ioengine: &str) -> ProgramFeature {
    ProgramFeature {
        name: format!("the ioengine `{ioengine}`"),
        // Succeeds only for an engine that is there and has options.
        arguments: vec![format!("--enghelp={ioengine}")],
        source: engine_hint(ioengine).unwrap_or_default().to_owned(),
    }
}

/// Refuses an engine that this fio does not have, or this kernel does not allow.
pub async fn check_engine(site: &WorkerContext, ioengine: &str) -> Result<(), Failure> {
    if !has_engine(site, ioengine).await? {
        let listed = list_engines(site).await?;
        let source = engine_hint(ioengine).map(|source| format!("; {source}")).unwrap_or_default();
        let reason = format!("this fio has no ioengine `{ioengine}`: it has {}{source}", listed.join(", "));
        return Err(Failure::refused(reason));
    }
    if ioengine.starts_with("io_uring") {
        const SWITCH: &str = "/proc/sys/kernel/io_uring_disabled";
        // Kernels before 6.6 have no such switch.
        let switch = site.get(SWITCH).await.unwrap_or_default();
        if switch.trim_ascii() == b"2" {
            let reason = format!("{SWITCH} is 2, nobody may use io_uring here: set it to 0, or use ioengine=libaio");
            return Err(Failure::refused(reason));
        }
    }
    Ok(())
}

/// How to get a fio with an engine that distributions often leave out.
fn engine_hint(ioengine: &str) -> Option<&'static str> {
    match ioengine {
        "nbd" => Some("a fio that was built with libnbd (Debian's package libnbd-dev) has it"),
        "libblkio" => Some("a fio from 3.34 on that was built with libblkio (Debian's package libblkio-dev) has it"),
        _ => None,
    }
}

/// Whether this fio has it: it is listed, or fio finds it when asked, as it does `external:PATH`. The status of
/// `--enghelp=NAME` alone says nothing: it is 1 for an engine without options, too.
async fn has_engine(site: &WorkerContext, ioengine: &str) -> Result<bool, Failure> {
    if list_engines(site).await?.iter().any(|engine| engine == ioengine) {
        return Ok(true);
    }
    let asked = site.run_to_end(Command::new(["fio", &format!("--enghelp={ioengine}")])).await?;
    Ok(asked.ending.is_success())
}

async fn list_engines(site: &WorkerContext) -> Result<Vec<String>, Failure> {
    let listed = site.run(Command::new(["fio", "--enghelp"])).await?;
    Ok(String::from_utf8_lossy(&listed).lines().skip(1).flat_map(str::split_whitespace).map(str::to_owned).collect())
}

/// An engine that the kernel denies is no crash of fio's.
fn refuse_denied_engine(failure: Failure, ioengine: &str) -> Failure {
    match failure {
        Failure::Crashed { status } if ioengine.starts_with("io_uring") && is_denial(&status) => {
            Failure::refused(format!("the kernel denies io_uring ({status}): allow it, or use ioengine=libaio"))
        }
        other => other,
    }
}

fn is_denial(status: &str) -> bool {
    ["Operation not permitted", "Function not implemented", "Permission denied"]
        .iter()
        .any(|error| status.contains(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_that_is_denied_is_refused() {
        let status = "fio: exit status 1: fio: pid=7, err=1/file:engines/io_uring.c:1, func=io_queue_init, error=Operation not permitted";
        assert!(matches!(refuse_denied_engine(Failure::crashed(status), "io_uring"), Failure::Refused { .. }));
        assert!(matches!(refuse_denied_engine(Failure::crashed(status), "libaio"), Failure::Crashed { .. }));
        assert!(matches!(
            refuse_denied_engine(Failure::crashed("fio: exit status 1: out of memory"), "io_uring"),
            Failure::Crashed { .. }
        ));
    }
}
