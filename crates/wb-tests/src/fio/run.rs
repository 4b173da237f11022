//! Running fio, and what can keep it from running.

use wb_agent::Command;

use super::job::HISTOGRAMS;
use crate::attempt::lost;
use crate::{Attempt, Failure, Site};

/// Under this name fio's output is kept.
pub const NAME: &str = "fio";
/// Under this name the job file is kept.
pub const JOB_FILE: &str = "fio.job";

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

/// Refuses an engine that this fio does not have, or this kernel does not allow.
pub async fn check_engine(site: &Site, ioengine: &str) -> Result<(), Failure> {
    let known = site.finish(Command::new(["fio", &format!("--enghelp={ioengine}")])).await?;
    if !known.ending.is_success() {
        let listed = site.succeed(Command::new(["fio", "--enghelp"])).await?;
        let listed = String::from_utf8_lossy(&listed).into_owned();
        let engines: Vec<&str> = listed.lines().skip(1).map(str::trim).filter(|line| !line.is_empty()).collect();
        return Err(Failure::refused(format!("this fio has no ioengine `{ioengine}`: it has {}", engines.join(", "))));
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
