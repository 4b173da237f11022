//! Libraries from PyPI wheels, for peers that are newer there than in Debian or missing in Debian.

use crate::bench_env::BenchEnv;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

/// Downloads the newest wheels of packages, without their dependencies, and unpacks them into the temporary folder.
pub(crate) fn unpack(env: &BenchEnv, packages: &[&str]) -> Result<PathBuf, String> {
    let folder = env.folder().join(packages.join("-"));
    if folder.is_dir() {
        return Ok(folder);
    }
    let wheels = folder.with_extension("wheels");
    let download = ["download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest"];
    run_command(Command::new("pip3").args(download).arg(&wheels).args(packages))?;
    let partial = folder.with_extension("partial");
    for wheel in entries(&wheels)? {
        run_command(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(wheel).arg(&partial))?;
    }
    // The folder gets its final name once it is complete.
    fs::rename(&partial, &folder).map_err(|error| format!("{}: {error}", partial.display()))?;
    Ok(folder)
}

/// The first file below a folder whose name starts with `name`.
pub(crate) fn find_file(folder: &Path, name: &str) -> Result<PathBuf, String> {
    let mut pending = vec![folder.to_owned()];
    while let Some(folder) = pending.pop() {
        for path in entries(&folder)? {
            if path.is_dir() {
                pending.push(path);
            } else if path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(name)) {
                return Ok(path);
            }
        }
    }
    Err(format!("missing {name} in {}", folder.display()))
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let paths = fs::read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    paths.map_err(|error: io::Error| format!("{}: {error}", folder.display()))
}

fn run_command(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().display().to_string();
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("{program}: {}: {}", output.status, stderr.trim())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_by_the_beginning_of_its_name_at_any_depth() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a.data/data/lib");
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("libmkl_rt.so.3"), "").unwrap();
        assert_eq!(find_file(folder.path(), "libmkl_rt.so"), Ok(deep.join("libmkl_rt.so.3")));
        assert_eq!(find_file(folder.path(), "libno"), Err(format!("missing libno in {}", folder.path().display())));
    }

    #[test]
    fn a_failing_program_is_reported_with_its_output() {
        let error = run_command(Command::new("sh").args(["-c", "echo no such wheel >&2; exit 1"])).unwrap_err();
        assert_eq!(error, "sh: exit status: 1: no such wheel");
    }
}
