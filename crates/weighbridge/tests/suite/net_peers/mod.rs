//! `weighbridge net` in place of other programs: their options and output, and those programs at the other end.

mod iperf3;
mod sweep;
mod uperf;

use std::process::Command;

use crate::net_faults::lab::{Lab, SERVER};
use crate::net_faults::program::{Program, eventually};

/// Starts a program on the server's host, and waits until it listens on a port.
fn serve(lab: &Lab, program: &str, line: &str, port: u16) -> Program {
    let mut command: Command = lab.command(SERVER, program);
    command.args(line.split_whitespace());
    let program = Program::start(command, &lab.path("server"));
    eventually("a program listens", || {
        let listening = lab.network.run(SERVER, &["ss", "-Hltn", "sport", "=", &format!(":{port}")])?;
        if listening.is_empty() { Err(program.stderr()) } else { Ok(()) }
    });
    program
}
