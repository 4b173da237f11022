//! Two programs that measure together: a server, and a client that prints the figure.

use std::{
    error::Error,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use procfs::net::TcpState;
use serde::{Deserialize, Serialize};

/// A server and its client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ClientServer {
    pub(crate) server: Vec<String>,
    pub(crate) client: Vec<String>,
    /// The port that the server takes before the client begins.
    pub(crate) port: u16,
    /// Environment of both.
    pub(crate) env: Vec<(String, String)>,
}

/// How long a server may take to listen.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs them and prints what the client printed.
pub(crate) fn run(both: &str) -> Result<(), Box<dyn Error>> {
    print!("{}", serde_json::from_str::<ClientServer>(both)?.measure()?.printed);
    Ok(())
}

/// What two programs left.
pub(super) struct ClientServerOutput {
    /// By the client.
    pub(super) printed: String,
    /// The most memory that the server held, in bytes; none if it has ended by itself.
    pub(super) server_memory: Option<u64>,
}

impl ClientServer {
    pub(super) fn measure(&self) -> Result<ClientServerOutput, Box<dyn Error>> {
        let mut server =
            ChildGuard(command(&self.server, &self.env)?.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?);
        let deadline = Instant::now() + LISTEN_TIMEOUT;
        while !is_listening(self.port) {
            if server.0.try_wait()?.is_some() || Instant::now() > deadline {
                return Err(format!("{} does not listen at port {}", self.server.join(" "), self.port).into());
            }
            thread::sleep(Duration::from_millis(2));
        }
        let client = command(&self.client, &self.env)?.output()?;
        if !client.status.success() {
            let printed = [&client.stdout[..], &client.stderr].concat();
            return Err(format!("{}: {}", self.client.join(" "), String::from_utf8_lossy(&printed)).into());
        }
        let status = procfs::process::Process::new(server.0.id() as i32).and_then(|server| server.status());
        let server_memory = status.ok().and_then(|status| status.vmhwm).map(|kilobytes| kilobytes * 1024);
        Ok(ClientServerOutput { printed: String::from_utf8_lossy(&client.stdout).into_owned(), server_memory })
    }
}

/// A program that ends with this.
struct ChildGuard(Child);

impl Drop for ChildGuard {
    fn drop(&mut self) {
        // One that has ended cannot be ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn command(words: &[String], env: &[(String, String)]) -> Result<Command, &'static str> {
    let (program, arguments) = words.split_first().ok_or("an empty command")?;
    let mut command = Command::new(program);
    command.args(arguments).envs(env.iter().map(|(name, value)| (name, value)));
    Ok(command)
}

/// Whether something takes connections or datagrams at a port; asked of the kernel, so that the server notices nothing.
fn is_listening(port: u16) -> bool {
    let tcp = procfs::net::tcp().unwrap_or_default().into_iter().chain(procfs::net::tcp6().unwrap_or_default());
    let udp = procfs::net::udp().unwrap_or_default().into_iter().chain(procfs::net::udp6().unwrap_or_default());
    tcp.filter(|socket| socket.state == TcpState::Listen).any(|socket| socket.local_address.port() == port)
        || udp.into_iter().any(|socket| socket.local_address.port() == port)
}
