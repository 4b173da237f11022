//! The rate of false alarms between two single runs of one system, given a model of the noise between runs. Prints
//! Markdown, or with `--write PAGE` writes it between the markers of that page.

#[path = "../common/page.rs"]
mod page;
#[path = "../common/populations.rs"]
#[allow(dead_code)] // the true medians are for another example
mod populations;
mod simulate;
mod table;

use std::process::ExitCode;

fn main() -> ExitCode {
    page::print_or_write("noise", || table::tables(&table::simulate(page::Rows::All)))
}
