//! Tests specific to vsock: buffer sizes, and ports that are reserved for a run.

use wb_net::language::*;
use wb_net::transport::link::LinkRole;

use crate::Test;
use crate::common::{link, *};

pub(crate) const TESTS: &[Test] = &[(
    "vsock::ports_are_reserved_and_buffers_have_the_requested_size",
    ports_are_reserved_and_buffers_have_the_requested_size,
)];

fn ports_are_reserved_and_buffers_have_the_requested_size() {
    let endpoint = Endpoint { window: Some(1 << 20), ..*endpoint(Protocol::Vsock) };
    for part in [LinkRole::Connector, LinkRole::Acceptor] {
        let end = link::end(&endpoint, part, true).expect("an end");
        assert!(!end.announcement().addresses.is_empty());
    }
    let mut ends = link::link(&endpoint, false, |announcement| announcement).expect("both ends");
    let (connected, accepted) = link::connect(&mut ends);
    for transport in [connected.expect("it connects"), accepted.expect("it accepts")] {
        println!("{:?}", transport.info());
    }
}
