//! Files of other programs in the folder with users' data, beside the repository. The expected result of each file is
//! not known here, so general properties are checked: how `import` ends and what it prints, that figures are in the
//! file and are exported as they are summarised, and that they stay the same when the file is imported again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::Subject;
use crate::case::{CaseError, Finished, Runner};
use crate::csv;

const FOLDER: &str = "../shared/data";

const PARTS: [&str; 5] = ["foreign", "bench-outputs", "libp2p", "history", "run-perf"];

pub(super) struct Files;

impl Subject for Files {
    fn name(&self) -> &'static str {
        "files"
    }

    fn version(&self) -> Option<String> {
        Path::new(FOLDER).is_dir().then(|| format!("of {FOLDER}"))
    }

    fn absence(&self) -> &'static str {
        "no ../shared/data"
    }

    fn cases(&self) -> Option<u32> {
        // One, to report that they cannot be listed.
        files().as_ref().map_or(Some(1), |files| u32::try_from(files.len()).ok())
    }

    fn run(&self, runner: &mut Runner) -> Result<(), CaseError> {
        let files = files().as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()))?;
        let Some(path) = files.get(runner.number as usize) else { return Ok(()) };
        let path_text = path.display().to_string();
        runner.options = path_text.clone();
        let imported = runner.import_file("run", &path_text)?;
        check_end(runner, &imported, &[0, 3]);
        if !runner.path("run").is_dir() {
            return Ok(());
        }
        runner.weighbridge(&["report", "run", "--csv", "report.csv"])?;
        let exported = check_export(runner)?;
        let text = String::from_utf8_lossy(&fs::read(path)?).into_owned();
        check_origin(runner, &text, &exported);
        // Once more, the run has everything already.
        let before = runner.cells("run")?;
        let again = runner.import_file("run", &path_text)?;
        check_end(runner, &again, &[3, 4]);
        let after = runner.cells("run")?;
        runner.require(before == after, || "other figures when it was imported again".to_owned());
        Ok(())
    }
}

/// All files, in order of their names; an error if one of the folders cannot be read.
fn files() -> &'static io::Result<Vec<PathBuf>> {
    static FILES: OnceLock<io::Result<Vec<PathBuf>>> = OnceLock::new();
    FILES.get_or_init(|| {
        let mut files = BTreeSet::new();
        PARTS.iter().try_for_each(|part| add_files(&Path::new(FOLDER).join(part), &mut files))?;
        Ok(files.into_iter().collect())
    })
}

fn add_files(folder: &Path, files: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    let entries =
        fs::read_dir(folder).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", folder.display())))?;
    for entry in entries {
        let path = entry?.path().canonicalize()?;
        if path.is_dir() {
            add_files(&path, files)?;
        } else {
            files.insert(path);
        }
    }
    Ok(())
}

/// Checks how an import ended, and that its messages are for people.
fn check_end(runner: &mut Runner, ended: &Finished, statuses: &[i32]) {
    let status = ended.status;
    let message = ended.errors.trim();
    runner.require(status.is_some_and(|status| statuses.contains(&status)), || {
        format!("ended with {status:?}, expected one of {statuses:?}: {message}")
    });
    let internal = message.lines().find(|line| {
        let mut words = line.split(|character: char| !character.is_alphanumeric() && character != '_');
        words.any(|word| INTERNAL_WORDS.contains(&word)) && (line.starts_with("error") || line.starts_with("warning"))
    });
    runner.require(internal.is_none(), || {
        format!("message with words of the program's source: {}", internal.unwrap_or(""))
    });
}

/// Words that a parser says of the program's own types.
const INTERNAL_WORDS: [&str; 20] = [
    "struct", "enum", "tuple", "variant", "untagged", "newtype", "sequence", "map", "panicked", "unwrap", "Option",
    "Vec", "u8", "u16", "u32", "u64", "usize", "i32", "i64", "f64",
];

/// Checks that samples as exported have the means of the table of results; returns the values of primary metrics.
fn check_export(runner: &mut Runner) -> Result<Vec<f64>, CaseError> {
    let results = csv::parse(&fs::read_to_string(runner.path("report.csv"))?);
    let samples = csv::parse(&fs::read_to_string(runner.path("report-samples.csv"))?);
    let key = |row: &BTreeMap<String, String>| ["cell", "metric", "worker"].map(|name| row[name].clone());
    let number = |row: &BTreeMap<String, String>, name: &str| row[name].parse::<f64>().ok();
    let mut values: BTreeMap<[String; 3], Vec<f64>> = BTreeMap::new();
    for row in samples.iter().filter(|row| row["counted"] == "true") {
        values.entry(key(row)).or_default().extend(number(row, "value"));
    }
    let mut primary = Vec::new();
    for row in &results {
        let own = values.get(&key(row)).map_or(&[][..], Vec::as_slice);
        let mean = own.iter().sum::<f64>() / own.len().max(1) as f64;
        let matches = match number(row, "mean") {
            Some(exported) => (mean - exported).abs() <= exported.abs() * 1e-9,
            None => own.is_empty(),
        };
        runner.require(matches, || {
            format!("{} {}: the samples have the mean {mean}, exported is {}", row["cell"], row["metric"], row["mean"])
        });
        if row["primary"] == "true" {
            primary.extend(own);
        }
    }
    Ok(primary)
}

/// Factors between units of files and of this program: prefixes, and bits.
fn factors() -> impl Iterator<Item = f64> {
    let prefixes = [1.0, 1e3, 1e6, 1e9, 1e-3, 1e-6, 1e-9];
    let others = [1.0, 1.0 / 1024.0, 1.0 / 1_048_576.0, 1.0 / 1_073_741_824.0];
    let bits = [1.0, 0.125];
    prefixes
        .into_iter()
        .flat_map(move |one| others.into_iter().flat_map(move |other| bits.map(|bit| one * other * bit)))
}

/// Checks that values are numbers in the file, in whatever unit, or the sum of two of them: of both directions.
fn check_origin(runner: &mut Runner, text: &str, values: &[f64]) {
    let is_part = |character: char| character.is_ascii_digit() || ".eE+-".contains(character);
    let words = text.split(|character: char| !is_part(character)).map(str::to_owned);
    // A comma separates values, or it is that of decimals.
    let with_commas = text.split(|character: char| !is_part(character) && character != ',');
    let words = words.chain(with_commas.map(|word| word.replacen(',', ".", 1)));
    let mut sorted: Vec<f64> = words.filter_map(|word| word.parse().ok()).collect();
    sorted.sort_by(f64::total_cmp);
    sorted.dedup();
    let has = |value: f64| {
        let position = sorted.partition_point(|number| *number < value - value.abs() * 1e-9);
        sorted.get(position).is_some_and(|number| (number - value).abs() <= value.abs() * 1e-9)
    };
    for value in values {
        let is_sum = |value: f64| sorted.iter().any(|one| has(value - one));
        let is_known = factors().any(|factor| has(value / factor)) || factors().any(|factor| is_sum(value / factor));
        runner.require(is_known, || format!("the value {value} is not in the file"));
    }
}
