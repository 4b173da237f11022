//! Translates `diff-perf` into `nearest --exit-index`.

use std::path::Path;

use wb_run_perf::build;

use super::{Translation, option_words};
use crate::cli::run_perf::DiffPerfArgs;
use crate::error::Error;

/// Translates the arguments: the build to classify, then candidates; groups are numbered after these, as in run-perf.
pub(super) fn translate(args: &DiffPerfArgs) -> Result<Translation, Error> {
    let mut words = ["nearest", "--exit-index"].map(str::to_owned).to_vec();
    words.extend(option_words("--flatten", args.flatten_coefficient));
    for group in &args.groups.0 {
        words.push("--group".to_owned());
        for build in group {
            words.push(build::folder_build(Path::new(build))?);
        }
    }
    words.push("--".to_owned());
    for result in &args.results {
        words.push(build::folder_build(result)?);
    }
    Ok(Translation::single(words))
}
