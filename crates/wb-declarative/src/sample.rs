//! Execution of a sample: calibration of its work, a probe with a part of it, and the measured command.

use std::collections::BTreeSet;

use wb_agent::{Command, ExitReason, OutputStream, Scratch};
use wb_model::{Nanos, ParamValue, Params, Quantity};
use wb_test::attempt::{check_success, program_name};
use wb_test::{Attempt, DEFINITION_FILE_PREFIX, Failure};

use super::definition::{Definition, DurationControl, MeasuredProgram};
use super::effort::{RunTime, follows_work};
use super::prepare::Prepared;
use super::raw::TargetFolder;
use super::sample_output::{DurationSource, PROBE_NAME, PROVENANCE_FILE, RUN_NAME, SampleProvenance};
use super::template::{Bindings, Builtin, CommandTemplate};
use super::work::WorkRange;
use crate::external;

/// Maximum factor by which the work grows from one calibration run to the next.
const MAX_GROWTH: f64 = 10.0;
/// Factor by which calibrated work exceeds the minimum time, so that noise does not make a sample shorter.
pub(super) const MIN_TIME_MARGIN: f64 = 1.1;
/// Work of the calibration relative to a sample: one complete run, and earlier ones with a tenth or less of it.
pub(super) const CALIBRATION_FACTOR: f64 = 1.2;
/// Share of a run time that CPU time has to account for; below it, something else may have taken the time, and another
/// reading has to agree.
const MIN_CPU_SHARE: f64 = 0.5;
/// Factor within which two readings of a run time agree.
const READING_AGREEMENT: f64 = 1.5;
/// Readings of one amount of work.
const MAX_READINGS: u32 = 4;
/// Share of the minimum time below which a sample contradicts the calibration of its work, which is then repeated…
const MIN_TIME_SHARE: f64 = 0.5;
/// …until it has been made this often.
const MAX_CALIBRATIONS: u32 = 3;
/// Minimum factor by which the run time grows with more work.
const MIN_SLOWDOWN: f64 = 1.1;
/// Minimum factor by which the run time grows with twice the work, between two runs after the first.
const MIN_SLOWDOWN_WARM: f64 = 1.5;
/// Bytes recorded of a server's output.
const MAX_SERVER_OUTPUT: usize = 64 << 10;
/// Bytes, and bytes per second, of output above which reading it may have slowed the command.
const FAST_OUTPUT: (u64, f64) = (1 << 20, 100e6);

impl Definition {
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
        for (index, service) in prepared.services.iter().enumerate() {
            attempt.record_service(&format!("service-{index}"), service).await?;
            for (stream, name) in [(OutputStream::Stdout, "stdout"), (OutputStream::Stderr, "stderr")] {
                let output = service.read_output(stream).await?;
                if !output.is_empty() {
                    let end = output.len().saturating_sub(MAX_SERVER_OUTPUT);
                    attempt.add_artefact(&format!("service-{index}.{name}"), &output[end..]);
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
                let mut calibration = Calibration { definition: self, argv, bindings, runs: 0 };
                let mut work = match attempt.work {
                    Some(work) => work,
                    None => calibration.calibrate(range, attempt).await?,
                };
                let mut calibrations = u32::from(attempt.work.is_none());
                loop {
                    let probe = range.probe(work);
                    let probe_time = match probe {
                        Some(part) => Some((part, self.probe(argv, bindings, part, attempt).await?)),
                        None => None,
                    };
                    let run = self.run(RUN_NAME, argv, &with_work(bindings, work), attempt).await?;
                    let is_short = run.elapsed < MIN_TIME_SHARE * seconds.seconds() && work < range.max;
                    if !is_short || !(1..MAX_CALIBRATIONS).contains(&calibrations) {
                        if let Some(probe) = probe_time {
                            self.repeat_delayed_probe(argv, bindings, (work, run), probe, attempt).await?;
                        }
                        attempt.record_work(work);
                        return Ok(DurationSource::Work { work, probe });
                    }
                    // Whatever the calibration read was not the time that the work takes.
                    calibration.take_over(&[PROBE_NAME, RUN_NAME], attempt);
                    work = calibration.calibrate(WorkRange { start: work, ..range }, attempt).await?;
                    calibrations += 1;
                }
            }
        }
    }

    async fn probe(
        &self,
        argv: &CommandTemplate,
        bindings: &Bindings<'_>,
        part: u64,
        attempt: &mut Attempt,
    ) -> Result<RunTime, Failure> {
        self.run(PROBE_NAME, argv, &with_work(bindings, part), attempt).await
    }

    /// Repeats a probe that was not shorter than its run, since other processes may have delayed it. The last probe
    /// counts; earlier ones remain as `probe-1` and so on.
    async fn repeat_delayed_probe(
        &self,
        argv: &CommandTemplate,
        bindings: &Bindings<'_>,
        run: (u64, RunTime),
        (part, mut time): (u64, RunTime),
        attempt: &mut Attempt,
    ) -> Result<(), Failure> {
        for repetition in 1..MAX_READINGS {
            if follows_work(run, (part, time)) {
                break;
            }
            attempt.rename_process(PROBE_NAME, &format!("{PROBE_NAME}-{repetition}"));
            time = self.probe(argv, bindings, part, attempt).await?;
        }
        Ok(())
    }

