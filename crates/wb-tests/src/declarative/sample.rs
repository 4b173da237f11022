//! One sample of a definition: its work is found, a probe does a part of it, the measured command all of it.

use std::collections::BTreeSet;

use wb_agent::{Command, ExitReason, Scratch, Stream};
use wb_model::{ParamValue, Params, Quantity};

use super::definition::{Definition, DurationControl, MeasuredProgram};
use super::prepare::Prepared;
use super::raw::{TargetFolder, WorkLimits};
use super::sample_output::{DurationSource, PROBE_NAME, PROVENANCE_FILE, RUN_NAME, SampleProvenance};
use super::template::{Bindings, Builtin, CommandTemplate};
use crate::attempt::{check_success, program_name, worker_failure};
use crate::{Attempt, DEFINITION_FILE_PREFIX, Failure, external};

/// A probe does this part of the work.
pub(super) const PROBE_DIVISOR: u64 = 16;
/// The work grows at most by this factor from one try to the next.
const MAX_GROWTH: f64 = 10.0;
/// How much longer than asked calibrated work takes, so that noise does not make it shorter.
pub(super) const MARGIN: f64 = 1.1;
/// How much of a sample's work is done to find it: the whole, and in runs of a tenth and less of it before.
pub(super) const CALIBRATION_FACTOR: f64 = 1.2;
/// More work has to take at least so much longer.
const MIN_SLOWDOWN: f64 = 1.1;
/// Between two runs of which neither is the first, twice the work has to take so much longer.
const MIN_SLOWDOWN_WARM: f64 = 1.5;
/// What is kept of what a server wrote, in bytes.
const MAX_SERVER_OUTPUT: usize = 64 << 10;
/// From so many bytes of output at more than so many bytes per second, reading it may have set the command's pace.
const FAST_OUTPUT: (u64, f64) = (1 << 20, 100e6);

impl Definition {
    /// Takes a sample.
    pub(super) async fn sample(
        &self,
        params: &Params,
        prepared: &mut Prepared,
        attempt: &mut Attempt,
    ) -> Result<(), Failure> {
        let bindings = Bindings { params, builtins: prepared.builtins.clone() };
        // Before it is measured: what is changed meanwhile belongs to the next sample.
        let sources = self.source_hashes(params);
        let effort = match &self.measured_program {
            MeasuredProgram::Runner(argv) => self.run_runner(argv, params, &bindings, attempt).await,
            MeasuredProgram::Command(argv) => self.measure(argv, &bindings, attempt).await,
        };
        for (at, service) in prepared.services.iter().enumerate() {
            attempt.record_service(&format!("service-{at}"), service).await?;
            for (stream, name) in [(Stream::Stdout, "stdout"), (Stream::Stderr, "stderr")] {
                let wrote = service.read_output(stream).await.map_err(worker_failure)?;
                if !wrote.is_empty() {
                    let end = wrote.len().saturating_sub(MAX_SERVER_OUTPUT);
                    attempt.add_artefact(&format!("service-{at}.{name}"), &wrote[end..]);
                }
            }
        }
        let file = |(name, hash): (String, String)| {
            let path = name.strip_prefix(DEFINITION_FILE_PREFIX)?.strip_suffix(" sha256")?.to_owned();
            Some((path, hash))
        };
        let circumstances = SampleProvenance {
            definition: self.digest.to_string(),
            duration_source: effort?,
            built: prepared.program_hashes.clone(),
            files: sources.into_iter().filter_map(file).collect(),
        };
        let json = serde_json::to_vec_pretty(&circumstances).map_err(|error| Failure::refused(error.to_string()))?;
        attempt.add_artefact(PROVENANCE_FILE, json);
        Ok(())
    }

