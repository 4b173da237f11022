//! How often two single runs that do not differ are said to, where a model says how far runs lie apart.
//! Prints Markdown, or with `--write PAGE` puts it between that page's markers.

#[path = "../common/page.rs"]
mod page;
#[path = "../common/populations.rs"]
#[allow(dead_code)] // the true medians are for another example
mod populations;
mod simulate;
mod table;

use std::process::ExitCode;

fn main() -> ExitCode {
    page::print_or_write("noise", || table::tables(&table::simulated()))
}
