use wb_agent::{Command, OutputStream};
use wb_model::Nanos;
use wb_test::{Attempt, Failure, RunningService, WorkerContext};

use super::params::{RedisCommand, RedisParams};

/// Time limit for the server to reply after its start, and to exit.
const SERVER_TIMEOUT: Nanos = Nanos(30_000_000_000);
/// Maximum length of a Unix socket's path in bytes, with the terminating null (sun_path).
const MAX_SOCKET_PATH: usize = 108;

pub(super) const LOG: &str = "server.log";
/// Sizes that [`RedisServer::snapshot`] adds: number of keys, and lengths of redis-benchmark's list and set.
const SIZES: [&str; 3] = ["keys", "list", "set"];

pub(super) struct RedisServer {
    process: RunningService,
    address: Vec<String>,
}

impl RedisServer {
    /// Starts a server in a new folder, and waits until it replies.
    pub(super) async fn start(
        params: &RedisParams,
        cpus: Option<&[u32]>,
        name: &str,
        context: &WorkerContext,
    ) -> Result<Self, Failure> {
        let folder = context.path(name);
        context.run(Command::new(["mkdir", &folder])).await?;
        let (listen, address) = listen_arguments(params.port, &folder)?;
        let mut placement = context.placement.clone();
        placement.cpus = cpus.map_or(placement.cpus, <[u32]>::to_vec);
        let command = Command::new(["redis-server", "--save", "", "--appendonly", "no"])
            .placement(placement.clone())
            .cwd(&folder);
        let fixed = ["--daemonize", "no", "--logfile", "", "--dir", folder.as_str(), "--bind", "127.0.0.1"];
        // The server disables huge pages for itself by default.
        let pages: &[&str] = if placement.huge_pages.are_requested() { &["--disable-thp", "no"] } else { &[] };
        let listen = listen.iter().map(String::as_str);
        let command = fixed.into_iter().chain(pages.iter().copied()).chain(listen).fold(command, Command::arg);
        let process = context.start_service(command).await?;
        let server = Self { process, address };
        server.wait_until_ready(context).await?;
        Ok(server)
    }

    /// Waits until the server replies, and checks that it is not another server at its address.
    async fn wait_until_ready(&self, context: &WorkerContext) -> Result<(), Failure> {
        let pid = format!("process_id:{}", self.process.pid());
        let pid = pid.as_str();
        let answers = || async move {
            let is_alive = self.query(context, &["PING"]).await.ok()?.trim() == "PONG";
            let info = self.query(context, &["INFO", "server"]).await.ok()?;
            (is_alive && info.lines().any(|line| line.trim() == pid)).then_some(())
        };
        tokio::select! {
            ready = context.poll_until("redis-server", SERVER_TIMEOUT, answers) => ready,
            ended = self.process.wait(None) => {
                let ended = ended?;
                let log = String::from_utf8_lossy(&ended.stdout).into_owned();
                let last = log.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no output");
                Err(Failure::crashed(format!("redis-server: {} before it replied: {last}", ended.exit_reason)))
            }
        }
    }

    /// Arguments by which redis-cli and redis-benchmark connect to it.
    pub(super) fn address(&self) -> &[String] {
        &self.address
    }

    pub(super) async fn query(&self, context: &WorkerContext, request: &[&str]) -> Result<String, Failure> {
        self.run_cli(context, request, Vec::new()).await
    }

    async fn run_cli(&self, context: &WorkerContext, request: &[&str], stdin: Vec<u8>) -> Result<String, Failure> {
        let command = Command::new(["redis-cli", "-e"]).stdin(stdin);
        let command =
            self.address.iter().map(String::as_str).chain(request.iter().copied()).fold(command, Command::arg);
        let output = context.run(command).await?;
        Ok(String::from_utf8_lossy(&output).into_owned())
    }

    /// Adds the data that `requests` requests of the measured command need.
    pub(super) async fn fill(
        &self,
        params: &RedisParams,
        requests: u64,
        context: &WorkerContext,
    ) -> Result<(), Failure> {
        let lines = match params.redis_command() {
            RedisCommand::Get => render_fill_commands(FILL_KEYS_SCRIPT, params, params.keyspace),
            RedisCommand::Lpop => render_fill_commands(FILL_LIST_SCRIPT, params, requests),
            RedisCommand::Set | RedisCommand::Lpush | RedisCommand::Sadd => String::new(),
        };
        if !lines.is_empty() {
            self.run_cli(context, &[], lines.into_bytes()).await?;
        }
        Ok(())
    }

