//! Scripts of tests that changed between runs: resuming is refused, and comparisons show them.

use crate::lab::{Lab, RANDOM};

const QUICK: &str = "--min-time 1ms --warm-up 0";

/// A test that runs a script beside its definition.
const SCRIPT: &str = r#"
name = "scripted"
summary = "a figure printed by a script beside the definition"
version = 1
command = ["sh", "{definition-folder}/load.sh"]
"#;

fn printing(figure: u32) -> String {
    format!("{RANDOM}\necho figure: $(({figure} + 0x$random % 5))\n")
}

/// A lab with the test `scripted`, whose script prints about 1000.
fn scripted() -> Lab {
    let lab = Lab::new();
    lab.define_figure("scripted", SCRIPT);
    lab.write("config/weighbridge/tests.d/load.sh", &printing(1000));
    lab
}

/// Replaces each abbreviated hash in a text by `HASH`.
fn without_hashes(text: &str) -> String {
    let is_hash = |word: &str| word.len() == 12 && word.chars().all(|digit| digit.is_ascii_hexdigit());
    let words = text.split([' ', '(', ',', ')']).filter(|word| is_hash(word));
    words.fold(text.to_owned(), |text, hash| text.replace(hash, "HASH"))
}

#[test]
fn resuming_with_an_edited_script_is_refused() {
    let lab = scripted();
    lab.weighbridge(&format!("run scripted {QUICK} --samples 6 --into R")).expect_code(0);
    lab.write("config/weighbridge/tests.d/load.sh", &printing(4000));
    let second = lab.weighbridge(&format!("run scripted {QUICK} --samples 12 --into R")).expect_code(1);
    insta::assert_snapshot!(without_hashes(&second.err), @r"
    error: `Localhost/scripted/0000:-` was measured in this folder with another `{definition-folder}/load.sh` (HASH, now HASH)
    help: choose another folder with --into: samples of two definitions cannot be combined
    ");
}

#[test]
fn resuming_an_experiment_with_an_edited_script_is_refused() {
    let lab = scripted();
    for line in ["ab scripted --into A -- base more:env:A=1", "calibrate scripted --runs 2 --samples 3 --into C"] {
        let line = line.replacen(" --into", &format!(" {QUICK} --into"), 1);
        lab.write("config/weighbridge/tests.d/load.sh", &printing(1000));
        lab.weighbridge(&line).expect_code(0);
        lab.write("config/weighbridge/tests.d/load.sh", &printing(4000));
        lab.weighbridge(&line)
            .expect_code(1)
            .expect_stderr("in this folder with another `{definition-folder}/load.sh`");
    }
}

#[test]
fn comparison_shows_the_differing_script() {
    let lab = scripted();
    for (folder, figure) in [("A", 1000), ("B", 4000)] {
        lab.write("config/weighbridge/tests.d/load.sh", &printing(figure));
        lab.weighbridge(&format!("run scripted {QUICK} --samples 6 --into {folder}")).expect_code(0);
    }
    lab.weighbridge("compare A B --run-noise 0").expect_stdout("scripted: file {definition-folder}/load.sh sha256");
    let json = lab.weighbridge("compare A B --run-noise 0 --json").json();
    let programs = json["context"]["programs"].as_array().unwrap();
    let names: Vec<&str> = programs.iter().filter_map(|change| change["name"].as_str()).collect();
    assert_eq!(names, ["scripted: file {definition-folder}/load.sh sha256"], "{json}");
    assert_ne!(programs[0]["before"], programs[0]["after"]);
    lab.weighbridge("compare A B --run-noise 0 --html AB.html");
    let page = lab.read("AB.html");
    assert!(page.contains("load.sh sha256"), "the page shows it, too");
}

#[test]
fn a_min_time_that_calibrated_cells_ignore_is_a_warning_even_when_quiet() {
    let lab = Lab::new();
    // A unit of work takes a millisecond.
    lab.define_figure(
        "calibrated",
        "name = \"calibrated\"\nsummary = \"sleeps for its work\"\nversion = 1\nwork.start = 10\n\
         command = [\"sh\", \"-c\", \"sleep $(printf 0.%03d $1); echo figure: 1\", \"sh\", \"{work}\"]\n",
    );
    let run = |samples: u32, min_time: &str| {
        let line =
            format!("run calibrated -q --min-time {min_time} --samples {samples} --warm-up 0 --retakes 0 --into R");
        lab.weighbridge(&line).expect_code_of(&[0, 3]).err
    };
    let ignored = |min_time: &str| {
        format!(
            "warning: cells with samples keep their calibrated work (min-time 50ms); the new min-time {min_time} is ignored \
             for them"
        )
    };
    assert!(!run(1, "50ms").contains("calibrated work"));
    let second = run(2, "100ms");
    assert!(second.contains(&ignored("100ms")), "{second}");
    // Compared with the invocation that calibrated, not with the last one.
    let third = run(3, "100ms");
    assert!(third.contains(&ignored("100ms")), "{third}");
    let fourth = run(4, "50ms");
    assert!(!fourth.contains("calibrated work"), "{fourth}");
}

#[test]
fn several_runs_are_recorded_apart_and_compared_as_one_build() {
    let lab = Lab::new();
    let line = format!("run steady {QUICK} --samples 6 -q --runs 3 --into");
    lab.weighbridge(&format!("{line} R")).expect_code(0);
    lab.weighbridge(&format!("{line} R")).expect_code(4);
    for run in ["R-1", "R-2", "R-3"] {
        assert_eq!(lab.weighbridge(&format!("summary {run}")).code, 0);
    }
    assert!(!lab.path("R").exists() && !lab.path("R-4").exists());
    lab.weighbridge(&format!("{line} S")).expect_code(0);
    let outcome = lab.weighbridge("compare old=R-1,R-2,R-3 new=S-1,S-2,S-3 --json").expect_code(0).json();
    assert_eq!(outcome["checks"][0]["runs"], serde_json::json!([3, 3]));
    lab.weighbridge(&format!("run steady {QUICK} --runs 2")).expect_code(1).expect_stderr("the runs are R-1 to R-2");
    lab.weighbridge(&format!("run steady {QUICK} --runs 2 --into T --json")).expect_code(1);
}
