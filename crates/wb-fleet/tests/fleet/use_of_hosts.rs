//! Use of hosts: commands, deployment, cache, privileges, synchronised start.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use wb_agent::{Command, Fault, start_synchronized};
use wb_fleet::{ConnectOptions, HostParams, Privileges, Progress, cache, connect, connect_all};
use wb_model::Nanos;
use wb_sys::undo::ManagedResource;

use crate::lab::{AGENT, Fleet, HOST, Place, SshdConfig, run};

#[test]
fn a_command_runs_on_a_host_and_nothing_but_the_program_stays() {
    let Some(fleet) = Fleet::new(1) else { return };
    run(async {
        let first = fleet.must_connect(HOST).await;
        assert_eq!((first.rights, first.transfer.is_some(), first.warnings.len()), (Privileges::Root, true, 0));
        let group = first.worker.new_group().await.unwrap();
        let process = group.spawn(Command::new(["sh", "-c", "ip -o addr; exit 3"])).await.unwrap();
        let finished = process.wait(None).await.unwrap();
        assert!(String::from_utf8_lossy(&finished.stdout).contains(&HOST.v4().to_string()));
        assert_eq!(finished.exit_reason, wb_agent::ExitReason::Exited { status: 3 });
        first.worker.close().await.unwrap();

        let second = fleet.must_connect(HOST).await;
        assert_eq!(second.transfer, None);
        second.worker.close().await.unwrap();
    });
    fleet.wait_until_idle(HOST);
    let sha256 = fleet.program().sha256().to_owned();
    let files = ["", "/checked", "/weighbridge"].map(|file| format!("/agent/{sha256}{file}"));
    let folders = ["", "/agent", "/agent/made-cache"].map(str::to_owned);
    let mut expected: Vec<String> = folders.into_iter().chain(files).map(|path| format!("weighbridge{path}")).collect();
    expected.sort();
    assert_eq!(fleet.cached_paths(HOST), expected);
}

/// Number of bytes received by the network card of a host.
fn received(fleet: &Fleet) -> u64 {
    let count = fleet.network.run(HOST, &["cat", "/sys/class/net/eth0/statistics/rx_bytes"]).unwrap();
    count.trim().parse().unwrap()
}

#[test]
fn the_program_is_sent_stripped_and_compressed_with_progress() {
    let Some(fleet) = Fleet::new(1) else { return };
    let size = std::fs::metadata(AGENT).unwrap().len();
    let reports = Arc::new(Mutex::new(Vec::new()));
    let observed = reports.clone();
    let progress = Progress::new(move |host, transfer| observed.lock().unwrap().push((host.clone(), transfer)));
    run(async {
        let (program, options) = (fleet.program(), ConnectOptions { progress, ..fleet.options() });
        let connected = connect(&fleet.host(HOST), &program, &options).await.unwrap();
        let sent = connected.transfer.unwrap();
        println!(
            "{size} bytes, {} without symbols, {} compressed, {} received",
            sent.size,
            sent.total,
            received(&fleet)
        );
        assert!(sent.is_compressed() && sent.sent == sent.total && sent.size == program.size());
        assert!(sent.total < sent.size / 2 && sent.size < size, "{sent:?} of {size}");
        // Ciphers, headers and login add to it.
        assert!((sent.total..sent.total + sent.total / 4 + 100_000).contains(&received(&fleet)));
        connected.worker.close().await.unwrap();
    });
    let reports = reports.lock().unwrap();
    let [(host, first), .., (_, last)] = &reports[..] else { panic!("{reports:?}") };
    assert_eq!((host.as_str(), first.sent, last.sent), ("host1", 0, last.total));
    assert!(reports.windows(2).all(|two| two[0].1.sent < two[1].1.sent));
}

#[test]
fn a_host_without_gzip_gets_the_program_uncompressed() {
    let Some(mut fleet) = Fleet::bare(1) else { return };
    let before = "mkdir /run/bin; printf '#!/bin/sh\nexit 1\n' >/run/bin/gzip; chmod 755 /run/bin/gzip; \
                  mount --bind /run/bin/gzip \"$(command -v gzip)\"";
    fleet.start(HOST, &SshdConfig { setup_command: before, ..SshdConfig::default() });
    run(async {
        let connected = fleet.must_connect(HOST).await;
        let sent = connected.transfer.unwrap();
        assert!(!sent.is_compressed() && sent.sent == fleet.program().size());
        connected.worker.close().await.unwrap();
    });
}

