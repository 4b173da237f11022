//! The kernel's counters of network interfaces and protocols: an independent check of the engine's own counters.

use std::collections::BTreeMap;

use wb_results::net::{InterfaceCounters, NetworkCounters, ProtocolCounters};

/// A snapshot of the kernel's counters.
#[derive(Debug, Clone, Default)]
pub struct Netstat {
    interfaces: BTreeMap<String, InterfaceCounters>,
    protocols: ProtocolCounters,
}

impl Netstat {
    /// Takes a snapshot; empty where the kernel provides no counters.
    pub fn now() -> Self {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/self/net/{name}")).unwrap_or_default();
        let protocols = parse_protocols(&read("snmp"), &read("snmp6"));
        Self { interfaces: parse_interfaces(&read("dev")), protocols }
    }

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

/// Parses /proc/net/snmp, which has a line of names before each line of values, and /proc/net/snmp6, which has a
/// name and a value on each line.
fn parse_protocols(snmp: &str, snmp6: &str) -> ProtocolCounters {
    let lines: Vec<&str> = snmp.lines().collect();
    let value = |protocol: &str, name: &str| {
        let mut rows = lines.iter().filter_map(|line| line.strip_prefix(protocol)?.strip_prefix(": "));
        let (names, values) = rows.next().zip(rows.next())?;
        let position = names.split_whitespace().position(|other| other == name)?;
        values.split_whitespace().nth(position)?.parse::<u64>().ok()
    };
    let value6 = |name: &str| {
        let line = snmp6.lines().find(|line| line.split_whitespace().next() == Some(name))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    let udp = |name: &str| value("Udp", name).unwrap_or(0) + value6(&format!("Udp6{name}")).unwrap_or(0);
    ProtocolCounters {
        tcp_retransmits: value("Tcp", "RetransSegs").unwrap_or(0),
        udp_no_port: udp("NoPorts"),
        udp_receive_buffer_errors: udp("RcvbufErrors"),
        udp_send_buffer_errors: udp("SndbufErrors"),
    }
}

/// Parses /proc/net/dev.
fn parse_interfaces(text: &str) -> BTreeMap<String, InterfaceCounters> {
    let line = |line: &str| {
        let (name, values) = line.split_once(':')?;
        let values: Vec<u64> = values.split_whitespace().filter_map(|value| value.parse().ok()).collect();
        let [bytes_in, packets_in, errors_in, drops_in, ..] = values[..] else { return None };
        let [bytes_out, packets_out, errors_out, drops_out, ..] = values.get(8..)?[..] else { return None };
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
    fn counters_are_differences_of_snapshots() {
        let text = |bytes: u64, packets: u64| {
            format!(
                "Inter-|   Receive  |  Transmit\n face |bytes\n    lo: {bytes} {packets} 1 2 0 0 0 0 {bytes} {packets} 0 0 0 0 0 0\n  eth0: 5 1 0 0 0 0 0 0 5 1 0 0 0 0 0 0\n"
            )
        };
        let snapshot =
            |bytes, packets| Netstat { interfaces: parse_interfaces(&text(bytes, packets)), ..Netstat::default() };
        let moved = snapshot(5000, 7).since(&snapshot(1000, 3)).interfaces;
        assert_eq!(moved.len(), 1);
        assert_eq!((moved[0].name.as_str(), moved[0].bytes_in, moved[0].packets_out), ("lo", 4000, 4));
    }

    #[test]
    fn protocol_counters_are_found_by_name() {
        let snmp = "Tcp: RtoMin RetransSegs\nTcp: 200 7\nUdp: InDatagrams NoPorts RcvbufErrors SndbufErrors\n\
            Udp: 100 3 4 5\nUdpLite: InDatagrams NoPorts\nUdpLite: 0 9\n";
        let snmp6 = "Udp6InDatagrams  1\nUdp6NoPorts  2\nUdp6RcvbufErrors 1\n";
        let expected = ProtocolCounters {
            tcp_retransmits: 7,
            udp_no_port: 5,
            udp_receive_buffer_errors: 5,
            udp_send_buffer_errors: 5,
        };
        assert_eq!(parse_protocols(snmp, snmp6), expected);
        assert_eq!(parse_protocols("", ""), ProtocolCounters::default());
    }
}
