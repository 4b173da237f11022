//! How often the interval of an average of cells covers the truth, if the noise of a round is common to them. Prints
//! Markdown, or with `--write PAGE` writes it between the markers of that page.

#[path = "../common/page.rs"]
mod page;
#[path = "../common/populations.rs"]
#[allow(dead_code)] // populations are drawn otherwise here
mod populations;
mod simulate;
mod table;

use std::process::ExitCode;

fn main() -> ExitCode {
    page::print_or_write("averages", || table::table(&table::simulate(&simulate::SHAPES)))
}
