//! `weighbridge`: measures how a Linux system performs, and says what changed.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    weighbridge::run_weighbridge()
}
