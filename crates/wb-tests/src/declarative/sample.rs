//! Execution of a sample: calibration of its work, a probe with a part of it, and the measured command.

use std::collections::BTreeSet;

use wb_agent::{Command, ExitReason, Scratch, Stream};
use wb_model::{ParamValue, Params, Quantity};

use super::definition::{Definition, DurationControl, MeasuredProgram};
use super::prepare::Prepared;
use super::raw::TargetFolder;
use super::sample_output::{DurationSource, PROBE_NAME, PROVENANCE_FILE, RUN_NAME, SampleProvenance};
use super::template::{Bindings, Builtin, CommandTemplate};
use super::work::WorkRange;
use crate::attempt::{check_success, program_name};
use crate::{Attempt, DEFINITION_FILE_PREFIX, Failure, external};

/// Maximum factor by which the work grows from one calibration run to the next.
const MAX_GROWTH: f64 = 10.0;
/// Factor by which calibrated work exceeds the minimum time, so that noise does not make it shorter.
pub(super) const MIN_TIME_MARGIN: f64 = 1.1;
/// Total work of the calibration relative to a sample: one complete run, and earlier ones with a tenth or less of it.
pub(super) const CALIBRATION_FACTOR: f64 = 1.2;
/// Minimum factor by which the run time grows with more work.
const MIN_SLOWDOWN: f64 = 1.1;
/// Minimum factor by which the run time grows with twice the work, between two runs after the first.
const MIN_SLOWDOWN_WARM: f64 = 1.5;
/// Maximum number of bytes recorded of a server's output.
const MAX_SERVER_OUTPUT: usize = 64 << 10;
/// Amount of output in bytes, and its rate in bytes per second, above which reading it may have slowed the command.
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
        // Before the measurement: later changes apply to the next sample.
        let sources = self.source_hashes(params);
        let duration_source = match &self.measured_program {
            MeasuredProgram::Runner(argv) => self.run_runner(argv, params, &bindings, attempt).await,
            MeasuredProgram::Command(argv) => self.measure(argv, &bindings, attempt).await,
        };
        for (at, service) in prepared.services.iter().enumerate() {
            attempt.record_service(&format!("service-{at}"), service).await?;
            for (stream, name) in [(Stream::Stdout, "stdout"), (Stream::Stderr, "stderr")] {
                let output = service.read_output(stream).await?;
                if !output.is_empty() {
                    let end = output.len().saturating_sub(MAX_SERVER_OUTPUT);
                    attempt.add_artefact(&format!("service-{at}.{name}"), &output[end..]);
                }
            }
        }
        let file = |(name, hash): (String, String)| {
            let path = name.strip_prefix(DEFINITION_FILE_PREFIX)?.strip_suffix(" sha256")?.to_owned();
            Some((path, hash))
        };
        let provenance = SampleProvenance {
            definition: self.digest.to_string(),
            duration_source: duration_source?,
            built: prepared.program_hashes.clone(),
            files: sources.into_iter().filter_map(file).collect(),
        };
        let json = serde_json::to_vec_pretty(&provenance).map_err(|error| Failure::refused(error.to_string()))?;
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
        match self.duration_control {
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
                let range = WorkRange::new(limits, &self.work_factors, bindings).map_err(Failure::refused)?;
                let work = match attempt.work {
                    Some(work) => work,
                    None => self.calibrate(argv, bindings, range, attempt).await?,
                };
                let probe = range.probe(work);
                if let Some(probe) = probe {
                    self.run(PROBE_NAME, argv, &with_work(bindings, probe), attempt).await?;
                }
                self.run(RUN_NAME, argv, &with_work(bindings, work), attempt).await?;
                attempt.record_work(work);
                Ok(DurationSource::Work { work, probe })
            }
        }
    }

    /// Determines the amount of work that takes at least the minimum time.
    async fn calibrate(
        &self,
        argv: &CommandTemplate,
        bindings: &Bindings<'_>,
        range: WorkRange,
        attempt: &mut Attempt,
    ) -> Result<u64, Failure> {
        let min_seconds = attempt.min_time.seconds().max(1e-3);
        let (mut work, mut number) = (range.start, 1);
        loop {
            let elapsed = self.run(&format!("calibration-{number}"), argv, &with_work(bindings, work), attempt).await?;
            let required = (work as f64 * min_seconds * MIN_TIME_MARGIN / elapsed).ceil() as u64;
            if elapsed >= min_seconds && number == 1 {
                // It is not verified yet that the run time depends on the work.
                self.check_time_grows(argv, bindings, (work, elapsed), attempt).await?;
            }
            if elapsed >= min_seconds {
                return Ok(range.round_up(required).min(work));
            }
            if work >= range.max {
                return Err(Failure::refused(format!(
                    "cannot calibrate: run time does not grow with the work: {work}, the maximum, took {elapsed:.3} s"
                )));
            }
            let next = work as f64 * (min_seconds * MIN_TIME_MARGIN / elapsed.max(1e-6)).clamp(2.0, MAX_GROWTH);
            work = range.round_up(next.ceil() as u64);
            number += 1;
        }
    }

    /// Checks that more work takes longer. The first run may have been delayed by other processes or a cold cache: the
    /// check has three tries, and later runs are also compared with each other.
    async fn check_time_grows(
        &self,
        argv: &CommandTemplate,
        bindings: &Bindings<'_>,
        (work, elapsed): (u64, f64),
        attempt: &mut Attempt,
    ) -> Result<(), Failure> {
        let mut last = (work, elapsed);
        let mut shortest = f64::INFINITY;
        for (number, factor) in [(2, 2), (3, 4), (4, 8)] {
            let next = work.saturating_mul(factor);
            last = (next, self.run(&format!("calibration-{number}"), argv, &with_work(bindings, next), attempt).await?);
            if last.1 >= elapsed * MIN_SLOWDOWN || last.1 >= shortest * MIN_SLOWDOWN_WARM {
                return Ok(());
            }
            shortest = shortest.min(last.1);
        }
        let (next, last_elapsed) = last;
        Err(Failure::refused(format!(
            "cannot calibrate: run time does not grow with the work: {work} took {elapsed:.3} s, {next} took {last_elapsed:.3} s"
        )))
    }

    /// Runs the measured command in a new folder; returns its run time in seconds.
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
        if let ending @ ExitReason::TooMuchOutput { stream: Stream::Stdout, .. } = finished.exit_reason {
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
        scratch.close().await?;
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
        scratch.close().await?;
        Ok(DurationSource::Runner)
    }

    /// Creates a private folder with the files of a sample, which is removed with its handle.
    async fn sample_folder<'a>(
        &self,
        attempt: &Attempt,
        bindings: &Bindings<'a>,
    ) -> Result<(Scratch, Bindings<'a>), Failure> {
        let scratch = attempt.context.worker().new_scratch(None).await?;
        let bindings = bindings.clone().with(Builtin::SampleFolder, ParamValue::Text(scratch.path().to_owned()));
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

/// Finding for output that may have slowed the command.
fn slow_output_finding(bytes: u64, seconds: f64) -> Option<String> {
    let (min_bytes, max_rate) = FAST_OUTPUT;
    (bytes >= min_bytes && bytes as f64 > max_rate * seconds).then(|| {
        format!(
            "{} of standard output at more than {} may have slowed the command: use `stdout = \"discard\"`, or write to a \
             file",
            Quantity { value: bytes as f64, unit: "B" },
            Quantity { value: max_rate / 1e6, unit: "MB/s" },
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
    fn output_that_may_have_slowed_its_command_is_a_finding() {
        assert_eq!(
            slow_output_finding(300 << 20, 1.5).unwrap(),
            "300 MiB of standard output at more than 100 MB/s may have slowed the command: use `stdout = \"discard\"`, or \
             write to a file"
        );
        assert_eq!(slow_output_finding(300 << 20, 15.0), None);
        assert_eq!(slow_output_finding(1000, 1e-9), None);
    }
}