    async fn measure(
        &self,
        argv: &CommandTemplate,
        bindings: &Bindings<'_>,
        attempt: &mut Attempt,
    ) -> Result<DurationSource, Failure> {
        let seconds = attempt.min_time;
        match self.calibration {
            DurationControl::Fixed => {
                self.run(RUN_NAME, argv, bindings, attempt).await?;
                Ok(DurationSource::Fixed)
            }
            DurationControl::Time => {
                let bindings = bindings.clone().with(Builtin::Seconds, ParamValue::Text(seconds.to_string()));
                self.run(RUN_NAME, argv, &bindings, attempt).await?;
                Ok(DurationSource::Time { seconds: seconds.seconds() })
            }
            DurationControl::Work(limits) => {
                let work = match attempt.work {
                    Some(work) => work,
                    None => self.calibrate(argv, bindings, limits, attempt).await?,
                };
                let probe = (work > 1).then(|| work.div_ceil(PROBE_DIVISOR));
                if let Some(probe) = probe {
                    self.run(PROBE_NAME, argv, &with_work(bindings, probe), attempt).await?;
                }
                self.run(RUN_NAME, argv, &with_work(bindings, work), attempt).await?;
                attempt.record_work(work);
                Ok(DurationSource::Work { work, probe })
            }
        }
    }

    /// Finds how much work takes at least as long as asked.
    async fn calibrate(
        &self,
        argv: &CommandTemplate,
        bindings: &Bindings<'_>,
        limits: WorkLimits,
        attempt: &mut Attempt,
    ) -> Result<u64, Failure> {
        let wanted = attempt.min_time.seconds().max(1e-3);
        let (mut work, mut number) = (limits.start, 1);
        loop {
            let took = self.run(&format!("calibration-{number}"), argv, &with_work(bindings, work), attempt).await?;
            let enough = (work as f64 * wanted * MARGIN / took).ceil() as u64;
            if took >= wanted && number == 1 {
                // Nothing is known yet of whether the time follows the work.
                self.check_time_grows(argv, bindings, (work, took), attempt).await?;
            }
            if took >= wanted {
                return Ok(enough.clamp(1, work));
            }
            if work >= limits.max {
                return Err(Failure::refused(format!(
                    "its time does not follow its work: {work}, the most that is tried, took {took:.3} s"
                )));
            }
            let grown = work as f64 * (wanted * MARGIN / took.max(1e-6)).clamp(2.0, MAX_GROWTH);
            work = (grown.ceil() as u64).min(limits.max);
            number += 1;
        }
    }

    /// Sees that more work takes longer. The first run may have been kept waiting by others, or by a cold cache: so it is
    /// tried thrice, and later runs are compared with each other too.
    async fn check_time_grows(
        &self,
        argv: &CommandTemplate,
        bindings: &Bindings<'_>,
        (work, took): (u64, f64),
        attempt: &mut Attempt,
    ) -> Result<(), Failure> {
        let mut last = (work, took);
        let mut shortest_since = f64::INFINITY;
        for (number, factor) in [(2, 2), (3, 4), (4, 8)] {
            let more = work.saturating_mul(factor);
            last = (more, self.run(&format!("calibration-{number}"), argv, &with_work(bindings, more), attempt).await?);
            if last.1 >= took * MIN_SLOWDOWN || last.1 >= shortest_since * MIN_SLOWDOWN_WARM {
                return Ok(());
            }
            shortest_since = shortest_since.min(last.1);
        }
        let (more, longer) = last;
        Err(Failure::refused(format!(
            "its time does not follow its work: {work} took {took:.3} s and {more} took {longer:.3} s"
        )))
    }

