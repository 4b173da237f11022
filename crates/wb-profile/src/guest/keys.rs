//! Keys that are made for one time and known on both sides: nobody is asked whether a guest is the right one.

use std::path::{Path, PathBuf};

use tokio::process::Command;
use wb_agent::{Scratch, Worker, WorkerError};
use wb_fleet::Address;
use wb_model::WorkerName;

use crate::error::ProfileErrorKind;

/// A folder of this machine's with our key and what ssh is told. An agent owns it, which removes it when this is dropped and
/// when this process is killed; where the agent is killed too, the next one on this machine does.
pub(crate) struct GuestSshKeys {
    folder: Scratch,
    agent: Worker,
    /// Our public key, as `authorized_keys` has it.
    pub(crate) public: String,
}

/// A guest's own key.
pub(crate) struct HostKey {
    /// The private one, as sshd reads it.
    pub(crate) private: String,
    /// The public one.
    pub(crate) public: String,
}

/// How this machine's ssh gets to a host: with these arguments, or not at all because it is this machine.
pub(crate) struct SshGateway<'a> {
    pub(crate) address: Option<&'a Address>,
    pub(crate) ssh: &'a Path,
    pub(crate) config: Option<&'a Path>,
}

impl GuestSshKeys {
    /// Makes a key in a private folder of an agent: `program agent`.
    pub(crate) async fn new(program: &Path) -> Result<Self, ProfileErrorKind> {
        let agent = Worker::local_named(WorkerName::local(), program).await?;
        let folder = agent.new_scratch(None).await?;
        let public = generate_key_pair(Path::new(&folder.join("key"))).await?.public;
        Ok(Self { folder, agent, public })
    }

    /// Removes it.
    pub(crate) async fn close(self) -> Result<(), WorkerError> {
        self.agent.close().await
    }

    /// Makes a guest's key, and has ssh know it.
    pub(crate) async fn host_key(&self, guest: &WorkerName) -> Result<HostKey, ProfileErrorKind> {
        let path = self.path(&format!("host-{guest}"));
        let key = generate_key_pair(&path).await?;
        std::fs::remove_file(&path).map_err(file_error(&path))?;
        let known = self.path("known_hosts");
        self.append(&known, &format!("{guest} {}\n", key.public.trim()))?;
        Ok(key)
    }

    /// Has ssh know by which way a guest of this address is reached: with `gate` in between.
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

    /// ssh's configuration for guests.
    pub(crate) fn config(&self) -> PathBuf {
        self.path("config")
    }

    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(self.folder.join(name))
    }

    fn append(&self, path: &Path, text: &str) -> Result<(), ProfileErrorKind> {
        use std::io::Write;
        let opened = std::fs::OpenOptions::new().create(true).append(true).open(path);
        opened.and_then(|mut it| it.write_all(text.as_bytes())).map_err(file_error(path))
    }
}

/// ssh's words for a connection that a host hands on, as ssh's configuration writes a command for a shell.
fn proxy_command(ssh: &Path, config: Option<&Path>, host: &Address) -> String {
    let mut words = vec![ssh.display().to_string(), "-o".to_owned(), "BatchMode=yes".to_owned()];
    if let Some(config) = config {
        words.extend(["-F".to_owned(), config.display().to_string()]);
    }
    words.extend(["-W".to_owned(), TARGET_PLACEHOLDER.to_owned()]);
    words.extend(host.arguments());
    shell_words::join(words).replace('%', "%%").replace(TARGET_PLACEHOLDER, "%h:%p")
}

/// Stands for the guest's address until all other percent signs are doubled.
const TARGET_PLACEHOLDER: &str = "HOST-AND-PORT";

async fn generate_key_pair(path: &Path) -> Result<HostKey, ProfileErrorKind> {
    let mut keygen = Command::new("ssh-keygen");
    keygen.args(["-q", "-t", "ed25519", "-N", "", "-C", "weighbridge", "-f"]).arg(path);
    let output =
        keygen.stdin(std::process::Stdio::null()).output().await.map_err(file_error(Path::new("ssh-keygen")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(ProfileErrorKind::Program {
            program: "ssh-keygen".to_owned(),
            ending: output.status.to_string(),
            said,
        });
    }
    let read = |path: PathBuf| std::fs::read_to_string(&path).map_err(file_error(&path));
    let public = read(path.with_added_extension("pub"))?;
    Ok(HostKey { private: read(path.to_owned())?, public })
}

fn file_error(path: &Path) -> impl FnOnce(std::io::Error) -> ProfileErrorKind {
    let path = path.display().to_string();
    move |source| ProfileErrorKind::File { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_through_a_host_is_one_line_for_a_shell() {
        let host: Address = "root@10.0.0.1:2222".parse().unwrap();
        let line = proxy_command(Path::new("ssh"), Some(Path::new("/tmp/a b%c")), &host);
        assert_eq!(line, "ssh -o 'BatchMode=yes' -F '/tmp/a b%%c' -W %h:%p -p 2222 -l root -- 10.0.0.1");
    }
}
