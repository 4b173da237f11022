//! rust-libp2p as an endpoint of a matrix: `listen` serves `/perf/1.0.0`, `dial` measures transfers with it.
//!
//! `endpoints/README.md` describes the arguments and the lines that both print.

mod dialer;
mod listener;
mod node;
mod perf;
mod report;

use std::{net::IpAddr, process::ExitCode, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};
use libp2p::Multiaddr;
use perf::{Amount, Direction, FixedTime};

#[derive(Parser)]
#[command(about, version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve transfers until SIGTERM
    Listen {
        #[command(flatten)]
        stack: Stack,
        /// IP address to bind to
        #[arg(long, default_value = "127.0.0.1")]
        host: IpAddr,
        /// Port to bind to; 0 = any free one
        #[arg(long, default_value_t = 0)]
        port: u16,
    },
    /// Connect once and run transfers
    Dial {
        #[command(flatten)]
        stack: Stack,
        /// Address that the listener printed
        #[arg(long)]
        address: Multiaddr,
        #[command(flatten)]
        amount: AmountArgs,
        /// Number of transfers, one after the other
        #[arg(long)]
        iterations: u32,
        /// Time limit of connecting and of each iteration, in seconds
        #[arg(long, default_value = "60", value_parser = seconds)]
        timeout: Duration,
    },
}

/// What ends a transfer: its bytes, or the time
#[derive(Args)]
struct AmountArgs {
    /// Bytes to send in each iteration
    #[arg(long, required_unless_present = "duration")]
    send: Option<u64>,
    /// Bytes to receive in each iteration
    #[arg(long, required_unless_present = "duration")]
    receive: Option<u64>,
    /// Transfer in one direction for a fixed time, in seconds
    #[arg(long, value_parser = seconds, requires = "direction", conflicts_with_all = ["send", "receive"])]
    duration: Option<Duration>,
    /// Direction of such a transfer
    #[arg(long)]
    direction: Option<Direction>,
    /// Time between two reports of such a transfer, in seconds
    #[arg(long, default_value = "0.1", value_parser = seconds)]
    interval: Duration,
}

impl AmountArgs {
    fn amount(&self) -> Amount {
        match (self.duration, self.direction) {
            (Some(duration), Some(direction)) => {
                Amount::Time(FixedTime { direction, duration, interval: self.interval })
            }
            _ => Amount::Bytes { send: self.send.unwrap_or_default(), receive: self.receive.unwrap_or_default() },
        }
    }
}

/// The protocols of a connection: those that the flags select are the only ones offered.
#[derive(Args, Clone, Copy)]
struct Stack {
    #[arg(long)]
    transport: Transport,
    /// Required unless the transport is quic-v1
    #[arg(long)]
    security: Option<Security>,
    /// Required unless the transport is quic-v1
    #[arg(long)]
    muxer: Option<Muxer>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Transport {
    Tcp,
    QuicV1,
    Ws,
}

#[derive(Clone, Copy, ValueEnum)]
enum Security {
    Noise,
    Tls,
}

#[derive(Clone, Copy, ValueEnum)]
enum Muxer {
    Yamux,
    Mplex,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

#[tokio::main]
async fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Listen { stack, host, port } => listener::listen(stack, host, port).await,
        Command::Dial { stack, address, amount, iterations, timeout } => {
            dialer::dial(stack, address, amount.amount(), iterations, timeout).await
        }
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::FAILURE
    })
}
