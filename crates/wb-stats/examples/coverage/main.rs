//! How often the interval of the median covers the truth when the stopping rule decided how many samples there are.
//! Prints Markdown, or with `--write PAGE` puts it between that page's markers.

mod alternatives;
#[path = "../common/page.rs"]
mod page;
#[path = "../common/populations.rs"]
mod populations;
mod simulate;
mod table;

use std::process::ExitCode;

fn main() -> ExitCode {
    page::print_or_write("coverage", || table::tables(&table::simulated(simulate::by_rule)))
}
