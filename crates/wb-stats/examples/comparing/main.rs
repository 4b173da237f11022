//! How often two sides that do not differ are said to, and how often the interval of their ratio covers the truth.
//! Prints Markdown, or with `--write PAGE` puts it between that page's markers.

#[path = "../coverage/populations.rs"]
#[allow(dead_code)] // the true medians are for the other example
mod populations;
mod runs;
mod samples;
mod table;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => print!("{}", table::tables(&table::simulated(), &runs::simulated())),
        ["--write", page] => {
            if let Err(error) = write(page) {
                eprintln!("error: {page}: {error}");
                return ExitCode::FAILURE;
            }
        }
        _ => {
            eprintln!("usage: comparing [--write PAGE]");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn write(path: &str) -> std::io::Result<()> {
    let page = std::fs::read_to_string(path)?;
    let tables = table::tables(&table::simulated(), &runs::simulated());
    let page = table::replace(&page, &tables).ok_or_else(|| std::io::Error::other("no markers to write between"))?;
    std::fs::write(path, page)
}
