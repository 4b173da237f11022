//! The inputs of the fuzz targets, as ordinary tests.

use std::path::Path;

use wb_net::fuzzing;

/// Runs a target on every input of its corpus.
fn run(name: &str, target: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let inputs: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    assert!(inputs.len() >= 3, "{}: {} inputs", folder.display(), inputs.len());
    for input in inputs {
        println!("{}", input.display());
        target(&std::fs::read(&input).unwrap());
    }
}

#[test]
fn profiles() {
    run("profile", fuzzing::profile);
}

#[test]
fn control_frames() {
    run("control_frames", fuzzing::control_frames);
}

#[test]
fn first_bytes() {
    run("first_bytes", fuzzing::first_bytes);
}
