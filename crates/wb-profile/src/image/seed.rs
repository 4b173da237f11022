//! Writes the seed volume that configures a guest.
//!
//! A FAT volume labelled CIDATA with cloud-init's NoCloud files, which cloud images read, and three files that the
//! built Debian image reads. Equal configurations yield equal bytes.

use std::io::{Cursor, Write};

use fatfs::{Dir, FileSystem, FormatVolumeOptions, FsOptions, format_volume};
use serde_json::json;
use wb_model::Sha256;

/// Configuration of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeedConfig<'a> {
    pub hostname: &'a str,
    /// The public key that may log in as root, in OpenSSH's one-line format.
    pub authorized_key: &'a str,
    pub host_key: HostKey<'a>,
    /// The MAC addresses of the network devices to configure by DHCP. If empty, DHCP is for all devices whose names
    /// start with `e`; Red Hat's systems do not support that pattern.
    pub macs: &'a [&'a str],
}

/// An ed25519 key pair in OpenSSH's format.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HostKey<'a> {
    /// Several lines.
    pub private: &'a str,
    /// One line.
    pub public: &'a str,
}

impl std::fmt::Debug for HostKey<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostKey").field("public", &self.public).finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    #[error("invalid host name `{0}`: expected at most 63 letters, digits and hyphens, without a hyphen at either end")]
    Hostname(String),
    #[error("invalid key: expected a {0}")]
    Key(&'static str),
    #[error("invalid MAC address `{0}`: expected the form 52:54:00:12:34:56")]
    Mac(String),
    #[error("cannot write the seed volume: {0}")]
    Volume(#[from] std::io::Error),
}

const LABEL: [u8; 11] = *b"CIDATA     ";
/// An arbitrary volume ID; the volume is identified by its label.
const VOLUME_ID: u32 = 0x5742_0001;
/// In bytes.
const MIN_VOLUME_SIZE: usize = 1 << 20;
/// Space for the file system's metadata and slack in bytes.
const SLACK: usize = 256 << 10;

impl SeedConfig<'_> {
    pub fn volume(&self) -> Result<Vec<u8>, SeedError> {
        self.validate()?;
        let files = self.files();
        let length: usize = files.iter().map(|(_, text)| text.len()).sum();
        let mut volume = Cursor::new(vec![0; MIN_VOLUME_SIZE.max((length + SLACK).next_multiple_of(MIN_VOLUME_SIZE))]);
        format_volume(&mut volume, FormatVolumeOptions::new().volume_label(LABEL).volume_id(VOLUME_ID))?;
        {
            let system = FileSystem::new(&mut volume, FsOptions::new())?;
            let root = system.root_dir();
            root.create_dir("weighbridge")?;
            files.iter().try_for_each(|(path, text)| write(&root, path, text))?;
        }
        Ok(volume.into_inner())
    }

    fn validate(&self) -> Result<(), SeedError> {
        let name = self.hostname;
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if name.is_empty()
            || name.len() > 63
            || !name.bytes().all(is_part)
            || name.starts_with('-')
            || name.ends_with('-')
        {
            return Err(SeedError::Hostname(name.to_owned()));
        }
        let is_line = |key: &str| !key.contains(['\n', '\r']) && key.split(' ').count() >= 2;
        if !is_line(self.authorized_key.trim()) {
            return Err(SeedError::Key("public key in one line"));
        }
        if !is_line(self.host_key.public.trim()) || !self.host_key.public.starts_with("ssh-ed25519 ") {
            return Err(SeedError::Key("public ed25519 key in one line"));
        }
        if !self.host_key.private.starts_with("-----BEGIN OPENSSH PRIVATE KEY-----\n") {
            return Err(SeedError::Key("private key in OpenSSH's format"));
        }
        match self.macs.iter().find(|mac| !is_mac(mac)) {
            Some(mac) => Err(SeedError::Mac((*mac).to_owned())),
            None => Ok(()),
        }
    }

    /// The files on the volume, in order.
    fn files(&self) -> [(&'static str, String); 6] {
        let private = format!("{}\n", self.host_key.private.trim());
        let (user, network) = (self.user_data(&private), self.network_config());
        // A changed configuration makes a new instance for cloud-init.
        let id = Sha256::digest(format!("{}{user}{network}", self.hostname).as_bytes());
        let meta =
            json!({"instance-id": format!("weighbridge-{}", &id.as_str()[..16]), "local-hostname": self.hostname});
        [
            ("meta-data", format!("{meta:#}\n")),
            ("user-data", user),
            ("network-config", network),
            ("weighbridge/authorized_keys", format!("{}\n", self.authorized_key.trim())),
            ("weighbridge/ssh_host_ed25519_key", private),
            ("weighbridge/hostname", format!("{}\n", self.hostname)),
        ]
    }

    /// The `user-data` file, in JSON, which is valid YAML without its escaping pitfalls.
    fn user_data(&self, private: &str) -> String {
        let config = json!({
            "hostname": self.hostname,
            "preserve_hostname": false,
            "users": [],
            "disable_root": false,
            "ssh_authorized_keys": [self.authorized_key.trim()],
            "ssh_pwauth": false,
            "ssh_deletekeys": true,
            "ssh_keys": {"ed25519_private": private, "ed25519_public": self.host_key.public.trim()},
            "package_update": false,
            "package_upgrade": false,
        });
        format!("#cloud-config\n{config:#}\n")
    }

    fn network_config(&self) -> String {
        let device =
            |criteria: serde_json::Value| json!({"match": criteria, "dhcp4": true, "dhcp6": false, "accept-ra": true});
        let named = |(index, mac): (usize, &&str)| {
            let name = format!("eth{index}");
            let mut device = device(json!({"macaddress": mac.to_ascii_lowercase()}));
            device["set-name"] = json!(name);
            (name, device)
        };
        let devices: serde_json::Map<_, _> = match self.macs {
            [] => [("all".to_owned(), device(json!({"name": "e*"})))].into_iter().collect(),
            macs => macs.iter().enumerate().map(named).collect(),
        };
        format!("{:#}\n", json!({"version": 2, "ethernets": devices}))
    }
}

fn is_mac(text: &str) -> bool {
    let is_byte = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    text.split(':').count() == 6 && text.split(':').all(is_byte)
}

fn write(root: &Dir<&mut Cursor<Vec<u8>>>, path: &str, text: &str) -> Result<(), SeedError> {
    let mut file = root.create_file(path)?;
    file.write_all(text.as_bytes())?;
    Ok(file.flush()?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use std::io::Read;

    use super::*;

    const PRIVATE: &str = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n-----END OPENSSH PRIVATE KEY-----\n";

    fn seed() -> SeedConfig<'static> {
        let host_key = HostKey { private: PRIVATE, public: "ssh-ed25519 AAAA host\n" };
        SeedConfig { hostname: "guest-1", authorized_key: "ssh-ed25519 BBBB run\n", host_key, macs: &[] }
    }

    fn read(volume: &[u8], path: &str) -> String {
        let system = FileSystem::new(Cursor::new(volume.to_vec()), FsOptions::new()).unwrap();
        let mut text = String::new();
        system.root_dir().open_file(path).unwrap().read_to_string(&mut text).unwrap();
        text
    }

    fn json(text: &str) -> serde_json::Value {
        serde_json::from_str(text.trim_start_matches("#cloud-config\n")).unwrap()
    }

    #[test]
    fn volume_contains_the_configuration() {
        let volume = seed().volume().unwrap();
        assert_eq!(volume.len(), 1 << 20);
        let system = FileSystem::new(Cursor::new(volume.clone()), FsOptions::new()).unwrap();
        assert_eq!(system.volume_label(), "CIDATA");
        assert_eq!(system.read_volume_label_from_root_dir().unwrap().as_deref(), Some("CIDATA"));
        assert_eq!(read(&volume, "weighbridge/authorized_keys"), "ssh-ed25519 BBBB run\n");
        assert_eq!(read(&volume, "weighbridge/ssh_host_ed25519_key"), PRIVATE);
        assert_eq!(read(&volume, "weighbridge/hostname"), "guest-1\n");
        assert_eq!(json(&read(&volume, "meta-data"))["local-hostname"], "guest-1");
        let user = read(&volume, "user-data");
        assert!(user.starts_with("#cloud-config\n"), "{user}");
        assert_eq!(json(&user)["ssh_keys"]["ed25519_private"], PRIVATE);
        assert_eq!(json(&read(&volume, "network-config"))["ethernets"]["all"]["match"]["name"], "e*");
    }

    #[test]
    fn equal_configurations_yield_equal_bytes_and_others_a_new_instance() {
        let volume = |seed: SeedConfig| seed.volume().unwrap();
        assert!(volume(seed()) == volume(seed()));
        let id = |seed: SeedConfig| json(&read(&volume(seed), "meta-data"))["instance-id"].clone();
        assert_ne!(id(seed()), id(SeedConfig { authorized_key: "ssh-ed25519 CCCC run", ..seed() }));
    }

    #[test]
    fn devices_with_mac_addresses_are_named() {
        let volume = SeedConfig { macs: &["52:54:00:AB:00:01", "52:54:00:ab:00:02"], ..seed() }.volume().unwrap();
        let config = json(&read(&volume, "network-config"));
        assert_eq!(config["ethernets"]["eth0"]["match"]["macaddress"], "52:54:00:ab:00:01");
        assert_eq!(config["ethernets"]["eth1"]["set-name"], "eth1");
    }

    #[test]
    fn invalid_configurations_are_refused() {
        let refused = |seed: SeedConfig| seed.volume().unwrap_err();
        for hostname in ["", "-a", "a_b", "a.b", &"a".repeat(64)] {
            assert!(matches!(refused(SeedConfig { hostname, ..seed() }), SeedError::Hostname { .. }), "{hostname}");
        }
        let two_keys = "ssh-ed25519 A\nssh-ed25519 B";
        assert!(matches!(refused(SeedConfig { authorized_key: two_keys, ..seed() }), SeedError::Key { .. }));
        let host_key = HostKey { private: "secret", ..seed().host_key };
        assert!(matches!(refused(SeedConfig { host_key, ..seed() }), SeedError::Key { .. }));
        assert!(matches!(refused(SeedConfig { macs: &["52:54"], ..seed() }), SeedError::Mac { .. }));
        assert!(!format!("{:?}", seed()).contains("PRIVATE"));
    }
}
