//! SMT switched off for a host with `disable_smt`, in an emulated machine.

use std::path::Path;

use wb_test_vm::{GuestError, GuestScript, run_script};

use crate::lab::FIGURE;

/// A test that records which CPUs are online while it is measured.
const TEST: &str = r#"
name = "sees"
summary = "the CPUs that are online"
version = 1
command = ["sh", "-c", "cat /sys/devices/system/cpu/online > /seen; echo figure: 1"]
"#;

const SCRIPT: &str = r#"
export HOME=/ XDG_CONFIG_HOME=/config
look() { echo "seen $1: $(cat /sys/devices/system/cpu/smt/control), $(cat /sys/devices/system/cpu/online)"; }
look before
weighbridge run sees --force-params '{"disable_smt": true}' --min-time 1ms --warm-up 0 --samples 6 --retakes 0 --into /R
echo "seen exit: $?"
echo "seen measured: $(cat /seen)"
look after
test ! -e /var/lib/weighbridge && echo "seen left: nothing"
"#;

#[test]
#[ignore = "starts a machine in software"]
fn smt_is_off_while_measuring_and_restored_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let definition = folder.path().join("sees.toml");
    std::fs::write(&definition, format!("{TEST}{FIGURE}")).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_weighbridge"));
    let agent = Path::new(env!("CARGO_BIN_EXE_weighbridge-agent"));
    let files: [(&Path, &str); 3] = [
        (program, "bin/weighbridge"),
        (agent, "bin/weighbridge-agent"),
        (&definition, "config/weighbridge/tests.d/sees.toml"),
    ];
    let cache = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/guest");
    let outcome = match run_script(&GuestScript { modules: &[], files: &files, script: SCRIPT }, &cache) {
        Err(missing @ GuestError::Missing { .. }) => return wb_test_skip::skip!("threads of a core: {missing}"),
        outcome => outcome.expect("a machine"),
    };
    println!("{}", outcome.output);
    let seen: Vec<&str> = outcome.output.lines().filter_map(|line| line.strip_prefix("seen ")).map(str::trim).collect();
    assert_eq!(seen, ["before: on, 0-1", "exit: 0", "measured: 0", "after: on, 0-1", "left: nothing"]);
}
