//! Writes the page of an example study: `cargo run -p wb-report --example specimen -- page.html`.

#[path = "../tests/suite/specimen/mod.rs"]
mod specimen;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).unwrap_or_else(|| "specimen.html".into());
    let study = specimen::study();
    std::fs::write(&path, wb_report::page::html(&study, &specimen::extras(&study))?)?;
    println!("{}", path.display());
    Ok(())
}
