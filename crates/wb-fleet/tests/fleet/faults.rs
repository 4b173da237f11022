//! Everything that can be wrong with a host, and what is said of it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command as Program, Stdio};
use std::time::Duration;

use wb_agent::{Command, WorkerError};
use wb_fleet::{ConnectErrorKind, ConnectOptions, ConnectWarning, FleetError, Inventory, connect};
use wb_sys::undo::Step;

use crate::lab::{AGENT, DESK, Fleet, HOST, Place, Sshd, alive, eventually, run};

/// What stands in the way to the first host.
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
    assert_eq!(error.help().unwrap(), format!("does `ssh -F {config} -- 10.77.0.2` work? it is tried for 10 s"));
    let own = FleetError { ssh_config: None, ..error };
    assert_eq!(own.help().unwrap(), "does `ssh -- 10.77.0.2` work? it is tried for 10 s");
}

#[test]
fn a_host_that_drops_everything_is_unreachable() {
    let Some(fleet) = Fleet::new(1) else { return };
    if let Err(why) = fleet.lab.drop_from(HOST, DESK) {
        println!("SKIPPED: dropping packets needs nft (nftables): {why}");
        return;
    }
    let error = refused(&fleet);
    assert!(matches!(&*error.kind, ConnectErrorKind::Unreachable { said } if said.contains("timed out")), "{error:?}");
}

#[test]
fn a_name_that_nobody_knows_is_told() {
    let Some(fleet) = Fleet::bare(1) else { return };
    let hosts = Inventory::default().select(&["nosuch.invalid".to_owned()]).unwrap();
    let error = run(connect(&hosts[0], &fleet.program(), &fleet.options())).unwrap_err();
    assert!(matches!(*error.kind, ConnectErrorKind::UnknownHostName { .. }), "{error:?}");
}

