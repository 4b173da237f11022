//! Writes the files of a made matrix: `cargo run -p wb-report --example matrix -- FOLDER`.

#[path = "../tests/suite/matrix/mod.rs"]
mod matrix;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::path::PathBuf::from(std::env::args_os().nth(1).unwrap_or_else(|| "matrix".into()));
    std::fs::create_dir_all(&folder)?;
    for file in wb_report::peers::result_files(&matrix::results())? {
        std::fs::write(folder.join(&file.name), &file.content)?;
        println!("{}", folder.join(&file.name).display());
    }
    Ok(())
}
