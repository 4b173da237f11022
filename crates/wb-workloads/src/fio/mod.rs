//! fio: storage, driven as by pbench-fio, with the latency of every operation.
//!
//! A sample is one run of fio on targets that were written completely before. Start with [`params`], then [`job`] (the
//! job file), [`targets`] (files and devices) and [`values`] (evaluation of the report).

pub mod device;
mod gates;
pub mod histogram;
pub mod histogram_log;
pub mod job;
mod job_file_safety;
mod job_file_settings;
mod job_template;
pub mod json;
pub mod params;
pub mod report;
pub mod run;
pub mod sysinfo;
pub(crate) mod targets;
#[cfg(test)]
mod testing;
pub mod values;

use std::collections::BTreeMap;
use std::io;

use async_trait::async_trait;
use wb_model::{Facts, Metric, Nanos, ParamValue, Params, Placement, Requirement, Scope, Sha256};
use wb_stats::SamplingRule;

use job::FioJob;
pub use job_template::parse_size;
use params::FioParams;
use sysinfo::CollectorOutput;
use targets::FioTarget;
use values::JobFileOrigin;
use wb_test::{Artefacts, Attempt, Failure, Measurement, Rejection, TestInfo, TypedTest, WorkerContext};

/// The test `fio`: fio (J. Axboe) with the parameters of pbench-fio.
pub struct Fio;

/// Prepared state of a cell.
#[derive(Debug)]
pub struct Prepared {
    targets: Vec<FioTarget>,
    template: Option<String>,
    /// Recorded by the first sample.
    sysinfo: Vec<CollectorOutput>,
}

#[async_trait]
impl TypedTest for Fio {
    type Params = FioParams;
    type Prepared = Prepared;

    fn info(&self) -> TestInfo {
        TestInfo {
            name: "fio",
            summary: "storage: throughput and latency of reads and writes",
            version: 1,
            scope: Scope::Cell,
            is_native: false,
        }
    }

    fn requires(&self, _: &FioParams) -> Vec<Requirement> {
        vec![Requirement::new("fio", "fio", &["--version"])]
    }

    fn resolve(&self, given: &Params, _: &Facts) -> BTreeMap<String, Vec<ParamValue>> {
        let mut resolved = pbench_defaults();
        let job_file = given.get("job-file").map(ParamValue::to_string).unwrap_or_default();
        if let Ok(bytes) = read_regular_file(&job_file) {
            resolved.extend(job_file_settings::resolve(&String::from_utf8_lossy(&bytes)));
            resolved.insert(
                "job-file-sha256".to_owned(),
                vec![ParamValue::Text(Sha256::digest(&bytes).as_str().to_owned())],
            );
        }
        resolved
    }

    fn unsupported(&self, params: &FioParams, _: &Placement, _: &Facts) -> Option<String> {
        if !params.job_file.is_empty() && params.job_file_sha256.is_none() {
            return Some(format!("cannot read job file `{}`", params.job_file));
        }
        // A file that was removed meanwhile is named by the attempt.
        if let Ok(bytes) = read_regular_file(&params.job_file)
            && let text = String::from_utf8_lossy(&bytes)
            && let Some(reason) =
                overwriting_job_file(params, &text).or_else(|| job_file_settings::contradiction(&text, params))
        {
            return Some(reason);
        }
        if params.job_file.is_empty() && params.has_syncs() && !params.test_type().writes() {
            return Some(format!("fsync and fdatasync follow writes, and `{}` only reads", params.test_type().name()));
        }
        sysinfo::contradiction(&params.sysinfo).or_else(|| job_error(&params.job(params.targets.clone())))
    }

    fn rule(&self, params: &FioParams) -> Option<SamplingRule> {
        params.rule()
    }

    fn estimate(&self, params: &FioParams, _: Nanos) -> Nanos {
        params.job(params.targets.clone()).estimate()
    }

    fn sets_duration(&self, _: &FioParams) -> bool {
        true
    }

