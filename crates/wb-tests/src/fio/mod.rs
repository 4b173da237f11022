//! fio: storage, as pbench-fio drives it, with the latency of every operation.
//!
//! A sample is one run of fio on targets that were written whole before. Start with [`params`], then [`job`] (what fio
//! is told), [`targets`] (on what) and [`values`] (what came of it).

mod device;
mod gates;
pub mod histogram;
pub mod histogram_log;
pub mod job;
mod job_template;
pub mod params;
pub mod report;
pub mod run;
pub mod sysinfo;
pub(crate) mod targets;
#[cfg(test)]
mod testing;
pub mod values;

use std::collections::BTreeMap;
use std::path::Path;

use async_trait::async_trait;
use wb_model::{Facts, Metric, Nanos, ParamValue, Params as Given, Placement, Requirement, Scope, Sha256};
use wb_stats::SamplingRule;

use crate::{Artefacts, Attempt, Failure, Measurement, Rejection, TestInfo, TypedTest, WorkerContext};
use job::FioJob;
use params::Params;
use sysinfo::CollectorOutput;
use targets::FioTarget;
use values::JobFileOrigin;

/// fio (J. Axboe), with pbench-fio's parameters.
pub struct Fio;

/// What is prepared for all samples of a cell.
#[derive(Debug)]
pub struct Prepared {
    targets: Vec<FioTarget>,
    template: Option<String>,
    /// Kept by the first sample.
    sysinfo: Vec<CollectorOutput>,
}

#[async_trait]
impl TypedTest for Fio {
    type Params = Params;
    type Prepared = Prepared;

    fn info(&self) -> TestInfo {
        TestInfo {
            name: "fio",
            summary: "storage: throughput and latency of reads and writes",
            version: 1,
            scope: Scope::Cell,
        }
    }

    fn requires(&self, _: &Params) -> Vec<Requirement> {
        vec![Requirement::new("fio", "fio", &["--version"])]
    }

    fn resolve(&self, given: &Given, _: &Facts) -> BTreeMap<String, Vec<ParamValue>> {
        let mut resolved = pbench_defaults();
        let job_file = given.get("job-file").map(ParamValue::to_string).unwrap_or_default();
        if let Ok(bytes) = std::fs::read(Path::new(&job_file)) {
            resolved
                .insert("job-file-sha256".to_owned(), vec![ParamValue::Text(Sha256::of(&bytes).as_str().to_owned())]);
        }
        resolved
    }

    fn unsupported(&self, params: &Params, _: &Placement, _: &Facts) -> Option<String> {
        if !params.job_file.is_empty() && params.job_file_sha256.is_none() {
            return Some(format!("the job file `{}` cannot be read", params.job_file));
        }
        sysinfo::contradiction(&params.sysinfo).or_else(|| job_contradiction(&params.job(params.targets.clone())))
    }

    fn rule(&self, params: &Params) -> Option<SamplingRule> {
        params.rule()
    }

    fn estimate(&self, params: &Params, _: Nanos) -> Nanos {
        params.job(params.targets.clone()).estimate()
    }

    fn sets_duration(&self, _: &Params) -> bool {
        true
    }

    fn metrics(&self, params: &Params) -> Vec<Metric> {
        values::metrics(params.test_types)
    }

    async fn prepare(&self, params: &Params, site: &WorkerContext) -> Result<Prepared, Failure> {
        run::check_engine(site, &params.ioengine).await?;
        let template = read_job_file(params)?;
        let mut job = params.job(Vec::new());
        // A job file that says how large its files are needs no larger ones.
        job.file_size = template.as_deref().and_then(job_template::file_size).unwrap_or(job.file_size);
        let targets = targets::prepare_targets(site, &job, &params.targets, params.allow_destroy).await?;
        Ok(Prepared { targets, template, sysinfo: sysinfo::collect(site, &params.sysinfo).await? })
    }

    async fn sample(&self, params: &Params, prepared: &mut Prepared, attempt: &mut Attempt) -> Result<(), Failure> {
        record_sysinfo(attempt, &mut prepared.sysinfo);
        run::run_pre_iteration_script(attempt, &params.pre_iteration_script).await?;
        let job = params.job(prepared.targets.iter().map(|target| target.path.clone()).collect());
        let text = match &prepared.template {
            Some(template) => job_template::fill_in(template, &job)?,
            None => job.render(),
        };
        for target in &prepared.targets {
            if let Some(finding) = target.finding() {
                attempt.add_finding(finding);
            }
            // It lives in the attempt's group, and so as long as the attempt.
            target.hold_exclusively(&attempt.context).await?;
        }
        run::record_memory(attempt)?;
        run::run(attempt, &text, &params.ioengine).await
    }

