//! `import`: results of other programs.

use std::path::Path;

use crate::compare_evidence::words;
use crate::lab::{CommandResult, Lab};

/// Path of an example of results.
fn example(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../wb-import/tests/data").join(name).display().to_string()
}

/// The example of hyperfine's export, without the run that failed; its path.
fn successful_commands(lab: &Lab) -> String {
    let mut export: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(example("hyperfine.json")).unwrap()).unwrap();
    for result in export["results"].as_array_mut().unwrap() {
        result["exit_codes"].as_array_mut().unwrap().fill(0.into());
    }
    lab.write("hyperfine.json", &export.to_string()).display().to_string()
}

#[test]
fn imported_results_can_be_read_by_every_command() {
    let lab = Lab::new();
    let mut files: Vec<String> =
        ["pbench.json", "fio.json", "fio-normal-json+.txt", "iperf3-udp.json"].map(example).into();
    files.push(successful_commands(&lab));
    let ran = lab.weighbridge(&format!("import -o R --metadata build=8 {}", files.join(" "))).expect_code(0);
    ran.expect_stderr("hyperfine.json: hyperfine, 2 cells, 14 samples\n");
    for line in ["summary R", "format R", "study R", "solve R", "report R --html R/report.html --csv R/figures"] {
        let ran = lab.weighbridge(line).expect_code(0);
        assert!(!ran.err.contains("warning"), "{line}: {}", ran.err);
    }
    let page = lab.read("R/report.html");
    assert!(page.contains("hyperfine") && page.contains("6.1.0-9-amd64"));
    assert!(!lab.weighbridge("format R").out.contains("hunter2"));
    lab.weighbridge(&format!("import -o R {}", files.join(" "))).expect_code(4).expect_stderr("nothing to do");
}

