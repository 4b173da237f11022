//! Tables on a page, between the markers of the example that writes them.

use std::process::ExitCode;

/// What an example does: prints its tables as Markdown, or with `--write PAGE` puts them between that page's markers
#[allow(dead_code)] // tests replace only
pub(crate) fn print_or_write(example: &str, tables: impl FnOnce() -> String) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let written = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            print!("{}", tables());
            Ok(())
        }
        ["--write", page] => write(page, example, &tables()).map_err(|error| format!("error: {page}: {error}")),
        _ => Err(format!("usage: {example} [--write PAGE]")),
    };
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn write(path: &str, example: &str, tables: &str) -> std::io::Result<()> {
    let page = std::fs::read_to_string(path)?;
    let page = replace(&page, example, tables).ok_or_else(|| std::io::Error::other("no markers to write between"))?;
    std::fs::write(path, page)
}

/// A page with what is between an example's markers replaced by its tables; `None` if it has no markers
pub(crate) fn replace(page: &str, example: &str, tables: &str) -> Option<String> {
    let begin = format!("<!-- {example}: begin, written by the example `{example}` -->");
    let end = format!("<!-- {example}: end -->");
    let (before, rest) = page.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}\n\n{tables}\n{end}{after}"))
}

/// The page on statistics shows an example's tables as they are simulated
#[allow(dead_code)] // for tests
pub(crate) fn assert_shown(example: &str, tables: &str) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/statistics.md");
    let page = std::fs::read_to_string(path).expect("the page lies in the repository");
    assert!(
        Some(&page) == replace(&page, example, tables).as_ref(),
        "docs/statistics.md is stale: cargo run -p {} --release --example {example} -- --write docs/statistics.md",
        env!("CARGO_PKG_NAME")
    );
}

/// A share of 1, for a table
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
