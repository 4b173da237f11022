//! The coverage of the interval of the median if the stopping rule determines the number of samples. Prints Markdown,
//! or with `--write PAGE` writes it between the markers of that page.

mod alternatives;
#[path = "../common/page.rs"]
mod page;
#[path = "../common/populations.rs"]
mod populations;
mod simulate;
mod table;

use std::process::ExitCode;

fn main() -> ExitCode {
    page::print_or_write("coverage", || table::tables(&table::simulate_rows(&simulate::SPREADS)))
}
