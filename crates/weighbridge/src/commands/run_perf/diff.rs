//! `diff-perf` as `nearest --exit-index`.

use std::path::Path;

use super::{Translation, build, option_words};
use crate::cli::run_perf::DiffPerfArgs;
use crate::error::Error;

/// The build in question first, then candidates; groups count after these, as in run-perf.
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
