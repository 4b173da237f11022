//! Servers that cannot be reached.

use super::{
    lab::{CLIENT, Lab, SERVER},
    profiles::{connected, rr},
    result::ProgramResult,
};

/// The error message about an unusable server.
fn mistake(ran: &ProgramResult) -> &str {
    assert_eq!(ran.code, Some(1), "{ran:?}");
    &ran.err
}

#[test]
fn unresolvable_host_is_reported() {
    let Some(lab) = Lab::new(1) else { return };
    let ran = lab.run("net stream nosuch.invalid -t 1s");
    assert!(mistake(&ran).contains("cannot resolve host `nosuch.invalid`: "), "{ran:?}");
    lab.wait_for_client_exit();
}

#[test]
fn closed_port_is_reported() {
    let Some(lab) = Lab::new(2) else { return };
    let ran = lab.run(&format!("net stream {} -t 1s", SERVER.v4()));
    assert!(
        mistake(&ran).contains("host `10.77.0.2`: cannot connect to 10.77.0.2:20000: connection refused"),
        "{ran:?}"
    );
    lab.wait_for_client_exit();
}

#[test]
fn silent_host_times_out() {
    let Some(lab) = Lab::with_nft(2) else { return };
    lab.drop(SERVER, "tcp dport 20000");
    let ran = lab.run(&format!("net stream {} -t 1s", SERVER.v4()));
    assert!(mistake(&ran).contains("host `10.77.0.2`: no answer from 10.77.0.2:20000 within 10 s"), "{ran:?}");
    lab.wait_for_client_exit();
}

#[test]
fn unreachable_host_is_reported() {
    let Some(lab) = Lab::new(1) else { return };
    lab.network.disconnect(CLIENT);
    let ran = lab.run(&format!("net stream {} -t 1s", SERVER.v4()));
    assert!(mistake(&ran).contains("host `10.77.0.2`: cannot reach 10.77.0.2:20000: "), "{ran:?}");
}

#[test]
fn a_link_local_address_without_its_interface_is_reported() {
    let Some(lab) = Lab::new(1) else { return };
    for line in ["net stream fe80::1 -t 1s", "net stream [fe80::1]:7 -t 1s", "net iperf3 -c fe80::1"] {
        let ran = lab.run(line);
        assert!(mistake(&ran).contains("a link-local address needs its interface: `fe80::1%INTERFACE`"), "{ran:?}");
    }
}

#[test]
fn data_ports_blocked_by_a_firewall_end_the_run() {
    let Some(lab) = Lab::with_nft(2) else { return };
    let server = lab.serve("");
    lab.drop(SERVER, "tcp dport != 20000");
    let profile = connected(2, "protocol=tcp timeout=1s", &rr("iterations=1", "64", "64"));
    let reason = lab.run_profile(&profile, "").fell_short("failed");
    assert!(
        reason.contains("connect with there: no answer from 10.77.0.2:") && reason.contains("a firewall may drop"),
        "{reason}"
    );
    server.assert_unchanged();
    lab.wait_for_client_exit();
}

#[test]
fn a_profile_that_accepts_says_that_the_server_connects() {
    let Some(lab) = Lab::with_nft(2) else { return };
    let server = lab.serve("");
    lab.drop(CLIENT, "tcp flags syn / syn,ack");
    let profile = connected(1, "protocol=tcp", &rr("iterations=1", "64", "64")).replace("connect", "accept");
    let profile = profile.replace("disaccept", "disconnect");
    let reason = lab.run_profile(&profile, "").fell_short("failed");
    assert!(
        reason.contains("no answer from 10.77.0.1:") && reason.contains("`accept` in the profile makes the server"),
        "{reason}"
    );
    server.assert_unchanged();
    lab.wait_for_client_exit();
}
