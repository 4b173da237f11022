//! A sequence of contention benches through the command line, in an emulated machine: measured, killed, resumed, read.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use wb_fleet::Program;
use wb_results::contention::{Answer, BenchResult, ScenarioAnswer};
use wb_test_vm::{GuestConfig, GuestDisk, GuestError, SshGuest, built_image};

const IMAGE: &str = r#"{"built":"bookworm","packages":["fio"]}"#;

/// A disk whose speed the emulation reaches.
const DISK: GuestDisk = GuestDisk { size_mib: 6144, iops: 4000, mib_per_second: 192 };

/// Creates a file system on the disk, with swap on it.
const PREPARE: &str =
    "set -e; mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 /dev/nvme0n1; mkdir -p /mnt/measured
mount /dev/nvme0n1 /mnt/measured; (umask 077; fallocate -l 2G /mnt/measured/swap)
mkswap -q /mnt/measured/swap; swapon /mnt/measured/swap";

/// A sequence whose hashd the emulation can run, in short. The disk has ext4, which nothing but --force accepts. The throttled disk is slower than a device that io.cost is
/// worth setting up on, and hardly isolates anything.
const RUN: &str = "/root/weighbridge -r /root/R run iocost-params \
    hashd-params:fake-cpu-load,rps-max=10,hash-size=16k,chunk-pages=1,log-bps=4k \
    iocost-qos:storage-base-loops=1,rps-max=10,hash-size=16k,chunk-pages=1,log-bps=4k,ignore-min-perf,isol-thr=0.01:min=75,max=75 \
    protection::scenario=mem-hog,loops=1,load=0.8 --dir /mnt/measured/d --mem-profile 1 --time-scale 0.03 --force";

/// The settings that benches change.
const SETTINGS: &str = "cd /sys/fs/cgroup; ls -d weighbridge* 2>/dev/null; cat cgroup.subtree_control; \
    grep -v enable=0 io.cost.qos; grep -v ctrl=auto io.cost.model; cat /proc/sys/vm/swappiness; \
    cat /sys/block/nvme0n1/queue/nomerges; ls /sys/kernel/tracing/instances; ls /var/lib/weighbridge 2>/dev/null; true";

struct Guest(SshGuest);

