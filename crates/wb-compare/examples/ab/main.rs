//! How often variants that do not differ are said to when sampling stops as soon as that is clear, and what blocks and
//! runs do to it. Prints Markdown, or with `--write PAGE` puts it between that page's markers.

mod orders;
#[path = "../../../wb-stats/examples/common/page.rs"]
mod page;
#[path = "../../../wb-stats/examples/common/populations.rs"]
#[allow(dead_code)] // the true medians are for another example
mod populations;
mod stopping;
mod table;

use std::process::ExitCode;

fn main() -> ExitCode {
    page::print_or_write("ab", || table::tables(&stopping::simulated(), &orders::simulated()))
}
