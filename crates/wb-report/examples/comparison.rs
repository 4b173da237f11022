//! Writes the page of a comparison and prints the duration of each step: `cargo run --release -p wb-report --example
//! comparison -- page.html [specimen | FOLDER…]`. Without folders it compares 8,000 checks in ten generated builds;
//! `specimen` stands for three small builds that show every element.

#[path = "../tests/suite/comparison/mod.rs"]
mod comparison;

use std::path::PathBuf;
use std::time::Instant;

use comparison::{CompareOptions, compare, read, specimen};
use wb_compare::comparison::FailOn;
use wb_report::compare::{PageOptions, html};
use wb_test_data::LARGE_PAGE_BUILDS;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let page = arguments.next().unwrap_or_else(|| "comparison.html".into());
    let mut folders: Vec<PathBuf> = arguments.collect();
    let temporary = tempfile::tempdir()?;
    match folders.first().and_then(|first| first.to_str()) {
        None => folders = LARGE_PAGE_BUILDS.write(temporary.path())?,
        Some("specimen") => folders = specimen::write(temporary.path()),
        Some(_) => {}
    }
    let clock = Instant::now();
    let builds = read(&folders);
    let read = clock.elapsed();
    let options =
        PageOptions { charts: true, environments: true, notes: &[], criteria: &[], fail_on: FailOn::default() };
    let (text, compared, rendered) = compare(&builds, &CompareOptions::default(), |outcome, history| {
        let compared = clock.elapsed();
        (html(outcome, history, &options), compared - read, clock.elapsed() - compared)
    });
    let text = text?;
    std::fs::write(&page, &text)?;
    let checks = builds.rows().len() * 2;
    println!("{}: {checks} checks in {} builds, {} bytes", page.display(), folders.len(), text.len());
    println!("read {read:.0?}, compared {compared:.0?}, drawn in {rendered:.0?}");
    Ok(())
}
