//! Features that a kernel does not support are reported as unsupported, not as failures.

use std::io::ErrorKind;

use crate::common::*;
use wb_net::transport::cookie::SessionKey;
use wb_net::transport::link::LinkRole;
use wb_net_profile::*;

/// Whether the links are set up more than once.
const REPEATED: bool = false;

fn session_key() -> SessionKey {
    SessionKey::generate().expect("generate a session key")
}

#[test]
fn a_protocol_that_the_kernel_does_not_support_is_reported_as_unsupported() {
    for protocol in [Protocol::Sctp, Protocol::Vsock] {
        let Err(error) = link::open_end(&endpoint(protocol), LinkRole::Acceptor, REPEATED, session_key()) else {
            wb_test_skip::skip!("report of missing {protocol:?}: this kernel supports it");
            continue;
        };
        let errnos = [libc::EPROTONOSUPPORT, libc::ESOCKTNOSUPPORT, libc::EAFNOSUPPORT];
        let unsupported = error.kind() == ErrorKind::Unsupported;
        assert!(unsupported || error.raw_os_error().is_some_and(|errno| errnos.contains(&errno)), "{error}");
    }
}

#[test]
fn missing_kernel_tls_is_reported_as_unsupported() {
    let endpoint = Endpoint { kernel_tls: true, ..*endpoint(Protocol::Tls) };
    match link::open_end(&endpoint, LinkRole::Acceptor, REPEATED, session_key()) {
        Err(error) => assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}"),
        Ok(_) => wb_test_skip::skip!("report of missing kernel TLS: this kernel supports it"),
    }
}
