//! What the kernel counts of its network interfaces and protocols: the independent check of what the engine says.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What went through one interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceCounters {
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

/// What the protocols did, of IPv4 and IPv6 together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProtocolCounters {
    /// TCP's segments that were sent again.
    pub tcp_retransmits: u64,
    /// UDP's datagrams that no socket was for: strangers', and those that came after their socket was gone.
    pub udp_no_port: u64,
    /// UDP's datagrams that were dropped because the receiver's buffer was full.
    pub udp_receive_buffer_errors: u64,
    /// UDP's datagrams that were dropped because the sender's buffer was full.
    pub udp_send_buffer_errors: u64,
}

/// What the kernel counted from one look to another.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkCounters {
    /// Of the interfaces through which anything went.
    pub interfaces: Vec<InterfaceCounters>,
    /// Of the protocols.
    pub protocols: ProtocolCounters,
}

/// A look at all of it.
#[derive(Debug, Clone, Default)]
pub struct Netstat {
    interfaces: BTreeMap<String, InterfaceCounters>,
    protocols: ProtocolCounters,
}

impl Netstat {
    /// Now; empty where the kernel does not tell.
    pub fn now() -> Self {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/self/net/{name}")).unwrap_or_default();
        let protocols = ProtocolCounters::parse(&read("snmp"), &read("snmp6"));
        Self { interfaces: parse_interfaces(&read("dev")), protocols }
    }

    /// What was counted since an earlier look.
    pub fn since(&self, before: &Self) -> NetworkCounters {
        let moved = self.interfaces.values().filter_map(|now| {
            let before = before.interfaces.get(&now.name)?;
            let since = |part: fn(&InterfaceCounters) -> u64| part(now).saturating_sub(part(before));
            Some(InterfaceCounters {
                name: now.name.clone(),
                packets_in: since(|interface| interface.packets_in),
                packets_out: since(|interface| interface.packets_out),
                bytes_in: since(|interface| interface.bytes_in),
                bytes_out: since(|interface| interface.bytes_out),
                errors_in: since(|interface| interface.errors_in),
                errors_out: since(|interface| interface.errors_out),
            })
        });
        let interfaces = moved.filter(|interface| interface.packets_in + interface.packets_out > 0).collect();
        let since = |part: fn(&ProtocolCounters) -> u64| part(&self.protocols).saturating_sub(part(&before.protocols));
        let protocols = ProtocolCounters {
            tcp_retransmits: since(|protocols| protocols.tcp_retransmits),
            udp_no_port: since(|protocols| protocols.udp_no_port),
            udp_receive_buffer_errors: since(|protocols| protocols.udp_receive_buffer_errors),
            udp_send_buffer_errors: since(|protocols| protocols.udp_send_buffer_errors),
        };
        NetworkCounters { interfaces, protocols }
    }
}

impl ProtocolCounters {
    /// From /proc/net/snmp, which has a line of names before each line of figures, and /proc/net/snmp6, which has a
    /// name and a figure on each.
    fn parse(snmp: &str, snmp6: &str) -> Self {
        let lines: Vec<&str> = snmp.lines().collect();
        let figure = |protocol: &str, name: &str| {
            let mut of = lines.iter().filter_map(|line| line.strip_prefix(protocol)?.strip_prefix(": "));
            let (names, figures) = of.next().zip(of.next())?;
            let position = names.split_whitespace().position(|other| other == name)?;
            figures.split_whitespace().nth(position)?.parse::<u64>().ok()
        };
        let figure6 = |name: &str| {
            let line = snmp6.lines().find(|line| line.split_whitespace().next() == Some(name))?;
            line.split_whitespace().nth(1)?.parse::<u64>().ok()
        };
        let udp = |name: &str| figure("Udp", name).unwrap_or(0) + figure6(&format!("Udp6{name}")).unwrap_or(0);
        Self {
            tcp_retransmits: figure("Tcp", "RetransSegs").unwrap_or(0),
            udp_no_port: udp("NoPorts"),
            udp_receive_buffer_errors: udp("RcvbufErrors"),
            udp_send_buffer_errors: udp("SndbufErrors"),
        }
    }
}

/// From /proc/net/dev.
fn parse_interfaces(text: &str) -> BTreeMap<String, InterfaceCounters> {
    let line = |line: &str| {
        let (name, figures) = line.split_once(':')?;
        let figures: Vec<u64> = figures.split_whitespace().filter_map(|figure| figure.parse().ok()).collect();
        let [bytes_in, packets_in, errors_in, drops_in, ..] = figures[..] else { return None };
        let [bytes_out, packets_out, errors_out, drops_out, ..] = figures.get(8..)?[..] else { return None };
        let name = name.trim().to_owned();
        let (errors_in, errors_out) = (errors_in + drops_in, errors_out + drops_out);
        Some(InterfaceCounters { name, packets_in, packets_out, bytes_in, bytes_out, errors_in, errors_out })
    };
    text.lines().skip(2).filter_map(line).map(|interface| (interface.name.clone(), interface)).collect()
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
        let look =
            |bytes, packets| Netstat { interfaces: parse_interfaces(&text(bytes, packets)), ..Netstat::default() };
        let moved = look(5000, 7).since(&look(1000, 3)).interfaces;
        assert_eq!(moved.len(), 1);
        assert_eq!((moved[0].name.as_str(), moved[0].bytes_in, moved[0].packets_out), ("lo", 4000, 4));
    }

    #[test]
    fn protocols_are_found_by_their_names() {
        let snmp = "Tcp: RtoMin RetransSegs\nTcp: 200 7\nUdp: InDatagrams NoPorts RcvbufErrors SndbufErrors\n\
            Udp: 100 3 4 5\nUdpLite: InDatagrams NoPorts\nUdpLite: 0 9\n";
        let snmp6 = "Udp6InDatagrams  1\nUdp6NoPorts  2\nUdp6RcvbufErrors 1\n";
        let wanted = ProtocolCounters {
            tcp_retransmits: 7,
            udp_no_port: 5,
            udp_receive_buffer_errors: 5,
            udp_send_buffer_errors: 5,
        };
        assert_eq!(ProtocolCounters::parse(snmp, snmp6), wanted);
        assert_eq!(ProtocolCounters::parse("", ""), ProtocolCounters::default());
    }
}
