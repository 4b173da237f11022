//! vsock over its loopback context, where the kernel has one.

mod common;

use std::io::ErrorKind;

use common::*;
use wb_net::{
    engine::work::Settings,
    language::*,
    transport::{address::Place, ends::Part},
};

/// Whether this kernel carries vsock from itself to itself.
fn has_loopback() -> bool {
    let Ok(mut ends) = link::link(&endpoint(Protocol::Vsock), false, |announcement| announcement) else { return false };
    let (opened, taken) = link::connect(&mut ends);
    opened.is_ok() && taken.is_ok()
}

#[test]
fn requests_are_answered_where_there_is_a_loopback_context() {
    if !has_loopback() {
        return;
    }
    for threads in [128, 0] {
        let settings = Settings { threads, ..Settings::default() };
        let profile = profile(2, Protocol::Vsock, transaction(Extent::Iterations(100), vec![send(90), receive(9000)]));
        let (_, client, _) = run_at(&profile, &settings, Place::Vsock(1));
        assert_eq!(client.groups[0].transactions[1].rounds.histogram.len(), 200);
    }
}

#[test]
fn connections_are_made_over_and_over_where_there_is_a_loopback_context() {
    if !has_loopback() {
        return;
    }
    for threads in [128, 0] {
        let settings = Settings { threads, ..Settings::default() };
        let flowops = vec![
            flowop("connect", Action::Connect(endpoint(Protocol::Vsock))),
            send(90),
            receive(90),
            flowop("disconnect", Action::Disconnect),
        ];
        let mut profile = profile(2, Protocol::Vsock, transaction(Extent::Iterations(600), flowops));
        profile.groups[0].transactions.remove(0);
        profile.groups[0].transactions.pop();
        let (_, client, server) = run_at(&profile, &settings, Place::Vsock(1));
        assert_eq!(client.groups[0].transactions[0].flowops[3].count, 1200);
        assert_eq!(server.refused, 0);
    }
}

#[test]
fn a_kernel_without_vsock_is_said_to_be_without_it() {
    if let Err(error) = link::end(&endpoint(Protocol::Vsock), Part::Taker, false) {
        let numbers = [libc::EAFNOSUPPORT, libc::ESOCKTNOSUPPORT, libc::EPROTONOSUPPORT];
        let unsupported = error.kind() == ErrorKind::Unsupported;
        assert!(unsupported || error.raw_os_error().is_some_and(|number| numbers.contains(&number)), "{error}");
    }
}

#[test]
fn ports_are_held_and_buffers_are_as_large_as_asked() {
    let wanted = Endpoint { window: Some(1 << 20), ..*endpoint(Protocol::Vsock) };
    for part in [Part::Opener, Part::Taker] {
        match link::end(&wanted, part, true) {
            Ok(end) => assert!(!end.announcement().addresses.is_empty()),
            Err(error) => assert!(error.raw_os_error().is_some_and(|number| number != libc::EINVAL), "{error}"),
        }
    }
}
