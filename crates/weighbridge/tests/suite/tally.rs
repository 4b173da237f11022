//! `scripts/tally`, the last step of `make test` and `.ci/run`.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

const LOG: &str = "\
test fast ... ok
test slow ... FAILED

successes:

---- fast stdout ----
SKIPPED: kernel has no sctp 6.18

---- other stdout ----
SKIPPED: there is no program `fio` here
SKIPPED: there is no program `fio` here

failures:

---- slow stdout ----
thread 'slow' panicked at src/lib.rs:1:1:
it took 3 s
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace

test result: FAILED. 3 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.10s
test result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s
";

const ALLOWED: &str = "# a comment\n\nkernel has no sctp *  Debian's kernels have it, this one not\n";

/// Output and exit status of the script for a log and a list of allowed skips.
fn tally(log: &str, allowed: &str, require: Option<&str>) -> String {
    let folder = TempDir::new().unwrap();
    let script = folder.path().join("tally");
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/tally"), &script).unwrap();
    fs::write(folder.path().join("allowed-skips"), allowed).unwrap();
    fs::write(folder.path().join("log"), log).unwrap();
    // By its interpreter: while a child of another test inherits the descriptor that it was written by, it cannot be started.
    let mut command = Command::new("sh");
    command.arg("tally");
    // The variable may be set in the environment of this test.
    command.current_dir(&folder).arg("log").env_remove("WEIGHBRIDGE_REQUIRE");
    command.envs(require.map(|value| ("WEIGHBRIDGE_REQUIRE", value)));
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let printed = text(&output.stdout) + &text(&output.stderr);
    format!("{}exit code {}", printed.trim_start(), output.status.code().unwrap())
}

#[test]
fn skips_are_counted_apart_from_passes_with_their_reasons() {
    insta::assert_snapshot!(tally(LOG, ALLOWED, None), @r"
    skipped:
      kernel has no sctp 6.18
      there is no program `fio` here (2 times)

    failed:
      slow

    printed by them:
      thread 'slow' panicked at src/lib.rs:1:1:
      it took 3 s

    7 passed, 1 failed, 3 skipped
    exit code 0
    ");
}

#[test]
fn unlisted_skip_fails_if_all_is_required() {
    insta::assert_snapshot!(tally(LOG, ALLOWED, Some("all")), @r"
    skipped:
      kernel has no sctp 6.18
      there is no program `fio` here (2 times)

    skipped, which WEIGHBRIDGE_REQUIRE=all does not allow (./allowed-skips lists what may be):
      there is no program `fio` here (2 times)

    failed:
      slow

    printed by them:
      thread 'slow' panicked at src/lib.rs:1:1:
      it took 3 s

    7 passed, 1 failed, 3 skipped
    exit code 1
    ");
}

#[test]
fn listed_skip_is_allowed_if_all_is_required() {
    let listed = format!("{ALLOWED}* `fio` here  an invented reason\n");
    let printed = tally(LOG, &listed, Some("all"));
    assert!(printed.ends_with("7 passed, 1 failed, 3 skipped\nexit code 0"), "{printed}");
    assert!(!printed.contains("does not allow"), "{printed}");
    // A pattern must match the whole line.
    for part in ["kernel has no sctp  why\n", "* no sctp  why\n", "has no sctp *  why\n", "kernel*7  why\n"] {
        let refused = tally("SKIPPED: kernel has no sctp 6.18\n", part, Some("all"));
        assert!(refused.ends_with("0 passed, 0 failed, 1 skipped\nexit code 1"), "{part}: {refused}");
    }
}

#[test]
fn an_invalid_list_or_requirement_is_an_error() {
    insta::assert_snapshot!(tally(LOG, "kernel has no sctp *\n", Some("all")), @r"
    error: ./allowed-skips:1: expected what is printed, two spaces and why it may be skipped
    exit code 2
    ");
    insta::assert_snapshot!(tally(LOG, ALLOWED, Some("some")), @r"
    error: invalid WEIGHBRIDGE_REQUIRE `some`: expected `all` or nothing
    exit code 2
    ");
}

#[test]
fn every_entry_of_the_list_has_its_reason() {
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/allowed-skips");
    let printed = tally("", &fs::read_to_string(list).unwrap(), Some("all"));
    assert_eq!(printed, "0 passed, 0 failed, 0 skipped\nexit code 0");
}
