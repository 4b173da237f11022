use std::path::{Path, PathBuf};

use wb_agent::TeardownGroup;
use wb_fleet::inventory::LOOPBACK_ADDRESSES;
use wb_fleet::{Address, ConnectOptions, HostParams, Program};
use wb_model::WorkerName;
use wb_sys::PathError;

use crate::apply::{ApplyContext, ProfileHost};
use crate::error::ProfileErrorKind;

/// A host with the settings for applying a profile to it.
pub(crate) struct HostContext<'a> {
    /// The group that owns its processes and changes; tearing it down reverts them.
    pub(crate) group: &'a TeardownGroup,
    /// The given parameters, which override detected ones.
    pub(crate) params: &'a HostParams,
    /// None for this machine.
    pub(crate) address: Option<&'a Address>,
    pub(crate) options: &'a ConnectOptions,
    pub(crate) program: &'a Program,
    pub(crate) assets: &'a [PathBuf],
    /// Called with a message before each slow step.
    pub(crate) notify_fn: &'a (dyn Fn(&WorkerName, String) + Sync),
}

impl<'a> HostContext<'a> {
    pub(crate) fn new(group: &'a TeardownGroup, host: &ProfileHost<'a>, shared: &ApplyContext<'a>) -> Self {
        Self {
            group,
            params: host.params,
            address: host.address,
            options: shared.options,
            program: shared.program,
            assets: shared.assets,
            notify_fn: shared.notify,
        }
    }
}

impl HostContext<'_> {
    pub(crate) fn notify(&self, line: String) {
        (self.notify_fn)(self.group.worker().name(), line);
    }

    pub(crate) fn guest_name(&self, number: usize) -> WorkerName {
        let host = self.group.worker().name();
        let name = if *host == WorkerName::local() { format!("vm{number}") } else { format!("{host}-vm{number}") };
        // A valid name with a number appended is valid.
        WorkerName::new(&name).unwrap_or_else(|_| host.clone())
    }

    /// Reads an asset: a file by its path or in the first asset folder that has it, with `%(host)s` and `%(address)s`
    /// in its name replaced by the host's (this machine has several addresses). A `name` that starts with `<` is the
    /// text itself.
    pub(crate) fn asset(&self, name: &str) -> Result<HostAsset, ProfileErrorKind> {
        if name.trim_start().starts_with('<') {
            return Ok(HostAsset { name: name.to_owned(), text: name.to_owned() });
        }
        let host = self.group.worker().name().as_str();
        let addresses: Vec<&str> = match self.address {
            Some(address) => vec![&address.host],
            None => [host].into_iter().chain(LOOPBACK_ADDRESSES).collect(),
        };
        let file_names: Vec<String> =
            addresses.into_iter().map(|address| expand_host_name(name, host, address)).collect();
        let folders = || std::iter::once(Path::new("")).chain(self.assets.iter().map(PathBuf::as_path));
        let paths = file_names.iter().flat_map(|file| folders().map(move |folder| folder.join(file)));
        let path = paths.into_iter().find(|path| path.is_file());
        let path = path.unwrap_or_else(|| PathBuf::from(&file_names[0]));
        let name = path.display().to_string();
        let text = std::fs::read_to_string(&path).map_err(PathError::new("read", &path))?;
        Ok(HostAsset { name, text })
    }
}

/// A text that a profile uses for one host, such as the template of its guests' XML.
pub(crate) struct HostAsset {
    /// The path of its file, or the text itself if the profile contains it.
    pub(crate) name: String,
    pub(crate) text: String,
}

fn expand_host_name(name: &str, host: &str, address: &str) -> String {
    name.replace("%(address)s", address).replace("%(host)s", host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asset_names_contain_the_hosts_name_or_address() {
        assert_eq!(expand_host_name("libvirt/%(host)s.xml", "a", "10.0.0.1"), "libvirt/a.xml");
        assert_eq!(expand_host_name("libvirt/%(address)s-tuned.xml", "a", "10.0.0.1"), "libvirt/10.0.0.1-tuned.xml");
    }
}
