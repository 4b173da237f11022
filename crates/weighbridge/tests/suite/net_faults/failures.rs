//! Clients, servers or links that fail or stall during a run.

use rustix::process::Signal;

use super::{
    lab::{CLIENT, Lab, SERVER},
    profiles::{connected, group, profile, rr},
    program::Program,
};

/// A client and its server during a run of several minutes.
fn in_the_middle(lab: &Lab, strands: &str) -> (Program, super::server::Server) {
    in_the_middle_at(lab, strands, "")
}

/// The same with a limited rate.
fn in_the_middle_at(lab: &Lab, strands: &str, rate: &str) -> (Program, super::server::Server) {
    let server = lab.serve("");
    let long = profile(&group(strands, "protocol=tcp", &rr(&format!("duration=300s {rate}"), "64", "1k")));
    lab.write("profile.xml", &long);
    let client = lab.start(CLIENT, &format!("net run profile.xml --json --server there={}", SERVER.v4()));
    super::program::eventually("data connections are open", || {
        let open = lab.sockets(SERVER, "-t").iter().filter(|socket| !socket.contains(":20000")).count();
        if open > 0 { Ok(()) } else { Err(server.stderr()) }
    });
    (client, server)
}

#[test]
fn run_is_lost_when_its_server_is_killed() {
    let Some(lab) = Lab::new(2) else { return };
    let (client, server) = in_the_middle(&lab, "nthreads=3");
    server.signal(Signal::KILL);
    let reason = client.finish().fell_short("lost");
    assert!(reason.starts_with("lost the connection to there: "), "{reason}");
    lab.wait_for_client_exit();
}

#[test]
fn processes_of_a_killed_server_end() {
    let Some(lab) = Lab::new(2) else { return };
    let (client, server) = in_the_middle(&lab, "nprocs=3");
    server.signal(Signal::KILL);
    client.finish().fell_short("lost");
    drop(server);
    lab.wait_for_client_exit();
    super::program::eventually("no process is left where the server ran", || match lab.network.processes(SERVER) {
        left if left.is_empty() => Ok(()),
        left => Err(format!("{left:?}")),
    });
}

#[test]
fn run_is_lost_when_its_server_is_suspended() {
    let Some(lab) = Lab::new(2) else { return };
    let (client, server) = in_the_middle(&lab, "nthreads=3");
    server.signal(Signal::STOP);
    let reason = client.finish().fell_short("lost");
    assert_eq!(reason, "lost the connection to there: no heartbeat for 5 s");
    lab.wait_for_client_exit();
    server.signal(Signal::CONT);
    server.assert_unchanged();
}

#[test]
fn both_sides_end_when_the_link_is_down() {
    let Some(lab) = Lab::new(2) else { return };
    let (client, server) = in_the_middle(&lab, "nthreads=3");
    lab.network.disconnect(SERVER);
    let reason = client.finish().fell_short("lost");
    assert_eq!(reason, "lost the connection to there: no heartbeat for 5 s");
    lab.wait_for_client_exit();
    server.wait_for_stderr("no message from the client for 10 s");
    server.assert_unchanged();
}

#[test]
fn server_continues_after_its_client_is_killed() {
    let Some(lab) = Lab::new(2) else { return };
    let (client, server) = in_the_middle(&lab, "nthreads=3");
    client.signal(Signal::KILL);
    server.wait_for_stderr("lost the client");
    server.assert_unchanged();
    lab.wait_for_client_exit();
    lab.run_profile(&connected(2, "protocol=tcp", &rr("iterations=10", "64", "64")), "").completed();
}

#[test]
fn processes_of_a_killed_client_end() {
    let Some(lab) = Lab::new(2) else { return };
    let (client, server) = in_the_middle(&lab, "nprocs=3");
    client.signal(Signal::KILL);
    drop(client);
    lab.wait_for_client_exit();
    server.assert_unchanged();
}

#[test]
fn suspended_client_is_dropped_after_a_timeout() {
    let Some(lab) = Lab::new(2) else { return };
    let (client, server) = in_the_middle_at(&lab, "nprocs=2", "rate=1000");
    client.signal(Signal::STOP);
    server.wait_for_stderr("no message from the client for 10 s");
    server.assert_unchanged();
    client.signal(Signal::CONT);
    let reason = client.finish().fell_short("lost");
    assert!(reason.starts_with("lost the connection to there: "), "{reason}");
    lab.wait_for_client_exit();
}

#[test]
fn interrupted_client_leaves_nothing() {
    let Some(lab) = Lab::new(2) else { return };
    let (client, server) = in_the_middle(&lab, "nprocs=2");
    client.signal(Signal::INT);
    let ran = client.finish();
    assert_eq!((ran.code, ran.result().state()), (Some(130), "interrupted"));
    lab.wait_for_client_exit();
    server.assert_unchanged();
}

#[test]
fn terminated_server_ends_its_sessions() {
    let Some(lab) = Lab::new(2) else { return };
    let (client, server) = in_the_middle(&lab, "nprocs=2");
    assert_eq!(server.end().code, Some(0));
    let reason = client.finish().fell_short("lost");
    assert!(reason.starts_with("lost the connection to there: "), "{reason}");
    lab.wait_for_client_exit();
    super::program::eventually("no process is left where the server ran", || match lab.network.processes(SERVER) {
        left if left.is_empty() => Ok(()),
        left => Err(format!("{left:?}")),
    });
}

#[test]
fn server_with_a_long_interval_is_not_considered_lost() {
    let Some(lab) = Lab::new(2) else { return };
    let _server = lab.serve("");
    lab.run_profile(&connected(1, "protocol=tcp", &rr("duration=6500ms rate=1000", "64", "64")), "--interval 20s")
        .completed();
}
