//! The network engine with SCTP, vsock and kernel TLS, in an emulated machine.

use std::{
    fs,
    path::{Path, PathBuf},
};

use wb_test_vm::{GuestError, GuestScript, run_script};

/// Sets a token and starts a server.
const BEGINNING: &str = "export WEIGHBRIDGE_NET_TOKEN=$(weighbridge net token)\n\
    weighbridge net serve 2>/dev/null &\n\
    sleep 1\n";

/// Variables of uperf's profiles.
const VARIABLES: &str = "--var h=127.0.0.1 --var h1=127.0.0.1 --var h2=127.0.0.1 --var nthr=2 --var iter=10 \
    --var dur=1s --var nth=2 --var msg_r=64 --var msg_w=64 --var host=127.0.0.1";

/// A profile of requests and responses over kernel TLS.
const KERNEL_TLS: &str = r#"<profile name="ktls">
  <group nthreads="2">
    <transaction iterations="1"><flowop type="connect" options="remotehost=127.0.0.1 protocol=ssl engine=ktls"/></transaction>
    <transaction duration="1s"><flowop type="write" options="size=1k"/><flowop type="read" options="size=16k"/></transaction>
    <transaction iterations="1"><flowop type="disconnect"/></transaction>
  </group>
</profile>
"#;

/// Runs command lines in a guest; returns exit status and output of each, or `None` if no guest can be started.
fn run_in_guest(lines: &[String], files: &[(PathBuf, String)]) -> Option<Vec<(i32, String)>> {
    let script = lines.iter().map(|line| format!("{line} 2>&1\necho \"ended with $?\"\n")).collect::<String>();
    let program = (PathBuf::from(env!("CARGO_BIN_EXE_weighbridge")), "bin/weighbridge".to_owned());
    let files: Vec<_> =
        files.iter().chain([&program]).map(|(local, remote)| (local.as_path(), remote.as_str())).collect();
    let errand = GuestScript {
        modules: &["sctp", "vsock_loopback", "tls", "gcm", "ctr", "aesni_intel"],
        files: &files,
        script: &format!("{BEGINNING}{script}"),
    };
    let cache = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/guest");
    let outcome = match run_script(&errand, &cache) {
        Err(missing @ GuestError::Missing { .. }) => {
            wb_test_skip::skip!("the network engine where the kernel has all protocols: {missing}");
            return None;
        }
        outcome => outcome.expect("a machine"),
    };
    println!("{}", outcome.output);
    let mut results = Vec::new();
    let mut output = String::new();
    for line in outcome.output.lines() {
        match line.strip_prefix("ended with ") {
            Some(code) => results.push((code.parse().expect("exit status"), std::mem::take(&mut output))),
            None => output += &format!("{line}\n"),
        }
    }
    assert_eq!(results.len(), lines.len());
    Some(results)
}

#[test]
#[ignore = "starts a machine in software"]
fn presets_and_profiles_run_over_sctp_vsock_and_kernel_tls() {
    let folder = tempfile::tempdir().unwrap();
    let ktls = folder.path().join("ktls.xml");
    fs::write(&ktls, KERNEL_TLS).unwrap();
    let mut files = vec![(ktls, "tmp/ktls.xml".to_owned())];
    let mut lines = vec![
        "weighbridge net rr 127.0.0.1 --protocols sctp,vsock --message-sizes 90 --instances 1,20 --runtime 1s"
            .to_owned(),
        "weighbridge net stream 127.0.0.1 --protocols sctp,vsock --message-sizes 8k --runtime 1s".to_owned(),
        "weighbridge net crr 127.0.0.1 --protocols sctp,vsock --runtime 1s".to_owned(),
    ];
    let uperfs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/uperf-workloads");
    let mut profiles = vec!["ktls.xml".to_owned()];
    for name in ["sctp.xml", "sctp_flowop_test.xml", "sctp-over-udp.xml", "vsock.xml"] {
        let file = uperfs.join(name);
        if !file.is_file() {
            wb_test_skip::skip!("{name}: it is not beside the repository (../shared/data/uperf-workloads)");
            continue;
        }
        files.push((file, format!("profiles/{name}")));
        profiles.push(format!("/profiles/{name}"));
    }
    for profile in &profiles {
        lines.push(format!("weighbridge net check {profile} {VARIABLES}"));
        lines.push(format!("weighbridge net run {profile} {VARIABLES} -q --max-duration 1s"));
    }
    let Some(seen) = run_in_guest(&lines, &files) else { return };
    for ((code, output), line) in seen.iter().zip(&lines) {
        assert_eq!(*code, 0, "{line}: {output}");
        assert!(!output.contains("NaN"), "{line}: {output}");
    }
}
