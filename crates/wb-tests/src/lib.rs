//! All tests that come with the program, in one registry. What a test is, is in `wb_test`; whoever evaluates samples or
//! renders results does not depend on this crate.
//!
//! Its integration tests measure each of them, with an agent of their own.

#![forbid(unsafe_code)]

use std::sync::Arc;

use wb_peers_worker::Peers;
use wb_test::Registry;
use wb_workloads::fio::Fio;
use wb_workloads::fio_export::Export;
use wb_workloads::fio_libblkio::FioLibblkio;
use wb_workloads::fio_nbd::FioNbd;
use wb_workloads::himeno::Himeno;
use wb_workloads::linpack::Linpack;
use wb_workloads::net::Net;
use wb_workloads::ramspeed::Ramspeed;
use wb_workloads::ramspeed_sweep::RamspeedSweep;
use wb_workloads::redis::Redis;
use wb_workloads::uperf::Uperf;

/// The tests that come with the program.
pub fn built_in() -> Registry {
    let mut registry = Registry::default();
    registry.add(Fio);
    registry.add(Export(FioNbd));
    registry.add(Export(FioLibblkio));
    registry.add(Himeno);
    registry.add(Ramspeed);
    registry.add(RamspeedSweep);
    registry.add(Linpack);
    registry.add(Redis);
    registry.add(Net::default());
    registry.add(Uperf);
    registry.add(Peers::default());
    for definition in wb_declarative::builtin_definitions() {
        registry.insert(definition.test_name(), move || Arc::new(definition.parse()));
    }
    registry
}
