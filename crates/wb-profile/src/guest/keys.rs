//! One-time ssh keys for guests, generated on the controller for both sides, so that ssh never asks to confirm a host
//! key.

use std::path::{Path, PathBuf};

use tokio::process::Command;
use wb_agent::{Scratch, Worker, WorkerError};
use wb_fleet::Address;
use wb_model::WorkerName;
use wb_sys::PathError;

use crate::error::ProfileErrorKind;

/// A folder on this machine with our ssh key and configuration. An agent owns it and removes it when this is dropped or
/// this process is killed; if the agent is killed too, the next agent on this machine removes it.
pub(crate) struct GuestSshKeys {
    folder: Scratch,
    agent: Worker,
    /// In the format of `authorized_keys`.
    pub(crate) public: String,
}

pub(crate) struct HostKey {
    /// In sshd's format.
    pub(crate) private: String,
    pub(crate) public: String,
}

/// The host through which ssh reaches guests: its address with ssh's options, or none if it is this machine.
pub(crate) struct SshGateway<'a> {
    pub(crate) address: Option<&'a Address>,
    pub(crate) ssh: &'a Path,
    pub(crate) config: Option<&'a Path>,
}

impl GuestSshKeys {
    /// Generates a key in a private folder of an agent (`program agent`).
    pub(crate) async fn new(program: &Path) -> Result<Self, ProfileErrorKind> {
        let agent = Worker::local_named(WorkerName::local(), program).await?;
        let folder = agent.new_scratch(None).await?;
        let public = generate_key_pair(Path::new(&folder.join("key"))).await?.public;
        Ok(Self { folder, agent, public })
    }

    /// Ends the agent, which removes the folder.
    pub(crate) async fn close(self) -> Result<(), WorkerError> {
        self.agent.close().await
    }

    /// Generates a guest's host key and adds it to ssh's known hosts.
    pub(crate) async fn host_key(&self, guest: &WorkerName) -> Result<HostKey, ProfileErrorKind> {
        let path = self.path(&format!("host-{guest}"));
        let key = generate_key_pair(&path).await?;
        std::fs::remove_file(&path).map_err(PathError::new("remove", &path))?;
        let known_hosts = self.path("known_hosts");
        self.append(&known_hosts, &format!("{guest} {}\n", key.public.trim()))?;
        Ok(key)
    }

    /// Adds a guest with this address to ssh's configuration, reached through `gate`.
    pub(crate) fn add_host(
        &self,
        guest: &WorkerName,
        address: &str,
        gate: &SshGateway<'_>,
    ) -> Result<(), ProfileErrorKind> {
        let folder = self.folder.path();
        let proxy = match gate.address {
            None => String::new(),
            Some(host) => format!("  ProxyCommand {}\n", proxy_command(gate.ssh, gate.config, host)),
        };
        let block = format!(
            "Host {guest}\n  HostName {address}\n  HostKeyAlias {guest}\n  User root\n  IdentityFile \"{folder}/key\"\n  \
             IdentitiesOnly yes\n  IdentityAgent none\n  StrictHostKeyChecking yes\n  UserKnownHostsFile \
             \"{folder}/known_hosts\"\n  GlobalKnownHostsFile /dev/null\n{proxy}"
        );
        self.append(&self.config(), &block)
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.path("config")
    }

    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(self.folder.join(name))
    }

    fn append(&self, path: &Path, text: &str) -> Result<(), ProfileErrorKind> {
        use std::io::Write;
        let opened = std::fs::OpenOptions::new().create(true).append(true).open(path);
        opened
            .and_then(|mut opened| opened.write_all(text.as_bytes()))
            .map_err(|error| PathError::new("write", path)(error).into())
    }
}

/// The `ProxyCommand` that connects to a guest through its host, quoted for ssh's configuration.
fn proxy_command(ssh: &Path, config: Option<&Path>, host: &Address) -> String {
    let mut words = vec![ssh.display().to_string(), "-o".to_owned(), "BatchMode=yes".to_owned()];
    if let Some(config) = config {
        words.extend(["-F".to_owned(), config.display().to_string()]);
    }
    words.extend(["-W".to_owned(), TARGET_PLACEHOLDER.to_owned()]);
    words.extend(host.arguments());
    shell_words::join(words).replace('%', "%%").replace(TARGET_PLACEHOLDER, "%h:%p")
}

/// Placeholder for the guest's address until all other percent signs are doubled.
const TARGET_PLACEHOLDER: &str = "HOST-AND-PORT";

async fn generate_key_pair(path: &Path) -> Result<HostKey, ProfileErrorKind> {
    let mut keygen = Command::new("ssh-keygen");
    keygen.args(["-q", "-t", "ed25519", "-N", "", "-C", "weighbridge", "-f"]).arg(path);
    let output = keygen
        .stdin(std::process::Stdio::null())
        .output()
        .await
        .map_err(PathError::new("run", Path::new("ssh-keygen")))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(ProfileErrorKind::Program {
            program: "ssh-keygen".to_owned(),
            ending: output.status.to_string(),
            output: message,
        });
    }
    let read = |path: PathBuf| std::fs::read_to_string(&path).map_err(PathError::new("read", &path));
    let public = read(path.with_added_extension("pub"))?;
    Ok(HostKey { private: read(path.to_owned())?, public })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxy_command_is_quoted_for_a_shell() {
        let host: Address = "root@10.0.0.1:2222".parse().unwrap();
        let line = proxy_command(Path::new("ssh"), Some(Path::new("/tmp/a b%c")), &host);
        assert_eq!(line, "ssh -o 'BatchMode=yes' -F '/tmp/a b%%c' -W %h:%p -p 2222 -l root -- 10.0.0.1");
    }
}
