//! Checks of hosts and profiles that `plan` makes before anything is measured.

use std::os::unix::fs::{MetadataExt, symlink};

use crate::json_schema::validate;
use crate::lab::{CommandResult, Lab};

/// Programs that every machine has, available besides the stubs.
const USUAL: [&str; 12] =
    ["sh", "id", "cat", "sed", "grep", "test", "chmod", "printf", "tail", "uname", "timeout", "env"];

/// Stubs of a machine on which libvirt works.
const STUBS: [(&str, &str); 3] = [
    ("virsh", "exit 0"),
    ("virt-install", "case \"$*\" in *--bogus*) echo 'unrecognized arguments: --bogus' >&2; exit 2;; esac"),
    ("qemu-img", "echo '{\"format\": \"qcow2\", \"virtual-size\": 1048576, \"filename\": \"x\"}'"),
];

/// Plans with only the programs of the lab's `bin` on the PATH.
fn plan(lab: &Lab, profile: &str, more: &str) -> CommandResult {
    let mut command = lab.command(&format!("plan steady {more} --paths . --profiles"));
    lab.run_command(command.arg(profile).env("PATH", lab.path("bin")))
}

fn lab(stubs: &[(&str, &str)]) -> Option<Lab> {
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        wb_test_skip::skip!("guests need root's rights");
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

/// A profile with guests of a fixed size and image, and additional parameters.
fn guests(lab: &Lab, more: &str) -> String {
    let disk = lab.path("disk.qcow2");
    format!(
        r#"DefaultLibvirt:{{"force_guest_cpus":2,"force_guest_mem":512,"virt-type":"qemu","image":"{}"{more}}}"#,
        disk.display()
    )
}

#[test]
fn plan_shows_the_sizes_of_guests() {
    let Some(lab) = lab(&STUBS) else { return };
    let ran = plan(&lab, &guests(&lab, r#","force_no_vms":2"#), "").expect_code(0);
    let section = ran.out.split("\nguests\n").nth(1).unwrap_or_else(|| panic!("{}", ran.transcript()));
    let lines: Vec<&str> = section.lines().take(2).collect();
    let disk = lab.path("disk.qcow2").display().to_string();
    let line = |number: u8| {
        format!(
            "  DefaultLibvirt on `local`: `vm{number}` with 2 CPUs, 512 MiB of memory and a disk of 20 GiB of {disk}, emulated in \
             software"
        )
    };
    assert_eq!(lines, [line(1), line(2)], "{}", ran.transcript());
    // Starting guests is part of the maximum, and the time of scripts is unknown.
    let duration = |more: &str| plan(&lab, &guests(&lab, ""), more).out.lines().last().unwrap_or_default().to_owned();
    let with_guests = duration("--samples 6 --min-time 1ms");
    assert!(
        with_guests.ends_with(" with the most, of which up to 10 min to start guests; interleaved order"),
        "{with_guests}"
    );
    lab.write("script", "true\n");
    let with_script = duration("--samples 6 --worker-setup-script script");
    assert!(with_script.contains("; provisioners and setup scripts take time besides;"), "{with_script}");
    let json = plan(&lab, &guests(&lab, ""), "--json").json();
    let guest = &json["guests"][0]["guests"][0];
    assert_eq!(
        (&guest["name"], &guest["cpus"], &guest["memory"]),
        (&"vm1".into(), &2.into(), &"512m".into()),
        "{json}"
    );
    let schema = lab.weighbridge("schema plan").json();
    validate(&schema, &json).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn plan_reports_missing_programs_for_guests() {
    for (missing, reason) in [
        ("virsh", "no such program: `virsh`; `apt-get install libvirt-clients` installs it"),
        ("virt-install", "no such program: `virt-install`; `apt-get install virtinst` installs it"),
        ("qemu-img", "no such program: `qemu-img`"),
    ] {
        let stubs: Vec<(&str, &str)> = STUBS.into_iter().filter(|(name, _)| *name != missing).collect();
        let Some(lab) = lab(&stubs) else { return };
        let ran = plan(&lab, &guests(&lab, ""), "").expect_code(3);
        ran.expect_stdout("cannot be measured here\n").expect_stdout(reason);
    }
}

#[test]
fn plan_reports_the_refusal_of_libvirt() {
    for (script, reason) in [
        (
            "case \"$4\" in uri) echo 'error: no daemon' >&2; exit 1;; esac",
            "libvirt does not respond: error: no daemon",
        ),
        (
            "case \"$4\" in net-info) echo 'error: Network not found' >&2; exit 1;; esac",
            "libvirt has no network `default`",
        ),
        ("case \"$4\" in domcap*) echo 'error: no emulator' >&2; exit 1;; esac", "libvirt cannot run guests this way"),
    ] {
        let stubs = [("virsh", script), STUBS[1], STUBS[2]];
        let Some(lab) = lab(&stubs) else { return };
        plan(&lab, &guests(&lab, ""), "").expect_code(3).expect_stdout(reason);
    }
}

/// The memory of this machine.
fn host_mebibytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:")).unwrap();
    total.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

#[test]
fn plan_reports_unusable_images_domains_and_arguments() {
    let Some(lab) = lab(&STUBS) else { return };
    lab.write(
        "other.xml",
        "<domain><name>%(name)s</name><devices><disk><source file='/home/me/own.qcow2'/></disk></devices></domain>",
    );
    lab.write("broken.xml", "<domain><name>%(name)s</name>");
    lab.write("local.xml", "<domain>");
    lab.write(
        "bootless.xml",
        "<domain><name>%(name)s</name><os><type>hvm</type></os><devices><disk><source file='%(disk)s'/></disk>\
         <disk><source file='%(seed)s'/></disk></devices></domain>",
    );
    lab.write("kernel", "not read");
    let missing = r#"DefaultLibvirt:{"virt-type":"qemu","image":"/no/such.qcow2"}"#.to_owned();
    let path = |name: &str| lab.path(name).display().to_string();
    let with_image = |image: &str| {
        let quoted = format!("\"image\":\"{}\"", path("disk.qcow2"));
        guests(&lab, r#","xml":"bootless.xml""#).replace(&quoted, &format!("\"image\":{image}"))
    };
    let (disk, kernel) = (path("disk.qcow2"), path("kernel"));
    let own_kernel =
        format!(r#"{{"file":"{disk}","kernel":"{kernel}","initrd":"{kernel}","arguments":"root=/dev/vda"}}"#);
    for (profile, reason) in [
        (missing, "no such file: /no/such.qcow2"),
        (guests(&lab, r#","xml":"other.xml""#), "other.xml: no <disk> has `%(disk)s` as the file of its <source>"),
        (guests(&lab, r#","xml":"broken.xml""#), "broken.xml: invalid XML: <domain> is not closed"),
        (guests(&lab, r#","xml":"%(host)s.xml""#), "local.xml: invalid XML"),
        (guests(&lab, r#","xml":"absent.xml""#), "cannot read `absent.xml`: No such file or directory"),
        (
            with_image("\"built\""),
            "the disk of the image `built:bookworm` has no boot loader: expected <kernel>%(kernel)s</kernel>",
        ),
        (with_image(&own_kernel), "disk.qcow2` has no boot loader: expected <kernel>%(kernel)s</kernel>"),
        (guests(&lab, r#","virt-install-extra":"--bogus""#), "unrecognized arguments: --bogus"),
        (
            guests(&lab, &format!(r#","force_no_vms":3,"force_guest_mem":{}"#, host_mebibytes() / 8 * 3))
                .replace(r#""force_guest_mem":512,"#, ""),
            "3 guests of ",
        ),
        (
            guests(&lab, r#","force_guest_mem":16"#).replace(r#""force_guest_mem":512,"#, ""),
            "at least 256 MiB are required",
        ),
    ] {
        let ran = plan(&lab, &profile, "");
        assert!(ran.code == 3 && ran.out.contains(reason), "{reason}: {}", ran.transcript());
    }
}

#[test]
fn plan_reports_kernel_arguments_that_need_a_reboot() {
    let Some(lab) = lab(&STUBS) else { return };
    let profile = r#"TunedHost:{"grub_args":"weighbridge.test"}"#;
    let ran = plan(&lab, profile, "").expect_code(3);
    ran.expect_stdout("its kernel parameters require a reboot of this machine, which would end the run");
    // A profile without kernel parameters is planned all the same.
    plan(&lab, &format!("Localhost,{profile}"), "").expect_code(3).expect_stdout("\n1 of 2 cells, about 140 ms with");
}

#[test]
fn run_warns_about_later_profiles_before_measuring() {
    let Some(lab) = lab(&STUBS[1..]) else { return };
    let mut command = lab.command("run steady --min-time 1ms --warm-up 0 --samples 6 --into R --profiles");
    let ran = lab.run_command(command.arg(format!("Localhost,{}", guests(&lab, ""))).env("PATH", lab.path("bin")));
    let warning = "warning: `DefaultLibvirt` on `local` will not be measured: no such program: `virsh`";
    let (position, measured) = (ran.err.find(warning), ran.err.find("Localhost/steady"));
    assert!(ran.code == 3 && position.is_some() && (measured.is_none() || position < measured), "{}", ran.transcript());
}

#[test]
fn plan_reports_knobs_files_and_commands_that_a_host_refuses() {
    let Some(lab) = lab(&STUBS) else { return };
    let profile = |name: &str, text: &str| {
        lab.write(&format!("config/weighbridge/profiles.d/{name}.toml"), &format!("summary = \"x\"\n{text}"));
    };
    let folder = lab.path("");
    let folder = folder.display().to_string();
    let folder = folder.trim_end_matches('/');
    let command = |apply: &str| {
        format!("[[commands]]\nname = \"broken\"\ncheck = \"true\"\napply = \"{apply}\"\nrevert = \"true\"\n")
    };
    profile("Knob", "[knobs]\nclocksource = \"many\"\n");
    profile("NoFolder", "[[files]]\npath = \"/no/such/folder/x\"\ntext = \"x\"\n");
    profile("Folder", &format!("[[files]]\npath = \"{folder}\"\ntext = \"x\"\n"));
    profile("Device", "[[files]]\npath = \"/dev/null\"\ntext = \"x\"\n");
    profile("Broken", &command("if true; then"));
    // A knob may depend on a command that has not run yet.
    profile("Brings", &format!("[knobs]\nclocksource = \"many\"\n{}", command("true")));
    for (name, reason) in [
        ("Knob", "cannot set knob `clocksource` to `many`: "),
        ("NoFolder", "cannot write the file `/no/such/folder/x`: no such folder: `/no/such/folder`"),
        ("Folder", "it is a folder"),
        ("Device", "cannot write the file `/dev/null`: not a regular file"),
        ("Broken", "invalid command `broken`: expected a shell script: "),
    ] {
        let ran = plan(&lab, name, "");
        assert!(ran.code == 3 && ran.out.contains(reason), "{name}: {}", ran.transcript());
        assert!(
            ran.out.contains("\n0 of 1 cells") || ran.out.contains("cannot be measured here"),
            "{}",
            ran.transcript()
        );
    }
    plan(&lab, "Brings", "").expect_code(0);
}
