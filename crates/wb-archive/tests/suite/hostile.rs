//! Archives that were made or modified to do harm are refused, and leave nothing.

use serde_json::json;
use tar::EntryType;
use wb_archive::UnpackError;

use crate::support::{RawTar, Workshop, compress, file, sample_contents};

#[track_caller]
fn refuse(tar: RawTar) -> UnpackError {
    Workshop::new().refuse(&tar.archive())
}

fn link(path: &str, target: &str) -> serde_json::Value {
    json!({ "path": path, "type": "link", "target": target })
}

#[test]
fn a_valid_raw_archive_is_extracted() {
    let workshop = Workshop::new();
    let tar = RawTar::with_manifest(json!([file("a", b"x"), link("l", "a")]));
    let tar = tar.file("a", b"x").member(EntryType::Symlink, "l", "a", b"");
    workshop.unpack(&tar.archive()).unwrap();
    assert_eq!(std::fs::read(workshop.path("box/target/l")).unwrap(), b"x");
}

#[test]
fn paths_that_lead_elsewhere_are_refused() {
    for path in ["/tmp/x", "../x", "a/../../x", "./x"] {
        let listed = refuse(RawTar::with_manifest(json!([file(path, b"x")])).file(path, b"x"));
        assert!(matches!(listed, UnpackError::UnsafePath { .. }), "{path}: {listed}");
        let unlisted = refuse(RawTar::with_manifest(json!([])).file(path, b"x"));
        assert!(matches!(unlisted, UnpackError::UnsafePath { .. }), "{path}: {unlisted}");
    }
}

#[test]
fn links_that_lead_elsewhere_are_refused() {
    for target in ["/etc/passwd", "../x", "nosuch"] {
        let tar = RawTar::with_manifest(json!([link("l", target)])).member(EntryType::Symlink, "l", target, b"");
        let error = refuse(tar);
        assert!(matches!(error, UnpackError::UnsafeLink { .. }), "{target}: {error}");
    }
    let tar = RawTar::with_manifest(json!([file("a", b"x"), link("l", "a")]));
    let error = refuse(tar.file("a", b"x").member(EntryType::Symlink, "l", "/etc/passwd", b""));
    assert!(matches!(error, UnpackError::Mismatch { .. }), "{error}");
}

#[test]
fn special_members_are_refused() {
    for kind in [EntryType::Char, EntryType::Block, EntryType::Fifo, EntryType::Link, EntryType::GNUSparse] {
        let error = refuse(RawTar::with_manifest(json!([file("a", b"x")])).member(kind, "a", "b", b""));
        assert!(matches!(error, UnpackError::UnsupportedMember { .. }), "{kind:?}: {error}");
    }
    let error = refuse(RawTar::with_manifest(json!([])).member(EntryType::XHeader, "p", "", b"12 path=a/b\n"));
    assert!(matches!(error, UnpackError::Unlisted { .. }), "{error}");
}

#[test]
fn duplicate_unlisted_and_missing_members_are_refused() {
    let manifest = || RawTar::with_manifest(json!([file("a", b"x")]));
    let error = refuse(manifest().file("a", b"x").file("a", b"x"));
    assert!(matches!(error, UnpackError::Duplicate { .. }), "{error}");
    let error = refuse(manifest().file("a", b"x").file("manifest.json", b"{}"));
    assert!(matches!(error, UnpackError::Duplicate { .. }), "{error}");
    let error = refuse(manifest().file("a", b"x").file("b", b"x"));
    assert_eq!(error.to_string(), "unexpected member `b`: the manifest does not list it");
    let error = refuse(manifest());
    assert!(matches!(error, UnpackError::Missing { .. }), "{error}");
}

#[test]
fn members_that_differ_from_the_manifest_are_refused() {
    let manifest = || RawTar::with_manifest(json!([file("a", b"x")]));
    assert!(refuse(manifest().file("a", b"y")).to_string().contains("differs from the manifest: SHA-256 "));
    let error = refuse(manifest().file("a", b"xy"));
    assert_eq!(error.to_string(), "member `a` differs from the manifest: 2 bytes, expected 1");
    let error = refuse(manifest().member(EntryType::Directory, "a", "", b""));
    assert!(matches!(error, UnpackError::Mismatch { .. }), "{error}");
}

#[test]
fn members_that_are_larger_than_the_manifest_says_are_refused_unread() {
    let tar = RawTar::with_manifest(json!([file("a", b"x")]));
    let error = refuse(tar.member_of_size(EntryType::Regular, "a", "", b"x", 1 << 50));
    assert!(matches!(error, UnpackError::Mismatch { .. }), "{error}");
    let long_name = RawTar::with_manifest(json!([]));
    let error = refuse(long_name.member(EntryType::GNULongName, "././@LongLink", "", &vec![b'x'; 1 << 20]));
    assert!(matches!(error, UnpackError::Damaged { .. }), "{error}");
    let manifest = RawTar::default().member_of_size(EntryType::Regular, "manifest.json", "", b"{}", 1 << 40);
    assert!(matches!(refuse(manifest), UnpackError::LargeManifest));
}

#[test]
fn truncated_archives_and_trailing_data_are_refused() {
    let workshop = Workshop::new();
    let archive = workshop.pack(&sample_contents());
    for length in [0, 5, 100, archive.len() / 2, archive.len() - 8, archive.len() - 1] {
        let error = workshop.refuse(&archive[..length]);
        assert!(matches!(error, UnpackError::Damaged { .. } | UnpackError::NoManifest), "{length}: {error}");
    }
    let appended = [&archive[..], b"more"].concat();
    assert!(matches!(workshop.refuse(&appended), UnpackError::TrailingData));
    let two_members = [&archive[..], &archive[..]].concat();
    assert!(matches!(workshop.refuse(&two_members), UnpackError::TrailingData));
    let bomb = RawTar::with_manifest(json!([])).archive();
    let mut tar = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&bomb[..]), &mut tar).unwrap();
    tar.resize(tar.len() + (4 << 20), 0);
    assert!(matches!(workshop.refuse(&compress(&tar)), UnpackError::TrailingData));
}

#[test]
fn other_files_and_newer_formats_are_refused() {
    let workshop = Workshop::new();
    let other = workshop.refuse(&RawTar::default().file("readme", b"x").archive());
    assert!(matches!(other, UnpackError::NoManifest), "{other}");
    assert!(matches!(workshop.refuse(b"PK\x03\x04 a zip file, for example"), UnpackError::NoManifest));
    let newer = RawTar::with_manifest_of(2, json!({ "anything": "else" }));
    assert!(matches!(workshop.refuse(&newer.archive()), UnpackError::UnsupportedFormat { version: 2, supported: 1 }));
}
