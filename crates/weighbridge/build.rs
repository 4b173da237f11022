//! Passes the commit and the build profile to the program, for `--version`, and packs the schemas that it prints.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::{env, fs, io};

use flate2::Compression;
use flate2::write::ZlibEncoder;

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
    println!("cargo::rerun-if-changed=../../schemas");
    pack_schemas().expect("schemas are read and packed");
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

/// Writes `schemas.zlib`: a compressed JSON object with the text of each file of `schemas` by its name.
fn pack_schemas() -> io::Result<()> {
    let mut schemas = BTreeMap::new();
    for entry in fs::read_dir("../../schemas")? {
        let path = entry?.path();
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        schemas.insert(name, fs::read_to_string(&path)?);
    }
    let folder = env::var("OUT_DIR").map_err(io::Error::other)?;
    let mut encoder = ZlibEncoder::new(fs::File::create(Path::new(&folder).join("schemas.zlib"))?, Compression::best());
    encoder.write_all(&serde_json::to_vec(&schemas)?)?;
    encoder.finish()?.sync_all()
}
