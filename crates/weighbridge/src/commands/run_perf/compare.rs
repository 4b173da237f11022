//! Translates `compare-perf` into `compare`.

use std::path::Path;

use wb_run_perf::build;

use super::{Translation, flag_word, option_words, path_word, with_skipped};
use crate::cli::run_perf::ComparePerfArgs;
use crate::error::Error;

/// Translates the arguments. The method is tolerance, as in run-perf; only options that were given are passed on.
pub(super) fn translate(args: &ComparePerfArgs) -> Result<Translation, Error> {
    let mut notes = Vec::new();
    let results = build::keep_folders(&args.results, |result| Path::new(result), &mut notes);
    if results.len() < 2 {
        return Err(Error::Usage {
            what: with_skipped("too few builds: expected two or more", &notes),
            help: "the first build is the reference, the last one is judged".to_owned(),
        });
    }
    let mut words = ["compare", "--method", "tolerance", "--fail-on", "missing"].map(str::to_owned).to_vec();
    words.extend(flag_word("--include-incorrect", args.include_incorrect_results));
    words.extend(option_words("--tolerance", args.tolerance));
    words.extend(option_words("--stddev-tolerance", args.stddev_tolerance));
    words.extend(option_words("--model-builds-average", args.model_builds_average));
    words.extend(args.model_linear_regression.iter().flat_map(|model| option_words("--model", Some(path_word(model)))));
    words.extend(option_words("--n-out-of-results", args.n_out_of_results));
    words.extend(option_words("--n-out-of-results-n", args.n_out_of_results_n));
    words.extend(option_words("--html", args.html.as_ref().map(|path| path_word(path.as_path()))));
    words.extend(flag_word("--no-charts", args.html.is_some() && !args.html_with_charts));
    words.extend(flag_word("--no-environments", args.html.is_some() && args.html_small_file));
    words.extend(option_words("--junit", args.xunit.as_ref().map(|path| path_word(path.as_path()))));
    words.extend(option_words("--csv", args.csv_prefix.as_ref().map(|path| path_word(path.as_path()))));
    words.extend(flag_word("--verbose", args.verbose > 0));
    words.push("--".to_owned());
    for result in results {
        words.push(build::parse_named_build(result)?);
    }
    Ok(Translation { commands: vec![words], notes })
}
