//! Servers that cannot be reached.

use super::{
    lab::{CLIENT, Lab, SERVER},
    profiles::{connected, rr},
    result::Ran,
};

/// What is said of a server that cannot be used.
fn mistake(ran: &Ran) -> &str {
    assert_eq!(ran.code, Some(1), "{ran:?}");
    &ran.err
}

#[test]
fn a_host_without_an_address_is_named() {
    let Some(lab) = Lab::new(1) else { return };
    let ran = lab.run("net stream nosuch.invalid -t 1s");
    assert!(mistake(&ran).contains("host `nosuch.invalid` has no address: "), "{ran:?}");
    lab.client_is_gone();
}

#[test]
fn a_host_at_which_nothing_listens_is_named() {
    let Some(lab) = Lab::new(2) else { return };
    let ran = lab.run(&format!("net stream {} -t 1s", SERVER.v4()));
    assert!(mistake(&ran).contains("host `10.77.0.2`: nothing listens at 10.77.0.2:20000: "), "{ran:?}");
    lab.client_is_gone();
}

#[test]
fn a_host_that_drops_everything_is_given_up_on() {
    let Some(lab) = Lab::with_nft(2) else { return };
    lab.drop(SERVER, "tcp dport 20000");
    let ran = lab.run(&format!("net stream {} -t 1s", SERVER.v4()));
    assert!(mistake(&ran).contains("host `10.77.0.2`: no answer from 10.77.0.2:20000 within 10 s"), "{ran:?}");
    lab.client_is_gone();
}

#[test]
fn a_host_to_which_there_is_no_way_is_named() {
    let Some(lab) = Lab::new(1) else { return };
    lab.cut(CLIENT);
    let ran = lab.run(&format!("net stream {} -t 1s", SERVER.v4()));
    assert!(mistake(&ran).contains("host `10.77.0.2`: 10.77.0.2:20000 cannot be reached: "), "{ran:?}");
}

#[test]
fn data_ports_that_a_firewall_drops_end_the_run_with_their_host() {
    let Some(lab) = Lab::with_nft(2) else { return };
    let server = lab.serve("");
    lab.drop(SERVER, "tcp dport != 20000");
    let profile = connected(2, "protocol=tcp timeout=1s", &rr("iterations=1", "64", "64"));
    let why = lab.run_profile(&profile, "").fell_short("failed");
    assert!(why.contains("connect") && why.contains("there") && why.contains("no answer"), "{why}");
    server.is_as_before();
    lab.client_is_gone();
}