#[test]
fn parameters_are_detected_and_the_cache_can_be_emptied() {
    let Some(fleet) = Fleet::new(1) else { return };
    run(async {
        let connected = fleet.must_connect(HOST).await;
        let params = HostParams::detect(&connected.worker).await.unwrap();
        assert_eq!(params.arch.as_deref(), Some(std::env::consts::ARCH));
        assert!(params.host_cpus.is_some() && params.distro.is_some() && params.hugepage_kb.is_some());
        let programs = cache::list(&connected.worker).await.unwrap();
        assert_eq!((programs.len(), programs[0].in_use), (1, true));
        assert_eq!(programs[0].sha256, fleet.program().sha256());
        cache::remove(&connected.worker, &programs).await.unwrap();
        // The cache folder was created for the program.
        assert!(!fleet.cache(HOST).exists());
        connected.worker.facts().await.unwrap();
        connected.worker.close().await.unwrap();
        std::fs::create_dir(fleet.cache(HOST)).unwrap();
        let connected = fleet.must_connect(HOST).await;
        let programs = cache::list(&connected.worker).await.unwrap();
        cache::remove(&connected.worker, &programs).await.unwrap();
        assert!(fleet.cache(HOST).exists() && fleet.cached_paths(HOST).is_empty());
        connected.worker.close().await.unwrap();
    });
}

#[test]
fn workloads_have_the_umask_of_the_host_and_the_program_is_private() {
    let Some(mut fleet) = Fleet::bare(1) else { return };
    fleet.start(HOST, &SshdConfig { setup_command: "umask 027", ..SshdConfig::default() });
    run(async {
        // First sent, then cached.
        for sent in [true, false] {
            let connected = fleet.must_connect(HOST).await;
            let group = connected.worker.new_group().await.unwrap();
            let umask = group.spawn(Command::new(["sh", "-c", "umask"])).await.unwrap().wait(None).await.unwrap();
            assert_eq!((connected.transfer.is_some(), String::from_utf8_lossy(&umask.stdout).trim()), (sent, "0027"));
            connected.worker.close().await.unwrap();
        }
    });
    let folder = fleet.cache(HOST).join("weighbridge/agent").join(fleet.program().sha256());
    for path in [folder.join("weighbridge"), folder] {
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o700);
    }
}

#[test]
fn starting_a_cached_program_updates_its_time_of_use() {
    let Some(fleet) = Fleet::new(1) else { return };
    run(async { fleet.must_connect(HOST).await.worker.close().await.unwrap() });
    let program = fleet.cache(HOST).join("weighbridge/agent").join(fleet.program().sha256()).join("weighbridge");
    let long_ago = ["-d", "2021-05-06T07:08:09Z"];
    assert!(std::process::Command::new("touch").args(long_ago).arg(&program).status().unwrap().success());
    run(async {
        let connected = fleet.must_connect(HOST).await;
        let used = cache::list(&connected.worker).await.unwrap()[0].last_used_s.unwrap();
        let month = std::time::Duration::from_secs(30 * 86_400);
        let written = std::fs::metadata(&program).unwrap().modified().unwrap();
        assert!(written.elapsed().unwrap() < month && used > 1_700_000_000, "{used}");
        connected.worker.close().await.unwrap();
    });
}

#[test]
fn an_incomplete_program_is_sent_again_and_leftovers_are_removed() {
    let Some(fleet) = Fleet::new(1) else { return };
    let folder = fleet.cache(HOST).join("weighbridge/agent").join(fleet.program().sha256());
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("weighbridge"), "half").unwrap();
    let machine = String::from_utf8(std::process::Command::new("uname").arg("-n").output().unwrap().stdout).unwrap();
    // No system has a process of this number.
    std::fs::write(folder.join(format!("part.{}.99999999", machine.trim())), "some of it").unwrap();
    run(async {
        let connected = fleet.must_connect(HOST).await;
        assert!(connected.transfer.is_some());
        connected.worker.close().await.unwrap();
    });
    let mut left: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["checked", "weighbridge"]);
}

#[test]
fn output_of_login_scripts_is_not_taken_for_the_agent() {
    let Some(mut fleet) = Fleet::bare(1) else { return };
    let before = "echo 'echo Welcome; echo to the lab' >/root/.bashrc; mount -t tmpfs lab /etc/ssh; \
                  echo 'echo Hello' >/etc/ssh/sshrc";
    fleet.start(HOST, &SshdConfig { setup_command: before, ..SshdConfig::default() });
    run(async { fleet.must_connect(HOST).await.worker.close().await.unwrap() });
}

