//! Tests that need a kernel with SCTP, vsock and TLS: this program runs them in an emulated machine, whatever this
//! machine's kernel supports. `WEIGHBRIDGE_IN_GUEST=1` runs them directly.

#[path = "../suite/common/mod.rs"]
mod common;
mod kinds;
mod sctp;
mod vsock;

use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use libtest_mimic::{Arguments, Failed, Trial};
use wb_test_vm::{GuestError, GuestScript, run_script};

/// The environment variable that marks the guest.
const GUEST_VARIABLE: &str = "WEIGHBRIDGE_IN_GUEST";

/// A test's name and function; it panics on failure.
type Test = (&'static str, fn());

fn tests() -> impl Iterator<Item = Test> {
    [sctp::TESTS, vsock::TESTS, kinds::TESTS].concat().into_iter()
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let trials = if std::env::var_os(GUEST_VARIABLE).is_some() {
        let trial = |(name, test): Test| {
            Trial::test(name, move || {
                test();
                Ok(())
            })
        };
        tests().map(trial).collect()
    } else {
        in_guest(arguments.filter.as_deref().unwrap_or_default())
    };
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// One trial per test. A single machine runs all tests whose names contain `filter`.
fn in_guest(filter: &str) -> Vec<Trial> {
    let output = Arc::new(OnceLock::new());
    let names: Vec<_> = tests().map(|(name, _)| name).filter(|name| name.contains(filter)).collect();
    let script =
        names.iter().map(|name| format!("timeout -s KILL 25 tests --color never --exact {name}\n")).collect::<String>();
    let script = Arc::new(format!("export {GUEST_VARIABLE}=1\n{script}"));
    let trial = |name: &'static str| {
        let (output, script) = (output.clone(), script.clone());
        Trial::test(name, move || verdict(name, output.get_or_init(|| guest(&script)))).with_ignored_flag(true)
    };
    names.into_iter().map(trial).collect()
}

/// Runs the tests in an emulated machine and returns their output, or the reason why there is no machine.
fn guest(script: &str) -> Result<String, GuestError> {
    let program = std::env::current_exe().expect("this program has a path");
    let cache = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/guest");
    let modules = &["sctp", "vsock_loopback", "tls", "gcm", "ctr", "aesni_intel"];
    let outcome = run_script(&GuestScript { modules, files: &[(&program, "bin/tests")], script }, &cache)?;
    println!("{}", outcome.output);
    Ok(outcome.output)
}

fn verdict(name: &str, output: &Result<String, GuestError>) -> Result<(), Failed> {
    let lines = match output {
        Ok(lines) => lines,
        Err(missing @ GuestError::Missing { .. }) => {
            wb_test_skip::skip!("{name}: {missing}");
            return Ok(());
        }
        Err(error) => return Err(error.to_string().into()),
    };
    let passed = lines.lines().any(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        words == ["test", name, "...", "ok"]
    });
    if passed { Ok(()) } else { Err("the test did not pass in the guest; see its output above".into()) }
}
