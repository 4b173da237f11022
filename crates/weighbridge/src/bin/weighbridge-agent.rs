//! `weighbridge-agent`: the program that `weighbridge` starts on workers.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    weighbridge::run_agent_program()
}
