//! What a kernel lacks is said to be lacking, not to have failed.

use std::io::ErrorKind;

use crate::common::*;
use wb_net::{language::*, transport::link::LinkRole};

#[test]
fn a_protocol_that_the_kernel_lacks_is_told_as_such() {
    for protocol in [Protocol::Sctp, Protocol::Vsock] {
        let Err(error) = link::end(&endpoint(protocol), LinkRole::Acceptor, false) else {
            println!("SKIPPED: how missing {protocol:?} is told: this kernel has it");
            continue;
        };
        let numbers = [libc::EPROTONOSUPPORT, libc::ESOCKTNOSUPPORT, libc::EAFNOSUPPORT];
        let unsupported = error.kind() == ErrorKind::Unsupported;
        assert!(unsupported || error.raw_os_error().is_some_and(|number| numbers.contains(&number)), "{error}");
    }
}

#[test]
fn kernel_tls_is_refused_with_a_reason_where_there_is_none() {
    let wanted = Endpoint { kernel_tls: true, ..*endpoint(Protocol::Tls) };
    match link::end(&wanted, LinkRole::Acceptor, false) {
        Err(error) => assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}"),
        Ok(_) => println!("SKIPPED: how missing TLS is told: this kernel has it"),
    }
}
