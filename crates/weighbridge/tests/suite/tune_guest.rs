//! Shielding of CPUs with control groups v2, in an emulated machine.

use std::path::Path;

use wb_test_vm::{GuestError, GuestScript, run_script};

/// Prints the CPUs of another process and the state of the groups before, during and after shielding.
const SCRIPT: &str = r#"
mkdir -p /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup || exit 9
sleep 1000 &
bystander=$!
look() {
    echo "seen $1: $(grep Cpus_allowed_list /proc/$bystander/status | cut -f 2)," \
        "$(cat /sys/fs/cgroup/weighbridge-shield/cpuset.cpus.partition 2>/dev/null || echo none)," \
        "$(cat /sys/fs/cgroup/cgroup.subtree_control)"
}
look before
weighbridge tune apply shield=1 || exit 8
look shielded
weighbridge run himeno:grid=XS,threads=1 --samples 1 --warm-up 0 --min-time 1ms \
    --tool 'cat /proc/self/status' --into /run/inside -q >/dev/null
echo "seen measured: $? on $(grep -rh Cpus_allowed_list /run/inside | cut -f 2 | sort -u)"
weighbridge tune apply shield=0-1; echo "seen all: $?"
weighbridge tune revert || exit 7
look after
kill $bystander
test ! -e /var/lib/weighbridge
"#;

#[test]
#[ignore = "starts a machine in software"]
fn cpus_are_shielded_by_a_partition_and_restored() {
    let program = Path::new(env!("CARGO_BIN_EXE_weighbridge"));
    let agent = Path::new(env!("CARGO_BIN_EXE_weighbridge-agent"));
    let files: [(&Path, &str); 2] = [(program, "bin/weighbridge"), (agent, "bin/weighbridge-agent")];
    let errand = GuestScript { modules: &[], files: &files, script: SCRIPT };
    let cache = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/guest");
    let outcome = match run_script(&errand, &cache) {
        Err(missing @ GuestError::Missing { .. }) => return wb_test_skip::skip!("a partition of version 2: {missing}"),
        outcome => outcome.expect("a machine"),
    };
    println!("{}", outcome.output);
    assert_eq!(outcome.status, 0);
    let seen: Vec<&str> = outcome.output.lines().filter_map(|line| line.strip_prefix("seen ")).map(str::trim).collect();
    assert_eq!(
        seen,
        ["before: 0-1, none,", "shielded: 0, root, cpuset", "measured: 0 on 1", "all: 3", "after: 0-1, none,"]
    );
}
