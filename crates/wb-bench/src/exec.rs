//! Runs one of our kernels in this process, as `weighbridge exec` does.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::error::Error;
use wb_kernels::{himeno, linpack, ramspeed};

/// Our kernels.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum Kernel {
    /// The Jacobi stencil
    Himeno,
    /// A dense system of equations
    Linpack,
    /// Passes over arrays
    Ramspeed,
    /// Passes over blocks of growing size
    Sweep,
}

pub(crate) fn run(kernel: Kernel, config: &str) -> Result<(), Box<dyn Error>> {
    match kernel {
        Kernel::Himeno => report(config, himeno::run),
        Kernel::Linpack => report(config, linpack::run),
        Kernel::Ramspeed => report(config, ramspeed::run),
        Kernel::Sweep => report(config, ramspeed::sweep::run),
    }
}

fn report<C: DeserializeOwned, R: Serialize, E: Error + 'static>(
    config: &str,
    run: impl FnOnce(&C) -> Result<R, E>,
) -> Result<(), Box<dyn Error>> {
    let report = run(&serde_json::from_str(config)?)?;
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}
