//! A folder that is measured into again: samples of a cell are of one definition, of the same files, programs and machine.

use crate::lab::{Lab, Ran};

const QUICK: &str = "--min-time 1ms --warm-up 0";

/// Runs a script that lies beside it.
const SCRIPT: &str = r#"
name = "scripted"
summary = "a figure that a script beside the definition prints"
version = 1
command = ["sh", "{here}/load.sh"]
"#;

/// Builds a program from a file beside it and from one that it does not name.
const BUILT: &str = r#"
name = "built"
summary = "a figure that a program prints, which is built"
version = 1
command = ["sh", "{scratch}/program"]

[[file]]
name = "source"
path = "source"

[build]
commands = [["sh", "-c", "cat source \"$HOME/library\" >program"]]
programs = ["program"]

"#;

/// Calls a program that it names.
const CALLS: &str = r#"
name = "calls"
summary = "a figure that a program prints"
version = 1
command = ["figure-printer"]

[[requires]]
program = "figure-printer"
package = ""

"#;

fn printing(figure: u32) -> String {
    format!("echo figure: $(expr {figure} + $(date +%N | cut -c 6,7 | sed s/^0//) % 5)\n")
}

/// A lab with the test `scripted`, whose script prints about 1000.
fn scripted() -> Lab {
    let lab = Lab::new();
    lab.define_figure("scripted", SCRIPT);
    lab.write("config/weighbridge/tests.d/load.sh", &printing(1000));
    lab
}

fn ran(lab: &Lab, line: &str) -> Ran {
    lab.ran(lab.with_programs(line).env("HOME", lab.path("home")))
}

/// Measures, makes a change, and measures more into the same folder: what is said, and that no attempt was made.
fn refused(lab: &Lab, test: &str, change: impl FnOnce(&Lab)) -> String {
    let first = ran(lab, &format!("run {test} {QUICK} --samples 6 --into R"));
    assert_eq!(first.code, 0, "{}", first.seen());
    let before = lab.journal("R");
    change(lab);
    let second = ran(lab, &format!("run {test} {QUICK} --samples 12 --into R"));
    assert_eq!(second.code, 1, "{}", second.seen());
    let attempts =
        |journal: &[serde_json::Value]| journal.iter().filter(|line| line["event"] == "attempt-started").count();
    assert_eq!(attempts(&lab.journal("R")), attempts(&before), "nothing is measured");
    without_hashes(&second.err)
}

/// A text with `HASH` for each start of one.
fn without_hashes(text: &str) -> String {
    let is_hash = |word: &str| word.len() == 12 && word.chars().all(|digit| digit.is_ascii_hexdigit());
    let words = text.split([' ', '(', ',', ')']).filter(|word| is_hash(word));
    words.fold(text.to_owned(), |text, hash| text.replace(hash, "HASH"))
}

