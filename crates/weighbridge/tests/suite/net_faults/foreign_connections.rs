//! Foreign connections before and during a run.

use std::{fmt::Write as _, time::Duration};

use wb_test_net::Host;

use super::{
    lab::{CLIENT, Lab, OTHER, SERVER, fresh_token, write_secret},
    profiles::{connected, rr},
    program::Program,
    result::number,
};

/// Checks that the server still completes a short run.
fn assert_run_completes(lab: &Lab) {
    lab.run_profile(&connected(2, "protocol=tcp", &rr("iterations=10", "64", "64")), "").completed();
}

/// Runs a bash script on a host; bash can open connections by itself.
fn bash(lab: &Lab, host: Host, script: &str) -> Program {
    let mut bash = lab.command(host, "bash");
    bash.args(["-c", script]);
    Program::start(bash, &lab.path("bash"))
}

#[test]
fn idle_connections_do_not_block_a_run() {
    let Some(lab) = Lab::new(3) else { return };
    let server = lab.serve("");
    let mut open = String::new();
    (0..200).for_each(|_| write!(open, "exec {{fd}}<>/dev/tcp/{}/20000; ", SERVER.v4()).unwrap());
    let idle = bash(&lab, OTHER, &format!("{open} echo open >&2; sleep 60"));
    idle.wait_for_stderr("open");
    assert_run_completes(&lab);
    drop(idle);
    server.assert_unchanged();
}

#[test]
fn garbage_on_the_control_port_is_refused() {
    let Some(lab) = Lab::new(2) else { return };
    let server = lab.serve("");
    bash(&lab, CLIENT, &format!("head -c 1000000 /dev/urandom > /dev/tcp/{}/20000", SERVER.v4())).finish();
    server.wait_for_stderr("refused: ");
    assert_run_completes(&lab);
    server.assert_unchanged();
}

#[test]
fn client_with_another_token_is_refused() {
    let Some(lab) = Lab::new(2) else { return };
    let server = lab.serve("");
    write_secret(&lab.path("token"), &fresh_token());
    let ran = lab.run(&format!("net rr {} -t 1s --token-file token", SERVER.v4()));
    assert_eq!(ran.code, Some(1));
    let message =
        "host `10.77.0.2`: the server at 10.77.0.2:20000 refused the connection: the token does not match the server's";
    assert!(ran.err.contains(message), "{ran:?}");
    server.wait_for_stderr("refused: the token of the client at 10.77.0.1");
    server.assert_unchanged();
}

/// Runs a client while `act` is called with the data ports of the server; returns the result.
fn disturbed(lab: &Lab, protocol: &str, act: impl Fn(&[u16])) -> super::result::RunResult {
    let server = lab.serve("");
    let kind = if protocol == "udp" { "-u" } else { "-t" };
    let profile = connected(2, &format!("protocol={protocol}"), &rr("iterations=300 rate=300", "64", "64"));
    let client = lab.start_profile(&profile, "");
    let ports = || -> Vec<u16> {
        let sockets = lab.sockets(SERVER, &format!("{kind}a"));
        let local =
            sockets.iter().filter_map(|socket| socket.split_whitespace().nth(3)?.rsplit(':').next()?.parse().ok());
        local.filter(|port| *port != 20000).collect()
    };
    super::program::eventually("the server has data ports", || {
        if ports().len() >= 4 || (protocol == "udp" && ports().len() >= 2) { Ok(()) } else { Err(server.stderr()) }
    });
    std::thread::sleep(Duration::from_millis(100));
    act(&ports());
    let result = client.finish().completed();
    assert_eq!(result.rounds(), 600);
    assert_eq!(result.bytes(), (2 * 600 * 64, 2 * 600 * 64));
    server.assert_unchanged();
    result
}

#[test]
fn foreign_connections_are_counted_and_dropped() {
    let Some(lab) = Lab::new(3) else { return };
    let result = disturbed(&lab, "tcp", |ports| {
        let port = ports[0];
        bash(&lab, OTHER, &format!("exec 3<>/dev/tcp/{}/{port}; echo hello >&3", SERVER.v4())).finish();
    });
    assert_eq!(number(&result.0["machines"][1]["rejected-connections"]), 1);
}

#[test]
fn foreign_connections_to_a_shared_port_are_counted_and_dropped() {
    let Some(lab) = Lab::new(3) else { return };
    let server = lab.serve("--data-ports 30000-30000");
    let client = lab.start_profile(&connected(2, "protocol=tcp", &rr("iterations=300 rate=300", "64", "64")), "");
    super::program::eventually("the server has a data port", || {
        let has = lab.sockets(SERVER, "-tl").iter().any(|socket| socket.contains(":30000"));
        if has { Ok(()) } else { Err(server.stderr()) }
    });
    bash(&lab, OTHER, &format!("exec 3<>/dev/tcp/{}/30000; echo hello >&3", SERVER.v4())).finish();
    let result = client.finish().completed();
    assert_eq!((result.rounds(), number(&result.0["machines"][1]["rejected-connections"])), (600, 1));
    server.assert_unchanged();
}

#[test]
fn foreign_datagrams_are_dropped() {
    let Some(lab) = Lab::new(3) else { return };
    let result = disturbed(&lab, "udp", |ports| {
        let mut script = String::new();
        for port in ports {
            write!(script, "for i in 1 2 3 4 5; do echo hello12345 > /dev/udp/{}/{port}; done; ", SERVER.v4()).unwrap();
        }
        bash(&lab, OTHER, &script).finish();
    });
    assert_eq!(number(&result.0["totals"]["lost-datagrams"]), 0);
}
