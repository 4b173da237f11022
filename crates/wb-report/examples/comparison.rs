//! Writes the page of a comparison and tells how long each part of it took:
//! `cargo run --release -p wb-report --example comparison -- page.html [FOLDER…]`. Without folders it compares 8,000
//! checks in ten made builds.

#[path = "../tests/comparison/mod.rs"]
mod comparison;

use std::path::PathBuf;
use std::time::Instant;

use comparison::synthetic::PAGE;
use comparison::{How, compared, read};
use wb_report::compare::{PageOptions, html};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let page = arguments.next().unwrap_or_else(|| "comparison.html".into());
    let mut folders: Vec<PathBuf> = arguments.collect();
    let made = tempfile::tempdir()?;
    if folders.is_empty() {
        folders = PAGE.write(made.path())?;
    }
    let clock = Instant::now();
    let builds = read(&folders);
    let read = clock.elapsed();
    let options = PageOptions { charts: true, notes: &[], fail_on_gain: false };
    let (text, compared, drawn) = compared(&builds, &How::default(), |outcome, history| {
        let compared = clock.elapsed();
        (html(outcome, history, &options), compared - read, clock.elapsed() - compared)
    });
    let text = text?;
    std::fs::write(&page, &text)?;
    let checks = builds.rows().len() * 2;
    println!("{}: {checks} checks in {} builds, {} bytes", page.display(), folders.len(), text.len());
    if let Some(into) = std::env::var_os("PLOTS") {
        for plot in wb_report::compare::plots(&builds, |_| false) {
            std::fs::write(PathBuf::from(&into).join(format!("{}.svg", plot.name)), plot.svg())?;
            std::fs::write(PathBuf::from(&into).join(format!("{}.png", plot.name)), plot.png()?)?;
        }
    }
    println!("read {read:.0?}, compared {compared:.0?}, drawn {drawn:.0?}");
    Ok(())
}
