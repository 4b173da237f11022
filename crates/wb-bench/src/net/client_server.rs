//! A measurement of two programs: a server, and a client that prints the figure.

use std::error::Error;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use procfs::net::TcpState;
use serde::{Deserialize, Serialize};

use crate::child_guard::ChildGuard;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ClientServer {
    pub(crate) server: Vec<String>,
    pub(crate) client: Vec<String>,
    /// The port on which the server listens before the client starts.
    pub(crate) port: u16,
    /// Additional environment variables of both.
    pub(crate) env: Vec<(String, String)>,
}

const LISTEN_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) fn run(config: &str) -> Result<(), Box<dyn Error>> {
    print!("{}", serde_json::from_str::<ClientServer>(config)?.measure()?.output);
    Ok(())
}

pub(super) struct ClientServerOutput {
    pub(super) output: String,
    /// From the start of the client to its exit, in seconds.
    pub(super) client_seconds: f64,
    /// Peak memory of the server in bytes; `None` if the server has exited by itself.
    pub(super) server_memory: Option<u64>,
}

impl ClientServer {
    pub(super) fn measure(&self) -> Result<ClientServerOutput, Box<dyn Error>> {
        if is_listening(self.port) {
            return Err(format!("port {} is in use", self.port).into());
        }
        let mut server = ChildGuard(command(&self.server, &self.env)?.stdout(Stdio::null()).spawn()?);
        let deadline = Instant::now() + LISTEN_TIMEOUT;
        while !is_listening(self.port) {
            if server.0.try_wait()?.is_some() || Instant::now() > deadline {
                return Err(format!("`{}` does not listen on port {}", self.server.join(" "), self.port).into());
            }
            thread::sleep(Duration::from_millis(2));
        }
        let began = Instant::now();
        let client = command(&self.client, &self.env)?.output()?;
        let client_seconds = began.elapsed().as_secs_f64();
        if !client.status.success() {
            let output = [&client.stdout[..], &client.stderr].concat();
            return Err(format!("{}: {}", self.client.join(" "), String::from_utf8_lossy(&output)).into());
        }
        let status = procfs::process::Process::new(server.0.id() as i32).and_then(|server| server.status());
        let server_memory = status.ok().and_then(|status| status.vmhwm).map(|kilobytes| kilobytes * 1024);
        Ok(ClientServerOutput {
            output: String::from_utf8_lossy(&client.stdout).into_owned(),
            client_seconds,
            server_memory,
        })
    }
}

fn command(argv: &[String], env: &[(String, String)]) -> Result<Command, &'static str> {
    let (program, arguments) = argv.split_first().ok_or("the command is empty")?;
    let mut command = Command::new(program);
    command.args(arguments).envs(env.iter().map(|(name, value)| (name, value)));
    Ok(command)
}

/// Whether a TCP port listens or a UDP port is bound, from the kernel's tables: a connection would reach the server.
fn is_listening(port: u16) -> bool {
    let tcp = procfs::net::tcp().unwrap_or_default().into_iter().chain(procfs::net::tcp6().unwrap_or_default());
    let udp = procfs::net::udp().unwrap_or_default().into_iter().chain(procfs::net::udp6().unwrap_or_default());
    tcp.filter(|socket| socket.state == TcpState::Listen).any(|socket| socket.local_address.port() == port)
        || udp.into_iter().any(|socket| socket.local_address.port() == port)
}
