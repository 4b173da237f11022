//! What `plan` finds out about hosts and profiles before anything is measured.

use std::os::unix::fs::{MetadataExt, symlink};

use crate::lab::{Lab, Ran};

/// Programs that every machine has, which stubs stand beside.
const USUAL: [&str; 12] =
    ["sh", "id", "cat", "sed", "grep", "test", "chmod", "printf", "tail", "uname", "timeout", "env"];

/// A machine on which libvirt answers and finds all that it is asked for.
const STUBS: [(&str, &str); 3] = [
    ("virsh", "exit 0"),
    ("virt-install", "case \"$*\" in *--bogus*) echo 'unrecognized arguments: --bogus' >&2; exit 2;; esac"),
    ("qemu-img", "echo '{\"format\": \"qcow2\", \"virtual-size\": 1048576, \"filename\": \"x\"}'"),
];

/// Plans with the programs of a folder alone; only root's plans have nothing in their way.
fn plan(lab: &Lab, profile: &str, more: &str) -> Ran {
    let mut command = lab.command(&format!("plan steady {more} --paths . --profiles"));
    lab.ran(command.arg(profile).env("PATH", lab.path("bin")))
}

fn lab(stubs: &[(&str, &str)]) -> Option<Lab> {
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        println!("SKIPPED: guests need root's rights");
        return None;
    }
    let lab = Lab::new();
    for (name, script) in stubs {
        lab.program(name, &format!("#!/bin/sh\n{script}\n"));
    }
    std::fs::create_dir_all(lab.path("bin")).unwrap();
    for name in USUAL {
        let found = ["/bin", "/usr/bin"].map(|folder| format!("{folder}/{name}"));
        let found = found.into_iter().find(|path| std::path::Path::new(path).exists());
        symlink(found.unwrap_or_else(|| panic!("no {name}")), lab.path(&format!("bin/{name}"))).unwrap();
    }
    lab.write("disk.qcow2", "not read");
    Some(lab)
}

/// A profile with guests of a known size and image, and more parameters.
fn guests(lab: &Lab, more: &str) -> String {
    let disk = lab.path("disk.qcow2");
    format!(
        r#"DefaultLibvirt:{{"force_guest_cpus":2,"force_guest_mem":512,"virt-type":"qemu","image":"{}"{more}}}"#,
        disk.display()
    )
}

