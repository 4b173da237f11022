//! Loads of fio on a test file of the device, for `iocost-params` and the enforcement of weights.

use std::fmt::Write;

use wb_agent::{CleanupCommand, Command, Process, ProcessOutput};
use wb_model::{Bytes, Nanos};
use wb_workloads::fio::job::{Operation, escape_path};
use wb_workloads::fio::report::{self, JobReport};

use super::ContentionError;
use super::prepared_worker::{PreparedWorker, Slice};

const TEST_FILE: &str = "weighbridge-fio";

/// Time that fio may take beyond its run time, to start and to complete what is in flight.
const GRACE: Nanos = Nanos(60_000_000_000);

/// Time at the start of a load that is not measured, because queues fill.
const RAMP: Nanos = Nanos(RAMP_SECONDS * 1_000_000_000);
const RAMP_SECONDS: u64 = 1;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct FioLoad {
    pub operation: Operation,
    pub is_random: bool,
    pub block_size: Bytes,
    pub iodepth: u32,
    pub jobs: u32,
    pub runtime: Nanos,
    /// Operations per second of each job; `None` for as many as possible.
    pub rate_iops: Option<u64>,
}

impl FioLoad {
    fn render(&self, file: &str, size: Bytes) -> String {
        let mode = match (self.operation, self.is_random) {
            (Operation::Read, false) => "read",
            (Operation::Read, true) => "randread",
            (Operation::Write, false) => "write",
            (Operation::Write, true) => "randwrite",
        };
        let milliseconds = |time: Nanos| time.0 / 1_000_000;
        let mut text = format!(
            "[load]\nfilename={}\nrw={mode}\nbs={}\niodepth={}\nnumjobs={}\nruntime={}ms\nramp_time={}ms\nsize={}\n",
            escape_path(file),
            self.block_size.0,
            self.iodepth,
            self.jobs,
            milliseconds(self.runtime),
            milliseconds(RAMP),
            size.0,
        );
        // Requests are submitted in batches, as an application with many of them does (iocost_coef_gen of resctl-demo).
        let batch = self.iodepth.div_ceil(16);
        text += "ioengine=libaio\ndirect=1\ntime_based=1\ngroup_reporting=1\nallow_file_create=0\nfallocate=none\n";
        let _ = writeln!(text, "iodepth_batch_submit={batch}");
        if let Some(rate) = self.rate_iops {
            let _ = writeln!(text, "rate_iops={rate}");
        }
        text
    }
}

/// A test file on the device, which is removed at the end, and if the bench is interrupted or killed.
pub(super) struct TestFile {
    path: String,
    size: Bytes,
}

impl TestFile {
    /// Fills the file with random bytes. Fails if the folder has not enough space.
    pub(super) async fn create(prepared: &PreparedWorker, size: Bytes) -> Result<Self, ContentionError> {
        const SCRIPT: &str =
            "mkdir -p \"$1\" && dd if=/dev/urandom of=\"$2\" bs=1M count=\"$3\" conv=fsync status=none";
        if free_space(prepared).await?.is_some_and(|free| free < size) {
            return Err(ContentionError::NoSpace { path: prepared.folder().to_owned(), required: size });
        }
        let path = format!("{}/{TEST_FILE}", prepared.folder());
        let removal = CleanupCommand { argv: ["rm", "-f", &path].map(str::to_owned).to_vec(), may_fail: false };
        prepared.group().set_cleanup(&[removal]).await?;
        let mebibytes = size.0.div_ceil(1 << 20).to_string();
        let command = Command::new(["sh", "-c", SCRIPT, "sh", prepared.folder(), &path, &mebibytes]);
        let output = prepared.group().spawn(command).await?.wait(None).await?;
        let file = Self { path, size };
        if !output.exit_reason.is_success() {
            file.remove(prepared).await?;
            return Err(failure("dd", &output, prepared.folder(), size));
        }
        Ok(file)
    }

    pub(super) async fn remove(self, prepared: &PreparedWorker) -> Result<(), ContentionError> {
        let command = Command::new(["rm", "-f", &self.path]);
        let output = prepared.group().spawn(command).await?.wait(None).await?;
        if output.exit_reason.is_success() {
            prepared.group().set_cleanup(&[]).await?;
        }
        Ok(())
    }

    /// `number` distinguishes the job file from those of others that run at the same time.
    pub(super) async fn start(
        &self,
        prepared: &PreparedWorker,
        slice: Option<Slice>,
        load: &FioLoad,
        number: u32,
    ) -> Result<Process, ContentionError> {
        let job_file = format!("{}/load-{number}.fio", prepared.group().folder());
        prepared.worker().put(&job_file, load.render(&self.path, self.size).as_bytes(), 0o600).await?;
        let command = Command::new(["fio", "--output-format=json+", "--eta=never", &job_file]);
        match slice {
            Some(slice) => prepared.spawn(slice, command).await,
            None => Ok(prepared.group().spawn(command).await?),
        }
    }

