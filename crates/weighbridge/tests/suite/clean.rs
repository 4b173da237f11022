//! `clean`: showing and removing what stays on machines.

use std::fs;
use std::path::PathBuf;

use insta::assert_snapshot;

use crate::lab::{CommandResult, Lab};

/// The cache entry of an image that was last used long ago.
const ENTRY: &str = r#"{
  "base": {"name": "debian-12", "path": "disk.img", "format": "qcow2", "sha256": "00", "boot": {"from": "disk"}},
  "fingerprint": {"size": 6000, "changed_ns": 0},
  "created": "2020-01-01T10:00:00Z",
  "last-used": "2020-02-03T04:05:06Z"
}"#;

/// A lab with a cache of an image, an incomplete image and a program.
fn lab() -> Lab {
    let lab = Lab::new();
    lab.write("store/images/debian-12.x86_64/entry.json", ENTRY);
    lab.write("store/images/debian-12.x86_64/disk.img", &"x".repeat(6000));
    let partial = lab.write("store/images/.fetched-0123.part/0123.download", &"x".repeat(6000));
    let program = lab.write(&format!("cache/weighbridge/agent/{}/weighbridge", "ab".repeat(32)), "a program");
    for path in [partial.parent().unwrap(), &program] {
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

/// Runs `clean`, which finds committed parameters in a folder of the lab, and not those of this machine.
fn clean(lab: &Lab, flags: &str) -> CommandResult {
    let mut command = lab.command(&format!("clean {flags}"));
    if !flags.contains("--dir") {
        command.arg("--dir").arg(lab.path("no-parameters"));
    }
    command.env("WEIGHBRIDGE_CACHE", lab.path("store")).env("XDG_CACHE_HOME", lab.path("cache"));
    lab.run_command(command.env("WEIGHBRIDGE_GUEST_LOGS", lab.path("logs")))
}

fn image(lab: &Lab) -> PathBuf {
    lab.path("store/images/debian-12.x86_64/disk.img")
}

#[test]
fn items_are_shown_and_stay_without_confirmation() {
    let lab = lab();
    assert_snapshot!(clean(&lab, "").transcript(), @r"
    exit 3
    host            name                          size  last used, UTC
    local  program  abababababab                   9 B  2021-05-06 07:08
    local  image    debian-12                 6.10 KiB  2020-02-03 04:05
    local  image    fetched-0123, incomplete  5.86 KiB  2021-05-06 07:08
    3 items, 12.0 KiB
    cannot ask for confirmation: not a terminal; --yes removes without asking
    ");
    assert!(image(&lab).exists());
    let dry = clean(&lab, "-n");
    assert_eq!((dry.code, dry.err.as_str()), (0, ""));
    assert!(image(&lab).exists());
}

#[test]
fn removed_items_leave_no_empty_folders() {
    let lab = lab();
    let ran = clean(&lab, "--yes").expect_code(0);
    assert!(ran.out.ends_with("removed 3 items, 12.0 KiB\n"), "{}", ran.transcript());
    assert!(!lab.path("store").exists() && !lab.path("cache/weighbridge").exists());
    let again = clean(&lab, "--yes");
    assert_eq!((again.code, again.out.as_str()), (4, "nothing to remove\n"), "{}", again.transcript());
    assert_eq!(lab.wait_for_processes(), [""; 0]);
}

#[test]
fn logs_of_deleted_guests_are_removed_and_other_logs_stay() {
    let lab = Lab::new();
    let guest_logs =
        ["weighbridge-71-vm1.log", "weighbridge-71-vm1.log.0"].map(|name| lab.write(&format!("logs/{name}"), "x"));
    let others = ["mail.log", "weighbridge-site.log"].map(|name| lab.write(&format!("logs/{name}"), "x"));
    let shown = clean(&lab, "-n").out;
    assert!(
        guest_logs.iter().all(|path| shown.contains(&path.file_name().unwrap().to_string_lossy().into_owned())),
        "{shown}"
    );
    assert!(shown.contains("2 items") && shown.contains("log"), "{shown}");
    assert_eq!(clean(&lab, "-n --programs").code, 4);
    let ran = clean(&lab, "--yes --logs");
    assert!(ran.code == 0 && ran.out.ends_with("removed 2 items, 2 B\n"), "{}", ran.transcript());
    assert!(guest_logs.iter().all(|path| !path.exists()) && others.iter().all(|path| path.exists()));
}

#[test]
fn committed_parameters_are_shown_and_removed() {
    let lab = Lab::new();
    let file = lab.write("benches/contention-parameters.json", "{}");
    let other = lab.write("benches/data", "x");
    assert_snapshot!(clean(&lab, "-n --parameters").out, @"nothing to remove");
    let flags = format!("--dir {}", lab.path("benches").display());
    let shown = clean(&lab, &format!("-n {flags}")).out;
    assert!(shown.contains("parameters  contention-parameters.json ") && shown.contains("in /"), "{shown}");
    assert!(clean(&lab, &format!("--logs --yes {flags}")).code == 4 && file.exists());
    let ran = clean(&lab, &format!("--yes {flags}")).expect_code(0);
    assert!(ran.out.ends_with("removed 1 item, 2 B\n"), "{}", ran.transcript());
    assert!(!file.exists() && other.exists());
}

#[test]
fn unavailable_image_leaves_no_folder() {
    let lab = Lab::new();
    let mut command = lab.command("profile image");
    let ran = lab.run_command(command.arg(r#"{"file":"/nosuch.img"}"#).env("WEIGHBRIDGE_CACHE", lab.path("store")));
    assert!(ran.code == 3 && ran.err.contains("/nosuch.img"), "{}", ran.transcript());
    assert!(!lab.path("store").exists());
}

#[test]
fn help_omits_flags_that_only_measuring_needs() {
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
fn only_selected_items_are_removed() {
    let lab = lab();
    assert_eq!(clean(&lab, "--yes --programs").code, 0);
    assert!(image(&lab).exists() && !lab.path("cache/weighbridge").exists());
    clean(&lab, "-n --older-than 1w").expect_stdout("debian-12");
    assert_eq!(clean(&lab, "-n --older-than 3000w").code, 4);
    assert_eq!(clean(&lab, "-n --older-than soon").code, 1);
}

#[test]
fn image_in_use_is_not_removed_and_reported() {
    let lab = lab();
    let user = fs::File::open(image(&lab)).unwrap();
    let ran = clean(&lab, "--yes");
    assert!(
        ran.code == 3
            && ran.err.contains("not removed from `local`: debian-12.x86_64: ")
            && ran.err.contains(": in use by ")
            // This process, or one that another test starts: until its program is executed, it holds the same files.
            && ran.err.contains("(process "),
        "{}",
        ran.transcript()
    );
    assert!(image(&lab).exists() && !lab.path("store/images/.fetched-0123.part").exists());
    drop(user);
    let mut again = clean(&lab, "--yes");
    for _ in 0..100 {
        if again.code == 0 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        again = clean(&lab, "--yes");
    }
    assert_eq!(again.code, 0, "{}", again.transcript());
    assert!(!lab.path("store").exists());
}