    /// Runs the measured command in a fresh folder; how long it ran by its own start and end, in seconds.
    async fn run(
        &self,
        name: &str,
        argv: &CommandTemplate,
        bindings: &Bindings<'_>,
        attempt: &mut Attempt,
    ) -> Result<f64, Failure> {
        let (scratch, bindings) = self.sample_folder(attempt, bindings).await?;
        let command = self.command(argv, attempt, &bindings, scratch.path())?.stdout(self.stdout.capture_for(name));
        let (program, placement) = (program_name(&command), command.placement.clone());
        let finished = attempt.run_to_end(name, command, &placement).await?;
        if let ending @ ExitReason::TooMuchOutput { stream: Stream::Stdout, .. } = finished.ending {
            return Err(Failure::crashed(format!("{program}: {ending}: {}", self.stdout.help())));
        }
        check_success(&program, &finished)?;
        attempt.cap_stdout(name);
        let seconds = finished.elapsed().seconds();
        if name == RUN_NAME
            && let Some(digest) = &finished.stdout_digest
            && let Some(finding) = slow_output_finding(digest.bytes, seconds)
        {
            attempt.add_finding(finding);
        }
        let files = if name == RUN_NAME { self.artefact_files() } else { BTreeSet::new() };
        for file in files {
            let bytes = attempt.context.get(&scratch.join(&file)).await?;
            attempt.add_artefact(&format!("files/{file}"), bytes);
        }
        scratch.close().await.map_err(worker_failure)?;
        Ok(seconds)
    }

    async fn run_runner(
        &self,
        argv: &CommandTemplate,
        params: &Params,
        bindings: &Bindings<'_>,
        attempt: &mut Attempt,
    ) -> Result<DurationSource, Failure> {
        let (scratch, bindings) = self.sample_folder(attempt, bindings).await?;
        let command = self.command(argv, attempt, &bindings, scratch.path())?;
        external::sample(params, command, scratch.path(), attempt).await?;
        scratch.close().await.map_err(worker_failure)?;
        Ok(DurationSource::Runner)
    }

    /// A private folder with the files of a sample in it. It is gone when its handle is.
    async fn sample_folder<'a>(
        &self,
        attempt: &Attempt,
        bindings: &Bindings<'a>,
    ) -> Result<(Scratch, Bindings<'a>), Failure> {
        let scratch = attempt.context.worker().new_scratch(None).await.map_err(worker_failure)?;
        let bindings = bindings.clone().with(Builtin::Sample, ParamValue::Text(scratch.path().to_owned()));
        for file in self.files.iter().filter(|file| file.folder == TargetFolder::Sample) {
            file.write_to(&attempt.context, scratch.path(), &bindings).await?;
        }
        Ok((scratch, bindings))
    }

    fn command(
        &self,
        argv: &CommandTemplate,
        attempt: &Attempt,
        bindings: &Bindings<'_>,
        folder: &str,
    ) -> Result<Command, Failure> {
        let argv = argv.fill(bindings).map_err(Failure::refused)?;
        let mut command = attempt.context.command(argv).cwd(folder);
        for (name, value) in &self.env {
            command = command.env(name, value.text(bindings).map_err(Failure::refused)?);
        }
        Ok(command)
    }
}

/// That reading a command's output may have taken a part of its time.
fn slow_output_finding(bytes: u64, seconds: f64) -> Option<String> {
    let (least, fast) = FAST_OUTPUT;
    (bytes >= least && bytes as f64 > fast * seconds).then(|| {
        format!(
            "it wrote {} to standard output at more than {}, which may be as fast as that is read: `stdout = \"discard\"` \
             holds up nothing, nor does a file",
            Quantity { value: bytes as f64, unit: "B" },
            Quantity { value: fast / 1e6, unit: "MB/s" },
        )
    })
}

fn with_work<'a>(bindings: &Bindings<'a>, work: u64) -> Bindings<'a> {
    bindings.clone().with(Builtin::Work, ParamValue::Integer(i64::try_from(work).unwrap_or(i64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_that_may_have_held_up_its_command_is_noticed() {
        assert_eq!(
            slow_output_finding(300 << 20, 1.5).unwrap(),
            "it wrote 300 MiB to standard output at more than 100 MB/s, which may be as fast as that is read: \
             `stdout = \"discard\"` holds up nothing, nor does a file"
        );
        assert_eq!(slow_output_finding(300 << 20, 15.0), None);
        assert_eq!(slow_output_finding(1000, 1e-9), None);
    }
}
