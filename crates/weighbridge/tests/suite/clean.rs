//! What stays on machines, shown and removed.

use std::fs;
use std::path::PathBuf;

use insta::assert_snapshot;

use crate::lab::{Lab, Ran};

/// An entry as an image's is, last used long ago.
const ENTRY: &str = r#"{
  "base": {"name": "debian-12", "path": "disk.img", "format": "qcow2", "sha256": "00", "boot": {"from": "disk"}},
  "seen": {"size": 6000, "changed_ns": 0},
  "made": "2020-01-01T10:00:00Z",
  "used": "2020-02-03T04:05:06Z"
}"#;

/// A lab with a cache: an image, one that is half fetched, and a program.
fn lab() -> Lab {
    let lab = Lab::new();
    lab.write("store/images/debian-12.x86_64/entry.json", ENTRY);
    lab.write("store/images/debian-12.x86_64/disk.img", &"x".repeat(6000));
    let half = lab.write("store/images/.fetched-0123.part/0123.download", &"x".repeat(6000));
    let program = lab.write(&format!("cache/weighbridge/agent/{}/weighbridge", "ab".repeat(32)), "a program");
    for path in [half.parent().unwrap(), &program] {
        assert!(
            std::process::Command::new("touch")
                .args(["-d", "2021-05-06T07:08:09Z"])
                .arg(path)
                .status()
                .unwrap()
                .success()
        );
    }
    lab
}

fn clean(lab: &Lab, flags: &str) -> Ran {
    let mut command = lab.command(&format!("clean {flags}"));
    command.env("WEIGHBRIDGE_CACHE", lab.path("store")).env("XDG_CACHE_HOME", lab.path("cache"));
    lab.ran(command.env("WEIGHBRIDGE_GUEST_LOGS", lab.path("logs")))
}

fn image(lab: &Lab) -> PathBuf {
    lab.path("store/images/debian-12.x86_64/disk.img")
}

#[test]
fn what_is_there_is_shown_and_stays_until_somebody_agrees() {
    let lab = lab();
    assert_snapshot!(clean(&lab, "").seen(), @r"
    exit 3
    on              what                         size  last used, UTC
    local  program  abababababab                  9 B  2021-05-06 07:08
    local  image    debian-12                6.08 KiB  2020-02-03 04:05
    local  image    fetched-0123, not whole  5.86 KiB  2021-05-06 07:08
    3 things, 11.9 KiB
    nothing is removed, for there is nobody to ask: --yes removes it
    ");
    assert!(image(&lab).exists());
    let dry = clean(&lab, "-n");
    assert_eq!((dry.code, dry.err.as_str()), (0, ""));
    assert!(image(&lab).exists());
}

#[test]
fn what_is_agreed_to_is_gone_with_the_folders_that_held_it() {
    let lab = lab();
    let ran = clean(&lab, "--yes");
    assert_eq!(ran.code, 0, "{}", ran.seen());
    assert!(ran.out.ends_with("removed 3 things, 11.9 KiB\n"), "{}", ran.seen());
    assert!(!lab.path("store").exists() && !lab.path("cache/weighbridge").exists());
    let again = clean(&lab, "--yes");
    assert_eq!((again.code, again.out.as_str()), (4, "nothing is there\n"), "{}", again.seen());
    assert_eq!(lab.processes_left(), [""; 0]);
}

#[test]
fn logs_of_guests_that_are_gone_are_removed_and_those_of_others_stay() {
    let lab = Lab::new();
    let ours =
        ["weighbridge-71-vm1.log", "weighbridge-71-vm1.log.0"].map(|name| lab.write(&format!("logs/{name}"), "x"));
    let others = ["mail.log", "weighbridge-site.log"].map(|name| lab.write(&format!("logs/{name}"), "x"));
    let shown = clean(&lab, "-n").out;
    assert!(
        ours.iter().all(|path| shown.contains(&path.file_name().unwrap().to_string_lossy().into_owned())),
        "{shown}"
    );
    assert!(shown.contains("2 things") && shown.contains("log"), "{shown}");
    assert_eq!(clean(&lab, "-n --programs").code, 4);
    let ran = clean(&lab, "--yes --logs");
    assert!(ran.code == 0 && ran.out.ends_with("removed 2 things, 2 B\n"), "{}", ran.seen());
    assert!(ours.iter().all(|path| !path.exists()) && others.iter().all(|path| path.exists()));
}

#[test]
fn an_image_that_cannot_be_had_leaves_no_folder() {
    let lab = Lab::new();
    let mut command = lab.command("profile image");
    let ran = lab.ran(command.arg(r#"{"file":"/nosuch.img"}"#).env("WEIGHBRIDGE_CACHE", lab.path("store")));
    assert!(ran.code == 3 && ran.err.contains("/nosuch.img"), "{}", ran.seen());
    assert!(!lab.path("store").exists());
}

#[test]
fn what_only_measuring_needs_is_not_offered() {
    let lab = Lab::new();
    for command in ["clean", "profile revert", "profile image"] {
        let help = lab.weighbridge(&format!("{command} --help")).out;
        assert!(help.contains("--hosts") && help.contains("--inventory") && help.contains("--ssh-config"), "{help}");
        for flag in ["--profiles", "--distro", "--guest-distro", "--force-params", "--paths"] {
            assert!(!help.contains(flag), "{command}: {help}");
        }
    }
    let help = lab.weighbridge("run --help").out;
    assert!(["--hosts", "--ssh-config", "--profiles", "--force-params"].iter().all(|flag| help.contains(flag)));
}

#[test]
fn only_what_is_asked_for_goes() {
    let lab = lab();
    assert_eq!(clean(&lab, "--yes --programs").code, 0);
    assert!(image(&lab).exists() && !lab.path("cache/weighbridge").exists());
    let old = clean(&lab, "-n --older-than 1w");
    assert!(old.out.contains("debian-12"), "{}", old.seen());
    assert_eq!(clean(&lab, "-n --older-than 3000w").code, 4);
    assert_eq!(clean(&lab, "-n --older-than soon").code, 1);
}

#[test]
fn what_somebody_uses_is_left_and_told() {
    let lab = lab();
    let user = fs::File::open(image(&lab)).unwrap();
    let ran = clean(&lab, "--yes");
    let me = format!("(process {}) uses it", std::process::id());
    assert!(
        ran.code == 3 && ran.err.contains("left on `local`: debian-12.x86_64: ") && ran.err.contains(&me),
        "{}",
        ran.seen()
    );
    assert!(image(&lab).exists() && !lab.path("store/images/.fetched-0123.part").exists());
    drop(user);
    assert_eq!(clean(&lab, "--yes").code, 0);
    assert!(!lab.path("store").exists());
}
