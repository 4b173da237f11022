//! A host while it is put into a profile.

use std::path::{Path, PathBuf};

use wb_agent::Group;
use wb_fleet::{Address, ConnectOptions, HostParams, Program};
use wb_model::WorkerName;

use crate::apply::{ApplyContext, ProfileHost};
use crate::error::ProfileErrorKind;

/// A host, and what its profile needs to know of it.
pub(crate) struct ApplySite<'a> {
    /// What its processes and changes belong to: all ends with it.
    pub(crate) group: &'a Group,
    /// What is said of it, which counts before what is found.
    pub(crate) params: &'a HostParams,
    /// Where it is; none where it is this machine.
    pub(crate) address: Option<&'a Address>,
    /// How guests are connected to.
    pub(crate) options: &'a ConnectOptions,
    /// The program that becomes the agent of guests.
    pub(crate) program: &'a Program,
    /// Folders with what belongs to hosts.
    pub(crate) assets: &'a [PathBuf],
    /// Whom to tell what takes a while.
    pub(crate) notify_fn: &'a (dyn Fn(&WorkerName, String) + Sync),
}

impl<'a> ApplySite<'a> {
    /// A host, whose processes and changes belong to a group.
    pub(crate) fn new(group: &'a Group, host: &ProfileHost<'a>, means: &ApplyContext<'a>) -> Self {
        Self {
            group,
            params: host.params,
            address: host.address,
            options: means.options,
            program: means.program,
            assets: means.assets,
            notify_fn: means.notify,
        }
    }
}

impl ApplySite<'_> {
    /// Tells the user something of it.
    pub(crate) fn notify(&self, line: String) {
        (self.notify_fn)(self.group.worker().name(), line);
    }

    /// The name of its `number`th guest.
    pub(crate) fn guest_name(&self, number: usize) -> WorkerName {
        let host = self.group.worker().name();
        let name = if *host == WorkerName::local() { format!("vm{number}") } else { format!("{host}-vm{number}") };
        // A name with a number after it is one.
        WorkerName::new(&name).unwrap_or_else(|_| host.clone())
    }

    /// An asset: a file by its path or in the first of the folders that has it, `%(host)s` and `%(address)s` in its name
    /// being the host's; or the text itself where it is no name.
    pub(crate) fn asset(&self, name: &str) -> Result<HostAsset, ProfileErrorKind> {
        if name.trim_start().starts_with('<') {
            return Ok(HostAsset { name: name.to_owned(), text: name.to_owned() });
        }
        let host = self.group.worker().name().to_string();
        let named = expand_host_name(name, &host, self.address.map_or(&host, |address| &address.host));
        let within = self.assets.iter().map(|folder| folder.join(&named));
        let path = [PathBuf::from(&named)].into_iter().chain(within).find(|path| path.is_file());
        let path = path.unwrap_or_else(|| Path::new(&named).to_owned());
        let name = path.display().to_string();
        let text =
            std::fs::read_to_string(&path).map_err(|source| ProfileErrorKind::File { path: name.clone(), source })?;
        Ok(HostAsset { name, text })
    }
}

/// A file that belongs to a host.
pub(crate) struct HostAsset {
    /// Its path.
    pub(crate) name: String,
    /// What it holds.
    pub(crate) text: String,
}

/// The name of an asset of a host.
fn expand_host_name(name: &str, host: &str, address: &str) -> String {
    name.replace("%(address)s", address).replace("%(host)s", host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_assets_by_its_name_and_by_its_address() {
        assert_eq!(expand_host_name("libvirt/%(host)s.xml", "a", "10.0.0.1"), "libvirt/a.xml");
        assert_eq!(expand_host_name("libvirt/%(address)s-tuned.xml", "a", "10.0.0.1"), "libvirt/10.0.0.1-tuned.xml");
    }
}
