use std::time::Duration;

/// Connect timeout of ssh.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a host may take to respond during the connection setup, including jump hosts and login.
pub const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// Default idle timeout of agent and controller.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Oldest supported kernel: of 2018, as in RHEL 8 and Debian 10.
pub const MIN_KERNEL: (u32, u32) = (4, 18);