    fn shortening(&self, _: &FioParams) -> &'static str {
        wb_test::test::LOWER_RUNTIME
    }

    fn metrics(&self, params: &FioParams) -> Vec<Metric> {
        values::metrics(params.test_types, params.rate_iops > 0, params.has_syncs())
    }

    async fn prepare(&self, params: &FioParams, context: &WorkerContext) -> Result<Prepared, Failure> {
        run::check_engine(context, &params.ioengine).await?;
        let template = read_job_file(params)?;
        let mut job = params.job(Vec::new());
        // If the job file sets a size, the targets need not be larger.
        job.file_size = template.as_deref().and_then(job_template::file_size).unwrap_or(job.file_size);
        let has_targets = template.as_deref().is_none_or(job_template::uses_targets);
        let targets = if has_targets {
            targets::prepare_targets(context, &job, &params.targets, params.allow_destroy).await?
        } else {
            // fio creates the files of its jobs in the cell's folder, if they have any.
            Vec::new()
        };
        if !params.allow_destroy {
            require_unchanged(params, template.as_deref(), &targets)?;
        }
        Ok(Prepared { targets, template, sysinfo: sysinfo::collect(context, &params.sysinfo).await? })
    }

    async fn sample(&self, params: &FioParams, prepared: &mut Prepared, attempt: &mut Attempt) -> Result<(), Failure> {
        record_sysinfo(attempt, &mut prepared.sysinfo);
        run::run_pre_iteration_script(attempt, &params.pre_iteration_script).await?;
        let job = params.job(prepared.targets.iter().map(|target| target.path.clone()).collect());
        let text = match &prepared.template {
            Some(template) => job_template::expand(template, &job)?,
            None => job.render(),
        };
        for target in &prepared.targets {
            if let Some(warning) = target.ram_backed_warning() {
                attempt.add_finding(warning);
            }
            target.require_same(&attempt.context).await?;
            // The process that holds the device open belongs to the attempt's group, and is killed with it.
            target.hold_exclusively(&attempt.context).await?;
        }
        if let Some(template) = &prepared.template {
            let written = job_file_safety::written_files(template, params.test_types);
            targets::hold_named(&attempt.context, &written, &prepared.targets).await?;
        }
        run::record_memory(attempt)?;
        // What exists was found large enough, so that reading it needs no writing; fio itself refuses to.
        let is_read_only = !params.allow_destroy && prepared.targets.iter().any(FioTarget::is_existing_file);
        run::run(attempt, &text, &params.ioengine, is_read_only).await
    }

    fn study(&self, params: &FioParams, artefacts: &Artefacts) -> Result<Measurement, Rejection> {
        let origin = if params.job_file.is_empty() {
            JobFileOrigin::Generated
        } else {
            JobFileOrigin::User { block_size: params.block_sizes }
        };
        // Without a path there is one target, whose name does not matter.
        let targets = if params.targets.is_empty() { vec!["fio".to_owned()] } else { params.targets.clone() };
        values::study(&params.job(targets), origin, artefacts)
    }
}

pub(crate) fn pbench_defaults() -> BTreeMap<String, Vec<ParamValue>> {
    let texts = |texts: &[&str]| texts.iter().map(|text| ParamValue::Text((*text).to_owned())).collect();
    BTreeMap::from([
        ("test-types".to_owned(), texts(&["read", "randread"])),
        ("block-sizes".to_owned(), texts(&["4k", "64k", "1m"])),
    ])
}

/// Why a job is invalid on any machine and with any version of fio, if it is.
pub(crate) fn job_error(job: &FioJob) -> Option<String> {
    const SECTOR: u64 = 512;
    let (block, file) = (job.block_size, job.file_size);
    if block.0 < SECTOR {
        return Some(format!(
            "invalid block-sizes {block}: expected at least a sector of {SECTOR} bytes; pbench's `{block}` is written `{block}k`"
        ));
    }
    if job.direct && !block.0.is_multiple_of(SECTOR) {
        return Some(format!(
            "invalid block-sizes {block}: direct=true requires a multiple of the sector size, {SECTOR} bytes"
        ));
    }
    if file < block || file.0 < 4096 {
        return Some(format!("invalid file-size {file}: expected at least 4k and one block of {block}"));
    }
    (job.runtime < Nanos(10_000_000)).then(|| format!("invalid runtime {}: expected at least 10ms", job.runtime))
}

/// Refuses a job that would do more than read existing files.
fn require_unchanged(params: &FioParams, template: Option<&str>, targets: &[FioTarget]) -> Result<(), Failure> {
    let Some(existing) = targets.iter().find(|target| target.is_existing_file()) else { return Ok(()) };
    let engine = job_file_safety::changes_files(&params.ioengine).then(|| format!("`ioengine={}`", params.ioengine));
    match engine.or_else(|| template.and_then(job_file_safety::file_changes)) {
        Some(change) => Err(Failure::refused(format!(
            "`{}` exists, and {change} may remove or change it: leave that out, name a path that does not exist, or set \
             allow-destroy=true",
            existing.path
        ))),
        None => Ok(()),
    }
}

