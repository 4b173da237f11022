//! `--file`: specifications of benches in files.

use std::path::{Path, PathBuf};

use wb_contention::{BenchSpec, resctl_bench};
use wb_diagnostics::DiagnosticCollector;
use wb_results::contention::Bench;

use crate::error::Error;

/// The specifications of files, then those that are arguments.
pub(crate) fn with_files(files: &[PathBuf], words: Vec<String>) -> Result<Vec<String>, Error> {
    let mut all = Vec::new();
    for file in files {
        all.extend(read(file)?);
    }
    all.extend(words);
    Ok(all)
}

fn read(file: &Path) -> Result<Vec<String>, Error> {
    let text = std::fs::read_to_string(file).map_err(Error::file("read", file))?;
    let name = file.display();
    let words: Vec<(String, String)> = if resctl_bench::is_job_file(&text) {
        let jobs = resctl_bench::read_jobs(&text);
        let jobs = jobs.map_err(|error| usage(format!("{name}: {error}")))?;
        jobs.into_iter().zip(1..).map(|(job, number)| (format!("{name}, job {number}"), job)).collect()
    } else {
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default()).zip(1..);
        let of_line = |(line, number): (&str, u32)| {
            let name = format!("{name}:{number}");
            line.split_whitespace().map(|word| (name.clone(), word.to_owned())).collect::<Vec<_>>()
        };
        lines.flat_map(of_line).collect()
    };
    if words.is_empty() {
        return Err(usage(format!("{name} has no contention bench")));
    }
    let mut mistakes = DiagnosticCollector::default();
    for (source, word) in &words {
        mistakes.ok(BenchSpec::parse_from(source, word));
    }
    mistakes.finish()?;
    Ok(words.into_iter().map(|(_, word)| word).collect())
}

fn usage(what: String) -> Error {
    Error::Usage {
        what,
        help: format!(
            "expected specifications such as `{}:vrate-intvs=10`, or a job file of resctl-bench; tests are in plans \
             (--plan)",
            Bench::IocostQos
        ),
    }
}
