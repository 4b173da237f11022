//! Test helper: an agent like `weighbridge-agent agent`, or (`controller`) a controller that starts a process on a host,
//! prints its id, and waits to be killed.

#![forbid(unsafe_code)]

use std::path::PathBuf;

use wb_agent::{Command, serve, stdio};
use wb_fleet::{ConnectOptions, Inventory, Program, connect};

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Fallible<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let arguments = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let arguments: Vec<String> = arguments.collect();
    match &arguments[..] {
        [flag] if flag == "--version" => {
            println!("{}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        [mode, ssh, config, host] if mode == "controller" => runtime.block_on(controller(ssh, config, host)),
        _ => runtime.block_on(agent()),
    }
}

async fn agent() -> Fallible<()> {
    let (input, output) = stdio()?;
    Ok(serve(input, output, wb_sys::SysRoot::real()).await?)
}

/// Starts a process and prints its id.
async fn controller(ssh: &str, config: &str, host: &str) -> Fallible<()> {
    let options = ConnectOptions {
        ssh: PathBuf::from(ssh),
        ssh_config: Some(PathBuf::from(config)),
        ..ConnectOptions::default()
    };
    let program = Program::read(&std::env::current_exe()?)?;
    let hosts = Inventory::default().select(&[host.to_owned()])?;
    let connected = connect(&hosts[0], &program, &options).await?;
    let group = connected.worker.new_group().await?;
    let process = group.spawn(Command::new(["sleep", "1000"])).await?;
    println!("{}", process.pid());
    std::future::pending().await
}
