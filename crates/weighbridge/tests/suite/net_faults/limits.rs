//! More than a server allows, or a machine has.

use super::{
    lab::{CLIENT, Lab, SERVER},
    profiles::{connected, rr},
};

/// Why a server with these flags refuses a run of this profile.
fn refusal(flags: &str, profile: &str) -> Option<String> {
    let lab = Lab::new(2)?;
    let server = lab.serve(flags);
    let why = lab.run_profile(profile, "").fell_short("failed");
    server.says("the server refuses: ");
    server.is_as_before();
    lab.client_is_gone();
    Some(why)
}

#[test]
fn too_many_strands_are_refused_with_the_flag_that_allows_them() {
    let Some(why) = refusal("--max-strands 4", &connected(8, "protocol=tcp", &rr("iterations=1", "64", "64"))) else {
        return;
    };
    assert_eq!(why, "there: the server refuses: 8 strands; at most 4 (`net serve --max-strands`)");
}

#[test]
fn too_long_windows_are_refused_with_the_flag_that_allows_them() {
    let Some(why) = refusal("--max-time 2s", &connected(1, "protocol=tcp", &rr("duration=5s", "64", "64"))) else {
        return;
    };
    assert_eq!(why, "there: the server refuses: a window of 5 s; at most 2 s (`net serve --max-time`)");
}

#[test]
fn too_long_sessions_are_ended_with_the_flag_that_allows_them() {
    let Some(lab) = Lab::new(2) else { return };
    let server = lab.serve("--max-time 1s");
    let two = rr("duration=800ms", "64", "64").repeat(2);
    let why = lab.run_profile(&connected(1, "protocol=tcp", &two), "").fell_short("failed");
    assert_eq!(why, "there: the session took 1 s (`net serve --max-time`)");
    server.is_as_before();
}

#[test]
fn too_many_sessions_are_refused_with_the_flag_that_allows_them() {
    let Some(lab) = Lab::new(2) else { return };
    let server = lab.serve("--max-sessions 1");
    let first = lab.start_profile(&connected(1, "protocol=tcp", &rr("duration=2s", "64", "64")), "");
    server.says("begins");
    lab.write("second.xml", &connected(1, "protocol=tcp", &rr("iterations=1", "64", "64")));
    let second = lab.run(&format!("net run second.xml --json --server there={}", SERVER.v4()));
    assert_eq!(second.fell_short("failed"), "there: the server has 1 sessions already (`net serve --max-sessions`)");
    first.finish().completed();
}

/// A profile with a strand for each of 300 connections.
fn many() -> String {
    connected(300, "protocol=tcp", &rr("iterations=2", "64", "64"))
}

#[test]
fn a_client_without_descriptors_says_so() {
    let Some(lab) = Lab::new(2) else { return };
    let server = lab.serve("");
    lab.write("profile.xml", &many());
    let line = format!("net run profile.xml --json --server there={}", SERVER.v4());
    let why = lab.start_limited(CLIENT, "ulimit -n 100; exec", &line).finish().fell_short("failed");
    assert!(why.contains("connect") && why.contains("Too many open files") && why.contains("ulimit -n"), "{why}");
    server.is_as_before();
    lab.client_is_gone();
}

#[test]
fn a_server_without_descriptors_says_so_and_goes_on() {
    let Some(lab) = Lab::new(2) else { return };
    let line = format!("net serve --listen {}", SERVER.v4());
    let server = super::server::Server::ready(lab.start_limited(SERVER, "ulimit -n 100; exec", &line));
    let why = lab.run_profile(&many(), "").fell_short("failed");
    assert!(why.starts_with("there: ") && why.contains("Too many open files") && why.contains("ulimit -n"), "{why}");
    server.is_as_before();
    lab.run_profile(&connected(2, "protocol=tcp", &rr("iterations=2", "64", "64")), "").completed();
}

#[test]
fn descriptors_that_may_be_had_are_had() {
    let Some(lab) = Lab::new(2) else { return };
    let serve = format!("net serve --listen {}", SERVER.v4());
    let _server = super::server::Server::ready(lab.start_limited(SERVER, "ulimit -Sn 100; exec", &serve));
    lab.write("profile.xml", &many());
    let run = format!("net run profile.xml --json --server there={}", SERVER.v4());
    lab.start_limited(CLIENT, "ulimit -Sn 100; exec", &run).finish().completed();
}

#[test]
fn a_client_without_room_for_threads_says_so() {
    let Some(lab) = Lab::new(2) else { return };
    let server = lab.serve("");
    // Root may have as many as it likes, and this user has none yet.
    let limits = "ulimit -u 100; exec setpriv --reuid=61234 --inh-caps=+dac_override --ambient-caps=+dac_override";
    let line = format!("net rr {} -n 300 -t 1s --max-threads 1000 --json", SERVER.v4());
    let why = lab.start_limited(CLIENT, limits, &line).finish().fell_short("failed");
    assert!(why.contains("no thread for strand") && why.contains("fewer strands"), "{why}");
    server.is_as_before();
    lab.client_is_gone();
}
