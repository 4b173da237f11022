//! What the kernel's network interfaces count: the independent check of what the engine says.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What went through one interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Packets received.
    pub packets_in: u64,
    /// Packets sent.
    pub packets_out: u64,
    /// Bytes received, headers included.
    pub bytes_in: u64,
    /// Bytes sent, headers included.
    pub bytes_out: u64,
    /// Received ones that were broken or dropped.
    pub errors_in: u64,
    /// Ones to send that were broken or dropped.
    pub errors_out: u64,
}

/// A look at all interfaces.
#[derive(Debug, Clone, Default)]
pub struct Netstat(BTreeMap<String, Interface>);

impl Netstat {
    /// Now; empty where the kernel does not tell.
    pub fn now() -> Self {
        std::fs::read_to_string("/proc/self/net/dev").map_or_else(|_| Self::default(), |text| Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let line = |line: &str| {
            let (name, figures) = line.split_once(':')?;
            let figures: Vec<u64> = figures.split_whitespace().filter_map(|figure| figure.parse().ok()).collect();
            let [bytes_in, packets_in, errors_in, drops_in, ..] = figures[..] else { return None };
            let [bytes_out, packets_out, errors_out, drops_out, ..] = figures.get(8..)?[..] else { return None };
            let name = name.trim().to_owned();
            let (errors_in, errors_out) = (errors_in + drops_in, errors_out + drops_out);
            Some(Interface { name, packets_in, packets_out, bytes_in, bytes_out, errors_in, errors_out })
        };
        Self(text.lines().skip(2).filter_map(line).map(|interface| (interface.name.clone(), interface)).collect())
    }

    /// What went through since an earlier look, of interfaces through which anything did.
    pub fn since(&self, before: &Self) -> Vec<Interface> {
        let moved = self.0.values().filter_map(|now| {
            let before = before.0.get(&now.name)?;
            let since = |part: fn(&Interface) -> u64| part(now).saturating_sub(part(before));
            Some(Interface {
                name: now.name.clone(),
                packets_in: since(|interface| interface.packets_in),
                packets_out: since(|interface| interface.packets_out),
                bytes_in: since(|interface| interface.bytes_in),
                bytes_out: since(|interface| interface.bytes_out),
                errors_in: since(|interface| interface.errors_in),
                errors_out: since(|interface| interface.errors_out),
            })
        });
        moved.filter(|interface| interface.packets_in + interface.packets_out > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_through_is_the_difference() {
        let text = |bytes: u64, packets: u64| {
            format!(
                "Inter-|   Receive  |  Transmit\n face |bytes\n    lo: {bytes} {packets} 1 2 0 0 0 0 {bytes} {packets} 0 0 0 0 0 0\n  eth0: 5 1 0 0 0 0 0 0 5 1 0 0 0 0 0 0\n"
            )
        };
        let moved = Netstat::parse(&text(5000, 7)).since(&Netstat::parse(&text(1000, 3)));
        assert_eq!(moved.len(), 1);
        assert_eq!((moved[0].name.as_str(), moved[0].bytes_in, moved[0].packets_out), ("lo", 4000, 4));
    }
}
