//! Compiles the starter, which the library contains as bytes.

use std::env;
use std::path::PathBuf;
use std::process::Command;

/// The architectures whose system calls `starter/system_calls.rs` has.
const ARCHITECTURES: [&str; 2] = ["x86_64", "aarch64"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=starter");
    let variable = |name: &str| env::var(name).unwrap_or_else(|error| panic!("cargo sets {name}: {error}"));
    let architecture = variable("CARGO_CFG_TARGET_ARCH");
    assert!(
        ARCHITECTURES.contains(&architecture.as_str()),
        "the starter knows no system calls of {architecture}: add them to crates/wb-sys/starter/system_calls.rs"
    );
    let output = PathBuf::from(variable("OUT_DIR")).join("starter");
    let mut rustc = Command::new(variable("RUSTC"));
    rustc.args(["--edition=2024", "--crate-name=starter", "--crate-type=bin", "starter/main.rs"]);
    rustc.arg(format!("--target={}", variable("TARGET"))).arg("-o").arg(&output);
    // A static program at a fixed address: the kernel has nothing to relocate, and the program none of a library.
    let options =
        ["opt-level=s", "panic=abort", "strip=symbols", "relocation-model=static", "target-feature=+crt-static"];
    let link = ["link-arg=-nostartfiles", "link-arg=-nostdlib", "link-arg=-Wl,--build-id=none"];
    for option in options.into_iter().chain(link) {
        rustc.args(["-C", option]);
    }
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.arg(format!("-Clinker={linker}"));
    }
    let status = rustc.status().unwrap_or_else(|error| panic!("cannot run {rustc:?}: {error}"));
    assert!(status.success(), "{rustc:?} failed: {status}");
}
