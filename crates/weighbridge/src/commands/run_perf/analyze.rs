//! Translates `analyze-perf` into `analyze`, `model fit` and `model rebase`.

use wb_run_perf::build;

use super::{Translation, option_words, path_word, with_skipped};
use crate::cli::run_perf::AnalyzePerfArgs;
use crate::error::Error;

/// One command for each file to write; without any, the table goes to standard output.
pub(super) fn translate(args: &AnalyzePerfArgs) -> Result<Translation, Error> {
    let mut notes = Vec::new();
    let folders = build::keep_folders(&args.results, |result| result.as_path(), &mut notes);
    if folders.is_empty() {
        let what = with_skipped("invalid results: expected folders of results", &notes);
        return Err(Error::Usage { what, help: "name folders written by run-perf or `weighbridge run`".to_owned() });
    }
    let builds = folders.into_iter().map(|folder| build::folder_build(folder)).collect::<Result<Vec<_>, _>>()?;
    let models = [("--linear", &args.linear_regression), ("--stddev", &args.stddev_linear_regression)];
    let writes_model = models.iter().any(|(_, file)| file.is_some());
    if !writes_model && args.rebase_model.is_some() {
        return Err(Error::Usage {
            what: "--rebase-model requires an output file".to_owned(),
            help: "name one with --linear-regression or --stddev-linear-regression".to_owned(),
        });
    }
    let mut commands = Vec::new();
    if args.csv.is_some() || !writes_model {
        let output = option_words("--output", args.csv.as_ref().map(|path| path_word(path.as_path())));
        let words = ["analyze", "--primary"].map(str::to_owned).into_iter().chain(output);
        commands.push(words.chain(["--".to_owned()]).chain(builds.clone()).collect());
    }
    for (kind, file) in models {
        let Some(file) = file else { continue };
        let mut words: Vec<String> = ["model", if args.rebase_model.is_some() { "rebase" } else { "fit" }, kind]
            .map(str::to_owned)
            .into_iter()
            .chain(option_words("--output", Some(path_word(file.as_path()))))
            .chain(option_words("--tolerance", args.tolerance))
            .chain(["--".to_owned()])
            .collect();
        words.extend(args.rebase_model.as_deref().map(path_word));
        words.extend(builds.clone());
        commands.push(words);
    }
    Ok(Translation { commands, notes })
}
