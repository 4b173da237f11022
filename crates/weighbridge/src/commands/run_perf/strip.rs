//! `strip-run-perf` as `strip`.

use super::{Translation, flag, path};
use crate::cli::run_perf::StripRunPerfArgs;

/// What `strip` is to do.
pub(super) fn translate(args: &StripRunPerfArgs) -> Translation {
    let mut words = vec!["strip".to_owned()];
    words.extend(flag("--include-incorrect", args.include_incorrect));
    words.extend(flag("--attach-sysinfo", args.attach_sysinfo));
    words.extend(["--".to_owned(), path(&args.src), path(&args.dst)]);
    Translation::of(words)
}