    /// Returns the statistics, and the numbers of keys, list elements and set elements. Resets the statistics
    /// afterwards, as the queries are counted too.
    pub(super) async fn snapshot(&self, context: &WorkerContext) -> Result<String, Failure> {
        let queries = b"INFO all\nDBSIZE\nLLEN mylist\nSCARD myset\nCONFIG RESETSTAT\n";
        let output = self.run_cli(context, &[], queries.to_vec()).await?;
        let lines: Vec<&str> = output.lines().map(str::trim_end).collect();
        let (info, sizes) = lines.split_at(lines.len().saturating_sub(SIZES.len() + 1));
        let sizes = SIZES.iter().zip(sizes).map(|(name, size)| format!("{name}:{size}"));
        Ok(info.iter().map(|line| (*line).to_owned()).chain(sizes).map(|line| line + "\n").collect())
    }

    /// Shuts it down with SHUTDOWN, checks that it exited successfully, and returns its log.
    pub(super) async fn shut_down(self, context: &WorkerContext) -> Result<Vec<u8>, Failure> {
        // The connection is closed by the server: the error of redis-cli is expected.
        let words = self.address.iter().map(String::as_str).chain(["SHUTDOWN", "NOSAVE"]);
        context.run_to_end(words.fold(Command::new(["redis-cli"]), Command::arg)).await?;
        let finished = context.until_cancelled(self.process.wait(Some(SERVER_TIMEOUT))).await??;
        if !finished.exit_reason.is_success() {
            return Err(Failure::crashed(format!("redis-server: {} on shutdown", finished.exit_reason)));
        }
        Ok(finished.stdout)
    }

    pub(super) async fn record(&self, attempt: &mut Attempt) -> Result<(), Failure> {
        attempt.record_service("server", &self.process).await
    }

    pub(super) async fn log(&self) -> Vec<u8> {
        self.process.read_output(OutputStream::Stdout).await.unwrap_or_default()
    }
}

/// Arguments of the server to listen, and of its clients to connect.
fn listen_arguments(port: u16, folder: &str) -> Result<(Vec<String>, Vec<String>), Failure> {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    if port > 0 {
        let port = port.to_string();
        return Ok((texts(&["--port", &port]), texts(&["-h", "127.0.0.1", "-p", &port])));
    }
    let socket = format!("{folder}/redis.sock");
    if socket.len() >= MAX_SOCKET_PATH {
        return Err(Failure::refused(format!("socket path too long: `{socket}`: use a shorter TMPDIR, or set `port`")));
    }
    Ok((texts(&["--port", "0", "--unixsocket", &socket, "--unixsocketperm", "700"]), texts(&["-s", &socket])))
}

/// Script that sets the keys from `ARGV[2]` up to, but not including, `ARGV[3]`, with redis-benchmark's names.
const FILL_KEYS_SCRIPT: &str = "local v = string.rep('x', tonumber(ARGV[1])) \
     for i = tonumber(ARGV[2]), tonumber(ARGV[3]) - 1 do redis.call('SET', string.format('key:%012d', i), v) end";
/// Script that pushes `ARGV[3] - ARGV[2]` elements to redis-benchmark's list.
const FILL_LIST_SCRIPT: &str = "local v = string.rep('x', tonumber(ARGV[1])) \
     for i = tonumber(ARGV[2]), tonumber(ARGV[3]) - 1 do redis.call('LPUSH', 'mylist', v) end";
/// Elements per script call: less than a second of work, so that the server does not consider the script hanging.
const FILL_BATCH: u64 = 250_000;

/// Renders the script calls for `count` elements, one per line.
fn render_fill_commands(script: &str, params: &RedisParams, count: u64) -> String {
    let size = params.data_size.0;
    let batches = (0..count).step_by(FILL_BATCH as usize);
    batches.map(|from| format!("EVAL \"{script}\" 0 {size} {from} {}\n", (from + FILL_BATCH).min(count))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filling_is_split_into_batches() {
        let lines = render_fill_commands(FILL_LIST_SCRIPT, &RedisParams::default(), 600_000);
        let ends: Vec<&str> = lines.lines().map(|line| line.rsplit(" 0 3 ").next().unwrap()).collect();
        assert_eq!(ends, ["0 250000", "250000 500000", "500000 600000"]);
    }

    #[test]
    fn a_socket_path_that_is_too_long_is_refused() {
        let error = listen_arguments(0, &"x".repeat(100)).unwrap_err();
        assert!(error.to_string().ends_with("use a shorter TMPDIR, or set `port`"), "{error}");
        assert_eq!(listen_arguments(7000, "").unwrap().1, ["-h", "127.0.0.1", "-p", "7000"]);
    }
}
