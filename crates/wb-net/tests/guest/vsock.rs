//! Tests specific to vsock: buffer sizes.

use wb_net_profile::*;

use crate::Test;
use crate::common::{link, *};

pub(crate) const TESTS: &[Test] = &[("vsock::buffers_have_the_requested_size", buffers_have_the_requested_size)];

fn buffers_have_the_requested_size() {
    let endpoint = Endpoint { window: Some(1 << 20), ..*endpoint(Protocol::Vsock) };
    let mut ends = link::link(&endpoint, false, |announcement| announcement).expect("both ends");
    let (connected, accepted) = link::connect(&mut ends);
    for transport in [connected.expect("it connects"), accepted.expect("it accepts")] {
        println!("{:?}", transport.info());
    }
}
