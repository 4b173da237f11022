//! Detects features that a profile needs and this kernel does not support.

use std::collections::BTreeMap;
use std::{fmt, io};

use rustix::net::{AddressFamily, SocketType, ipproto, socket, sockopt};

use crate::{Endpoint, NetProfile, Protocol};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsupportedFeature {
    /// The feature: a protocol, or a congestion control algorithm.
    pub feature: String,
    /// The reason, as reported by the system.
    pub reason: String,
    pub flowops: Vec<FlowopPath>,
    /// How to make it available, if possible.
    pub help: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowopPath {
    pub group: String,
    pub transaction: String,
    pub flowop: String,
}

impl fmt::Display for UnsupportedFeature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unsupported {}: {}", self.feature, self.reason)
    }
}

impl fmt::Display for FlowopPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.group, self.transaction, self.flowop)
    }
}

/// The features of `profile` that this kernel does not support. The other side's kernel is checked there.
pub fn unsupported_features(profile: &NetProfile) -> Vec<UnsupportedFeature> {
    SupportCheck::new(&RunningKernel).unsupported_features(profile)
}

/// Probes the features of a kernel.
pub trait KernelProbe {
    fn probe_socket(&self, protocol: Protocol) -> io::Result<()>;
    fn probe_congestion(&self, algorithm: &str) -> io::Result<()>;
    fn loaded_algorithms(&self) -> Vec<String>;
}

pub struct SupportCheck<'p> {
    probe: &'p dyn KernelProbe,
}

impl<'p> SupportCheck<'p> {
    pub fn new(probe: &'p dyn KernelProbe) -> Self {
        Self { probe }
    }

    /// The unsupported features of `profile`: each once, in the order of the profile.
    pub fn unsupported_features(&self, profile: &NetProfile) -> Vec<UnsupportedFeature> {
        let mut probed: BTreeMap<KernelFeature, Option<usize>> = BTreeMap::new();
        let mut lacks: Vec<UnsupportedFeature> = Vec::new();
        for (endpoint, flowop) in endpoints(profile) {
            for feature in required_features(endpoint) {
                let index = *probed.entry(feature.clone()).or_insert_with(|| {
                    lacks.push(self.probe_feature(&feature)?);
                    Some(lacks.len() - 1)
                });
                if let Some(index) = index {
                    lacks[index].flowops.push(flowop.clone());
                }
            }
        }
        lacks
    }

    fn probe_feature(&self, feature: &KernelFeature) -> Option<UnsupportedFeature> {
        let (name, reason, help) = match feature {
            KernelFeature::Protocol(protocol) => {
                let name = format!("protocol {}", protocol.name());
                match (self.probe.probe_socket(*protocol), protocol) {
                    (Err(error), _) => (name, kernel_reason(&error), protocol_help(*protocol)),
                    (Ok(()), Protocol::Rds) => (name, "RDS is not implemented".to_owned(), None),
                    (Ok(()), _) => return None,
                }
            }
            KernelFeature::Congestion(algorithm) => {
                let error = self.probe.probe_congestion(algorithm).err()?;
                let name = format!("congestion control {algorithm}");
                (name, kernel_reason(&error), Some(self.congestion_help(algorithm, &error)))
            }
        };
        Some(UnsupportedFeature { feature: name, reason, flowops: Vec::new(), help })
    }

    fn congestion_help(&self, algorithm: &str, error: &io::Error) -> String {
        if error.kind() == io::ErrorKind::PermissionDenied {
            return format!("as root, add {algorithm} to net.ipv4.tcp_allowed_congestion_control");
        }
        let loaded = self.probe.loaded_algorithms().join(", ");
        format!("`modprobe tcp_{algorithm}` loads it, if the kernel was built with it; available: {loaded}")
    }
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum KernelFeature {
    Protocol(Protocol),
    Congestion(String),
}

fn required_features(endpoint: &Endpoint) -> impl Iterator<Item = KernelFeature> {
    let tcp = matches!(endpoint.protocol, Protocol::Tcp | Protocol::Tls);
    let congestion = endpoint.congestion.clone().filter(|_| tcp).map(KernelFeature::Congestion);
    std::iter::once(KernelFeature::Protocol(endpoint.protocol)).chain(congestion)
}

fn endpoints(profile: &NetProfile) -> impl Iterator<Item = (&Endpoint, FlowopPath)> {
    profile.groups.iter().flat_map(|group| {
        group.transactions.iter().flat_map(move |transaction| {
            transaction.flowops.iter().filter_map(move |flowop| {
                let endpoint = flowop.endpoint()?;
                let path = FlowopPath {
                    group: group.name.clone(),
                    transaction: transaction.name.clone(),
                    flowop: flowop.name.clone(),
                };
                Some((endpoint, path))
            })
        })
    })
}

/// The system's error message in lower case, without the error number that Rust appends.
fn kernel_reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    text.to_lowercase()
}