#[test]
fn a_key_that_is_refused_is_told() {
    let Some(fleet) = Fleet::new(1) else { return };
    fleet.key("user");
    let error = refused(&fleet);
    assert!(matches!(*error.kind, ConnectErrorKind::AuthenticationFailed { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "`host1` (10.77.0.2) does not let you in: root@10.77.0.2: Permission denied (publickey)."
    );
}

#[test]
fn a_host_key_that_is_unknown_or_changed_is_never_taken() {
    let Some(fleet) = Fleet::new(1) else { return };
    fs::write(fleet.path("known_hosts"), "").unwrap();
    let unknown = refused(&fleet);
    assert!(matches!(*unknown.kind, ConnectErrorKind::UnknownHostKey { .. }), "{unknown:?}");
    let by_hand = format!("ssh -F {} -- 10.77.0.2", fleet.path("config").display());
    assert!(unknown.help().unwrap().starts_with(&format!("type `{by_hand}` once and compare")));
    assert_eq!(fs::read_to_string(fleet.path("known_hosts")).unwrap(), "");

    fleet.key("other");
    let other = fs::read_to_string(fleet.path("other.pub")).unwrap();
    fs::write(fleet.path("known_hosts"), format!("{} {other}", HOST.v4())).unwrap();
    let changed = refused(&fleet);
    assert!(matches!(*changed.kind, ConnectErrorKind::HostKeyChanged { .. }), "{changed:?}");
    let known = fleet.path("known_hosts").display().to_string();
    assert_eq!(
        changed.help().unwrap(),
        format!("if the machine was installed anew: `ssh-keygen -f {known} -R 10.77.0.2`, then `{by_hand}` once")
    );
}

#[test]
fn a_user_who_has_no_key_checked_is_told() {
    let Some(fleet) = Fleet::new(1) else { return };
    fs::write(fleet.path("known_hosts"), "").unwrap();
    fleet.configure("Host *\nStrictHostKeyChecking no");
    run(async {
        let connected = fleet.reach(HOST).await;
        assert_eq!(connected.warnings, [ConnectWarning::HostKeyNotChecked]);
        connected.worker.close().await.unwrap();
    });
}

#[test]
fn a_jump_host_of_the_users_configuration_is_used() {
    let Some(fleet) = Fleet::new(2) else { return };
    if let Err(why) = fleet.lab.drop_from(HOST, DESK) {
        println!("SKIPPED: dropping packets needs nft (nftables): {why}");
        return;
    }
    fleet.configure(&format!("Host {}\nProxyJump {}", HOST.v4(), Place(2).v4()));
    run(async { fleet.reach(HOST).await.worker.close().await.unwrap() });
}

/// The first host, with these programs before its own.
fn with_programs(fleet: &mut Fleet, programs: &[(&str, &str)], before: &str) {
    fs::create_dir(fleet.path("bin")).unwrap();
    for (name, script) in programs {
        fleet.script(&format!("bin/{name}"), &format!("#!/bin/sh\n{script}\n"));
    }
    let (cache, bin) = (fleet.cache(HOST), fleet.path("bin"));
    let lines = format!("SetEnv XDG_CACHE_HOME={} PATH={}:/usr/bin:/bin:/usr/sbin", cache.display(), bin.display());
    fleet.start(HOST, &Sshd { lines: &lines, before });
}

#[test]
fn another_architecture_gets_no_program() {
    let Some(mut fleet) = Fleet::bare(1) else { return };
    with_programs(&mut fleet, &[("uname", "[ \"$1\" = -m ] && echo sparc64 || exec /usr/bin/uname \"$@\"")], "");
    let error = refused(&fleet);
    assert!(matches!(&*error.kind, ConnectErrorKind::Architecture { theirs, .. } if theirs == "sparc64"), "{error:?}");
    assert!(fleet.cached(HOST).is_empty());
}

#[test]
fn a_cache_where_nothing_can_be_executed_is_reported_in_the_words_of_the_host() {
    let Some(mut fleet) = Fleet::bare(1) else { return };
    let cache = fleet.cache(HOST).display().to_string();
    let before = format!("mkdir -p {cache}; mount -t tmpfs -o noexec lab {cache}");
    fleet.start(HOST, &Sshd { before: &before, ..Sshd::default() });
    let error = refused(&fleet);
    let text = error.to_string();
    assert!(text.contains("its agent ended: ") && text.ends_with("Permission denied"), "{text}");
    assert!(error.help().unwrap().contains("noexec"), "{error:?}");
    fleet.is_quiet(HOST);
}

#[test]
fn an_old_kernel_gets_no_program() {
    let Some(mut fleet) = Fleet::bare(1) else { return };
    let uname = "[ \"$1\" = -r ] && echo 3.10.0-1160.el7.x86_64 || exec /usr/bin/uname \"$@\"";
    with_programs(&mut fleet, &[("uname", uname)], "");
    let error = refused(&fleet);
    assert_eq!(
        error.to_string(),
        "`host1` (10.77.0.2) has Linux 3.10.0-1160.el7.x86_64, and 4.18 is the oldest that will do"
    );
    assert!(fleet.cached(HOST).is_empty());
}

#[test]
fn a_host_without_room_keeps_nothing_of_the_program() {
    // Once where the host knows that there is no room, once where it finds out while it writes.
    for programs in [&[][..], &[("df", "echo header; echo lab 1 1 99999999 1% /x")]] {
        let Some(mut fleet) = Fleet::bare(1) else { return };
        let cache = fleet.cache(HOST);
        fs::create_dir(&cache).unwrap();
        let mount = format!("mount -t tmpfs -o size=1m lab {}", cache.display());
        with_programs(&mut fleet, programs, &mount);
        let error = refused(&fleet);
        let size = fleet.program().size();
        assert!(matches!(&*error.kind, ConnectErrorKind::NoSpace { needed, .. } if needed.0 == size), "{error:?}");
        // What the host has there, as the host sees it.
        let sshd = fleet.lab.processes(HOST)[0].to_string();
        eventually("nothing is left", || {
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
fn what_is_put_on_a_host_must_be_an_agent_of_this_version() {
    let Some(fleet) = Fleet::new(1) else { return };
    let told = |script: &str| {
        fleet.script("program", script);
        let program = wb_fleet::Program::read(&fleet.path("program")).unwrap();
        run(connect(&fleet.host(HOST), &program, &fleet.options())).unwrap_err()
    };
    let hello = r#"{"protocol":99,"release":"9.9","program":"/x"}"#;
    let other =
        told(&format!("#!/bin/sh\nprintf '\\{:03o}\\000\\000\\000\\000\\000\\000\\000%s' '{hello}'\n", hello.len()));
    assert!(matches!(&*other.kind, ConnectErrorKind::Agent(WorkerError::Version { protocol: 99, .. })), "{other:?}");
    let none = told("#!/bin/sh\necho I am no agent at all\n");
    assert!(matches!(&*none.kind, ConnectErrorKind::Agent(WorkerError::Handshake { .. })), "{none:?}");
}

#[test]
fn a_cut_link_is_known_at_both_ends() {
    let Some(fleet) = Fleet::new(1) else { return };
    run(async {
        let options = ConnectOptions { idle_timeout: Duration::from_secs(6), ..fleet.options() };
        let connected = connect(&fleet.host(HOST), &fleet.program(), &options).await.unwrap();
        let group = connected.worker.new_group().await.unwrap();
        let process = group.spawn(Command::new(["sleep", "1000"])).await.unwrap();
        fleet.lab.cut(HOST);
        let error = process.wait(None).await.unwrap_err();
        assert!(error.is_lost(), "{error}");
        eventually("the workload's end", || !alive(process.pid()));
    });
    fleet.is_quiet(HOST);
    eventually("the end of ssh", || fleet.lab.processes(DESK).is_empty());
}

#[test]
fn a_change_that_takes_longer_than_silence_may_last_is_no_silence() {
    let Some(fleet) = Fleet::new(1) else { return };
    run(async {
        let options = ConnectOptions { idle_timeout: Duration::from_secs(3), ..fleet.options() };
        let connected = connect(&fleet.host(HOST), &fleet.program(), &options).await.unwrap();
        let group = connected.worker.new_group().await.unwrap();
        let marker = fleet.path("slowly-made");
        let write = format!("sleep 5; [ {{}} = absent ] && rm -f {0} || touch {0}", marker.display());
        let read = format!("[ -e {} ] && echo present || echo absent", marker.display());
        let words = |script: String| ["sh", "-c", &script].map(str::to_owned).to_vec();
        let step = Step::Command { name: "a slow change".to_owned(), read: words(read), write: words(write) };
        assert!(group.apply_step(step, Some("present".to_owned())).await.unwrap());
        assert!(marker.exists());
        // What puts it back takes as long.
        let teardown = group.teardown().await.unwrap();
        assert_eq!((teardown.killed.len(), teardown.reverted.len(), &teardown.fault), (0, 1, &None), "{teardown:?}");
        assert!(!marker.exists());
        connected.worker.close().await.unwrap();
    });
    fleet.is_quiet(HOST);
}

#[test]
fn ssh_notices_a_cut_link_before_silence_does() {
    let Some(fleet) = Fleet::new(1) else { return };
    run(async {
        let connected = fleet.reach(HOST).await;
        fleet.lab.cut(HOST);
        let error = connected.worker.facts().await.unwrap_err().to_string();
        let expected =
            "the worker `host1` is lost: its ssh connection ended: Timeout, server 10.77.0.2 not responding.";
        assert_eq!(error, expected);
    });
}

#[test]
fn an_account_without_a_shell_is_told() {
    let Some(mut fleet) = Fleet::bare(1) else { return };
    fleet.start(HOST, &Sshd { lines: "ForceCommand echo no shell for you >&2; exit 7", ..Sshd::default() });
    let error = refused(&fleet);
    assert_eq!(error.to_string(), "`host1` (10.77.0.2) lets you in and runs no commands: no shell for you");
    assert!(error.help().unwrap().starts_with("the account's shell may refuse commands, as nologin does"));
    // What nologin itself says, it says on standard output.
    let Some(mut fleet) = Fleet::bare(1) else { return };
    let lines = "ForceCommand echo Could not chdir >&2; echo This account is currently not available.; exit 1";
    fleet.start(HOST, &Sshd { lines, ..Sshd::default() });
    let said = "`host1` (10.77.0.2) lets you in and runs no commands: This account is currently not available.";
    assert_eq!(refused(&fleet).to_string(), said);
}

#[test]
fn a_killed_agent_takes_its_workload_with_it() {
    let Some(fleet) = Fleet::new(1) else { return };
    run(async {
        let connected = fleet.reach(HOST).await;
        let group = connected.worker.new_group().await.unwrap();
        let process = group.spawn(Command::new(["sleep", "1000"])).await.unwrap();
        kill_agents(&fleet);
        let error = process.wait(None).await.unwrap_err();
        assert!(error.is_lost(), "{error}");
        eventually("the workload's end", || !alive(process.pid()));
        // It held the host, and what it left of that holds nobody up.
        fleet.reach(HOST).await.worker.close().await.unwrap();
    });
}

fn kill_agents(fleet: &Fleet) {
    let is_agent = |pid: &u32| {
        fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default().contains("/weighbridge\0agent")
    };
    let agents: Vec<u32> = fleet.lab.processes(HOST).into_iter().filter(is_agent).collect();
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
    assert!(alive(workload));

    let error = refused(&fleet);
    let ConnectErrorKind::InUse(Some(holder)) = &*error.kind else { panic!("{error:?}") };
    assert_eq!(holder.controller.pid, controller.id());

    controller.kill().unwrap();
    controller.wait().unwrap();
    eventually("the workload's end", || !alive(workload));
    fleet.is_quiet(HOST);
    eventually("the end of ssh", || fleet.lab.processes(DESK).is_empty());
    run(async { fleet.reach(HOST).await.worker.close().await.unwrap() });
}
