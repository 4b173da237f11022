//! A redis-server of one's own: started, asked, filled and ended.

use wb_agent::{Command, Stream};
use wb_model::{HugePages, Nanos};

use super::params::{Params, RedisCommand};
use crate::attempt::worker_failure;
use crate::{Attempt, Failure, RunningService, WorkerContext};

/// How long it may take to answer after its start, and to end.
const SERVER_TIMEOUT: Nanos = Nanos(30_000_000_000);
/// What a Unix socket's path may be long, in bytes, its end included (sun_path).
const MAX_SOCKET_PATH: usize = 108;

/// What it says is kept under this name.
pub(super) const LOG: &str = "server.log";
/// The sizes that [`Server::state`] adds: of the keys, of redis-benchmark's list and of its set.
const SIZES: [&str; 3] = ["keys", "list", "set"];

/// A running server.
pub(super) struct RedisServer {
    process: RunningService,
    address: Vec<String>,
}

impl RedisServer {
    /// Starts a server in a new folder and waits until it answers.
    pub(super) async fn start(
        params: &Params,
        cpu: Option<u32>,
        name: &str,
        site: &WorkerContext,
    ) -> Result<Self, Failure> {
        let folder = site.path(name);
        site.run(Command::new(["mkdir", &folder])).await?;
        let (listen, address) = listen_arguments(params.port, &folder)?;
        let mut placement = site.placement.clone();
        placement.cpus = cpu.map_or(placement.cpus, |cpu| vec![cpu]);
        let command = Command::new(["redis-server", "--save", "", "--appendonly", "no"])
            .placement(placement.clone())
            .cwd(&folder);
        let fixed = ["--daemonize", "no", "--logfile", "", "--dir", folder.as_str(), "--bind", "127.0.0.1"];
        // The server switches huge pages off for itself, unless told not to.
        let pages: &[&str] = if placement.huge_pages == HugePages::Always { &["--disable-thp", "no"] } else { &[] };
        let listen = listen.iter().map(String::as_str);
        let command = fixed.into_iter().chain(pages.iter().copied()).chain(listen).fold(command, Command::arg);
        let process = site.start_service(command).await?;
        let server = Self { process, address };
        server.wait_until_ready(site).await?;
        Ok(server)
    }

    /// Waits until it answers, and not another server at its address.
    async fn wait_until_ready(&self, site: &WorkerContext) -> Result<(), Failure> {
        let pid = format!("process_id:{}", self.process.pid());
        let pid = pid.as_str();
        let answers = || async move {
            let is_there = self.query(site, &["PING"]).await.ok()?.trim() == "PONG";
            let who = self.query(site, &["INFO", "server"]).await.ok()?;
            (is_there && who.lines().any(|line| line.trim() == pid)).then_some(())
        };
        tokio::select! {
            ready = site.poll_until("redis-server", SERVER_TIMEOUT, answers) => ready,
            ended = self.process.wait(None) => {
                let ended = ended.map_err(worker_failure)?;
                let log = String::from_utf8_lossy(&ended.stdout).into_owned();
                let last = log.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
                Err(Failure::crashed(format!("redis-server: {} before it answered: {last}", ended.ending)))
            }
        }
    }

    /// How redis-cli and redis-benchmark find it.
    pub(super) fn address(&self) -> &[String] {
        &self.address
    }

    /// What it answers to a command.
    pub(super) async fn query(&self, site: &WorkerContext, request: &[&str]) -> Result<String, Failure> {
        self.run_cli(site, request, Vec::new()).await
    }

