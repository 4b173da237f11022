//! Simulates the error rates of `ab` and `calibrate`: how often equal variants are reported as different when sampling
//! stops as early as possible, what many cases at once cost, and the effect of blocks and runs. Prints Markdown, or with `--write PAGE` inserts it
//! between the markers of that page.

mod designs;
mod families;
#[path = "../../../wb-stats/examples/common/page.rs"]
mod page;
#[path = "../../../wb-stats/examples/common/populations.rs"]
#[allow(dead_code)] // the true medians are used by another example
mod populations;
mod stopping;
mod table;

use std::process::ExitCode;

fn main() -> ExitCode {
    let families = || families::simulate(&families::POPULATIONS, &families::CASES);
    let rows = || stopping::simulate(&populations::Population::ALL);
    page::print_or_write("ab", || table::tables(&rows(), &families(), &designs::simulate()))
}
