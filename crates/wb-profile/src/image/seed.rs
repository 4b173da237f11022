//! The volume that tells a guest who it is.
//!
//! A FAT volume labelled CIDATA with cloud-init's NoCloud files, which clouds' images read, and three files that the built
//! Debian image reads. The same words make the same bytes.

use std::io::{Cursor, Write};

use fatfs::{Dir, FileSystem, FormatVolumeOptions, FsOptions, format_volume};
use serde_json::json;
use wb_model::Sha256;

/// What a guest is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeedConfig<'a> {
    /// What it is called.
    pub hostname: &'a str,
    /// The public key, as OpenSSH writes it in one line, that may log in as root.
    pub authorized_key: &'a str,
    /// What its ssh server proves itself with.
    pub host_key: HostKey<'a>,
    /// The hardware addresses of its network devices, each of which asks for its address by DHCP; without, those of all
    /// whose names begin with `e`, which systems of Red Hat's kind do not understand.
    pub macs: &'a [&'a str],
}

/// An ed25519 key pair, as OpenSSH writes it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HostKey<'a> {
    /// The private part, many lines.
    pub private: &'a str,
    /// The public part, one line.
    pub public: &'a str,
}

impl std::fmt::Debug for HostKey<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostKey").field("public", &self.public).finish_non_exhaustive()
    }
}

/// What cannot be told to a guest.
#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    /// No name for a machine.
    #[error(
        "`{given}` is no host name: letters, digits and hyphens, 63 at most, not beginning or ending with a hyphen"
    )]
    Hostname {
        /// What was given.
        given: String,
    },
    /// No key.
    #[error("this is no {what}")]
    Key {
        /// What it should be.
        what: &'static str,
    },
    /// No hardware address.
    #[error("`{given}` is no hardware address: write 52:54:00:12:34:56")]
    Mac {
        /// What was given.
        given: String,
    },
    /// The volume could not be written.
    #[error("the seed volume cannot be made: {0}")]
    Volume(#[from] std::io::Error),
}

const LABEL: [u8; 11] = *b"CIDATA     ";
/// Any; the volume is known by its label.
const VOLUME_ID: u32 = 0x5742_0001;
/// What a volume takes at least.
const MIN_VOLUME_SIZE: usize = 1 << 20;
/// What file system and slack may take beside the files.
const SLACK: usize = 256 << 10;

impl SeedConfig<'_> {
    /// The volume's bytes.
    ///
    /// # Errors
    /// When something cannot be what it should be.
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
            return Err(SeedError::Hostname { given: name.to_owned() });
        }
        let is_line = |key: &str| !key.contains(['\n', '\r']) && key.split(' ').count() >= 2;
        if !is_line(self.authorized_key.trim()) {
            return Err(SeedError::Key { what: "public key in one line" });
        }
        if !is_line(self.host_key.public.trim()) || !self.host_key.public.starts_with("ssh-ed25519 ") {
            return Err(SeedError::Key { what: "public ed25519 key in one line" });
        }
        if !self.host_key.private.starts_with("-----BEGIN OPENSSH PRIVATE KEY-----\n") {
            return Err(SeedError::Key { what: "private key as OpenSSH writes it" });
        }
        match self.macs.iter().find(|mac| !is_mac(mac)) {
            Some(given) => Err(SeedError::Mac { given: (*given).to_owned() }),
            None => Ok(()),
        }
    }

    /// The files, in order.
    fn files(&self) -> [(&'static str, String); 6] {
        let private = format!("{}\n", self.host_key.private.trim());
        let (user, network) = (self.user_data(&private), self.network_config());
        // A guest that is told something else is another one.
        let id = Sha256::of(format!("{}{user}{network}", self.hostname).as_bytes());
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

    /// JSON is YAML, and leaves nothing to be escaped wrongly.
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
            |found: serde_json::Value| json!({"match": found, "dhcp4": true, "dhcp6": false, "accept-ra": true});
        let named = |(place, mac): (usize, &&str)| {
            let name = format!("eth{place}");
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
    fn a_volume_has_what_a_guest_is_told() {
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
    fn the_same_words_make_the_same_bytes_and_others_another_guest() {
        let volume = |seed: SeedConfig| seed.volume().unwrap();
        assert!(volume(seed()) == volume(seed()));
        let id = |seed: SeedConfig| json(&read(&volume(seed), "meta-data"))["instance-id"].clone();
        assert_ne!(id(seed()), id(SeedConfig { authorized_key: "ssh-ed25519 CCCC run", ..seed() }));
    }

    #[test]
    fn devices_that_are_known_are_named() {
        let volume = SeedConfig { macs: &["52:54:00:AB:00:01", "52:54:00:ab:00:02"], ..seed() }.volume().unwrap();
        let config = json(&read(&volume, "network-config"));
        assert_eq!(config["ethernets"]["eth0"]["match"]["macaddress"], "52:54:00:ab:00:01");
        assert_eq!(config["ethernets"]["eth1"]["set-name"], "eth1");
    }

    #[test]
    fn what_no_guest_can_be_told_is_refused() {
        let refused = |seed: SeedConfig| seed.volume().unwrap_err();
        for hostname in ["", "-a", "a_b", "a.b", &"a".repeat(64)] {
            assert!(matches!(refused(SeedConfig { hostname, ..seed() }), SeedError::Hostname { .. }), "{hostname}");
        }
        let two = "ssh-ed25519 A\nssh-ed25519 B";
        assert!(matches!(refused(SeedConfig { authorized_key: two, ..seed() }), SeedError::Key { .. }));
        let host_key = HostKey { private: "secret", ..seed().host_key };
        assert!(matches!(refused(SeedConfig { host_key, ..seed() }), SeedError::Key { .. }));
        assert!(matches!(refused(SeedConfig { macs: &["52:54"], ..seed() }), SeedError::Mac { .. }));
        assert!(!format!("{:?}", seed()).contains("PRIVATE"));
    }
}