#[test]
fn a_user_with_sudo_is_root_and_one_without_gets_a_warning() {
    let Some(mut fleet) = Fleet::bare(1) else { return };
    if !std::path::Path::new("/usr/bin/sudo").exists() {
        wb_test_skip::skip!("sudo is not installed");
        return;
    }
    let cache = fleet.cache(HOST);
    std::fs::create_dir(&cache).unwrap();
    assert!(std::process::Command::new("chown").arg("nobody").arg(&cache).status().unwrap().success());
    // The host has its own accounts: `nobody` may log in, and use sudo while a sudoers file allows it.
    let before = "mkdir /run/etc; cp -a /etc/. /run/etc/; mount --bind /run/etc /etc; \
        sed -i 's,^nobody:.*,nobody:x:65534:65534::/run/home:/bin/sh,' /etc/passwd; \
        sed -i 's,^nobody:[^:]*,nobody:*,' /etc/shadow; mkdir -m 777 /run/home; \
        mkdir -p /etc/sudoers.d; chmod 755 /run";
    fleet.start(HOST, &SshdConfig { setup_command: before, ..SshdConfig::default() });
    fleet.configure("Host *\nUser nobody");
    let sshd = fleet.network.processes(HOST)[0].to_string();
    let allow = |script: &str| {
        let arguments = ["--target", &sshd, "--mount", "--net", "sh", "-c", script];
        assert!(
            std::process::Command::new("nsenter").args(arguments).stdout(Stdio::null()).status().unwrap().success()
        );
    };
    run(async {
        let refused = wb_fleet::ConnectOptions { needs_root: true, ..fleet.options() };
        let error = wb_fleet::connect(&fleet.host(HOST), &fleet.program(), &refused).await.unwrap_err();
        assert!(matches!(*error.kind, wb_fleet::ConnectErrorKind::NoSudo { .. }), "{error}");
        let connected = fleet.must_connect(HOST).await;
        assert_eq!(connected.rights, Privileges::User);
        assert!(connected.warnings[0].to_string().starts_with("is used as nobody without root privileges"));
        let group = connected.worker.new_group().await.unwrap();
        let result =
            group.apply_change(ManagedResource::setting("/proc/sys/vm/swappiness"), Some("1".to_owned())).await;
        assert!(matches!(result.unwrap_err().fault(), Some(Fault::NotRoot)));
        connected.worker.close().await.unwrap();

        allow(
            "echo 'Defaults use_pty' >/etc/sudoers.d/pty; echo 'nobody ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/lab; chmod 440 /etc/sudoers.d/lab",
        );
        let connected = fleet.must_connect(HOST).await;
        assert_eq!((connected.rights, connected.warnings.len()), (Privileges::Sudo, 0));
        let group = connected.worker.new_group().await.unwrap();
        let who = group.spawn(Command::new(["id", "-u"])).await.unwrap().wait(None).await.unwrap();
        assert_eq!(who.stdout, b"0\n");
        connected.worker.close().await.unwrap();
    });
    fleet.wait_until_idle(HOST);
}

#[test]
fn many_hosts_connect_and_start_concurrently() {
    const COUNT: u8 = 32;
    let Some(mut fleet) = Fleet::bare(COUNT) else { return };
    // All share one cache, like hosts with homes on one server, so the same program is deployed concurrently.
    let lines = format!("SetEnv XDG_CACHE_HOME={}", fleet.cache(HOST).display());
    (1..=COUNT)
        .for_each(|host| fleet.start(Place(host), &SshdConfig { config_lines: &lines, ..SshdConfig::default() }));
    run(async {
        let hosts: Vec<_> = (1..=COUNT).map(|host| fleet.host(Place(host))).collect();
        let connected = connect_all(&hosts, &fleet.program(), &fleet.options()).await;
        let connected: Vec<_> =
            connected.into_iter().map(|one| one.unwrap_or_else(|error| panic!("{error}"))).collect();
        let mut ready = Vec::new();
        let mut groups = Vec::new();
        for one in &connected {
            let group = one.worker.new_group().await.unwrap();
            ready.push(group.spawn_suspended(Command::new(["true"])).await.unwrap());
            groups.push(group);
        }
        let together = start_synchronized(&ready.iter().collect::<Vec<_>>()).await.unwrap();
        assert_eq!(together.starts.len(), usize::from(COUNT));
        for process in &ready {
            assert!(process.wait(None).await.unwrap().exit_reason.is_success());
        }
        // All hosts run on one machine with one clock, so the measured offset must be within its error.
        for start in &together.starts {
            assert!(start.clock.offset_ns.unsigned_abs() <= start.clock.error_ns + 1, "{start:?}");
        }
        let worst = together.starts.iter().map(|start| start.clock.error_ns).max().unwrap();
        let milliseconds = |time: Nanos| time.0 as f64 / 1e6;
        let (skew, clocks) = (milliseconds(together.skew()), milliseconds(Nanos(worst)));
        println!("{COUNT} hosts started within {skew:.2} ms, with clock offsets known to {clocks:.2} ms");
        for one in connected {
            one.worker.close().await.unwrap();
        }
    });
    let parts = fleet.cached_paths(HOST).into_iter().filter(|path| path.contains("part"));
    assert_eq!(parts.count(), 0);
}
