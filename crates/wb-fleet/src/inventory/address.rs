//! Where a host is: what ssh takes.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a host is: `HOST`, `USER@HOST:PORT` or `ssh://USER@HOST:PORT`, where HOST may be a name of the user's ssh
/// configuration. What is not said is left to ssh.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Address {
    /// As whom.
    pub user: Option<String>,
    /// The name or number of the host.
    pub host: String,
    /// At which port.
    pub port: Option<u16>,
}

/// Something that is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no address: {why}")]
pub struct ParseAddressError {
    /// What was given.
    pub text: String,
    /// What is wrong with it.
    pub why: &'static str,
}

impl FromStr for Address {
    type Err = ParseAddressError;

    fn from_str(text: &str) -> Result<Self, ParseAddressError> {
        let bad = |why| ParseAddressError { text: text.to_owned(), why };
        let rest = text.strip_prefix("ssh://").map_or(text, |url| url.trim_end_matches('/'));
        let (user, rest) = match rest.rsplit_once('@') {
            Some((user, rest)) => (Some(user), rest),
            None => (None, rest),
        };
        let (host, port) = split_port(rest).ok_or_else(|| bad("the port is a number from 1 to 65535"))?;
        let plain = |word: &str| {
            !word.is_empty() && !word.starts_with('-') && !word.contains(|c: char| c.is_whitespace() || c.is_control())
        };
        if !plain(host) || host.contains(['/', '[', ']', '@']) || (host.contains(':') && !is_v6(host)) {
            return Err(bad("`USER@HOST:PORT` is expected, or a name of your ssh configuration"));
        }
        if user.is_some_and(|user| !plain(user)) {
            return Err(bad("the name before `@` is no user"));
        }
        Ok(Self { user: user.map(str::to_owned), host: host.to_owned(), port })
    }
}

/// The host and the port; none where what should be a port is not.
fn split_port(text: &str) -> Option<(&str, Option<u16>)> {
    let port = |text: &str| text.parse().ok().filter(|port| *port != 0);
    if let Some((host, rest)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        return match rest.strip_prefix(':') {
            Some(number) => Some((host, Some(port(number)?))),
            None => rest.is_empty().then_some((host, None)),
        };
    }
    match text.split_once(':') {
        Some(_) if is_v6(text) => Some((text, None)),
        Some((host, number)) => Some((host, Some(port(number)?))),
        None => Some((text, None)),
    }
}

/// Whether this is an IPv6 address, with or without the interface that it is for: `fe80::1%eth0`.
pub(super) fn is_v6(text: &str) -> bool {
    let (address, interface) = text.split_once('%').unwrap_or((text, "x"));
    address.parse::<Ipv6Addr>().is_ok() && !interface.is_empty()
}

impl Address {
    /// What a host is called that was given by its address alone: its name up to the first dot, its number whole.
    pub(crate) fn default_name(&self) -> String {
        if is_v6(&self.host) || self.host.parse::<Ipv4Addr>().is_ok() {
            return self.host.replace([':', '%'], "-");
        }
        self.host.split('.').next().unwrap_or_default().to_owned()
    }

    /// The arguments by which ssh finds it.
    pub fn arguments(&self) -> Vec<String> {
        let port = self.port.map(|port| ["-p".to_owned(), port.to_string()]);
        let user = self.user.clone().map(|user| ["-l".to_owned(), user]);
        let named = port.into_iter().chain(user).flatten();
        named.chain(["--".to_owned(), self.host.clone()]).collect()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        match self.port {
            Some(port) if self.host.contains(':') => write!(f, "[{}]:{port}", self.host),
            Some(port) => write!(f, "{}:{port}", self.host),
            None => f.write_str(&self.host),
        }
    }
}

impl TryFrom<String> for Address {
    type Error = ParseAddressError;

    fn try_from(text: String) -> Result<Self, ParseAddressError> {
        text.parse()
    }
}

impl From<Address> for String {
    fn from(address: Address) -> Self {
        address.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_are_read_as_ssh_reads_them() {
        let read = |text: &str| {
            let Address { user, host, port } = text.parse().unwrap();
            (user.unwrap_or_default(), host, port.unwrap_or_default())
        };
        let is = |user: &str, host: &str, port| (user.to_owned(), host.to_owned(), port);
        assert_eq!(read("lab1"), is("", "lab1", 0));
        assert_eq!(read("root@10.0.0.1"), is("root", "10.0.0.1", 0));
        assert_eq!(read("root@10.0.0.1:2222"), is("root", "10.0.0.1", 2222));
        assert_eq!(read("ssh://me@host.example:22/"), is("me", "host.example", 22));
        assert_eq!(read("fd77::1"), is("", "fd77::1", 0));
        assert_eq!(read("root@[fd77::1]:22"), is("root", "fd77::1", 22));
        assert_eq!(read("me@corp.example@jump"), is("me@corp.example", "jump", 0));
    }

    #[test]
    fn what_ssh_would_take_for_an_option_is_no_address() {
        for bad in [
            "",
            "-oProxyCommand=x",
            "root@-x",
            "a b",
            "host:0",
            "host:70000",
            "host:",
            "[::1]x",
            "[a:b]",
            "fe80::1%",
            "a/b",
            "-x@h",
        ] {
            assert!(bad.parse::<Address>().is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn an_address_is_read_as_it_is_written(text in "[a-z@:.0-9\\[\\]/-]{0,20}|ssh://.{0,10}|.{0,20}") {
            if let Ok(address) = text.parse::<Address>() {
                prop_assert_eq!(address.to_string().parse(), Ok(address));
            }
        }
    }
}
