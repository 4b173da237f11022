//! Addresses of hosts, as ssh accepts them.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Address of a host: `HOST`, `USER@HOST:PORT` or `ssh://USER@HOST:PORT`, where HOST may be a name from the user's ssh
/// configuration. Missing parts are left to ssh.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Address {
    /// User to log in as.
    pub user: Option<String>,
    /// Host name or IP address.
    pub host: String,
    /// Port.
    pub port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid address `{text}`: {reason}")]
pub struct ParseAddressError {
    pub text: String,
    pub reason: &'static str,
}

impl FromStr for Address {
    type Err = ParseAddressError;

    fn from_str(text: &str) -> Result<Self, ParseAddressError> {
        let bad = |reason| ParseAddressError { text: text.to_owned(), reason };
        let rest = text.strip_prefix("ssh://").map_or(text, |url| url.trim_end_matches('/'));
        let (user, rest) = match rest.rsplit_once('@') {
            Some((user, rest)) => (Some(user), rest),
            None => (None, rest),
        };
        let (host, port) = split_port(rest).ok_or_else(|| bad("expected a port from 1 to 65535"))?;
        let is_plain = |word: &str| {
            !word.is_empty() && !word.starts_with('-') && !word.contains(|c: char| c.is_whitespace() || c.is_control())
        };
        if !is_plain(host) || host.contains(['/', '[', ']', '@']) || (host.contains(':') && !is_v6(host)) {
            return Err(bad("expected USER@HOST:PORT or a name from your ssh configuration"));
        }
        if user.is_some_and(|user| !is_plain(user)) {
            return Err(bad("expected a user name before `@`"));
        }
        Ok(Self { user: user.map(str::to_owned), host: host.to_owned(), port })
    }
}

/// Splits text into host and port; none if the port is invalid.
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

/// Whether text is an IPv6 address, with or without an interface: `fe80::1%eth0`.
pub(super) fn is_v6(text: &str) -> bool {
    let (address, interface) = text.split_once('%').unwrap_or((text, "x"));
    address.parse::<Ipv6Addr>().is_ok() && !interface.is_empty()
}

impl Address {
    /// Returns the default name of a host with this address: the host name up to the first dot, or the IP address.
    pub(crate) fn default_name(&self) -> String {
        if is_v6(&self.host) || self.host.parse::<Ipv4Addr>().is_ok() {
            return self.host.replace([':', '%'], "-");
        }
        self.host.split('.').next().unwrap_or_default().to_owned()
    }

    /// Returns the arguments of ssh for this address.
    pub fn arguments(&self) -> Vec<String> {
        let port = self.port.map(|port| ["-p".to_owned(), port.to_string()]);
        let user = self.user.clone().map(|user| ["-l".to_owned(), user]);
        let options = port.into_iter().chain(user).flatten();
        options.chain(["--".to_owned(), self.host.clone()]).collect()
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
    fn addresses_are_parsed_like_ssh() {
        let parse = |text: &str| {
            let Address { user, host, port } = text.parse().unwrap();
            (user.unwrap_or_default(), host, port.unwrap_or_default())
        };
        let expected = |user: &str, host: &str, port| (user.to_owned(), host.to_owned(), port);
        assert_eq!(parse("lab1"), expected("", "lab1", 0));
        assert_eq!(parse("root@10.0.0.1"), expected("root", "10.0.0.1", 0));
        assert_eq!(parse("root@10.0.0.1:2222"), expected("root", "10.0.0.1", 2222));
        assert_eq!(parse("ssh://me@host.example:22/"), expected("me", "host.example", 22));
        assert_eq!(parse("fd77::1"), expected("", "fd77::1", 0));
        assert_eq!(parse("root@[fd77::1]:22"), expected("root", "fd77::1", 22));
        assert_eq!(parse("me@corp.example@jump"), expected("me@corp.example", "jump", 0));
    }

    #[test]
    fn text_that_ssh_would_take_for_an_option_is_refused() {
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
        fn an_address_survives_a_round_trip(text in "[a-z@:.0-9\\[\\]/-]{0,20}|ssh://.{0,10}|.{0,20}") {
            if let Ok(address) = text.parse::<Address>() {
                prop_assert_eq!(address.to_string().parse(), Ok(address));
            }
        }
    }
}