#[test]
fn samples_of_an_edited_script_do_not_join_those_of_the_script_before() {
    let said = refused(&scripted(), "scripted", |lab| {
        lab.write("config/weighbridge/tests.d/load.sh", &printing(4000));
    });
    insta::assert_snapshot!(said, @r"
    error: `Localhost/scripted/0000:-` was measured in this folder with another `{here}/load.sh` (HASH, now HASH)
    help: another folder (--into) measures the new one; samples of both would be no series
    ");
}

#[test]
fn samples_of_an_edited_definition_do_not_join_those_of_the_definition_before() {
    let said = refused(&scripted(), "scripted", |lab| {
        lab.define_figure("scripted", &SCRIPT.replace("\"sh\",", "\"sh\", \"-e\","));
    });
    insta::assert_snapshot!(said, @r"
    error: `Localhost/scripted/0000:-` was measured in this folder with another definition (HASH, now HASH)
    help: another folder (--into) measures the new one; samples of both would be no series
    ");
}

/// A lab with the test `built`.
fn built() -> Lab {
    let lab = Lab::new();
    lab.define_figure("built", BUILT);
    lab.write("config/weighbridge/tests.d/source", "# source\n");
    lab.write("home/library", &printing(1000));
    lab
}

#[test]
fn samples_of_another_source_or_another_build_of_it_do_not_join_those_before() {
    let said = refused(&built(), "built", |lab| {
        lab.write("config/weighbridge/tests.d/source", "# another\n");
    });
    assert!(said.contains("with another `source` (HASH, now HASH)"), "{said}");
    let said = refused(&built(), "built", |lab| {
        lab.write("home/library", &printing(4000));
    });
    assert!(said.contains("with another build of `program` (HASH, now HASH)"), "{said}");
    let lab = built();
    for samples in [6, 8] {
        let more = ran(&lab, &format!("run built {QUICK} --samples {samples} --into R"));
        assert_eq!(more.code, 0, "the same build goes on: {}", more.seen());
    }
}

#[test]
fn a_build_that_comes_out_differently_each_time_is_a_finding_and_goes_on() {
    let lab = Lab::new();
    let dated = BUILT.replace("cat source", "date +'# %N' | cat - source");
    lab.define_figure("built", &format!("scope = \"sample\"\n{dated}"));
    lab.write("config/weighbridge/tests.d/source", "# source\n");
    lab.write("home/library", &printing(1000));
    for samples in [6, 8] {
        let ran = ran(&lab, &format!("run built {QUICK} --samples {samples} --into R"));
        assert_eq!(ran.code, 0, "{}", ran.seen());
    }
    let summary = lab.weighbridge("summary R");
    assert!(
        summary.out.contains("the build of `program` changed between samples: 8 different ones"),
        "{}",
        summary.out
    );
}

#[test]
fn samples_of_another_program_do_not_join_those_before() {
    let lab = Lab::new();
    lab.define_figure("calls", CALLS);
    lab.program("figure-printer", &format!("#!/bin/sh\n{}", printing(1000)));
    let said = refused(&lab, "calls", |lab| {
        lab.program("figure-printer", &format!("#!/bin/sh\n{}", printing(4000)));
    });
    assert!(said.contains("with another `figure-printer` (HASH, now HASH)"), "{said}");
}

#[test]
fn an_experiment_does_not_go_on_with_an_edited_script() {
    let lab = scripted();
    for line in ["ab scripted --into A -- base more:env:A=1", "calibrate scripted --runs 2 --samples 3 --into C"] {
        let line = line.replacen(" --into", &format!(" {QUICK} --into"), 1);
        lab.write("config/weighbridge/tests.d/load.sh", &printing(1000));
        let first = lab.weighbridge(&line);
        assert_eq!(first.code, 0, "{}", first.seen());
        lab.write("config/weighbridge/tests.d/load.sh", &printing(4000));
        let second = lab.weighbridge(&line);
        assert_eq!(second.code, 1, "{}", second.seen());
        assert!(second.err.contains("in this folder with another `{here}/load.sh`"), "{}", second.err);
    }
}

#[test]
fn a_test_that_never_ran_to_its_end_may_be_mended_in_the_same_folder() {
    let lab = scripted();
    lab.write("config/weighbridge/tests.d/load.sh", "exit 7\n");
    assert_eq!(lab.weighbridge(&format!("run scripted {QUICK} --samples 6 --into R")).code, 3);
    lab.write("config/weighbridge/tests.d/load.sh", &printing(1000));
    let mended = lab.weighbridge(&format!("run scripted {QUICK} --samples 6 --into R"));
    assert_eq!(mended.code, 0, "{}", mended.seen());
}

#[test]
fn each_sample_records_its_script_and_one_that_changed_meanwhile_is_a_finding() {
    let lab = scripted();
    // From the third sample on it is another script.
    let script = format!("{}cd $(dirname $0); echo x >>../count; ", printing(1000));
    let script = format!("{script}test $(wc -l <../count) != 2 || (cp $0 new; echo '# edited' >>new; mv new $0)\n");
    lab.write("config/weighbridge/tests.d/load.sh", &script);
    let first = lab.weighbridge(&format!("run scripted {QUICK} --samples 6 --into R"));
    assert_eq!(first.code, 0, "{}", first.seen());
    let recorded = |sample: u32| {
        let path = format!("R/Localhost/scripted/0000/-/{sample:04}.0/provenance.json");
        let text = std::fs::read_to_string(lab.path(&path)).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        json["files"]["{here}/load.sh"].as_str().unwrap().to_owned()
    };
    assert_eq!(recorded(0), recorded(1));
    assert_ne!(recorded(1), recorded(2));
    assert_eq!(recorded(2), recorded(5));
    let summary = lab.weighbridge("summary R");
    let short = |hash: String| hash.chars().take(12).collect::<String>();
    let expected = format!(
        "the file `{{here}}/load.sh` changed between samples: SHA-256 {}… in 2 samples, SHA-256 {}… in 4 samples",
        short(recorded(1)),
        short(recorded(2))
    );
    assert!(summary.out.split_whitespace().collect::<Vec<_>>().join(" ").contains(&expected), "{}", summary.out);
}

#[test]
fn a_comparison_shows_which_script_differs() {
    let lab = scripted();
    for (folder, figure) in [("A", 1000), ("B", 4000)] {
        lab.write("config/weighbridge/tests.d/load.sh", &printing(figure));
        assert_eq!(lab.weighbridge(&format!("run scripted {QUICK} --samples 6 --into {folder}")).code, 0);
    }
    let text = lab.weighbridge("compare A B --trust-single-run");
    assert!(text.out.contains("scripted: file {here}/load.sh sha256"), "{}", text.seen());
    let json = lab.weighbridge("compare A B --trust-single-run --json").json();
    let programs = json["context"]["programs"].as_array().unwrap();
    let names: Vec<&str> = programs.iter().filter_map(|change| change["name"].as_str()).collect();
    assert_eq!(names, ["scripted: file {here}/load.sh sha256"], "{json}");
    assert_ne!(programs[0]["before"], programs[0]["after"]);
    lab.weighbridge("compare A B --trust-single-run --html AB.html");
    let page = std::fs::read_to_string(lab.path("AB.html")).unwrap();
    assert!(page.contains("load.sh sha256"), "the page has it too");
}

#[test]
fn a_failed_cell_keeps_the_hash_of_its_definition() {
    let lab = scripted();
    assert_eq!(lab.weighbridge(&format!("run scripted {QUICK} --samples 6 --into A")).code, 0);
    lab.write("config/weighbridge/tests.d/load.sh", "exit 7\n");
    assert_eq!(lab.weighbridge(&format!("run scripted {QUICK} --samples 6 --into B")).code, 3);
    let json = lab.weighbridge("compare A B --trust-single-run --json").json();
    let programs = json["context"]["programs"].as_array().unwrap();
    let names: Vec<&str> = programs.iter().filter_map(|change| change["name"].as_str()).collect();
    assert_eq!(names, ["scripted: file {here}/load.sh sha256"], "the definition is the same: {json}");
    assert!(programs[0]["after"].is_string(), "{json}");
}

#[test]
fn a_folder_of_another_machine_is_refused_also_where_its_boot_is_the_same() {
    let lab = scripted();
    assert_eq!(lab.weighbridge(&format!("run scripted {QUICK} --samples 6 --into R")).code, 0);
    let text = std::fs::read_to_string(lab.path("R/run.json")).unwrap();
    let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let facts = &mut json["entries"][0]["facts"]["local"];
    assert!(facts.is_object());
    facts["hostname"] = "elsewhere".into();
    facts["cpu_model"] = "Another CPU".into();
    lab.write("R/run.json", &json.to_string());
    let more = lab.weighbridge(&format!("run scripted {QUICK} --samples 12 --into R"));
    assert_eq!(more.code, 1, "{}", more.seen());
    assert!(more.err.contains("on another machine than `local` is: elsewhere with"), "{}", more.err);
}

#[test]
fn another_kernel_is_reported() {
    let lab = scripted();
    assert_eq!(lab.weighbridge(&format!("run scripted {QUICK} --samples 6 --into R")).code, 0);
    let text = std::fs::read_to_string(lab.path("R/run.json")).unwrap();
    let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
    json["entries"][0]["facts"]["local"]["kernel"] = "2.6.32".into();
    lab.write("R/run.json", &json.to_string());
    let more = lab.weighbridge(&format!("run scripted {QUICK} --samples 12 --into R"));
    assert_eq!(more.code, 0, "{}", more.seen());
    assert!(more.err.contains("earlier samples in this folder are of 2.6.32"), "{}", more.err);
}
