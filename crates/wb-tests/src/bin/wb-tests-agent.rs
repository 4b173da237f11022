//! Agent for the integration tests: stands in for `weighbridge agent`, and for `weighbridge exec`, which runs the
//! kernels.

#![forbid(unsafe_code)]

use serde::Serialize;
use serde::de::DeserializeOwned;
use wb_kernels::{himeno, linpack, ramspeed};

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Fallible<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["agent"] => agent(),
        ["exec", "himeno", config] => report(config, himeno::run),
        ["exec", "ramspeed", config] => report(config, ramspeed::run),
        ["exec", "ramspeed-sweep", config] => report(config, ramspeed::sweep::run),
        ["exec", "linpack", config] => report(config, linpack::run),
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

fn report<C: DeserializeOwned, R: Serialize, E: std::error::Error + 'static>(
    config: &str,
    run: impl FnOnce(&C) -> Result<R, E>,
) -> Fallible<()> {
    println!("{}", serde_json::to_string(&run(&serde_json::from_str(config)?)?)?);
    Ok(())
}
