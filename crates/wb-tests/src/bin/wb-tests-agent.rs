//! Agent for the integration tests: stands in for `weighbridge-agent agent`, and for `weighbridge-agent exec`, which
//! runs the kernels and the loads of contention tests.

#![forbid(unsafe_code)]

use std::io::{self, Write};
use std::sync::mpsc::channel;

use serde::Serialize;
use serde::de::DeserializeOwned;
use wb_contention_worker::io_latency::watch;
use wb_hashd::{Hashd, HashdEvent};
use wb_kernels::{himeno, linpack, memory_hog, ramspeed};
use wb_workloads::fio::device;

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Fallible<()> {
    let arguments = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let arguments: Vec<String> = arguments.collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["agent"] => agent(),
        ["exec", "himeno", config] => report(config, himeno::run),
        ["exec", "ramspeed", config] => report(config, ramspeed::run),
        ["exec", "ramspeed-sweep", config] => report(config, ramspeed::sweep::run),
        ["exec", "linpack", config] => report(config, linpack::run),
        ["exec", "hashd", config] => hashd(config),
        ["exec", "memory-hog", config] => Ok(memory_hog::run(&serde_json::from_str(config)?, print_line)?),
        ["exec", "hold-device", path] => {
            let Err(reason) = device::hold(path);
            eprintln!("{reason}");
            std::process::exit(1)
        }
        ["exec", "io-latency", config] => Ok(watch::run(&serde_json::from_str(config)?, print_line)?),
        ["--version"] => {
            println!("{}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        _ => Err(format!("expected `agent` or `exec KERNEL CONFIG`, got {arguments:?}").into()),
    }
}

fn agent() -> Fallible<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (input, output) = wb_agent::stdio()?;
        Ok(wb_agent::serve(input, output, wb_sys::SysRoot::real()).await?)
    })
}

/// Runs until it is killed.
fn hashd(config: &str) -> Fallible<()> {
    let (sender, events) = channel();
    let _hashd = Hashd::start(&serde_json::from_str(config)?, &|| false, move |event| drop(sender.send(event)))?;
    for event in events {
        if let HashdEvent::Report(report) = event {
            print_line(&*report)?;
        }
    }
    Ok(())
}

fn print_line<R: Serialize>(report: &R) -> io::Result<()> {
    writeln!(io::stdout(), "{}", serde_json::to_string(report)?)
}

fn report<C: DeserializeOwned, R: Serialize, E: std::error::Error + 'static>(
    config: &str,
    run: impl FnOnce(&C) -> Result<R, E>,
) -> Fallible<()> {
    println!("{}", serde_json::to_string(&run(&serde_json::from_str(config)?)?)?);
    Ok(())
}