fn protocol_help(protocol: Protocol) -> Option<String> {
    let help = match protocol {
        Protocol::Sctp => "`modprobe sctp` loads it, if the kernel was built with it",
        Protocol::Vsock => {
            "`modprobe vhost_vsock` on the host of VMs and `modprobe vmw_vsock_virtio_transport` in a VM"
        }
        _ => return None,
    };
    Some(help.to_owned())
}

pub struct RunningKernel;

impl KernelProbe for RunningKernel {
    fn probe_socket(&self, protocol: Protocol) -> io::Result<()> {
        const IP: [AddressFamily; 2] = [AddressFamily::INET, AddressFamily::INET6];
        let (families, kind, number): (&[AddressFamily], _, _) = match protocol {
            Protocol::Tcp | Protocol::Tls => (&IP, SocketType::STREAM, None),
            Protocol::Udp | Protocol::Quic => (&IP, SocketType::DGRAM, None),
            Protocol::Sctp => (&IP, SocketType::STREAM, Some(ipproto::SCTP)),
            Protocol::Unix => (&[AddressFamily::UNIX], SocketType::STREAM, None),
            Protocol::UnixDgram => (&[AddressFamily::UNIX], SocketType::DGRAM, None),
            Protocol::Vsock => (&[AddressFamily::VSOCK], SocketType::STREAM, None),
            Protocol::Rds => (&[AddressFamily::RDS], SocketType::SEQPACKET, None),
        };
        // One family of IP suffices; if both fail, the first error is reported.
        let mut attempts = families.iter().map(|family| socket(*family, kind, number).map(drop));
        let first = attempts.next().unwrap_or(Ok(()));
        if first.is_ok() || attempts.any(|other| other.is_ok()) { Ok(()) } else { Ok(first?) }
    }

    fn probe_congestion(&self, algorithm: &str) -> io::Result<()> {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None)
            .or_else(|_| socket(AddressFamily::INET6, SocketType::STREAM, None))?;
        Ok(sockopt::set_tcp_congestion(&socket, algorithm)?)
    }

    fn loaded_algorithms(&self) -> Vec<String> {
        let list = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
        list.split_whitespace().map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Variables, parse};

    /// A fake kernel that supports TCP, and cubic.
    struct FakeKernel;

    impl KernelProbe for FakeKernel {
        fn probe_socket(&self, protocol: Protocol) -> io::Result<()> {
            match protocol {
                Protocol::Tcp | Protocol::Tls | Protocol::Rds => Ok(()),
                _ => Err(rustix::io::Errno::PROTONOSUPPORT.into()),
            }
        }

        fn probe_congestion(&self, algorithm: &str) -> io::Result<()> {
            match algorithm {
                "cubic" => Ok(()),
                "vegas" => Err(rustix::io::Errno::PERM.into()),
                _ => Err(rustix::io::Errno::NOENT.into()),
            }
        }

        fn loaded_algorithms(&self) -> Vec<String> {
            vec!["cubic".to_owned(), "vegas".to_owned()]
        }
    }

    fn unsupported(endpoints: &[&str]) -> Vec<UnsupportedFeature> {
        let flowops: String =
            endpoints.iter().map(|options| format!("<flowop type=accept options='remotehost=h {options}'/>")).collect();
        let text = format!("<profile><group nthreads=1 name=g><transaction>{flowops}");
        let profile = parse("p.xml", &text, &Variables::new()).expect("it is sound").profile;
        SupportCheck::new(&FakeKernel).unsupported_features(&profile)
    }

    #[test]
    fn supported_features_are_not_reported() {
        assert_eq!(unsupported(&["protocol=tcp cc=cubic", "protocol=ssl"]), []);
    }

    #[test]
    fn an_unsupported_feature_is_reported_once_with_all_its_flowops() {
        let features = unsupported(&["protocol=sctp", "protocol=tcp", "protocol=sctp"]);
        assert_eq!(features.len(), 1);
        assert_eq!(features[0].to_string(), "unsupported protocol sctp: protocol not supported");
        assert_eq!(features[0].flowops.iter().map(FlowopPath::to_string).collect::<Vec<_>>(), ["g/Txn0/accept"; 2]);
        assert!(features[0].help.as_ref().is_some_and(|help| help.contains("modprobe sctp")));
    }

    #[test]
    fn the_help_for_an_algorithm_depends_on_the_cause() {
        let help = |cc: &str| unsupported(&[&format!("protocol=tcp cc={cc}")])[0].help.clone().expect("it has help");
        assert_eq!(help("vegas"), "as root, add vegas to net.ipv4.tcp_allowed_congestion_control");
        let module = "`modprobe tcp_bbr` loads it, if the kernel was built with it; available: cubic, vegas";
        assert_eq!(help("bbr"), module);
    }

    #[test]
    fn rds_is_unsupported_even_where_the_kernel_supports_it() {
        assert_eq!(unsupported(&["protocol=rds"])[0].reason, "RDS is not implemented");
    }

    #[test]
    fn this_kernel_supports_tcp_and_no_invented_algorithms() {
        assert!(RunningKernel.probe_socket(Protocol::Tcp).is_ok());
        assert!(RunningKernel.probe_congestion("nosuch").is_err());
    }
}