    async fn run(
        &self,
        name: &str,
        argv: &CommandTemplate,
        bindings: &Bindings<'_>,
        attempt: &mut Attempt,
    ) -> Result<RunTime, Failure> {
        let (scratch, bindings) = self.sample_folder(attempt, bindings).await?;
        let command = self.command(argv, attempt, &bindings, scratch.path())?.stdout(self.stdout.capture_for(name));
        let (program, placement) = (program_name(&command), command.placement.clone());
        let finished = attempt.run_to_end(name, command, &placement).await?;
        if let ending @ ExitReason::TooMuchOutput { stream: OutputStream::Stdout, .. } = finished.exit_reason {
            return Err(Failure::crashed(format!("{program}: {ending}: {}", self.stdout.help())));
        }
        check_success(&program, &finished)?;
        attempt.cap_stdout(name);
        let time = RunTime { elapsed: finished.elapsed().seconds(), cpu: Nanos(finished.usage.cpu_ns()).seconds() };
        if name == RUN_NAME
            && let Some(finding) = outlived_finding(&finished.outlived_by)
        {
            attempt.add_finding(finding);
        }
        if name == RUN_NAME
            && let Some(digest) = &finished.stdout_digest
            && let Some(finding) = slow_output_finding(digest.bytes, time.elapsed)
        {
            attempt.add_finding(finding);
        }
        let files = if name == RUN_NAME { self.artefact_files() } else { BTreeSet::new() };
        for file in files {
            let bytes = attempt.context.get(&scratch.join(&file)).await?;
            attempt.add_artefact(&format!("files/{file}"), bytes);
        }
        scratch.close().await?;
        Ok(time)
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

/// Whether another reading has to confirm a run time.
fn is_doubtful(time: RunTime) -> bool {
    time.cpu < MIN_CPU_SHARE * time.elapsed
}

struct Calibration<'a> {
    definition: &'a Definition,
    argv: &'a CommandTemplate,
    bindings: &'a Bindings<'a>,
    /// Recorded as `calibration-1` and so on.
    runs: u32,
}

impl Calibration<'_> {
    async fn calibrate(&mut self, range: WorkRange, attempt: &mut Attempt) -> Result<u64, Failure> {
        let min_seconds = attempt.min_time.seconds().max(1e-3);
        let mut work = range.start;
        loop {
            let elapsed = self.read(work, min_seconds, attempt).await?;
            let required = (work as f64 * min_seconds * MIN_TIME_MARGIN / elapsed).ceil() as u64;
            if elapsed >= min_seconds && work == range.start {
                // It is not verified yet that the run time depends on the work.
                self.check_time_grows((work, elapsed), attempt).await?;
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
        }
    }

    /// Reads how many seconds an amount of work takes. A time that would end the calibration, and for which CPU time
    /// does not account, counts if a second reading agrees: a program may wait by itself, or may have had to.
    async fn read(&mut self, work: u64, min_seconds: f64, attempt: &mut Attempt) -> Result<f64, Failure> {
        // No single reading of the clock decides.
        let mut shortest = self.run(work, attempt).await?;
        for _ in 1..MAX_READINGS {
            if shortest.elapsed < min_seconds || !is_doubtful(shortest) {
                break;
            }
            let other = self.run(work, attempt).await?;
            let (less, more) = (shortest.elapsed.min(other.elapsed), shortest.elapsed.max(other.elapsed));
            if other.elapsed < shortest.elapsed {
                shortest = other;
            }
            if more <= less * READING_AGREEMENT {
                break;
            }
        }
        Ok(shortest.elapsed)
    }

    async fn run(&mut self, work: u64, attempt: &mut Attempt) -> Result<RunTime, Failure> {
        self.runs += 1;
        let name = format!("calibration-{}", self.runs);
        self.definition.run(&name, self.argv, &with_work(self.bindings, work), attempt).await
    }

    /// Counts processes of a sample as runs of the calibration, and removes the sample's files.
    fn take_over(&mut self, names: &[&str], attempt: &mut Attempt) {
        for name in names {
            // There is no probe of work that cannot be divided.
            if attempt.rename_process(name, &format!("calibration-{}", self.runs + 1)) {
                self.runs += 1;
            }
        }
        for file in self.definition.artefact_files() {
            attempt.remove_artefact(&format!("files/{file}"));
        }
    }

    /// Checks that more work takes longer. The first run may have been delayed by other processes or a cold cache:
    /// there are three tries, and later runs are also compared with each other.
    async fn check_time_grows(&mut self, (work, elapsed): (u64, f64), attempt: &mut Attempt) -> Result<(), Failure> {
        let mut last = (work, elapsed);
        let mut shortest = f64::INFINITY;
        for factor in [2, 4, 8] {
            let next = work.saturating_mul(factor);
            last = (next, self.run(next, attempt).await?.elapsed);
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
}

fn outlived_finding(names: &[String]) -> Option<String> {
    let distinct: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    let list: Vec<String> = distinct.iter().map(|name| format!("`{name}`")).collect();
    let (subject, were) = match names {
        [] => return None,
        [_] => ("a process that the command started".to_owned(), "was"),
        [..] => (format!("{} processes that the command started", names.len()), "were"),
    };
    let list = list.join(", ");
    Some(format!(
        "{subject} {were} still running when it ended, and {were} killed ({list}): nothing that came later is measured; \
         `wait` for it, or make it a service"
    ))
}

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

    #[test]
    fn processes_that_outlive_the_command_are_a_finding() {
        assert_eq!(outlived_finding(&[]), None);
        assert_eq!(
            outlived_finding(&["sh".into(), "sleep".into(), "sleep".into()]).unwrap(),
            "3 processes that the command started were still running when it ended, and were killed (`sh`, `sleep`): nothing \
             that came later is measured; `wait` for it, or make it a service"
        );
    }
}
