//! A lab of hosts, as this crate reaches them.

use std::ops::{Deref, DerefMut};
use std::path::Path;

use wb_fleet::{ConnectOptions, ConnectedHost, FleetError, Host, Inventory, Program, connect};
use wb_lab::SshHosts;

pub(crate) use wb_lab::Host as Place;
pub(crate) use wb_lab::{Sshd, alive, eventually};

pub(crate) const AGENT: &str = env!("CARGO_BIN_EXE_wb-fleet-agent");
/// Where the controller is.
pub(crate) const DESK: Place = SshHosts::DESK;
/// The first host.
pub(crate) const HOST: Place = Place(1);

/// Hosts with sshd, and the desk that the controller is at.
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
    /// So many hosts, all alike and running; none, aloud, where there can be none.
    pub(crate) fn new(hosts: u8) -> Option<Self> {
        SshHosts::new(hosts).map(Self)
    }

    /// The same with no sshd yet.
    pub(crate) fn bare(hosts: u8) -> Option<Self> {
        SshHosts::bare(hosts).map(Self)
    }

    pub(crate) fn options(&self) -> ConnectOptions {
        ConnectOptions { ssh: self.path("ssh"), ssh_config: Some(self.path("config")), ..ConnectOptions::default() }
    }

    /// A host, by its number.
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

    /// Connects to a host that must be there.
    pub(crate) async fn reach(&self, host: Place) -> ConnectedHost {
        self.connect(host).await.unwrap_or_else(|error| panic!("{error}\n{}", self.log(host)))
    }
}

pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test)
}
