//! A test network of hosts, and connections to them.

use std::ops::{Deref, DerefMut};
use std::path::Path;

use wb_fleet::{ConnectOptions, ConnectedHost, FleetError, Host, Inventory, Program, connect};
use wb_test_net::SshHosts;

pub(crate) use wb_test_net::Host as Place;
pub(crate) use wb_test_net::{SshdConfig, is_alive, wait_until};

pub(crate) const AGENT: &str = env!("CARGO_BIN_EXE_wb-fleet-agent");
/// Machine of the controller.
pub(crate) const DESK: Place = SshHosts::CONTROLLER;
/// The first host.
pub(crate) const HOST: Place = Place(1);

/// Hosts with sshd, and the machine of the controller.
pub(crate) struct Fleet(SshHosts);

impl Deref for Fleet {
    type Target = SshHosts;
    fn deref(&self) -> &SshHosts {
        &self.0
    }
}

impl DerefMut for Fleet {
    fn deref_mut(&mut self) -> &mut SshHosts {
        &mut self.0
    }
}

impl Fleet {
    /// Creates a number of equal, running hosts; none, with a message, if this system does not support them.
    pub(crate) fn new(hosts: u8) -> Option<Self> {
        SshHosts::new(hosts).map(Self)
    }

    /// Like [`Fleet::new`], without starting sshd.
    pub(crate) fn bare(hosts: u8) -> Option<Self> {
        SshHosts::without_sshd(hosts).map(Self)
    }

    pub(crate) fn options(&self) -> ConnectOptions {
        ConnectOptions { ssh: self.path("ssh"), ssh_config: Some(self.path("config")), ..ConnectOptions::default() }
    }

    /// Returns a host by its number.
    pub(crate) fn host(&self, host: Place) -> Host {
        let word = format!("host{}:{}", host.0, host.v4());
        Inventory::default().select(&[word]).unwrap().remove(0)
    }

    pub(crate) fn program(&self) -> Program {
        Program::read(Path::new(AGENT)).unwrap()
    }

    pub(crate) async fn connect(&self, host: Place) -> Result<ConnectedHost, FleetError> {
        connect(&self.host(host), &self.program(), &self.options()).await
    }

    /// Connects to a host; panics if that fails.
    pub(crate) async fn must_connect(&self, host: Place) -> ConnectedHost {
        self.connect(host).await.unwrap_or_else(|error| panic!("{error}\n{}", self.log(host)))
    }
}

pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test)
}
