//! Test helper: an agent like `weighbridge-agent agent`, or (`controller`) a controller that starts processes, prints
//! their ids and folders, and waits to be killed.

#![forbid(unsafe_code)]

use std::ffi::OsStr;
use std::path::Path;

use wb_agent::{Command, Worker, serve, stdio};

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Fallible<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match std::env::args_os().nth(1).as_deref().and_then(OsStr::to_str) {
        Some("controller") => runtime.block_on(controller()),
        _ => runtime.block_on(agent()),
    }
}

async fn agent() -> Fallible<()> {
    let (input, output) = stdio()?;
    Ok(serve(input, output, wb_sys::SysRoot::real()).await?)
}

/// Starts processes and prints one line: the agent's process id, a cgroup or `-`, and every folder created.
async fn controller() -> Fallible<()> {
    let worker = Worker::local(&std::env::current_exe()?).await?;
    let base = std::env::args_os().nth(2).and_then(|base| base.into_string().ok()).unwrap_or_default();
    let group = worker.new_group().await?;
    let folders = [worker.new_scratch(None).await?, worker.new_scratch(Some(&base)).await?];
    let script = "(setsid sleep 1234.5 &) ; sleep 1234.5 & echo ready; wait";
    let process = group.spawn(Command::new(["sh", "-c", script])).await?;
    process
        .wait_for_line(wb_agent::OutputStream::Stdout, wb_model::Nanos(10_000_000_000), |line| line == "ready")
        .await?;
    let agent = worker.agent_pid().unwrap_or_default();
    let cgroup = group.cgroup().unwrap_or("-");
    let [first, second] = [folders[0].path(), folders[1].path()];
    println!("{agent} {cgroup} {} {first} {second}", Path::new(group.folder()).display());
    std::future::pending().await
}
