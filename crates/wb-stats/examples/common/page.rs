//! Writes the tables of an example to a page, between the example's markers.

use std::process::ExitCode;

/// The rows of a table that are simulated; each has its own random numbers
#[derive(Clone, Copy)]
#[allow(dead_code)] // examples simulate all, and not all have so many that tests simulate a part
pub(crate) enum Rows {
    All,
    /// Every so manyth, beginning with the first
    Every(usize),
}

impl Rows {
    /// The kinds of rows to simulate
    #[allow(dead_code)] // as above
    pub(crate) fn of<T>(self, kinds: impl Iterator<Item = T>) -> Vec<T> {
        let step = match self {
            Self::All => 1,
            Self::Every(step) => step,
        };
        kinds.step_by(step).collect()
    }
}

/// Prints the tables of an example as Markdown, or with `--write PAGE` writes them between the markers of that page
#[allow(dead_code)] // tests replace only
pub(crate) fn print_or_write(example: &str, tables: impl FnOnce() -> String) -> ExitCode {
    let arguments = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let arguments: Vec<String> = arguments.collect();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            print!("{}", tables());
            Ok(())
        }
        ["--write", page] => write(page, example, &tables()).map_err(|error| format!("error: {page}: {error}")),
        _ => Err(format!("usage: {example} [--write PAGE]")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn write(path: &str, example: &str, tables: &str) -> std::io::Result<()> {
    let page = std::fs::read_to_string(path)?;
    let page =
        replace(&page, example, tables).ok_or_else(|| std::io::Error::other("missing markers of the example"))?;
    std::fs::write(path, page)
}

/// Replaces the text between an example's markers by its tables; `None` if the page has no markers
pub(crate) fn replace(page: &str, example: &str, tables: &str) -> Option<String> {
    let (begin, end) = (begin(example), end(example));
    let (before, rest) = page.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}\n\n{tables}\n{end}{after}"))
}

/// Asserts that the page on statistics shows the simulated tables of an example
#[allow(dead_code)] // for tests
pub(crate) fn assert_shown(example: &str, tables: &str) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/statistics.md");
    let page = std::fs::read_to_string(path).expect("the page is in the repository");
    assert!(Some(&page) == replace(&page, example, tables).as_ref(), "{}", stale(example));
}

/// Asserts that the page on statistics has these rows in the tables of an example
#[allow(dead_code)] // for tests
pub(crate) fn assert_rows_shown(example: &str, rows: impl IntoIterator<Item = String>) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/statistics.md");
    let page = std::fs::read_to_string(path).expect("the page is in the repository");
    let of_example = |page: &str| Some(page.split_once(&begin(example))?.1.split_once(&end(example))?.0.to_owned());
    let tables = of_example(&page).expect("the page has the markers of the example");
    for row in rows {
        assert!(tables.lines().any(|line| line == row.trim_end()), "{}\nmissing: {row}", stale(example));
    }
}

fn stale(example: &str) -> String {
    format!(
        "docs/statistics.md is stale: cargo run -p {} --release --example {example} -- --write docs/statistics.md",
        env!("CARGO_PKG_NAME")
    )
}

fn begin(example: &str) -> String {
    format!("<!-- {example}: begin, written by the example `{example}` -->")
}

fn end(example: &str) -> String {
    format!("<!-- {example}: end -->")
}

/// Formats a fraction as percent, for a table
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