    fn study(&self, params: &Params, artefacts: &Artefacts) -> Result<Measurement, Rejection> {
        let written = if params.job_file.is_empty() { JobFileOrigin::Generated } else { JobFileOrigin::User };
        // Without a path there is one target; what it is called does not matter.
        let targets = if params.targets.is_empty() { vec!["fio".to_owned()] } else { params.targets.clone() };
        values::study(&params.job(targets), written, artefacts)
    }
}

/// What pbench-fio does where nothing is said.
pub(crate) fn pbench_defaults() -> BTreeMap<String, Vec<ParamValue>> {
    let texts = |texts: &[&str]| texts.iter().map(|text| ParamValue::Text((*text).to_owned())).collect();
    BTreeMap::from([
        ("test-types".to_owned(), texts(&["read", "randread"])),
        ("block-sizes".to_owned(), texts(&["4k", "64k", "1m"])),
    ])
}

/// Why no fio could do this anywhere.
pub(crate) fn job_contradiction(job: &FioJob) -> Option<String> {
    const SECTOR: u64 = 512;
    let (block, file) = (job.block_size, job.file_size);
    if block.0 < SECTOR {
        return Some(format!(
            "blocks of {block} bytes are less than a sector: pbench's `{block}` is written `{block}k`"
        ));
    }
    if job.direct && !block.0.is_multiple_of(SECTOR) {
        return Some(format!(
            "direct=true needs blocks of whole sectors of {SECTOR} bytes, and block-sizes is {block}"
        ));
    }
    if file < block || file.0 < 4096 {
        return Some(format!("file-size is {file}, and must be 4k and one block of {block} at least"));
    }
    (job.runtime < Nanos(10_000_000)).then(|| format!("a runtime of {} is too short: 10ms at least", job.runtime))
}

/// Keeps what was collected, once per cell.
pub(crate) fn record_sysinfo(attempt: &mut Attempt, collected: &mut Vec<CollectorOutput>) {
    for CollectorOutput { name, bytes, failure: missed } in collected.drain(..) {
        attempt.add_artefact(&name, bytes);
        if let Some(why) = missed {
            attempt.add_finding(format!("{name}: {why}"));
        }
    }
}

/// The user's job file, as it was when the plan was made.
fn read_job_file(params: &Params) -> Result<Option<String>, Failure> {
    let path = &params.job_file;
    if path.is_empty() {
        return Ok(None);
    }
    let bytes = std::fs::read(path).map_err(|error| Failure::refused(format!("the job file `{path}`: {error}")))?;
    if params.job_file_sha256.as_deref() != Some(Sha256::of(&bytes).as_str()) {
        return Err(Failure::refused(format!("the job file `{path}` is another since the run was planned")));
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    if job_template::names_own_files(&text) && !params.allow_destroy {
        return Err(Failure::refused(format!(
            "the job file `{path}` names files of its own, which fio may overwrite: write `$target`, or allow-destroy=true"
        )));
    }
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unsupported(json: &str) -> Option<String> {
        let params: Params = serde_json::from_str(json).unwrap();
        TypedTest::unsupported(&Fio, &params, &Placement::default(), &Facts::default())
    }

    #[test]
    fn what_cannot_be_says_why() {
        assert_eq!(unsupported("{}"), None);
        assert!(unsupported(r#"{"block-sizes": 4}"#).unwrap().ends_with("pbench's `4` is written `4k`"));
        assert!(unsupported(r#"{"block-sizes": 1000}"#).unwrap().contains("whole sectors"));
        assert_eq!(unsupported(r#"{"block-sizes": 1000, "direct": false}"#), None);
        assert!(unsupported(r#"{"block-sizes": "1m", "file-size": "64k"}"#).unwrap().contains("file-size is 64k"));
        assert!(unsupported(r#"{"runtime": 0}"#).unwrap().contains("too short"));
        assert!(unsupported(r#"{"job-file": "/nosuch"}"#).unwrap().contains("cannot be read"));
    }

    #[test]
    fn the_estimate_follows_the_job() {
        let estimate = |json: &str| {
            let params: Params = serde_json::from_str(json).unwrap();
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
        let given = Given::from([("job-file".to_owned(), ParamValue::Text(path.display().to_string()))]);
        let resolved = TypedTest::resolve(&Fio, &given, &Facts::default());
        let sha256 = resolved["job-file-sha256"][0].to_string();
        let params =
            Params { job_file: path.display().to_string(), job_file_sha256: Some(sha256), ..Params::default() };
        assert!(read_job_file(&params).unwrap().is_some());
        std::fs::write(&path, "[x]\nfilename=$target\nrw=write\n").unwrap();
        assert!(read_job_file(&params).unwrap_err().to_string().contains("is another since"));
    }
}
