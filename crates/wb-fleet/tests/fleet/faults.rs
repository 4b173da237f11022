//! Failures of hosts and connections, and how they are reported.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command as Program, Stdio};
use std::time::Duration;

use wb_agent::{Command, WorkerError};
use wb_fleet::{ConnectErrorKind, ConnectOptions, ConnectWarning, FleetError, Inventory, connect};
use wb_sys::undo::ManagedResource;

use crate::lab::{AGENT, DESK, Fleet, HOST, Place, SshdConfig, is_alive, run, wait_until};

/// Returns the error of connecting to the first host.
fn refused(fleet: &Fleet) -> FleetError {
    run(async {
        match fleet.connect(HOST).await {
            Ok(connected) => panic!("{connected:?} was connected to"),
            Err(error) => error,
        }
    })
}

#[test]
fn a_host_without_sshd_refuses() {
    let Some(fleet) = Fleet::bare(1) else { return };
    let error = refused(&fleet);
    assert!(matches!(*error.kind, ConnectErrorKind::Unreachable { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "`host1` (10.77.0.2) cannot be reached: ssh: connect to host 10.77.0.2 port 22: Connection refused"
    );
    let config = fleet.path("config").display().to_string();
    assert_eq!(
        error.help().unwrap(),
        format!("check that `ssh -F {config} -- 10.77.0.2` works; connecting times out after 10 s")
    );
    let without_config = FleetError { ssh_config: None, ..error };
    let help = "check that `ssh -- 10.77.0.2` works; connecting times out after 10 s";
    assert_eq!(without_config.help().unwrap(), help);
}

#[test]
fn a_host_that_drops_everything_is_unreachable() {
    let Some(fleet) = Fleet::new(1) else { return };
    if let Err(why) = fleet.network.drop_packets_from(HOST, DESK) {
        wb_test_skip::skip!("dropping packets needs nft (nftables): {why}");
        return;
    }
    let error = refused(&fleet);
    assert!(
        matches!(&*error.kind, ConnectErrorKind::Unreachable(message) if message.contains("timed out")),
        "{error:?}"
    );
}

#[test]
fn an_unknown_host_name_is_reported() {
    let Some(fleet) = Fleet::bare(1) else { return };
    let hosts = Inventory::default().select(&["nosuch.invalid".to_owned()]).unwrap();
    let error = run(connect(&hosts[0], &fleet.program(), &fleet.options())).unwrap_err();
    assert!(matches!(*error.kind, ConnectErrorKind::UnknownHostName { .. }), "{error:?}");
}

#[test]
fn a_refused_key_is_reported() {
    let Some(fleet) = Fleet::new(1) else { return };
    fleet.generate_key("user");
    let error = refused(&fleet);
    assert!(matches!(*error.kind, ConnectErrorKind::AuthenticationFailed { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "`host1` (10.77.0.2) refused your authentication: root@10.77.0.2: Permission denied (publickey)."
    );
}

#[test]
fn an_unknown_or_changed_host_key_is_never_accepted() {
    let Some(fleet) = Fleet::new(1) else { return };
    fs::write(fleet.path("known_hosts"), "").unwrap();
    let unknown = refused(&fleet);
    assert!(matches!(*unknown.kind, ConnectErrorKind::UnknownHostKey { .. }), "{unknown:?}");
    let command = format!("ssh -F {} -- 10.77.0.2", fleet.path("config").display());
    assert!(unknown.help().unwrap().starts_with(&format!("run `{command}` once and compare")));
    assert_eq!(fs::read_to_string(fleet.path("known_hosts")).unwrap(), "");

    fleet.generate_key("other");
    let other = fs::read_to_string(fleet.path("other.pub")).unwrap();
    fs::write(fleet.path("known_hosts"), format!("{} {other}", HOST.v4())).unwrap();
    let changed = refused(&fleet);
    assert!(matches!(*changed.kind, ConnectErrorKind::HostKeyChanged { .. }), "{changed:?}");
    let known_hosts = fleet.path("known_hosts").display().to_string();
    assert_eq!(
        changed.help().unwrap(),
        format!(
            "if the machine was reinstalled, run `ssh-keygen -f {known_hosts} -R 10.77.0.2`, then `{command}` once"
        )
    );
}

#[test]
fn disabled_host_key_checking_is_reported() {
    let Some(fleet) = Fleet::new(1) else { return };
    fs::write(fleet.path("known_hosts"), "").unwrap();
    fleet.configure("Host *\nStrictHostKeyChecking no");
    run(async {
        let connected = fleet.must_connect(HOST).await;
        assert_eq!(connected.warnings, [ConnectWarning::HostKeyNotChecked]);
        connected.worker.close().await.unwrap();
    });
}

#[test]
fn a_jump_host_of_the_users_configuration_is_used() {
    let Some(fleet) = Fleet::new(2) else { return };
    if let Err(why) = fleet.network.drop_packets_from(HOST, DESK) {
        wb_test_skip::skip!("dropping packets needs nft (nftables): {why}");
        return;
    }
    fleet.configure(&format!("Host {}\nProxyJump {}", HOST.v4(), Place(2).v4()));
    run(async { fleet.must_connect(HOST).await.worker.close().await.unwrap() });
}

/// Starts the first host with programs that come before its own on PATH.
fn with_programs(fleet: &mut Fleet, programs: &[(&str, &str)], before: &str) {
    fs::create_dir(fleet.path("bin")).unwrap();
    for (name, script) in programs {
        fleet.write_script(&format!("bin/{name}"), &format!("#!/bin/sh\n{script}\n"));
    }
    let (cache, bin) = (fleet.cache(HOST), fleet.path("bin"));
    let lines = format!("SetEnv XDG_CACHE_HOME={} PATH={}:/usr/bin:/bin:/usr/sbin", cache.display(), bin.display());
    fleet.start(HOST, &SshdConfig { config_lines: &lines, setup_command: before });
}

#[test]
fn another_architecture_gets_no_program() {
    let Some(mut fleet) = Fleet::bare(1) else { return };
    with_programs(&mut fleet, &[("uname", "[ \"$1\" = -m ] && echo sparc64 || exec /usr/bin/uname \"$@\"")], "");
    let error = refused(&fleet);
    assert!(matches!(&*error.kind, ConnectErrorKind::Architecture { host, .. } if host == "sparc64"), "{error:?}");
    assert!(fleet.cached_paths(HOST).is_empty());
}

#[test]
fn a_cache_mounted_noexec_is_reported_with_the_message_of_the_host() {
    let Some(mut fleet) = Fleet::bare(1) else { return };
    let cache = fleet.cache(HOST).display().to_string();
    let before = format!("mkdir -p {cache}; mount -t tmpfs -o noexec lab {cache}");
    fleet.start(HOST, &SshdConfig { setup_command: &before, ..SshdConfig::default() });
    let error = refused(&fleet);
    let text = error.to_string();
    assert!(text.contains("its agent ended: ") && text.ends_with("Permission denied"), "{text}");
    assert!(error.help().unwrap().contains("noexec"), "{error:?}");
    fleet.wait_until_idle(HOST);
}

#[test]
fn an_old_kernel_gets_no_program() {
    let Some(mut fleet) = Fleet::bare(1) else { return };
    let uname = "[ \"$1\" = -r ] && echo 3.10.0-1160.el7.x86_64 || exec /usr/bin/uname \"$@\"";
    with_programs(&mut fleet, &[("uname", uname)], "");
    let error = refused(&fleet);
    assert_eq!(error.to_string(), "`host1` (10.77.0.2) runs Linux 3.10.0-1160.el7.x86_64, expected 4.18 or newer");
    assert!(fleet.cached_paths(HOST).is_empty());
}

#[test]
fn a_host_without_space_keeps_nothing_of_the_program() {
    // Once detected before the transfer, once while the host writes.
    for programs in [&[][..], &[("df", "echo header; echo lab 1 1 99999999 1% /x")]] {
        let Some(mut fleet) = Fleet::bare(1) else { return };
        let cache = fleet.cache(HOST);
        fs::create_dir(&cache).unwrap();
        let mount = format!("mount -t tmpfs -o size=1m lab {}", cache.display());
        with_programs(&mut fleet, programs, &mount);
        let error = refused(&fleet);
        let size = fleet.program().size();
        assert!(matches!(&*error.kind, ConnectErrorKind::NoSpace { required, .. } if required.0 == size), "{error:?}");
        // List the cache in the mount namespace of the host.
        let sshd = fleet.network.processes(HOST)[0].to_string();
        wait_until("nothing is left", || {
            let find = Program::new("nsenter")
                .args(["--target", &sshd, "--mount", "find"])
                .arg(&cache)
                .args(["-mindepth", "1"])
                .output()
                .unwrap();
            find.status.success() && find.stdout.is_empty()
        });
    }
}

#[test]
fn the_deployed_program_must_be_an_agent_of_this_version() {
    let Some(fleet) = Fleet::new(1) else { return };
    let error = |script: &str| {
        fleet.write_script("program", script);
        let program = wb_fleet::Program::read(&fleet.path("program")).unwrap();
        run(connect(&fleet.host(HOST), &program, &fleet.options())).unwrap_err()
    };
    let hello = r#"{"protocol":99,"release":"9.9","program":"/x"}"#;
    let other =
        error(&format!("#!/bin/sh\nprintf '\\{:03o}\\000\\000\\000\\000\\000\\000\\000%s' '{hello}'\n", hello.len()));
    assert!(matches!(&*other.kind, ConnectErrorKind::Agent(WorkerError::Version { protocol: 99, .. })), "{other:?}");
    let not_an_agent = error("#!/bin/sh\necho I am no agent at all\n");
    assert!(matches!(&*not_an_agent.kind, ConnectErrorKind::Agent(WorkerError::Handshake { .. })), "{not_an_agent:?}");
}

#[test]
fn a_broken_link_is_noticed_at_both_ends() {
    let Some(fleet) = Fleet::new(1) else { return };
    run(async {
        let options = ConnectOptions { idle_timeout: Duration::from_secs(6), ..fleet.options() };
        let connected = connect(&fleet.host(HOST), &fleet.program(), &options).await.unwrap();
        let group = connected.worker.new_group().await.unwrap();
        let process = group.spawn(Command::new(["sleep", "1000"])).await.unwrap();
        fleet.network.disconnect(HOST);
        let error = process.wait(None).await.unwrap_err();
        assert!(error.is_lost(), "{error}");
        wait_until("the workload's end", || !is_alive(process.pid()));
    });
    fleet.wait_until_idle(HOST);
    wait_until("the end of ssh", || fleet.network.processes(DESK).is_empty());
}

#[test]
fn a_change_may_take_longer_than_the_idle_timeout() {
    let Some(fleet) = Fleet::new(1) else { return };
    run(async {
        let options = ConnectOptions { idle_timeout: Duration::from_secs(3), ..fleet.options() };
        let connected = connect(&fleet.host(HOST), &fleet.program(), &options).await.unwrap();
        let group = connected.worker.new_group().await.unwrap();
        let marker = fleet.path("slowly-made");
        let write = format!("sleep 5; [ {{}} = absent ] && rm -f {0} || touch {0}", marker.display());
        let read = format!("[ -e {} ] && echo present || echo absent", marker.display());
        let words = |script: String| ["sh", "-c", &script].map(str::to_owned).to_vec();
        let resource =
            ManagedResource::Command { name: "a slow change".to_owned(), read: words(read), write: words(write) };
        assert!(group.apply_change(resource, Some("present".to_owned())).await.unwrap());
        assert!(marker.exists());
        // Reverting it takes as long.
        let teardown = group.teardown().await.unwrap();
        assert_eq!(
            (teardown.killed.len(), teardown.reverted.len(), &teardown.revert_error),
            (0, 1, &None),
            "{teardown:?}"
        );
        assert!(!marker.exists());
        connected.worker.close().await.unwrap();
    });
    fleet.wait_until_idle(HOST);
}

#[test]
fn ssh_notices_a_broken_link_before_the_idle_timeout() {
    let Some(fleet) = Fleet::new(1) else { return };
    run(async {
        let connected = fleet.must_connect(HOST).await;
        fleet.network.disconnect(HOST);
        let error = connected.worker.facts().await.unwrap_err().to_string();
        let expected =
            "the worker `host1` is lost: its ssh connection ended: Timeout, server 10.77.0.2 not responding.";
        assert_eq!(error, expected);
    });
}

#[test]
fn an_account_without_a_shell_is_reported() {
    let Some(mut fleet) = Fleet::bare(1) else { return };
    fleet.start(
        HOST,
        &SshdConfig { config_lines: "ForceCommand echo no shell for you >&2; exit 7", ..SshdConfig::default() },
    );
    let error = refused(&fleet);
    assert_eq!(error.to_string(), "`host1` (10.77.0.2) accepts your login but runs no commands: no shell for you");
    assert!(error.help().unwrap().starts_with("the account's shell may refuse commands, as nologin does"));
    // nologin prints its message on standard output.
    let Some(mut fleet) = Fleet::bare(1) else { return };
    let lines = "ForceCommand echo Could not chdir >&2; echo This account is currently not available.; exit 1";
    fleet.start(HOST, &SshdConfig { config_lines: lines, ..SshdConfig::default() });
    let expected =
        "`host1` (10.77.0.2) accepts your login but runs no commands: This account is currently not available.";
    assert_eq!(refused(&fleet).to_string(), expected);
}

#[test]
fn a_killed_agent_takes_its_workload_with_it() {
    let Some(fleet) = Fleet::new(1) else { return };
    run(async {
        let connected = fleet.must_connect(HOST).await;
        let group = connected.worker.new_group().await.unwrap();
        let process = group.spawn(Command::new(["sleep", "1000"])).await.unwrap();
        kill_agents(&fleet);
        let error = process.wait(None).await.unwrap_err();
        assert!(error.is_lost(), "{error}");
        wait_until("the workload's end", || !is_alive(process.pid()));
        // The killed agent held the lock of the host, which must not block the next one.
        fleet.must_connect(HOST).await.worker.close().await.unwrap();
    });
}

fn kill_agents(fleet: &Fleet) {
    let is_agent = |pid: &u32| {
        fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default().contains("/weighbridge\0agent")
    };
    let agents: Vec<u32> = fleet.network.processes(HOST).into_iter().filter(is_agent).collect();
    assert!(!agents.is_empty());
    for agent in agents {
        assert!(Program::new("kill").args(["-9", &agent.to_string()]).status().unwrap().success());
    }
}

#[test]
fn a_killed_controller_leaves_nothing_on_its_hosts() {
    let Some(fleet) = Fleet::new(1) else { return };
    let host = fleet.host(HOST);
    let mut controller = Program::new(AGENT)
        .arg("controller")
        .args([fleet.path("ssh"), fleet.path("config")])
        .arg(format!("{}:{}", host.name, host.address))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(controller.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let workload: u32 = line.trim().parse().unwrap();
    assert!(is_alive(workload));

    let error = refused(&fleet);
    let ConnectErrorKind::InUse(Some(holder)) = &*error.kind else { panic!("{error:?}") };
    assert_eq!(holder.controller.pid, controller.id());

    controller.kill().unwrap();
    controller.wait().unwrap();
    wait_until("the workload's end", || !is_alive(workload));
    fleet.wait_until_idle(HOST);
    wait_until("the end of ssh", || fleet.network.processes(DESK).is_empty());
    run(async { fleet.must_connect(HOST).await.worker.close().await.unwrap() });
}