pub(crate) fn record_sysinfo(attempt: &mut Attempt, collected: &mut Vec<CollectorOutput>) {
    for CollectorOutput { name, bytes, failure } in collected.drain(..) {
        attempt.add_artefact(&name, bytes);
        if let Some(failure) = failure {
            attempt.add_finding(format!("{name}: {failure}"));
        }
    }
}

/// Reads a file. A FIFO would be waited for, and a device might never end.
fn read_regular_file(path: &str) -> io::Result<Vec<u8>> {
    if std::fs::metadata(path)?.is_file() {
        std::fs::read(path)
    } else {
        Err(io::Error::other("expected a regular file"))
    }
}

/// Reads the user's job file, and checks that it has not changed since the run was planned.
fn read_job_file(params: &FioParams) -> Result<Option<String>, Failure> {
    let path = &params.job_file;
    if path.is_empty() {
        return Ok(None);
    }
    let bytes =
        read_regular_file(path).map_err(|error| Failure::refused(format!("cannot read job file `{path}`: {error}")))?;
    if params.job_file_sha256.as_deref() != Some(Sha256::digest(&bytes).as_str()) {
        return Err(Failure::refused(format!("job file `{path}` changed since the run was planned")));
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    match overwriting_job_file(params, &text) {
        Some(reason) => Err(Failure::refused(reason)),
        None => Ok(Some(text)),
    }
}

/// Why a job file may overwrite more than the targets without permission, if it may.
fn overwriting_job_file(params: &FioParams, text: &str) -> Option<String> {
    let named = job_file_safety::own_files(text).filter(|_| !params.allow_destroy)?;
    let path = &params.job_file;
    Some(format!(
        "job file `{path}` has {named}, which fio may overwrite: use `filename=$target`, or set allow-destroy=true"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unsupported(json: &str) -> Option<String> {
        let params: FioParams = serde_json::from_str(json).unwrap();
        TypedTest::unsupported(&Fio, &params, &Placement::default(), &Facts::default())
    }

    #[test]
    fn unsupported_parameters_have_a_reason() {
        assert_eq!(unsupported("{}"), None);
        assert!(unsupported(r#"{"block-sizes": 4}"#).unwrap().ends_with("pbench's `4` is written `4k`"));
        assert!(unsupported(r#"{"block-sizes": 1000}"#).unwrap().contains("multiple of the sector size"));
        assert_eq!(unsupported(r#"{"block-sizes": 1000, "direct": false}"#), None);
        assert!(unsupported(r#"{"block-sizes": "1m", "file-size": "64k"}"#).unwrap().contains("invalid file-size 64k"));
        assert!(unsupported(r#"{"runtime": 0}"#).unwrap().contains("at least 10ms"));
        for option in ["fsync", "fdatasync"] {
            assert_eq!(unsupported(&format!(r#"{{"test-types": "randrw", "{option}": 1}}"#)), None);
            assert_eq!(
                unsupported(&format!(r#"{{"test-types": "randread", "{option}": 1}}"#)).unwrap(),
                "fsync and fdatasync follow writes, and `randread` only reads"
            );
        }
        assert!(unsupported(r#"{"job-file": "/nosuch"}"#).unwrap().contains("cannot read"));
    }

    #[test]
    fn the_estimate_follows_the_job() {
        let estimate = |json: &str| {
            let params: FioParams = serde_json::from_str(json).unwrap();
            TypedTest::estimate(&Fio, &params, Nanos(0)).seconds()
        };
        assert_eq!(estimate("{}"), 190.5);
        assert_eq!(estimate(r#"{"targets": ["/a", "/b"], "job-mode": "serial", "runtime": 1, "ramptime": 1}"#), 4.5);
    }

    #[test]
    fn a_job_file_is_part_of_the_definition() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("own.fio");
        std::fs::write(&path, "[x]\nfilename=$target\n").unwrap();
        let given = Params::from([("job-file".to_owned(), ParamValue::Text(path.display().to_string()))]);
        let resolved = TypedTest::resolve(&Fio, &given, &Facts::default());
        let sha256 = resolved["job-file-sha256"][0].to_string();
        let params =
            FioParams { job_file: path.display().to_string(), job_file_sha256: Some(sha256), ..FioParams::default() };
        assert!(read_job_file(&params).unwrap().is_some());
        std::fs::write(&path, "[x]\nfilename=$target\nrw=write\n").unwrap();
        assert!(read_job_file(&params).unwrap_err().to_string().contains("changed since"));
    }
}
