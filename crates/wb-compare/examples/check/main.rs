//! The error rates of the verdict on a check, with all its aspects: for few runs a side, and for samples of any shape.
//! Prints Markdown, or with `--write PAGE` inserts it between the markers of that page.

#[path = "../../../wb-stats/examples/common/page.rs"]
mod page;
#[path = "../../../wb-stats/examples/common/populations.rs"]
#[allow(dead_code)] // the true medians are used by another example
mod populations;
mod simulation;
mod table;

use std::process::ExitCode;

fn main() -> ExitCode {
    page::print_or_write("check", || {
        let rows = page::Rows::All;
        let (runs, shapes) = (simulation::of_runs(rows), simulation::of_shapes(rows));
        let (dependence, few) = (simulation::of_dependence(rows), simulation::of_few(rows));
        table::tables(&runs, &shapes, &dependence, &few, &simulation::of_groups(rows))
    })
}
