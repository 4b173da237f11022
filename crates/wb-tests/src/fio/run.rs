//! Running fio, and what can keep it from running.

use wb_agent::Command;
use wb_model::Ability;

use super::job::HISTOGRAMS;
use crate::attempt::lost;
use crate::{Attempt, Failure, Site};

/// Under this name fio's output is kept.
pub const NAME: &str = "fio";
/// Under this name the job file is kept.
pub const JOB_FILE: &str = "fio.job";

/// Under this name it is kept how much memory was available.
pub const MEMORY: &str = "memory.json";

/// Keeps how much memory the worker had for a page cache when the run was planned.
pub fn keep_memory(attempt: &mut Attempt) -> Result<(), Failure> {
    let json = serde_json::to_vec(&attempt.site.facts.memory_available);
    attempt.keep(MEMORY, json.map_err(|error| Failure::crashed(error.to_string()))?);
    Ok(())
}

/// Runs a job file. It, fio's report, and the logs are kept.
pub async fn run(attempt: &mut Attempt, job_file: &str, ioengine: &str) -> Result<(), Failure> {
    attempt.keep(JOB_FILE, job_file);
    let path = attempt.site.path(JOB_FILE);
    attempt.site.put(&path, job_file.as_bytes()).await?;
    let command = attempt.site.command(["fio", "--output-format=json+", "--eta=never", &path]);
    attempt.run(NAME, command).await.map_err(|failure| denied(failure, ioengine))?;
    let folder = attempt.site.group.folder().to_owned();
    for entry in attempt.site.worker().list(&folder).await.map_err(lost)? {
        if entry.name.starts_with(&format!("{HISTOGRAMS}_clat_hist.")) {
            let log = attempt.site.get(&format!("{folder}/{}", entry.name)).await?;
            attempt.keep(&entry.name, log);
        }
    }
    attempt.worked(1);
    Ok(())
}

/// Runs a program of the user's before a sample, if there is one.
pub async fn pre_iteration(attempt: &mut Attempt, program: &str) -> Result<(), Failure> {
    if program.is_empty() {
        return Ok(());
    }
    let said = attempt.site.succeed(Command::new([program])).await?;
    attempt.keep("pre-iteration-script.stdout", said);
    Ok(())
}

/// The ability to drive an engine that distributions often leave out, one with options of its own.
pub(crate) fn engine(ioengine: &str) -> Ability {
    Ability {
        name: format!("the ioengine `{ioengine}`"),
        // Succeeds only for an engine that is there and has options.
        arguments: vec![format!("--enghelp={ioengine}")],
        source: source(ioengine).unwrap_or_default().to_owned(),
    }
}

/// Refuses an engine that this fio does not have, or this kernel does not allow.
pub async fn check_engine(site: &Site, ioengine: &str) -> Result<(), Failure> {
    if !has_engine(site, ioengine).await? {
        let listed = engines(site).await?;
        let source = source(ioengine).map(|source| format!("; {source}")).unwrap_or_default();
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
fn source(ioengine: &str) -> Option<&'static str> {
    match ioengine {
        "nbd" => Some("a fio that was built with libnbd (Debian's package libnbd-dev) has it"),
        "libblkio" => Some("a fio from 3.34 on that was built with libblkio (Debian's package libblkio-dev) has it"),
        _ => None,
    }
}

/// Whether this fio has it: it is listed, or fio finds it when asked, as it does `external:PATH`. The status of
/// `--enghelp=NAME` alone says nothing: it is 1 for an engine without options, too.
async fn has_engine(site: &Site, ioengine: &str) -> Result<bool, Failure> {
    if engines(site).await?.iter().any(|engine| engine == ioengine) {
        return Ok(true);
    }
    let asked = site.finish(Command::new(["fio", &format!("--enghelp={ioengine}")])).await?;
    Ok(asked.ending.is_success())
}

async fn engines(site: &Site) -> Result<Vec<String>, Failure> {
    let listed = site.succeed(Command::new(["fio", "--enghelp"])).await?;
    Ok(String::from_utf8_lossy(&listed).lines().skip(1).flat_map(str::split_whitespace).map(str::to_owned).collect())
}

/// An engine that the kernel denies is no crash of fio's.
fn denied(failure: Failure, ioengine: &str) -> Failure {
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
        assert!(matches!(denied(Failure::crashed(status), "io_uring"), Failure::Refused { .. }));
        assert!(matches!(denied(Failure::crashed(status), "libaio"), Failure::Crashed { .. }));
        assert!(matches!(
            denied(Failure::crashed("fio: exit status 1: out of memory"), "io_uring"),
            Failure::Crashed { .. }
        ));
    }
}
