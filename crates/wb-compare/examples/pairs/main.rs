//! The error rates of comparisons within one run, of samples in pairs and of those that are not. Prints Markdown, or with
//! `--write PAGE` inserts it between the markers of that page.

#[path = "../../../wb-stats/examples/common/page.rs"]
mod page;
#[path = "../../../wb-stats/examples/common/populations.rs"]
#[allow(dead_code)] // populations are used by other examples
mod populations;
mod simulation;
mod table;

use std::process::ExitCode;

fn main() -> ExitCode {
    page::print_or_write("pairs", || table::table(&simulation::simulate()))
}
