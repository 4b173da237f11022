//! `weighbridge net`: runs network workloads between this machine and servers.

mod check;
mod iperf3;
mod outcome;
mod presets;
mod progress;
mod refusal_log;
mod response_log;
mod run;
mod serve;
mod sweep;
mod trust;
mod uperf;

use std::{io, process::Command, sync::Arc};

use wb_net::engine::engine_set::ChildCommandFactory;
use wb_net::engine::fork_server::run_fork_server;

use crate::cli::net::{NetCommand, NetWorkloadCommand};
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;

pub(super) fn net(command: NetCommand, console: &Console) -> Result<Exit, Error> {
    match command {
        NetCommand::Workload(command) => run_workload(command, console),
        NetCommand::Check(args) => check::check(&args, console),
        NetCommand::Token { file } => trust::create_token(file.as_ref()),
        NetCommand::Identity { file } => trust::print_fingerprint(&file),
        NetCommand::Sweep(args) => sweep::sweep(&args, console),
        NetCommand::Uperf(args) => uperf::uperf(&args, console),
        NetCommand::Iperf3(args) => iperf3::iperf3(&args, console),
    }
}

pub(super) fn run_workload(command: NetWorkloadCommand, console: &Console) -> Result<Exit, Error> {
    match command {
        NetWorkloadCommand::Serve(args) => serve::serve(&args, console),
        NetWorkloadCommand::Run(args) => run::run(&args, console),
        NetWorkloadCommand::Stream(args) => presets::run(presets::Preset::Stream, &args, console),
        NetWorkloadCommand::Maerts(args) => presets::run(presets::Preset::Maerts, &args, console),
        NetWorkloadCommand::Bidirec(args) => presets::run(presets::Preset::Bidirec, &args, console),
        NetWorkloadCommand::Rr(args) => presets::run(presets::Preset::Rr, &args, console),
        NetWorkloadCommand::Crr(args) => presets::run(presets::Preset::Crr, &args, console),
        NetWorkloadCommand::Handshakes(args) => presets::run(presets::Preset::Handshakes, &args, console),
        NetWorkloadCommand::UdpRr(args) => presets::run(presets::Preset::UdpRr, &args, console),
        NetWorkloadCommand::StrandProcess => {
            run_fork_server().map_err(|error| Error::Internal(error.to_string()))?;
            Ok(Exit::Success)
        }
    }
}

/// Creates commands that start this program as the process that forks those of strands.
fn child_command() -> ChildCommandFactory {
    Arc::new(|| -> io::Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["net", "strand-process"]);
        Ok(command)
    })
}

/// A random seed, of 32 bits, so that a reader of JSON numbers gets the exact value.
fn random_seed() -> u64 {
    rand::random::<u32>().into()
}