#[test]
fn the_sizes_of_guests_are_shown_where_nothing_is_in_their_way() {
    let Some(lab) = lab(&STUBS) else { return };
    let ran = plan(&lab, &guests(&lab, r#","force_no_vms":2"#), "");
    assert_eq!(ran.code, 0, "{}", ran.seen());
    let section = ran.out.split("\nguests\n").nth(1).unwrap_or_else(|| panic!("{}", ran.seen()));
    let lines: Vec<&str> = section.lines().take(2).collect();
    let disk = lab.path("disk.qcow2").display().to_string();
    let line = |number: u8| {
        format!(
            "  DefaultLibvirt on `local`: `vm{number}` with 2 CPUs, 512 MiB of memory and a disk of 20 GiB of {disk}, run by \
             software"
        )
    };
    assert_eq!(lines, [line(1), line(2)], "{}", ran.seen());
    let json = plan(&lab, &guests(&lab, ""), "--json").json();
    let guest = &json["guests"][0]["guests"][0];
    assert_eq!(
        (&guest["name"], &guest["cpus"], &guest["memory"]),
        (&"vm1".into(), &2.into(), &"512m".into()),
        "{json}"
    );
    let schema = lab.weighbridge("schema plan").json();
    jsonschema::validate(&schema, &json).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn what_guests_need_and_is_not_there_is_found_by_the_plan() {
    for (missing, reason) in [
        ("virsh", "there is no program `virsh`: `apt-get install libvirt-clients` brings it"),
        ("virt-install", "there is no program `virt-install`: `apt-get install virtinst` brings it"),
        ("qemu-img", "there is no program `qemu-img`"),
    ] {
        let stubs: Vec<(&str, &str)> = STUBS.into_iter().filter(|(name, _)| *name != missing).collect();
        let Some(lab) = lab(&stubs) else { return };
        let ran = plan(&lab, &guests(&lab, ""), "");
        assert_eq!(ran.code, 3, "{}", ran.seen());
        assert!(ran.out.contains("cannot be measured here\n") && ran.out.contains(reason), "{}", ran.seen());
    }
}

#[test]
fn what_libvirt_refuses_is_the_reason() {
    for (script, reason) in [
        ("case \"$4\" in uri) echo 'error: no daemon' >&2; exit 1;; esac", "libvirt does not answer: error: no daemon"),
        (
            "case \"$4\" in net-info) echo 'error: Network not found' >&2; exit 1;; esac",
            "libvirt has no network `default`",
        ),
        ("case \"$4\" in domcap*) echo 'error: no emulator' >&2; exit 1;; esac", "libvirt cannot run guests this way"),
    ] {
        let stubs = [("virsh", script), STUBS[1], STUBS[2]];
        let Some(lab) = lab(&stubs) else { return };
        let ran = plan(&lab, &guests(&lab, ""), "");
        assert!(ran.code == 3 && ran.out.contains(reason), "{}", ran.seen());
    }
}

#[test]
fn an_image_a_domain_and_arguments_that_cannot_be_used_are_found() {
    let Some(lab) = lab(&STUBS) else { return };
    lab.write(
        "other.xml",
        "<domain><name>%(name)s</name><devices><disk><source file='/home/me/own.qcow2'/></disk></devices></domain>",
    );
    lab.write("broken.xml", "<domain><name>%(name)s</name>");
    lab.write("local.xml", "<domain>");
    let missing = r#"DefaultLibvirt:{"virt-type":"qemu","image":"/no/such.qcow2"}"#.to_owned();
    for (profile, reason) in [
        (missing, "there is no file /no/such.qcow2"),
        (guests(&lab, r#","xml":"other.xml""#), "other.xml: no <disk> has `%(disk)s` as the file of its <source>"),
        (guests(&lab, r#","xml":"broken.xml""#), "broken.xml: it is not well-formed XML: <domain> is not closed"),
        (guests(&lab, r#","xml":"%(host)s.xml""#), "local.xml: it is not well-formed XML"),
        (guests(&lab, r#","xml":"absent.xml""#), "absent.xml: No such file or directory"),
        (guests(&lab, r#","virt-install-extra":"--bogus""#), "unrecognized arguments: --bogus"),
        (guests(&lab, r#","force_guest_mem":16"#).replace(r#""force_guest_mem":512,"#, ""), "and need 256 MiB"),
    ] {
        let ran = plan(&lab, &profile, "");
        assert!(ran.code == 3 && ran.out.contains(reason), "{reason}: {}", ran.seen());
    }
}

#[test]
fn kernel_arguments_of_this_machine_are_found_before_a_run() {
    let Some(lab) = lab(&STUBS) else { return };
    let profile = r#"TunedHost:{"grub_args":"weighbridge.test"}"#;
    let ran = plan(&lab, profile, "");
    assert_eq!(ran.code, 3, "{}", ran.seen());
    assert!(
        ran.out.contains("its kernel arguments would reboot this machine, and the run would end with it"),
        "{}",
        ran.out
    );
    // A profile that needs nothing of it is planned all the same.
    let both = plan(&lab, &format!("Localhost,{profile}"), "");
    assert!(both.code == 3 && both.out.contains("\n1 of 2 cells, about 140 ms with"), "{}", both.seen());
}

#[test]
fn a_run_warns_of_a_later_profile_before_it_measures_in_the_first() {
    let Some(lab) = lab(&STUBS[1..]) else { return };
    let mut command = lab.command("run steady --min-time 1ms --warm-up 0 --samples 6 --into R --profiles");
    let ran = lab.ran(command.arg(format!("Localhost,{}", guests(&lab, ""))).env("PATH", lab.path("bin")));
    let warning = "warning: `DefaultLibvirt` on `local` will not be measured: there is no program `virsh`";
    let (at, measured) = (ran.err.find(warning), ran.err.find("Localhost/steady"));
    assert!(ran.code == 3 && at.is_some() && (measured.is_none() || at < measured), "{}", ran.seen());
}

#[test]
fn knobs_files_and_commands_that_a_host_refuses_are_found_by_the_plan() {
    let Some(lab) = lab(&STUBS) else { return };
    let profile = |name: &str, text: &str| {
        lab.write(&format!("config/weighbridge/profiles.d/{name}.toml"), &format!("summary = \"x\"\n{text}"));
    };
    let folder = lab.path("");
    let folder = folder.display().to_string();
    let folder = folder.trim_end_matches('/');
    let command = |apply: &str| {
        format!("[[commands]]\nname = \"broken\"\nis = \"true\"\napply = \"{apply}\"\nrevert = \"true\"\n")
    };
    profile("Knob", "[knobs]\nswappiness = \"many\"\n");
    profile("NoFolder", "[[files]]\npath = \"/no/such/folder/x\"\ntext = \"x\"\n");
    profile("Folder", &format!("[[files]]\npath = \"{folder}\"\ntext = \"x\"\n"));
    profile("Device", "[[files]]\npath = \"/dev/null\"\ntext = \"x\"\n");
    profile("Broken", &command("if true; then"));
    // What a command brings cannot be there before it has run.
    profile("Brings", &format!("[knobs]\nswappiness = \"many\"\n{}", command("true")));
    for (name, reason) in [
        ("Knob", "the knob `swappiness` cannot be `many`: "),
        ("NoFolder", "cannot write the file `/no/such/folder/x`: there is no folder `/no/such/folder`"),
        ("Folder", "it is a folder"),
        ("Device", "cannot write the file `/dev/null`: not a regular file"),
        ("Broken", "invalid command `broken`: expected a shell script: "),
    ] {
        let ran = plan(&lab, name, "");
        assert!(ran.code == 3 && ran.out.contains(reason), "{name}: {}", ran.seen());
        assert!(ran.out.contains("\n0 of 1 cells") || ran.out.contains("cannot be measured here"), "{}", ran.seen());
    }
    let ran = plan(&lab, "Brings", "");
    assert_eq!(ran.code, 0, "{}", ran.seen());
}
