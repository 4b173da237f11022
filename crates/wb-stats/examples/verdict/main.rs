//! The error rates of verdicts: of sides of few runs with an assumed noise between runs, and of the tests of location,
//! mean and tail. Prints Markdown, or with `--write PAGE` writes it between the markers of that page.

#[path = "../common/page.rs"]
mod page;
#[path = "../common/populations.rs"]
#[allow(dead_code)] // the true medians are for another example
mod populations;
mod runs;
mod shapes;
mod table;

use std::process::ExitCode;

fn main() -> ExitCode {
    page::print_or_write("verdict", || {
        let rows = page::Rows::All;
        table::tables(&runs::simulate(rows), &shapes::simulate(rows))
    })
}
