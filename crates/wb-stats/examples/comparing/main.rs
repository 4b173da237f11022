//! The rate of false alarms between two equal sides, and how often the interval of their ratio covers the truth. Prints
//! Markdown, or with `--write PAGE` writes it between the markers of that page.

#[path = "../common/page.rs"]
mod page;
#[path = "../common/populations.rs"]
#[allow(dead_code)] // the true medians are for the other example
mod populations;
mod samples;
mod table;

use std::process::ExitCode;

fn main() -> ExitCode {
    page::print_or_write("comparing", || table::table(&table::simulate(page::Rows::All)))
}
