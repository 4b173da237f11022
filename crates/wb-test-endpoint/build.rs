//! Compiles the endpoint, a program of its own: cargo gives tests the programs of their own package alone.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=program");
    let variable = |name: &str| env::var(name).unwrap_or_else(|error| panic!("cargo sets {name}: {error}"));
    let output = PathBuf::from(variable("OUT_DIR")).join("endpoint");
    let mut rustc = Command::new(variable("RUSTC"));
    rustc.args(["--edition=2024", "--crate-name=endpoint", "--crate-type=bin", "program/main.rs"]);
    rustc.arg(format!("--target={}", variable("TARGET"))).arg("-o").arg(&output);
    // Tests start it thousands of times: nothing is loaded or relocated.
    let options =
        ["opt-level=2", "panic=abort", "strip=symbols", "relocation-model=static", "target-feature=+crt-static"];
    for option in options {
        rustc.args(["-C", option]);
    }
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.arg(format!("-Clinker={linker}"));
    }
    let status = rustc.status().unwrap_or_else(|error| panic!("cannot run {rustc:?}: {error}"));
    assert!(status.success(), "{rustc:?} failed: {status}");
    println!("cargo::rustc-env=WB_TEST_ENDPOINT={}", output.display());
}
