//! An endpoint over plain TCP or a Unix socket.

mod arguments;
mod dialer;
mod listener;
mod timed;
mod transfer;

use std::process::ExitCode;

use arguments::{Arguments, Role};

fn main() -> ExitCode {
    let arguments = match Arguments::parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let result = match arguments.role {
        Role::Listen => listener::listen(&arguments).map(|()| ExitCode::SUCCESS),
        Role::Dial => dialer::dial(&arguments),
    };
    result.unwrap_or_else(|error| {
        eprintln!("{error}");
        ExitCode::FAILURE
    })
}
