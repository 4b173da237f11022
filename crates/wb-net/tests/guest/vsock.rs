//! vsock's own: its sizes of buffers, and ports that are held for a run.

use wb_net::{language::*, transport::link::LinkRole};

use crate::{
    Test,
    common::{link, *},
};

pub(crate) const TESTS: &[Test] =
    &[("vsock::ports_are_held_and_buffers_are_as_large_as_asked", ports_are_held_and_buffers_are_as_large_as_asked)];

fn ports_are_held_and_buffers_are_as_large_as_asked() {
    let wanted = Endpoint { window: Some(1 << 20), ..*endpoint(Protocol::Vsock) };
    for part in [LinkRole::Connector, LinkRole::Acceptor] {
        let end = link::end(&wanted, part, true).expect("an end");
        assert!(!end.announcement().addresses.is_empty());
    }
    let mut ends = link::link(&wanted, false, |announcement| announcement).expect("both ends");
    let (opened, taken) = link::connect(&mut ends);
    for transport in [opened.expect("it opens"), taken.expect("it takes")] {
        println!("{:?}", transport.info());
    }
}
