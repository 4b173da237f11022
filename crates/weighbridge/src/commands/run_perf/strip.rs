//! Translates `strip-run-perf` into `strip`.

use super::{Translation, flag_word, path_word};
use crate::cli::run_perf::StripRunPerfArgs;

pub(super) fn translate(args: &StripRunPerfArgs) -> Translation {
    let mut words = vec!["strip".to_owned()];
    words.extend(flag_word("--include-incorrect", args.include_incorrect));
    words.extend(flag_word("--attach-sysinfo", args.attach_sysinfo));
    words.extend(["--".to_owned(), path_word(&args.src), path_word(&args.dst)]);
    Translation::single(words)
}