impl Guest {
    /// Runs a script; returns its exit status and its output.
    fn run(&self, script: &str) -> (i32, String) {
        let output = self.0.log_in(&format!("( {script} ) 2>&1")).unwrap();
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs a script, which must succeed; returns its output.
    fn shell(&self, script: &str) -> String {
        let (status, output) = self.run(script);
        assert_eq!(status, 0, "{script}: {output}\n{}", self.0.console());
        output
    }

    fn copy(&self, path: &Path) {
        let program = Program::read(path).unwrap();
        let copy = format!("/root/{}", path.file_name().unwrap().display());
        let mut copying = Command::new("ssh")
            .arg("-F")
            .arg(self.0.ssh_config())
            .args(["guest", &format!("gzip -d > {copy} && chmod +x {copy}")])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        copying.stdin.take().unwrap().write_all(program.compressed().unwrap()).unwrap();
        assert!(copying.wait().unwrap().success());
    }

    /// Starts the sequence, and kills it with SIGKILL once its journal has a number of checkpoints.
    fn kill_after_checkpoints(&self, checkpoints: usize) {
        self.shell(&format!("setsid {RUN} > /root/killed.log 2>&1 & echo $! > /root/pid"));
        let start = Instant::now();
        let count = || {
            let text = self.run("grep -c checkpoint-reached /root/R/journal.jsonl").1;
            text.trim().parse::<usize>().unwrap_or(0)
        };
        while count() < checkpoints {
            assert!(start.elapsed() < Duration::from_secs(300), "{}", self.run("cat /root/killed.log").1);
            std::thread::sleep(Duration::from_secs(2));
        }
        self.shell("kill -9 $(cat /root/pid)");
    }

    /// Waits until the machine has these settings.
    fn wait_for_settings(&self, expected: &str) {
        let start = Instant::now();
        loop {
            let settings = self.shell(SETTINGS);
            if settings == expected {
                return;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "expected {expected}, found {settings}");
            std::thread::sleep(Duration::from_secs(2));
        }
    }
}

#[test]
#[ignore = "boots an emulated machine: make test-contention"]
fn contention_sequence_is_measured_killed_and_resumed_in_a_guest() {
    let folder = tempfile::tempdir().unwrap();
    let config = GuestConfig { memory_mib: 896, disks: &[DISK], ..GuestConfig::default() };
    let started = built_image(IMAGE).and_then(|base| SshGuest::start(folder.path(), &base, &config));
    let guest = match started {
        Err(missing @ (GuestError::Missing { .. } | GuestError::NoImage(_))) => {
            return wb_test_skip::skip!("a contention sequence in a guest: {missing}");
        }
        started => Guest(started.unwrap()),
    };
    guest.shell(PREPARE);
    guest.copy(env!("CARGO_BIN_EXE_weighbridge").as_ref());
    guest.copy(env!("CARGO_BIN_EXE_weighbridge-agent").as_ref());
    let before = guest.shell(SETTINGS);
    guest.kill_after_checkpoints(1);
    // The agent restores the machine when its controller is gone.
    guest.wait_for_settings(&before);
    println!("{}", guest.shell("cat /root/killed.log"));
    let resumed = guest.shell(RUN);
    println!("{resumed}");
    assert!(resumed.contains("resumed from its last checkpoint"), "{resumed}");
    assert_eq!(guest.shell(SETTINGS), before);

    let again = guest.shell(RUN);
    assert_eq!(again.matches("all results are there").count(), 4, "{again}");
    let results: Vec<BenchResult> =
        serde_json::from_str(&guest.shell("/root/weighbridge -r /root/R summary --json")).unwrap();
    let [params, hashd, qos, protection] = &results[..] else { panic!("{} results", results.len()) };
    let Answer::IocostParams(params) = &params.answer else { panic!("{params:?}") };
    let model = params.model;
    assert!((2800..5200).contains(&model.rrandiops) && (120 << 20..270 << 20).contains(&model.rbps), "{model}");
    let Answer::HashdParams(hashd) = &hashd.answer else { panic!("{hashd:?}") };
    assert!(hashd.fake_cpu_load && hashd.rps_max == 10.0 && hashd.mem_size.0 > 64 << 20, "{hashd:?}");
    let Answer::IocostQos(qos) = &qos.answer else { panic!("{qos:?}") };
    assert_eq!(qos.stages.len(), 2);
    for stage in &qos.stages {
        let found = stage.found.as_ref().unwrap();
        // With swap, more than the memory is served.
        assert!(found.storage.mof > 1.0, "{found:?}");
        assert_eq!(found.vrate.is_some(), stage.change.is_some(), "{found:?}");
        let protected = found.protection.as_ref().unwrap();
        assert!(protected.size.is_some() && protected.hog.is_some(), "{protected:?}");
    }
    let Answer::Protection(protection) = &protection.answer else { panic!("{protection:?}") };
    let [ScenarioAnswer::MemHog { answer, .. }] = &protection.scenarios[..] else { panic!("{protection:?}") };
    assert_eq!(answer.base_rps, 8.0);
    assert!((0.0..=1.0).contains(&answer.isolation.mean) && answer.missing < 0.2, "{answer:?}");
    assert!(answer.vrate.is_some() && answer.work_conservation.is_some(), "{answer:?}");
    let text = guest.shell("/root/weighbridge -r /root/R format");
    println!("{text}");
    assert!(text.contains("[protection result]"), "{text}");
    assert_eq!(text.matches("missed requirements: btrfs\n").count(), 2, "{text}");
}