#[test]
fn import_shows_what_it_read_and_no_time_of_its_own() {
    let lab = Lab::new();
    let files = [example("fio.json"), successful_commands(&lab)];
    let text = lab.weighbridge(&format!("import -o R {}", files.join(" "))).expect_code(0).out;
    let end = text.split("\n\n").find(|part| part.contains(" cells: ")).unwrap_or_else(|| panic!("{text}")).to_owned();
    insta::assert_snapshot!(end, @r"
    3 cells: 3 measured
    imported from fio.json (fio-3.33): 1 cell, 1 sample, 24 metrics
    imported from hyperfine.json (hyperfine): 2 cells, 14 samples, 2 metrics
    ");
    let summary = lab.weighbridge("summary R --json");
    assert!(!summary.out.contains("-0.0"), "{}", summary.out);
    let imports = summary.json()["run"]["imports"].clone();
    assert_eq!(imports.as_array().map(Vec::len), Some(2), "{imports}");
    lab.weighbridge("report R --html page.html").expect_code(0);
    let page = lab.read("page.html");
    assert!(page.contains("imported at") && page.contains("hyperfine.json (hyperfine): 2 cells, 14 samples"), "{page}");
    assert!(!page.contains(">took<"), "{page}");
}

#[test]
fn imported_runs_are_compared_in_the_right_direction() {
    let lab = Lab::new();
    let old = successful_commands(&lab);
    let text = std::fs::read_to_string(&old).unwrap();
    let mut slower: serde_json::Value = serde_json::from_str(&text).unwrap();
    for result in slower["results"].as_array_mut().unwrap() {
        for time in result["times"].as_array_mut().unwrap() {
            *time = (time.as_f64().unwrap() * 1.2).into();
        }
    }
    lab.write("slower.json", &slower.to_string());
    lab.weighbridge(&format!("import -o old {old}")).expect_code(0);
    lab.weighbridge("import -o new slower.json").expect_code(0);
    lab.weighbridge("compare old new --run-noise 0").expect_code(2);
    lab.weighbridge("compare new old --run-noise 0").expect_code(0);
    lab.weighbridge("compare old old").expect_code(0);
}

#[test]
fn files_that_cannot_be_imported_are_skipped_with_a_warning() {
    let lab = Lab::new();
    lab.write("in/bad.json", "{\"fio version\": \"fio-3.33\", \"jobs\": [");
    std::fs::copy(example("fio.json"), lab.path("in/good.json")).unwrap();
    let ran = lab.weighbridge("import -o R in").expect_code(3);
    let warning = "warning: in/bad.json: invalid fio results: line 1, column 37: EOF while parsing a list; skipped";
    ran.expect_stderr(warning);
    let strict = lab.weighbridge("import --strict -o S in").expect_code(1);
    assert!(strict.err.starts_with("error: in/bad.json: invalid fio results"), "{}", strict.err);
    assert!(!lab.path("S").exists());
    let alone = lab.weighbridge("import -o S in/bad.json nowhere.json").expect_code(3);
    alone.expect_stderr("error: nothing could be imported\nhelp: supported formats: pbench, fio,");
    let failed = lab.weighbridge(&format!("import -o F {}", example("google-benchmark.json"))).expect_code(3);
    failed.expect_stdout("BM_Open: no such file");
}

#[test]
fn skipped_results_exit_with_3_and_are_named_even_when_quiet() {
    let lab = Lab::new();
    let fio = std::fs::read_to_string(example("pbench.json")).unwrap();
    let files = [
        ("hyperfine", r#"{"results": [{"command": "a", "times": [1]}, {"command": "b", "mean": 1}]}"#.to_owned()),
        ("pbench", fio.replacen("[", r#"[{"iteration_name": "x-fail1", "iteration_data": {}},"#, 1)),
    ];
    for (format, text) in files {
        lab.write("some.json", &text);
        for quiet in ["", "-q "] {
            let ran = lab.weighbridge(&format!("{quiet}import -o {format}{} some.json", quiet.trim())).expect_code(3);
            ran.expect_stderr("note: some.json: skipped ");
        }
    }
}

#[test]
fn run_perf_errors_are_imported_and_non_numeric_serials_with_a_flag() {
    let lab = Lab::new();
    for attempt in ["0", "1", "2"] {
        lab.write(&format!("b/Tuned/fio/{attempt}/__error0__/exception"), "the guest did not boot");
    }
    lab.write("b/Tuned/fio/odd/result.json", &std::fs::read_to_string(example("pbench.json")).unwrap());
    std::fs::copy(example("hyperfine.json"), lab.path("b/hf.json")).unwrap();
    lab.write("b/RUNPERF_METADATA", "build:1");
    let ran = lab.weighbridge("import -o R b").expect_code(3);
    assert_eq!(ran.out.matches("failed: the guest did not boot").count(), 3, "{}", ran.out);
    ran.expect_stderr("note: skipped 1 result under a non-numeric serial");
    lab.weighbridge("import -o R b").expect_code(4);
    lab.weighbridge("import -o R --include-incorrect b").expect_code(0).expect_stdout("iteration=read-4KiB");
}

#[test]
fn invalid_arguments_are_refused() {
    let lab = Lab::new();
    let shadow = lab.weighbridge(&format!("import -o R --test fio {}", example("fio.json"))).expect_code(1);
    assert!(shadow.err.starts_with("error: invalid test name `fio` for imported results"), "{}", shadow.err);
    let format = lab.weighbridge(&format!("import -o R --format xml {}", example("fio.json"))).expect_code(1);
    format.expect_stderr("unknown format `xml`: expected one of pbench, fio, iperf3,");
    std::fs::create_dir(lab.path("empty")).unwrap();
    lab.weighbridge("import -o R empty").expect_code(4);
    lab.write("letters/mine.txt", "mine");
    let foreign = lab.weighbridge(&format!("import -o letters {}", example("fio.json"))).expect_code(1);
    foreign.expect_stderr("is not a run folder");
}

/// Runs a command of the program with no more than this much memory, in KiB of address space.
#[track_caller]
fn within_memory(lab: &Lab, kib: u64, line: &str) -> CommandResult {
    let own = lab.command(line);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &format!("ulimit -v {kib} && exec \"$@\""), "sh"]).arg(own.get_program()).args(own.get_args());
    command.current_dir(own.get_current_dir().unwrap());
    command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    lab.run_command(&mut command)
}

/// The ratio of two such cells has 10¹⁰ pairs of samples, which would take 80 GB.
#[test]
fn memory_grows_with_the_samples_of_a_cell_and_not_with_their_pairs() {
    let lab = Lab::new();
    let (samples, limit) = (100_000_u32, 1_000_000);
    for (run, level) in [("a", 0.100), ("b", 0.104)] {
        let times: Vec<f64> = (0..samples).map(|n| level + f64::from(n * 7919 % 1009) * 1e-6).collect();
        let export = serde_json::json!({ "results": [{ "command": "x", "mean": level, "times": times }] });
        lab.write(&format!("{run}.json"), &export.to_string());
        let imported = within_memory(&lab, limit, &format!("import {run}.json --into {run}")).expect_code(0);
        imported.expect_stderr("hyperfine, 1 cell, 100000 samples");
        let again = within_memory(&lab, limit, &format!("import {run}.json --into {run}")).expect_code(4);
        again.expect_stderr("100000 already in the run");
    }
    within_memory(&lab, limit, "summary a").expect_code(0).expect_stdout("100000");
    within_memory(&lab, limit, "format a").expect_code(0).expect_stdout("100000 imported samples are not listed");
    within_memory(&lab, limit, "report a --html page.html --csv figures").expect_code(0);
    assert!(lab.read("page.html").len() < 2_000_000);
    assert_eq!(lab.read("figures-samples.csv").lines().count(), 1 + samples as usize);
    let outcome = within_memory(&lab, limit, "compare a b --json").expect_code_of(&[0, 2]).json();
    let mean = outcome["checks"].as_array().unwrap().iter().find(|check| check["statistic"] == "mean").unwrap();
    assert!((mean["after"].as_f64().unwrap() / mean["before"].as_f64().unwrap() - 1.04).abs() < 0.001, "{mean}");
    // A line for each cell and file.
    assert_eq!(lab.read("a/journal.jsonl").lines().count(), 4);
}

#[test]
fn the_page_of_many_cells_has_a_row_for_each_and_details_of_selected_ones() {
    let lab = Lab::new();
    let cells = 2000;
    let result = |n: u32| serde_json::json!({ "command": format!("c{n:04}"), "times": [0.1, 0.11, 0.12] });
    let export = serde_json::json!({ "results": (0..cells).map(result).collect::<Vec<_>>() });
    lab.write("many.json", &export.to_string());
    lab.weighbridge("import many.json --into R").expect_code(0);
    lab.weighbridge("report R --html page.html").expect_code(0);
    let page = lab.read("page.html");
    assert!(page.len() < cells as usize * 1000, "{} bytes", page.len());
    assert!(page.contains("c1999") && page.contains("report --select NAME"));
    lab.weighbridge("report R --html one.html --select *c1999*").expect_code(0);
    let one = lab.read("one.html");
    assert!(one.contains("command to repeat it") && !one.contains("c1998"));
    lab.weighbridge("report R --html none.html --select nosuch*").expect_code(4);
}

/// SciPy: `fisher_exact([[0, 20], [8, 12]])` is 0.0033.
#[test]
fn imported_commands_that_fail_more_often_are_a_regression() {
    let lab = Lab::new();
    let write = |name: &str, failed: usize| {
        let times: Vec<f64> = (0..20).map(|run| 1.0 + 0.001 * f64::from(run * 7 % 20)).collect();
        let codes: Vec<i32> = (0..20).map(|run| i32::from(run < failed)).collect();
        let export = serde_json::json!({"results": [{"command": "x", "times": times, "exit_codes": codes}]});
        lab.write(&format!("{name}.json"), &export.to_string());
        // From three failed runs in succession on a cell lacks samples, as of any imported file.
        lab.weighbridge(&format!("import -o {name} {name}.json")).expect_code(if failed >= 3 { 3 } else { 0 });
    };
    for (name, failed) in [("none", 0), ("one", 1), ("many", 8)] {
        write(name, failed);
    }
    let compared = lab.weighbridge("compare none many --json").expect_code(2).json();
    let check = &compared["checks"][0];
    assert_eq!(check["final_verdict"], "regressed", "{check}");
    assert_eq!(
        check["failures"],
        serde_json::json!([{"failed": 0, "attempts": 20}, {"failed": 8, "attempts": 20}]),
        "{check}"
    );
    lab.weighbridge("compare none one").expect_code(0);
    lab.weighbridge("compare many none").expect_code(3);
}

/// An export of hyperfine of a command with 12 runs, which end with these statuses in turn, by parameter `build`.
fn export_with_statuses(commands: &[(&str, &[i32])]) -> String {
    let results = commands.iter().map(|(build, codes)| {
        let times: Vec<f64> = (0..12).map(|run| 1.0 + 0.001 * f64::from(run * 7 % 12)).collect();
        let codes: Vec<i32> = codes.iter().copied().cycle().take(12).collect();
        serde_json::json!({"command": "x", "times": times, "exit_codes": codes, "parameters": {"build": build}})
    });
    serde_json::json!({ "results": results.collect::<Vec<_>>() }).to_string()
}

#[test]
fn a_command_that_never_succeeds_fails_only_beside_one_that_does() {
    let lab = Lab::new();
    let cases: [(&str, &[i32]); 7] = [
        ("ok", &[0]),
        ("one", &[1]),
        ("two", &[2]),
        ("mostly-one", &[1, 1, 1, 1, 1, 1, 3]),
        ("flaky", &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
        ("crash", &[139]),
        ("aborted", &[134]),
    ];
    for (name, codes) in cases {
        lab.write(&format!("{name}.json"), &export_with_statuses(&[("b", codes)]));
        let signals = codes[0] > 128;
        lab.weighbridge(&format!("import -o {name} {name}.json")).expect_code(if signals { 3 } else { 0 });
        let more = export_with_statuses(&[("b", codes)]).replace("1.001", "1.0012");
        lab.write("more.json", &more);
        lab.weighbridge(&format!("import -o more-{name} more.json")).expect_code(if signals { 3 } else { 0 });
    }
    let summary = words(&lab.weighbridge("summary one").expect_code(0).out);
    assert!(summary.contains("the command ends with exit status 1 and never with 0"), "{summary}");
    for (sides, verdict, code) in [
        ("ok one", "regressed", 2),
        ("ok crash", "regressed", 2),
        ("ok mostly-one", "regressed", 2),
        ("flaky one", "regressed", 2),
        ("one crash", "regressed", 2),
        ("one more-one", "equivalent", 0),
        ("one mostly-one", "equivalent", 0),
        ("one two", "incomparable", 4),
        ("one ok", "invalid", 3),
        ("ok more-ok,one", "regressed", 2),
    ] {
        let compared = lab.weighbridge(&format!("compare {sides} --json")).expect_code(code).json();
        assert_eq!(compared["checks"][0]["final_verdict"], verdict, "{sides}: {}", compared["checks"][0]);
    }
    let first = lab.weighbridge("compare ok one").expect_code(2).out;
    assert!(words(&first).contains("0 of 12 → 12 of 12 failed"), "{first}");
    assert!(
        words(&first).contains("`one` failed: exit status `1` of the command, which ends with 0 in `ok`"),
        "{first}"
    );

    // A later file of the same run decides, too.
    lab.write("ok-again.json", &export_with_statuses(&[("b", &[0])]).replace("1.0", "1.1"));
    lab.weighbridge("import -o one ok-again.json").expect_code(3);
    let summary = words(&lab.weighbridge("summary one").expect_code(3).out);
    assert!(summary.contains("12 of 24 attempts failed"), "{summary}");

    // Parts of one run are sides as builds are.
    lab.write("both.json", &export_with_statuses(&[("old", &[0]), ("new", &[1])]));
    lab.weighbridge("import -o both both.json").expect_code(0);
    let compared = lab.weighbridge("compare both --by build --json").expect_code(2).json();
    let check = &compared["checks"][0];
    assert_eq!(check["failures"][1], serde_json::json!({"failed": 12, "attempts": 12}), "{check}");
}

/// A `composite.xml` of a system with this setting of transparent huge pages.
fn write_composite(lab: &Lab, name: &str, huge_pages: &str) {
    let attributes = format!(
        "{{&quot;kernel-extra-details&quot;:&quot;Transparent Huge Pages: {huge_pages}&quot;,\
         &quot;security&quot;:&quot;l1tf: Not affected&quot;,&quot;compiler-configuration&quot;:&quot;--with-{name}&quot;}}"
    );
    let raw: Vec<String> = (0..9).map(|run| format!("12.{}", run * 4 % 9)).collect();
    let text = format!(
        "<?xml version=\"1.0\"?><PhoronixTestSuite><System><Identifier>s</Identifier>\
         <Hardware>Processor: X, Memory: 2 x 16GB DDR4</Hardware><Software>OS: Oracle Linux 8.5, Compiler: GCC 8.5.0\
         </Software><JSON>{attributes}</JSON></System><Result><Identifier>pts/t-1.0.0</Identifier><Title>T</Title>\
         <Scale>Seconds</Scale><Proportion>LIB</Proportion><Data><Entry><Identifier>s</Identifier>\
         <Value>12.4</Value><RawString>{}</RawString></Entry></Data></Result></PhoronixTestSuite>",
        raw.join(":")
    );
    lab.write(&format!("{name}.xml"), &text);
    lab.weighbridge(&format!("import -o {name} {name}.xml")).expect_code(0);
}

#[test]
fn the_systems_of_phoronix_are_compared_setting_by_setting() {
    let lab = Lab::new();
    write_composite(&lab, "one", "always");
    write_composite(&lab, "other", "madvise");
    let compared = words(&lab.weighbridge("compare one other").expect_code(0).out);
    for difference in [
        "Localhost, memory: 1 difference transparent-huge-pages.enabled always → madvise",
        "Localhost, phoronix: 1 difference compiler-configuration --with-one → --with-other",
    ] {
        assert!(compared.contains(difference), "{difference}: {compared}");
    }
    let page = lab.weighbridge("report one --html page.html").expect_code(0);
    assert!(lab.read("page.html").contains("Oracle Linux 8.5"), "{}", page.transcript());
    for row in ["32 GiB", "GCC 8.5.0", "transparent always"] {
        assert!(lab.read("page.html").contains(row), "{row}");
    }
}

/// Of two systems in one file, the first has a second result, which differs from the other in its arguments alone.
#[test]
fn two_systems_of_one_file_are_compared_as_its_help_says() {
    let lab = Lab::new();
    let entry = |system: &str, first: u32| {
        let runs: Vec<String> = (0..9).map(|run| format!("{first}.{}", run * 4 % 9)).collect();
        format!("<Entry><Identifier>{system}</Identifier><RawString>{}</RawString></Entry>", runs.join(":"))
    };
    let result = |arguments: &str, entries: &str| {
        format!(
            "<Result><Identifier>pts/t-1.0.0</Identifier><Title>T</Title><Arguments>{arguments}</Arguments>\
             <Scale>Seconds</Scale><Proportion>LIB</Proportion><Data>{entries}</Data></Result>"
        )
    };
    let results = result("", &(entry("old kernel", 12) + &entry("new", 15))) + &result("-x", &entry("old kernel", 7));
    lab.write("c.xml", &format!("<?xml version=\"1.0\"?><PhoronixTestSuite>{results}</PhoronixTestSuite>"));
    lab.weighbridge("import -o both c.xml").expect_code(0);
    let command = "compare a=both b=both --map old-kernel=new";
    for by in ["profile", "worker"] {
        let refused = lab.weighbridge(&format!("compare both --by {by}"));
        assert_ne!(refused.code, 0);
        refused.expect_stderr(&format!("`weighbridge {command}` compares its profiles old-kernel and new"));
    }
    lab.weighbridge("import -o new c.xml --system new").expect_code(0);
    let mut old = lab.command("import -o old c.xml --system");
    lab.run_command(old.arg("old kernel")).expect_code(0);
    for command in [command, "compare old new"] {
        let compared = words(&lab.weighbridge(command).expect_code(2).out);
        assert!(compared.contains("regressed 1 errors 1: 1 missing"), "{compared}");
    }
}
