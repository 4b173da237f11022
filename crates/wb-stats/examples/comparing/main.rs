//! How often two sides that do not differ are said to, and how often the interval of their ratio covers the truth.
//! Prints Markdown, or with `--write PAGE` puts it between that page's markers.

#[path = "../common/page.rs"]
mod page;
#[path = "../common/populations.rs"]
#[allow(dead_code)] // the true medians are for the other example
mod populations;
mod runs;
mod samples;
mod table;

use std::process::ExitCode;

fn main() -> ExitCode {
    page::print_or_write("comparing", || table::tables(&table::simulated(), &runs::simulated()))
}
