//! Execution of fio, and the checks before it.

use wb_agent::Command;
use wb_model::ProgramFeature;
use wb_test::attempt::check_success;
use wb_test::{Attempt, Failure, WorkerContext};

use super::job::HISTOGRAM_LOG_PREFIX;

pub const OUTPUT_NAME: &str = "fio";
pub const JOB_FILE: &str = "fio.job";

pub const MEMORY_FILE: &str = "memory.json";

/// Records the memory that was available on the worker, for a page cache, when the run was planned.
pub fn record_memory(attempt: &mut Attempt) -> Result<(), Failure> {
    let json = serde_json::to_vec(&attempt.context.facts.memory_available);
    attempt.add_artefact(MEMORY_FILE, json.map_err(|error| Failure::crashed(error.to_string()))?);
    Ok(())
}

/// Runs a job file; records it, fio's report, and the logs. If it is to be read-only, fio refuses to write.
pub async fn run(attempt: &mut Attempt, job_file: &str, ioengine: &str, is_read_only: bool) -> Result<(), Failure> {
    attempt.add_artefact(JOB_FILE, job_file);
    let path = attempt.context.path(JOB_FILE);
    attempt.context.put(&path, job_file.as_bytes()).await?;
    let mut argv = vec!["fio", "--output-format=json+", "--eta=never"];
    // The last word is fio's: no list of the dangerous options of a job file is complete.
    argv.extend(is_read_only.then_some("--readonly"));
    argv.push(&path);
    let command = attempt.context.command(argv);
    let placement = command.placement.clone();
    let mut finished = attempt.run_to_end(OUTPUT_NAME, command, &placement).await?;
    finished.stdout = messages(&finished.stdout);
    check_success("fio", &finished).map_err(|failure| refuse_denied_engine(failure, ioengine))?;
    let folder = attempt.context.group.folder().to_owned();
    for entry in attempt.context.worker().list(&folder).await? {
        if entry.name.starts_with(&format!("{HISTOGRAM_LOG_PREFIX}_clat_hist.")) {
            let log = attempt.context.get(&format!("{folder}/{}", entry.name)).await?;
            attempt.add_artefact(&entry.name, log);
        }
    }
    attempt.record_work(1);
    Ok(())
}

/// fio's messages before its report, which follows the reason of a failure; the last names the error.
fn messages(stdout: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(stdout);
    let messages = text.lines().take_while(|line| *line != "{");
    let (errors, others): (Vec<&str>, Vec<&str>) = messages.partition(|line| line.contains("error="));
    others.into_iter().chain(errors).collect::<Vec<_>>().join("\n").into_bytes()
}

pub async fn run_pre_iteration_script(attempt: &mut Attempt, program: &str) -> Result<(), Failure> {
    if program.is_empty() {
        return Ok(());
    }
    let stdout = attempt.context.run(Command::new([program])).await?;
    attempt.add_artefact("pre-iteration-script.stdout", stdout);
    Ok(())
}

/// Requirement that fio has an engine that distributions often omit; the engine has its own options.
pub(crate) fn engine_ability(ioengine: &str) -> ProgramFeature {
    ProgramFeature {
        name: format!("the ioengine `{ioengine}`"),
        // Succeeds only for an engine that exists and has options.
        arguments: vec![format!("--enghelp={ioengine}")],
        inherit: Vec::new(),
        source: engine_hint(ioengine).unwrap_or_default().to_owned(),
    }
}

/// Refuses an engine that this fio lacks, or this kernel denies.
pub async fn check_engine(context: &WorkerContext, ioengine: &str) -> Result<(), Failure> {
    if !has_engine(context, ioengine).await? {
        let listed = list_engines(context).await?;
        let source = engine_hint(ioengine).map(|source| format!("; {source}")).unwrap_or_default();
        let reason = format!("unknown ioengine `{ioengine}`: this fio has {}{source}", listed.join(", "));
        return Err(Failure::refused(reason));
    }
    if ioengine.starts_with("io_uring") {
        const SWITCH: &str = "/proc/sys/kernel/io_uring_disabled";
        // Kernels before 6.6 do not have this file.
        let switch = context.get(SWITCH).await.unwrap_or_default();
        if switch.trim_ascii() == b"2" {
            let reason = format!("io_uring is disabled by {SWITCH}: set it to 0, or use ioengine=libaio");
            return Err(Failure::refused(reason));
        }
    }
    Ok(())
}

/// How to get a fio with an engine that distributions often omit.
fn engine_hint(ioengine: &str) -> Option<&'static str> {
    match ioengine {
        "nbd" => Some("build fio with libnbd (Debian's package libnbd-dev)"),
        "libblkio" => Some("build fio 3.34 or newer with libblkio (Debian's package libblkio-dev)"),
        _ => None,
    }
}

/// Whether fio lists an engine, or finds it by name, as for `external:PATH`. The exit status of `--enghelp=NAME` is not
/// sufficient: it is also 1 for an engine without options.
async fn has_engine(context: &WorkerContext, ioengine: &str) -> Result<bool, Failure> {
    if list_engines(context).await?.iter().any(|engine| engine == ioengine) {
        return Ok(true);
    }
    let finished = context.run_to_end(Command::new(["fio", &format!("--enghelp={ioengine}")])).await?;
    Ok(finished.exit_reason.is_success())
}

async fn list_engines(context: &WorkerContext) -> Result<Vec<String>, Failure> {
    let listed = context.run(Command::new(["fio", "--enghelp"])).await?;
    Ok(String::from_utf8_lossy(&listed).lines().skip(1).flat_map(str::split_whitespace).map(str::to_owned).collect())
}

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
    fn the_reason_of_a_failure_precedes_the_report() {
        let stdout = "fio: pid=1646, err=30/file:filesetup.c:805, func=open(/ro/f), error=Read-only file system\n\
                      fio: stopped\n{\n  \"jobs\": [\n  ]\n}\n";
        let messages = String::from_utf8(messages(stdout.as_bytes())).unwrap();
        assert!(messages.ends_with("func=open(/ro/f), error=Read-only file system"), "{messages}");
    }

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