    async fn run_cli(&self, site: &WorkerContext, request: &[&str], stdin: Vec<u8>) -> Result<String, Failure> {
        let command = Command::new(["redis-cli", "-e"]).stdin(stdin);
        let command =
            self.address.iter().map(String::as_str).chain(request.iter().copied()).fold(command, Command::arg);
        let answer = site.run(command).await?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    /// Fills it with what so many requests ask for.
    pub(super) async fn fill(&self, params: &Params, requests: u64, site: &WorkerContext) -> Result<(), Failure> {
        let lines = match params.redis_command() {
            RedisCommand::Get => render_fill_commands(FILL_KEYS_SCRIPT, params, params.keyspace),
            RedisCommand::Lpop => render_fill_commands(FILL_LIST_SCRIPT, params, requests),
            RedisCommand::Set | RedisCommand::Lpush | RedisCommand::Sadd => String::new(),
        };
        if !lines.is_empty() {
            self.run_cli(site, &[], lines.into_bytes()).await?;
        }
        Ok(())
    }

    /// Its statistics, and how many keys, list elements and set elements it has; statistics begin anew after it, since
    /// asking counts as well.
    pub(super) async fn snapshot(&self, site: &WorkerContext) -> Result<String, Failure> {
        let questions = b"INFO all\nDBSIZE\nLLEN mylist\nSCARD myset\nCONFIG RESETSTAT\n";
        let said = self.run_cli(site, &[], questions.to_vec()).await?;
        let lines: Vec<&str> = said.lines().map(str::trim_end).collect();
        let (info, sizes) = lines.split_at(lines.len().saturating_sub(SIZES.len() + 1));
        let sizes = SIZES.iter().zip(sizes).map(|(name, size)| format!("{name}:{size}"));
        Ok(info.iter().map(|line| (*line).to_owned()).chain(sizes).map(|line| line + "\n").collect())
    }

    /// Ends it as an administrator does, and sees that it ended well; its log.
    pub(super) async fn shut_down(self, site: &WorkerContext) -> Result<Vec<u8>, Failure> {
        // The connection ends with the server: what redis-cli says of that is no matter.
        let words = self.address.iter().map(String::as_str).chain(["SHUTDOWN", "NOSAVE"]);
        site.run_to_end(words.fold(Command::new(["redis-cli"]), Command::arg)).await?;
        let finished = site.until_cancelled(self.process.wait(Some(SERVER_TIMEOUT))).await?.map_err(worker_failure)?;
        if !finished.ending.is_success() {
            return Err(Failure::crashed(format!("redis-server: {} when told to end", finished.ending)));
        }
        Ok(finished.stdout)
    }

    /// Keeps where and how it runs.
    pub(super) async fn record(&self, attempt: &mut Attempt) -> Result<(), Failure> {
        attempt.record_service("server", &self.process).await
    }

    /// What it has said so far.
    pub(super) async fn log(&self) -> Vec<u8> {
        self.process.read_output(Stream::Stdout).await.unwrap_or_default()
    }
}

/// The server's arguments to listen, and those of its clients.
fn listen_arguments(port: u16, folder: &str) -> Result<(Vec<String>, Vec<String>), Failure> {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    if port > 0 {
        let port = port.to_string();
        return Ok((texts(&["--port", &port]), texts(&["-h", "127.0.0.1", "-p", &port])));
    }
    let socket = format!("{folder}/redis.sock");
    if socket.len() >= MAX_SOCKET_PATH {
        return Err(Failure::refused(format!(
            "`{socket}` is too long for a socket: use a shorter TMPDIR, or give `port`"
        )));
    }
    Ok((texts(&["--port", "0", "--unixsocket", &socket, "--unixsocketperm", "700"]), texts(&["-s", &socket])))
}

/// Sets the keys from ARGV[2] up to before ARGV[3], named as redis-benchmark names them.
const FILL_KEYS_SCRIPT: &str = "local v = string.rep('x', tonumber(ARGV[1])) \
     for i = tonumber(ARGV[2]), tonumber(ARGV[3]) - 1 do redis.call('SET', string.format('key:%012d', i), v) end";
/// Pushes as many elements to redis-benchmark's list.
const FILL_LIST_SCRIPT: &str = "local v = string.rep('x', tonumber(ARGV[1])) \
     for i = tonumber(ARGV[2]), tonumber(ARGV[3]) - 1 do redis.call('LPUSH', 'mylist', v) end";
/// What one script does: a second's work at most, so that the server does not take it for hanging.
const FILL_BATCH: u64 = 250_000;

/// One script call a line, for so many things.
fn render_fill_commands(script: &str, params: &Params, many: u64) -> String {
    let size = params.data_size.0;
    let parts = (0..many).step_by(FILL_BATCH as usize);
    parts.map(|from| format!("EVAL \"{script}\" 0 {size} {from} {}\n", (from + FILL_BATCH).min(many))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filling_is_cut_into_parts() {
        let lines = render_fill_commands(FILL_LIST_SCRIPT, &Params::default(), 600_000);
        let ends: Vec<&str> = lines.lines().map(|line| line.rsplit(" 0 3 ").next().unwrap()).collect();
        assert_eq!(ends, ["0 250000", "250000 500000", "500000 600000"]);
    }

    #[test]
    fn a_socket_path_that_is_too_long_is_refused() {
        let refused = listen_arguments(0, &"x".repeat(100)).unwrap_err();
        assert!(refused.to_string().ends_with("use a shorter TMPDIR, or give `port`"), "{refused}");
        assert_eq!(listen_arguments(7000, "").unwrap().1, ["-h", "127.0.0.1", "-p", "7000"]);
    }
}
