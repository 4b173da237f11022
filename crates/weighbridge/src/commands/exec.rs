//! Commands of the agent's program that run inside its process: a compute kernel, an image order, or the agent.

use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::Command;

use clap::ValueEnum;
use serde::Serialize;
use serde::de::DeserializeOwned;
use wb_contention_worker::io_latency::{LatencyReport, WatchConfig, watch};
use wb_diagnostics::humanize_serde_error;
use wb_kernels::{himeno, linpack, memory_hog, ramspeed};
use wb_net::ceiling;
use wb_session::program::{current_program, runtime};
use wb_session::worker_program::worker_program;
use wb_sys::SysRoot;
use wb_workloads::fio::device;

use super::hashd;
use crate::cli::exec::Kernel;
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::print_text;

/// Runs `exec` of the agent's program instead of this one: samples are measured with that.
pub(crate) fn replace_process(kernel: Kernel, config: &str, console: &Console) -> Error {
    let program = match worker_program() {
        Ok(program) => program,
        Err(error) => return error.into(),
    };
    let name = kernel.to_possible_value().map(|value| value.get_name().to_owned());
    let mut command = Command::new(&program);
    Error::file("start", &program)(
        command.args(console.forwarded_arguments()).arg("exec").args(name).arg(config).exec(),
    )
}

/// Runs a kernel and prints its report as one line of JSON.
pub(crate) fn exec(kernel: Kernel, config: &str) -> Result<Exit, Error> {
    match kernel {
        Kernel::Himeno => run_kernel(config, himeno::run),
        Kernel::Ramspeed => run_kernel(config, ramspeed::run),
        Kernel::RamspeedSweep => run_kernel(config, ramspeed::sweep::run),
        Kernel::Linpack => run_kernel(config, linpack::run),
        Kernel::CeilingServer => serve_ceiling(config),
        Kernel::CeilingClient => run_kernel(config, |address: &String| ceiling::measure(address, &ceiling_token()?)),
        Kernel::Hashd => hashd::exec(&parse_config(config)?),
        Kernel::HashdParams => hashd::exec_sizing(parse_config(config)?, current_program()?),
        Kernel::MemoryHog => run_memory_hog(&parse_config(config)?),
        Kernel::HoldDevice => Ok(hold_device(config)),
        Kernel::IoLatency => watch_io_latency(&parse_config(config)?),
    }
}

/// Runs until it is ended, and prints each report as a line of JSON. The end of the output is the regular end, too.
fn run_memory_hog(config: &memory_hog::MemoryHogConfig) -> Result<Exit, Error> {
    memory_hog::run(config, print_report).map(|()| Exit::Success)
}

/// Runs until it is ended, and prints each report as a line of JSON.
fn watch_io_latency(config: &WatchConfig) -> Result<Exit, Error> {
    let print = |report: &LatencyReport| print_report(report).map_err(|error| std::io::Error::other(error.to_string()));
    let watched = watch::run(config, print);
    watched.map(|()| Exit::Success).map_err(|source| Error::Internal(source.to_string()))
}

fn print_report(report: &impl Serialize) -> Result<(), Error> {
    print_text(&format!("{}\n", serde_json::json!(report)))
}

fn hold_device(path: &str) -> Exit {
    let Err(reason) = device::hold(path);
    crate::console::message!("{reason}");
    Exit::Error
}

/// Prints the address that it listens on, and serves until it is ended.
fn serve_ceiling(host: &str) -> Result<Exit, Error> {
    let failed = |source| Error::File { operation: "serve", subject: format!("`{host}`"), source };
    let listener = TcpListener::bind((host, 0)).map_err(failed)?;
    let token = ceiling_token().map_err(failed)?;
    print_text(&format!("{}\n", listener.local_addr().map_err(failed)?))?;
    ceiling::serve(&listener, &token).map_err(failed)?;
    Ok(Exit::Success)
}

fn ceiling_token() -> std::io::Result<String> {
    std::env::var(ceiling::TOKEN_VARIABLE).map_err(std::io::Error::other)
}

fn run_kernel<C: DeserializeOwned, R: Serialize, E: std::fmt::Display>(
    config: &str,
    run: impl FnOnce(&C) -> Result<R, E>,
) -> Result<Exit, Error> {
    let config = parse_config(config)?;
    let report = run(&config).map_err(|error| Error::Internal(error.to_string()))?;
    let line = serde_json::to_string(&report).map_err(|error| Error::Internal(error.to_string()))?;
    print_text(&format!("{line}\n"))?;
    Ok(Exit::Success)
}

pub(super) fn parse_config<C: DeserializeOwned>(config: &str) -> Result<C, Error> {
    serde_json::from_str(config).map_err(|error| Error::Usage {
        what: format!("invalid configuration of the kernel: {}", humanize_serde_error(&error.to_string())),
        help: "a run records the configurations it used as config.json beside each sample".to_owned(),
    })
}

/// Executes an order on this machine's image cache. Progress and result are the lines that it writes.
pub(crate) fn run_image_order(order: &str) -> Result<Exit, Error> {
    let order = serde_json::from_str(order).map_err(|error| Error::Usage {
        what: format!("invalid image order: {error}"),
        help: "orders come from a controller of the same version; `weighbridge clean` shows and removes images"
            .to_owned(),
    })?;
    let written = wb_profile::image::execute(&order, &mut std::io::stdout().lock());
    written.map_err(Error::stream("standard output"))?;
    Ok(Exit::Success)
}

/// Runs the agent until the controller disconnects.
pub(crate) fn serve_agent() -> Result<Exit, Error> {
    let internal_error = |error: &dyn std::fmt::Display| Error::Internal(error.to_string());
    runtime()?.block_on(async {
        let (input, output) = wb_agent::stdio().map_err(|error| internal_error(&error))?;
        wb_agent::serve(input, output, SysRoot::real()).await.map_err(|error| internal_error(&error))
    })?;
    Ok(Exit::Success)
}
