//! Features that a kernel does not support are reported as unsupported, not as failures.

use std::io::ErrorKind;

use crate::common::*;
use wb_net::language::*;
use wb_net::transport::cookie::SessionKey;
use wb_net::transport::link::LinkRole;

fn session() -> SessionKey {
    SessionKey::generate().expect("random numbers")
}

#[test]
fn a_protocol_that_the_kernel_does_not_support_is_reported_as_unsupported() {
    for protocol in [Protocol::Sctp, Protocol::Vsock] {
        let Err(error) = link::end(&endpoint(protocol), LinkRole::Acceptor, false, session()) else {
            println!("SKIPPED: report of missing {protocol:?}: this kernel supports it");
            continue;
        };
        let numbers = [libc::EPROTONOSUPPORT, libc::ESOCKTNOSUPPORT, libc::EAFNOSUPPORT];
        let unsupported = error.kind() == ErrorKind::Unsupported;
        assert!(unsupported || error.raw_os_error().is_some_and(|number| numbers.contains(&number)), "{error}");
    }
}

#[test]
fn missing_kernel_tls_is_reported_as_unsupported() {
    let endpoint = Endpoint { kernel_tls: true, ..*endpoint(Protocol::Tls) };
    match link::end(&endpoint, LinkRole::Acceptor, false, session()) {
        Err(error) => assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}"),
        Ok(_) => println!("SKIPPED: report of missing kernel TLS: this kernel supports it"),
    }
}
