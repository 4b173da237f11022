//! Context of a comparison: differing environments, profiles and programs.

use serde_json::{Value, json};

use crate::lab::{Lab, copy_folder, without_checksums};

const QUICK: &str = "--min-time 1ms --samples 6 --warm-up 0 --retakes 0 -q";

/// Takes a run, which tests copy and modify.
fn run(lab: &Lab, test: &str, name: &str) {
    lab.weighbridge(&format!("run {test} {QUICK} --into {name}")).expect_code_of(&[0, 3]);
}

/// Writes an environment of a run with these sections.
fn environment(lab: &Lab, run: &str, name: &str, sections: Value) {
    let mut all = json!({"packages": {}, "transient": {"load": name}});
    for (section, value) in sections.as_object().unwrap() {
        all[section] = value.clone();
    }
    lab.write(&format!("{run}/environment/{name}.json"), &all.to_string());
}

/// The section `what else differs` of the terminal output.
fn shown(lab: &Lab, line: &str) -> String {
    let out = lab.weighbridge(line).expect_code(0).out;
    let (_, rest) = out.split_once("other differences\n").unwrap_or_default();
    rest.split("\ntotals\n").next().unwrap_or_default().to_owned()
}

#[test]
fn upgrades_are_listed_by_section_and_worker() {
    let lab = Lab::new();
    run(&lab, "steady", "old");
    copy_folder(&lab.path("old"), &lab.path("new"));
    let kernel = |release: &str| json!({"release": release, "command-line": format!("root=/dev/vda {release}")});
    environment(
        &lab,
        "old",
        "world-0-before",
        json!({"kernel": kernel("5.0.9"), "kernel_raw": "5.0.9 #1", "packages": {"gcc": "12.2", "gone": "1", "same": "1"}}),
    );
    environment(
        &lab,
        "old",
        "world-0-before@vm2",
        json!({"kernel": kernel("5.0.9"), "cpu": {"governor": "powersave"}}),
    );
    environment(
        &lab,
        "new",
        "world-0-before",
        json!({"kernel": kernel("5.6.13"), "kernel_raw": "5.6.13 #2", "packages": {"gcc": "13.1", "come": "2", "same": "1"}}),
    );
    environment(
        &lab,
        "new",
        "world-0-before@vm2",
        json!({"kernel": kernel("5.6.13"), "cpu": {"governor": "performance"}}),
    );
    insta::assert_snapshot!(shown(&lab, "compare old new"), @r"
    Localhost (local, vm2), kernel: 2 differences
      command-line  root=/dev/vda 5.0.9 → root=/dev/vda 5.6.13
      release  5.0.9 → 5.6.13
    Localhost (local), packages: 3 differences
      come  nothing → 2
      gcc  12.2 → 13.1
      gone  1 → nothing
    Localhost (vm2), cpu: 1 difference
      governor  powersave → performance
    ");
    let outcome = lab.weighbridge("compare old new --json --html page.html --markdown out.md").json();
    let sections = outcome["context"]["environment"].as_array().unwrap();
    let kernel = sections.iter().find(|section| section["section"] == "kernel").unwrap();
    assert_eq!(kernel["machines"].as_array().unwrap().len(), 2, "{kernel}");
    assert_eq!(kernel["changes"][1], json!({"name": "release", "before": "5.0.9", "after": "5.6.13"}));
    let recorded = &outcome["builds"][1]["runs"][0]["environment"]["Localhost"];
    assert_eq!((&recorded[1]["worker"], &recorded[0]["sections"]["kernel_raw"]), (&"vm2".into(), &"5.6.13 #2".into()));
    let page = lab.read("page.html");
    for part in ["local, kernel 2", "<code>5.0.9</code></td><td><code>5.6.13</code>", "B as recorded", "kernel_raw"] {
        assert!(page.contains(part), "{part} is missing on the page");
    }
    let comment = lab.read("out.md");
    assert!(comment.contains("  - release: `5.0.9` → `5.6.13`"), "{comment}");
}

#[test]
fn environment_of_the_compared_invocation_is_used() {
    let lab = Lab::new();
    run(&lab, "steady:kind=[a,b]", "old");
    run(&lab, "steady", "new");
    run(&lab, "steady:kind=[a,b]", "new");
    let with = |swappiness: u32| json!({"sysctl": {"vm.swappiness": swappiness}});
    environment(&lab, "old", "world-0-before", with(60));
    // Cells of the first invocation were complete; the samples of the second belong to its own environment.
    environment(&lab, "new", "world-0-before", with(1));
    environment(&lab, "new", "world-1-before", with(60));
    assert_eq!(shown(&lab, "compare old new"), "");
    environment(&lab, "new", "world-1-before", with(10));
    assert_eq!(shown(&lab, "compare old new"), "  Localhost, sysctl: 1 difference\n    vm.swappiness  60 → 10\n");
}

#[test]
fn profile_states_are_compared_even_if_names_are_equal() {
    let lab = Lab::new();
    run(&lab, "steady", "old");
    copy_folder(&lab.path("old"), &lab.path("new"));
    copy_folder(&lab.path("old"), &lab.path("again"));
    let guest = |pid: u32, memory: u32| {
        let xml = format!(
            "<domain type='kvm'>\n  <name>weighbridge-{pid}-vm1</name>\n  <uuid>{pid}</uuid>\n  <memory unit='KiB'>\
             {memory}</memory>\n  <source file='/tmp/wb-{pid}/vm1.disk'/>\n</domain>\n"
        );
        json!({"name": "vm1", "domain": format!("weighbridge-{pid}-vm1"), "address": format!("10.0.0.{pid}"), "cpus": 2,
               "memory": "1g", "virt-type": "kvm", "image": {"name": "debian-12"}, "xml": xml, "started-in": pid})
    };
    let state = |pid: u32, memory: u32, text: &str, governor: &str| {
        json!([{"name": "Localhost", "host": "local", "profile": {
                    "summary": format!("{pid}"), "knobs": {"governor": governor},
                    "files": [{"path": "/etc/x", "text": text, "mode": "0644"}], "guests": null, "tests": null},
                "knobs": [{"knob": "governor", "target": "cpu0", "before": "x", "requested": governor, "outcome": "set", "now": governor}],
                "guests": [guest(pid, memory)]}])
    };
    for (run, state) in [
        ("old", state(1, 1024, "one\ntwo\n", "powersave")),
        ("new", state(2, 2048, "one\nthree\n", "performance")),
        ("again", state(3, 1024, "one\ntwo\n", "powersave")),
    ] {
        environment(&lab, run, "world-0-before", json!({"packages": {"gcc": "12"}}));
        lab.write(&format!("{run}/environment/profile-0.json"), &state.to_string());
    }
    assert_eq!(shown(&lab, "compare old again"), "", "the same profile, applied twice");
    insta::assert_snapshot!(shown(&lab, "compare old new"), @r"
    Localhost (local), knobs: 1 difference
      governor@cpu0  powersave → performance
    Localhost (local), profile: 2 differences
      files./etc/x.text  two → three
      knobs.governor  powersave → performance
    Localhost (vm1), libvirt_xml: 1 difference
      <memory unit='KiB'>1024</memory> → <memory unit='KiB'>2048</memory>
    ");
    // The environment follows results that are mapped to another profile.
    for file in ["run.json", "journal.jsonl", "Localhost/steady/0000/definition.json"] {
        let path = lab.path("new").join(file);
        let text = without_checksums(&std::fs::read_to_string(&path).unwrap());
        std::fs::write(&path, text.replace("\"Localhost/", "\"Tuned/")).unwrap();
    }
    std::fs::rename(lab.path("new/Localhost"), lab.path("new/Tuned")).unwrap();
    let mapped = shown(&lab, "compare old new --map Localhost=Tuned");
    assert!(mapped.contains("  Tuned (local), knobs: 1 difference\n"), "{mapped}");
}

#[test]
fn programs_compilers_and_built_files_are_compared() {
    let lab = Lab::new();
    let define = |content: &str| {
        lab.write("config/weighbridge/tests.d/source.sh", content);
        lab.define_figure(
            "built",
            "name = \"built\"\nsummary = \"builds a program\"\nversion = 1\ncommand = [\"{scratch}/program\"]\n\
             [[requires]]\nprogram = \"my-cc\"\npackage = \"my-cc\"\nversion = [\"--version\"]\n\
             [build]\ncommands = [[\"my-cc\", \"{scratch}/source.sh\", \"{scratch}/program\"]]\nprograms = [\"program\"]\n\
             [[param]]\nname = \"kind\"\nhelp = \"which\"\nkind = \"text\"\ndefault = \"a\"\naxis = true\n\
             [[file]]\nname = \"source.sh\"\npath = \"source.sh\"\n",
        );
    };
    for (run, version) in [("old", "12.2"), ("new", "13.1")] {
        lab.program("my-cc", &format!("#!/bin/sh\n[ $1 = --version ] && exec echo my-cc {version}\nexec cp $1 $2\n"));
        define(&format!("#!/bin/sh\n# {version}\nsleep 0.02\necho figure: 1\n"));
        let ran = lab.weighbridge(&format!("run built:kind=[a,b] {QUICK} --into {run}"));
        assert!([0, 3].contains(&ran.code), "{}", ran.transcript());
    }
    let outcome = lab.weighbridge("compare old new --json").json();
    let programs = outcome["context"]["programs"].as_array().unwrap();
    let names: Vec<&str> = programs.iter().map(|change| change["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "built: built program sha256",
            "built: definition sha256",
            "built: file source.sh sha256",
            "built: my-cc sha256",
            "built: my-cc version"
        ]
    );
    let version = json!({"name": "built: my-cc version", "before": "my-cc 12.2", "after": "my-cc 13.1",
                         "cells": ["Localhost/built/0000:kind=a", "Localhost/built/0000:kind=b"]});
    assert_eq!(programs[4], version);
    let text = shown(&lab, "compare old new");
    assert!(
        text.contains("  programs: 5 differences\n")
            && text.contains("my-cc version  my-cc 12.2 → my-cc 13.1 (2 cells)"),
        "{text}"
    );
}

#[test]
fn suggested_command_measures_with_the_common_instruction_set() {
    if cfg!(not(target_arch = "x86_64")) {
        wb_test_skip::skip!("there is one instruction set alone to measure with here");
        return;
    }
    let lab = Lab::new();
    let test = "himeno:grid=XS,threads=1";
    run(&lab, test, "wide");
    run(&lab, &format!("{test},isa=scalar"), "narrow");
    let compared = lab.weighbridge("compare wide narrow").expect_code_of(&[3, 4]);
    compared.expect_stderr("note: figures with different instruction sets (scalar, ");
    let suggested = format!("`weighbridge run {test},isa=scalar {QUICK} --into wide-scalar`\n");
    let help = format!("help: all machines support scalar: measure with {suggested}");
    compared.expect_stderr(&help);
    run(&lab, &format!("{test},isa=scalar"), "wide-scalar");
    let alike = lab.weighbridge("compare wide-scalar narrow");
    assert!([0, 2].contains(&alike.code) && !alike.err.contains("instruction sets"), "{}", alike.transcript());
}