    /// Runs a load alone.
    pub(super) async fn run(&self, prepared: &PreparedWorker, load: &FioLoad) -> Result<JobReport, ContentionError> {
        let process = self.start(prepared, None, load, 0).await?;
        self.finish(process, load).await
    }

    pub(super) async fn finish(&self, process: Process, load: &FioLoad) -> Result<JobReport, ContentionError> {
        let limit = Nanos(load.runtime.0.saturating_add(RAMP.0 + GRACE.0));
        let output = process.wait(Some(limit)).await?;
        if !output.exit_reason.is_success() {
            return Err(failure("fio", &output, &self.path, self.size));
        }
        let report = report::parse(&String::from_utf8_lossy(&output.stdout));
        let report = report.map_err(|reason| ContentionError::output("fio", reason))?;
        let job = report.jobs.into_iter().next().ok_or_else(|| ContentionError::output("fio", "it has no job"))?;
        if job.operation(load.operation).total_ios == 0 {
            let (size, time) = (load.block_size, std::time::Duration::from(load.runtime));
            let reason = format!("it completed no operation of {size} within {time:?}, after {RAMP_SECONDS} s of ramp");
            return Err(ContentionError::Process { program: "fio".to_owned(), reason });
        }
        Ok(job)
    }
}

/// Free space in the folder; `None` if it does not exist yet.
async fn free_space(prepared: &PreparedWorker) -> Result<Option<Bytes>, ContentionError> {
    let command = Command::new(["stat", "--file-system", "--format=%a %S", prepared.folder()]);
    let output = prepared.group().spawn(command).await?.wait(None).await?;
    let text = String::from_utf8_lossy(&output.stdout);
    let free = text.trim().split_once(' ').and_then(|(blocks, size)| {
        let (blocks, size): (u64, u64) = (blocks.parse().ok()?, size.parse().ok()?);
        blocks.checked_mul(size)
    });
    Ok(free.map(Bytes))
}

/// The failure of a program that writes files.
pub(super) fn failure(program: &str, output: &ProcessOutput, path: &str, required: Bytes) -> ContentionError {
    // Some versions of fio report errors on standard output; other programs print results there.
    let [stderr, stdout] = [&output.stderr, &output.stdout].map(|bytes| String::from_utf8_lossy(bytes));
    let says_no_space = |text: &str| text.contains("No space left on device") || text.contains("no space left");
    if says_no_space(&stderr) || says_no_space(&stdout) {
        return ContentionError::NoSpace { path: path.to_owned(), required };
    }
    let text = if stderr.trim().is_empty() { stdout } else { stderr };
    let last: String = text.trim().lines().last().unwrap_or_default().chars().take(300).collect();
    ContentionError::Process { program: program.to_owned(), reason: format!("{}: {last}", output.exit_reason) }
}

#[cfg(test)]
mod tests {
    use wb_agent::{ExitReason, PlacementReport};
    use wb_sys::process::ResourceUsage;

    use super::*;

    #[test]
    fn a_job_file_has_the_load() {
        let load = FioLoad {
            operation: Operation::Write,
            is_random: true,
            block_size: Bytes(4096),
            iodepth: 256,
            jobs: 1,
            runtime: Nanos(60_000_000_000),
            rate_iops: Some(900),
        };
        assert_eq!(
            load.render("/a:b", Bytes(1 << 30)),
            "[load]\nfilename=/a\\:b\nrw=randwrite\nbs=4096\niodepth=256\nnumjobs=1\nruntime=60000ms\nramp_time=1000ms\n\
             size=1073741824\nioengine=libaio\ndirect=1\ntime_based=1\ngroup_reporting=1\nallow_file_create=0\n\
             fallocate=none\niodepth_batch_submit=16\nrate_iops=900\n"
        );
    }

    fn output(stdout: &str, stderr: &str) -> ProcessOutput {
        ProcessOutput {
            exit_reason: ExitReason::Exited { status: 1 },
            stdout: stdout.into(),
            stdout_digest: None,
            arrivals: Vec::new(),
            stderr: stderr.into(),
            started_ns: 0,
            ended_ns: 0,
            outlived_by: Vec::new(),
            usage: ResourceUsage::default(),
            placement: PlacementReport::default(),
        }
    }

    #[test]
    fn reason_of_a_failure_is_what_the_program_says_on_stderr() {
        let reason = |stdout, stderr| failure("p", &output(stdout, stderr), "/f", Bytes(1)).to_string();
        assert_eq!(reason("{}\n", "first\nlast\n"), "`p` failed: exit status 1: last");
        assert_eq!(reason("only\n", ""), "`p` failed: exit status 1: only");
        assert!(reason("", "write: No space left on device\n").starts_with("no space left in `/f`"));
    }
}
