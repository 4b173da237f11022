//! How often the interval of the median covers the truth when the stopping rule decided how many samples there are.
//! Prints Markdown, or with `--write PAGE` puts it between that page's markers.

mod alternatives;
mod populations;
mod simulate;
mod table;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => print!("{}", tables()),
        ["--write", page] => {
            if let Err(error) = write(page) {
                eprintln!("error: {page}: {error}");
                return ExitCode::FAILURE;
            }
        }
        _ => {
            eprintln!("usage: coverage [--write PAGE]");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn tables() -> String {
    table::tables(&table::simulated(simulate::by_rule))
}

fn write(path: &str) -> std::io::Result<()> {
    let page = std::fs::read_to_string(path)?;
    let page = table::replace(&page, &tables()).ok_or_else(|| std::io::Error::other("no markers to write between"))?;
    std::fs::write(path, page)
}
