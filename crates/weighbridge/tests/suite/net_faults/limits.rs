//! Requests beyond the limits of a server or a machine.

use super::{
    lab::{CLIENT, Lab, SERVER},
    profiles::{connected, rr},
    program::eventually,
};

/// The reason for which a server with these flags refuses a run of this profile.
fn refusal(flags: &str, profile: &str) -> Option<String> {
    let lab = Lab::new(2)?;
    let server = lab.serve(flags);
    let reason = lab.run_profile(profile, "").fell_short("failed");
    server.wait_for_stderr("the server refuses: ");
    server.assert_unchanged();
    lab.wait_for_client_exit();
    Some(reason)
}

#[test]
fn too_many_strands_are_refused_and_the_flag_is_named() {
    let Some(reason) = refusal("--max-strands 4", &connected(8, "protocol=tcp", &rr("iterations=1", "64", "64")))
    else {
        return;
    };
    assert_eq!(reason, "there: the server refuses: 8 strands; at most 4 (`net serve --max-strands`)");
}

#[test]
fn too_long_windows_are_refused_and_the_flag_is_named() {
    let Some(reason) = refusal("--max-time 2s", &connected(1, "protocol=tcp", &rr("duration=5s", "64", "64"))) else {
        return;
    };
    assert_eq!(reason, "there: the server refuses: a window of 5 s; at most 2 s (`net serve --max-time`)");
}

#[test]
fn too_long_sessions_are_ended_and_the_flag_is_named() {
    let Some(lab) = Lab::new(2) else { return };
    let server = lab.serve("--max-time 1s");
    let two = rr("duration=800ms rate=100", "64", "64").repeat(2);
    let reason = lab.run_profile(&connected(1, "protocol=tcp", &two), "").fell_short("failed");
    assert_eq!(reason, "there: the session exceeded 1 s (`net serve --max-time`)");
    server.assert_unchanged();
}

#[test]
fn too_many_sessions_are_refused_and_the_flag_is_named() {
    let Some(lab) = Lab::new(2) else { return };
    let server = lab.serve("--max-sessions 1");
    let first = lab.start_profile(&connected(1, "protocol=tcp", &rr("duration=2s rate=100", "64", "64")), "");
    server.wait_for_stderr("session started");
    lab.write("second.xml", &connected(1, "protocol=tcp", &rr("iterations=1", "64", "64")));
    let second = lab.run(&format!("net run second.xml --json --server there={}", SERVER.v4()));
    assert_eq!(
        second.fell_short("failed"),
        "there: the server has reached its limit of 1 sessions (`net serve --max-sessions`)"
    );
    first.finish().completed();
}

#[test]
fn a_client_that_is_refused_ends_nothing_of_another() {
    let Some(lab) = Lab::new(2) else { return };
    let host = SERVER.v4();
    // Rates leave the processor to other tests.
    let test = format!("net iperf3 -c {host} -p 20000 -b 10M");
    let rounds = format!("net rr {host} --rate 100/s");
    for (server, client, ready, refusal, code) in [
        ("net serve --listen 0.0.0.0 --once", &rounds, "serving at", "the server serves another client", 3),
        ("net serve --listen 0.0.0.0 --max-sessions 1", &rounds, "serving at", "its limit of 1 sessions", 3),
        ("net iperf3 -s -1 -p 20000", &test, "", "the server is busy running a test", 1),
        ("net iperf3 -s -p 20000", &test, "", "the server is busy running a test", 1),
    ] {
        let server = lab.start(SERVER, server);
        let listens = || match lab.sockets(SERVER, "-lt") {
            sockets if sockets.is_empty() => Err(server.stderr()),
            _ => Ok(()),
        };
        eventually("the server listens", listens);
        server.wait_for_stderr(ready);
        let first = lab.start(CLIENT, &format!("{client} -t 1"));
        eventually("the first client has two connections", || match lab.sockets(SERVER, "-t").len() {
            0 | 1 => Err(server.stderr()),
            _ => Ok(()),
        });
        for form in ["", "-J"] {
            let second = lab.run(&format!("{client} -t 1 {form}"));
            assert_eq!(second.code, Some(code), "{second:?}");
            assert!(second.err.contains(refusal), "{second:?}");
            // iperf3's document has the same reason.
            assert!(form.is_empty() || second.out.contains(refusal), "{second:?}");
        }
        server.wait_for_stderr(&format!("refused: {refusal}").replace("its limit", "the server has reached its limit"));
        let first = first.finish();
        assert_eq!(first.code, Some(0), "{first:?} {}", server.stderr());
        server.signal(rustix::process::Signal::TERM);
        let served = server.finish();
        if client == &test {
            assert!(served.out.contains("receiver\n") && served.out.contains("   0.00-1.00"), "{served:?}");
            assert!(!served.out.contains("(test #3)"), "{served:?}");
        }
    }
}

/// A profile with a strand for each of 300 connections.
fn many() -> String {
    connected(300, "protocol=tcp", &rr("iterations=2", "64", "64"))
}

#[test]
fn client_reports_the_descriptor_limit() {
    let Some(lab) = Lab::new(2) else { return };
    let server = lab.serve("");
    lab.write("profile.xml", &many());
    let line = format!("net run profile.xml --json --server there={}", SERVER.v4());
    let reason = lab.start_limited(CLIENT, "ulimit -n 100; exec", &line).finish().fell_short("failed");
    assert!(
        reason.contains("connect") && reason.contains("Too many open files") && reason.contains("ulimit -n"),
        "{reason}"
    );
    server.assert_unchanged();
    lab.wait_for_client_exit();
}

#[test]
fn server_reports_the_descriptor_limit_and_continues() {
    let Some(lab) = Lab::new(2) else { return };
    let line = format!("net serve --listen {}", SERVER.v4());
    let server = super::server::Server::ready(lab.start_limited(SERVER, "ulimit -n 100; exec", &line));
    let reason = lab.run_profile(&many(), "").fell_short("failed");
    assert!(
        reason.starts_with("there: ") && reason.contains("Too many open files") && reason.contains("ulimit -n"),
        "{reason}"
    );
    server.assert_unchanged();
    lab.run_profile(&connected(2, "protocol=tcp", &rr("iterations=2", "64", "64")), "").completed();
}

#[test]
fn soft_descriptor_limit_is_raised() {
    let Some(lab) = Lab::new(2) else { return };
    let serve = format!("net serve --listen {}", SERVER.v4());
    let _server = super::server::Server::ready(lab.start_limited(SERVER, "ulimit -Sn 100; exec", &serve));
    lab.write("profile.xml", &many());
    let run = format!("net run profile.xml --json --server there={}", SERVER.v4());
    lab.start_limited(CLIENT, "ulimit -Sn 100; exec", &run).finish().completed();
}

#[test]
fn client_reports_the_thread_limit() {
    let Some(lab) = Lab::new(2) else { return };
    let server = lab.serve("");
    // The limit does not apply to root, so use a user without other processes.
    let limits = "ulimit -u 100; exec setpriv --reuid=61234 --inh-caps=+dac_override --ambient-caps=+dac_override";
    let line = format!("net rr {} -n 300 -t 300ms --max-threads 1000 --json", SERVER.v4());
    let reason = lab.start_limited(CLIENT, limits, &line).finish().fell_short("failed");
    assert!(reason.contains("cannot start thread for strand") && reason.contains("fewer strands"), "{reason}");
    server.assert_unchanged();
    lab.wait_for_client_exit();
}
