//! Passes the commit and the build profile to the program, for `--version`.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=WEIGHBRIDGE_COMMIT");
    // A change of any crate decides whether the tree differs from its commit.
    println!("cargo::rerun-if-changed=..");
    if let Some(folder) = git(&["rev-parse", "--absolute-git-dir"]) {
        println!("cargo::rerun-if-changed={folder}/HEAD");
        println!("cargo::rerun-if-changed={folder}/logs/HEAD");
    }
    let commit = env::var("WEIGHBRIDGE_COMMIT").ok().or_else(describe_commit);
    println!("cargo::rustc-env=WEIGHBRIDGE_COMMIT={}", commit.as_deref().unwrap_or("unknown commit"));
    println!("cargo::rustc-env=WEIGHBRIDGE_PROFILE={}", profile().unwrap_or_else(|| "unknown".to_owned()));
    println!("cargo::rustc-env=WEIGHBRIDGE_TARGET={}", env::var("TARGET").unwrap_or_default());
}

/// Returns the short hash and date of the commit, and whether tracked files differ from it. `None` outside a repository.
fn describe_commit() -> Option<String> {
    let commit = git(&["log", "-1", "--format=%h %cs"])?;
    let is_clean = git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty();
    Some(if is_clean { commit } else { format!("{commit}, modified") })
}

/// Returns the trimmed output of git; `None` if it is missing or fails.
fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

/// Returns the name of the cargo profile, which is the folder of the build: `PROFILE` has only that which it inherits.
fn profile() -> Option<String> {
    let folder = env::var("OUT_DIR").ok()?;
    Some(Path::new(&folder).ancestors().nth(3)?.file_name()?.to_string_lossy().into_owned())
}
