//! What is packed is what is extracted.

use std::fs;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use wb_archive::{Contents, UnpackError};

use crate::support::{Workshop, listing, sample_contents};

#[test]
fn everything_is_extracted_with_its_permissions() {
    let workshop = Workshop::new();
    let manifest = workshop.unpack(&workshop.pack(&sample_contents())).unwrap();
    let all = listing(&workshop.path("box/target"));
    assert_eq!(all["run/tool"], (0o755, b"#!/bin/sh\n".to_vec()));
    assert_eq!(all["run/empty"], (0o600, Vec::new()));
    assert_eq!(all["run/folder"], (0o750, b"folder".to_vec()));
    let long = all.iter().find(|(name, _)| name.contains("artefact")).unwrap();
    assert_eq!(long.1.1, vec![7; 3000]);
    let mut listed: Vec<&str> = manifest.members.iter().map(|member| member.path.as_str()).collect();
    listed.push("manifest.json");
    listed.sort_unstable();
    assert_eq!(all.keys().collect::<Vec<_>>(), listed);
}

#[test]
fn packing_what_was_extracted_gives_the_same_archive() {
    let workshop = Workshop::new();
    let source = workshop.path("source");
    fs::create_dir_all(source.join("folder")).unwrap();
    fs::write(source.join("folder/file"), "x").unwrap();
    symlink("../folder/file", source.join("folder/link")).unwrap();
    symlink("./folder", source.join("link")).unwrap();
    symlink("link/link", source.join("chain")).unwrap();
    fs::create_dir(source.join("closed")).unwrap();
    fs::set_permissions(source.join("closed"), fs::Permissions::from_mode(0o555)).unwrap();
    let pack = |path: &std::path::Path| {
        let mut contents = Contents::default();
        contents.add_tree("run", path, &[]).unwrap();
        workshop.pack(&contents)
    };
    let archive = pack(&source);
    workshop.unpack(&archive).unwrap();
    let mut expected = listing(&source);
    // The owner has access to what is extracted.
    expected.get_mut("closed").unwrap().0 = 0o755;
    assert_eq!(listing(&workshop.path("box/target/run")), expected);
    assert!(pack(&workshop.path("box/target/run")) == archive, "the archives differ");
}

#[test]
fn an_empty_folder_is_filled_and_another_one_refused() {
    let workshop = Workshop::new();
    let archive = workshop.pack(&sample_contents());
    fs::create_dir(workshop.path("box/target")).unwrap();
    workshop.unpack(&archive).unwrap();
    let before = listing(&workshop.path("box"));
    assert!(before.contains_key("target/run/tool") && before.keys().all(|name| !name.ends_with(".new")));
    let error = workshop.unpack(&archive).unwrap_err();
    assert!(error.to_string().ends_with("target is not empty"), "{error}");
    assert_eq!(listing(&workshop.path("box")), before);
    fs::write(workshop.path("file"), "x").unwrap();
    let error = wb_archive::unpack::unpack_from(&archive[..], &workshop.path("file")).unwrap_err();
    assert!(error.to_string().ends_with("file is not a folder"), "{error}");
}

#[test]
fn what_a_killed_process_has_left_is_removed_and_is_no_content() {
    let workshop = Workshop::new();
    let archive = workshop.pack(&sample_contents());
    for target_exists in [false, true] {
        let folder = workshop.path(if target_exists { "box/target" } else { "box" });
        let left = folder.join(".target.4194305.new");
        fs::create_dir_all(left.join("run")).unwrap();
        fs::write(left.join("run/half"), "x").unwrap();
        workshop.unpack(&archive).unwrap();
        assert!(listing(&workshop.path("box")).keys().all(|name| !name.contains("half")));
        fs::remove_dir_all(workshop.path("box/target")).unwrap();
    }
    // A process that is at work has locked its folder.
    let at_work = workshop.path("box/target/.target.4194305.new");
    fs::create_dir_all(&at_work).unwrap();
    let lock = fs::File::open(&at_work).unwrap();
    lock.lock().unwrap();
    let error = workshop.unpack(&archive).unwrap_err();
    assert!(error.to_string().ends_with("target is not empty"), "{error}");
    drop(lock);
    // Neither another name nor a file is one of these folders.
    for name in [".target.x.new", ".other.1.new", ".target.1.new"] {
        let other = workshop.path(&format!("box/target/{name}"));
        fs::write(&other, "x").unwrap();
        workshop.unpack(&archive).unwrap_err();
        fs::remove_file(other).unwrap();
    }
    workshop.unpack(&archive).unwrap();
}

#[test]
fn a_cancelled_extraction_leaves_nothing_although_its_pipe_is_silent() {
    let workshop = Workshop::new();
    let archive = workshop.pack(&sample_contents());
    let (path, target) = (workshop.path("pipe"), workshop.path("box/target"));
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(&archive[..archive.len() - 20]).unwrap();
    let is_cancelled = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let unpacked = scope
            .spawn(|| wb_archive::unpack(&path, OwnedFd::from(reader).into(), &target, &is_cancelled).unwrap_err());
        while listing(&workshop.path("box")).is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        is_cancelled.store(true, Ordering::Relaxed);
        assert!(matches!(unpacked.join().unwrap(), UnpackError::Cancelled));
    });
    assert!(listing(&workshop.path("box")).is_empty());
}

#[test]
fn an_archive_in_an_empty_folder_that_is_refused_leaves_it_empty() {
    let workshop = Workshop::new();
    let archive = workshop.pack(&sample_contents());
    fs::create_dir(workshop.path("box/target")).unwrap();
    workshop.unpack(&archive[..archive.len() - 20]).unwrap_err();
    assert_eq!(listing(&workshop.path("box")).into_keys().collect::<Vec<_>>(), ["target"]);
}

#[test]
fn a_file_that_cannot_be_read_is_not_taken_for_another_format() {
    let workshop = Workshop::new();
    let (path, target) = (workshop.path("box"), workshop.path("target"));
    let error =
        wb_archive::unpack(&path, fs::File::open(&path).unwrap(), &target, &AtomicBool::new(false)).unwrap_err();
    assert!(error.to_string().starts_with("cannot read "), "{error}");
}
