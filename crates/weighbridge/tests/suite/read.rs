//! Reading a run: `summary`, `format`, `study`, `solve`, `report`.

use crate::lab::{Lab, copy_folder};

fn lab_with_run() -> Lab {
    let lab = Lab::new();
    let ran = lab.weighbridge("run steady:kind=[a,b] --min-time 1ms --samples 6 --retakes 0 --precision 100 --into R");
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    lab
}

#[test]
fn run_can_be_read_by_every_command() {
    let lab = lab_with_run();
    for line in ["summary R", "format R", "format R --select *kind=a", "study R", "solve R"] {
        lab.weighbridge(line).expect_code(0);
        let json = lab.weighbridge(&format!("{line} --json")).expect_code(0);
        json.json();
    }
    lab.weighbridge("format R --select nosuch").expect_code(4);
}

#[test]
fn cells_of_a_run_are_selected_by_parameters() {
    let lab = lab_with_run();
    for command in ["summary", "format", "report", "study"] {
        let ran = lab.weighbridge(&format!("{command} R --select kind=b,aslr=inherit --json")).expect_code(0);
        let json = ran.json();
        let cells = json.get("cells").unwrap_or(&json).as_array().unwrap();
        let ids: Vec<&str> = cells.iter().map(|cell| cell["id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["Localhost/steady/0000:kind=b"], "{command}");
        let ran = lab.weighbridge(&format!("{command} R --select kind=z")).expect_code(4);
        ran.expect_stderr("error: no cell has `kind=z`").expect_stderr("help: `kind` is a, b in these cells");
    }
    let ran = lab.weighbridge("compare R R --select kind=b --json");
    let json = ran.json();
    let checks = json["checks"].as_array().unwrap();
    assert!(!checks.is_empty() && checks.iter().all(|check| check["id"].as_str().unwrap().contains(":kind=b/")));
    lab.weighbridge("compare R R --ignore knd=b").expect_code(4).expect_stderr("did you mean `kind`?");
    // All values are written, also those of cells that are not printed.
    let results = lab.read("R/Localhost/steady/0000/result.json");
    lab.weighbridge("study R --select kind=b").expect_code(0);
    assert_eq!(lab.read("R/Localhost/steady/0000/result.json"), results);
}

#[test]
fn every_command_that_reads_builds_selects_cells() {
    let lab = lab_with_run();
    let commands = [
        "compare R a=R",
        "analyze R a=R",
        "nearest R b=R c=R",
        "model fit --linear -o m.json R a=R",
        "model rebase --linear -o n.json all.json R a=R",
        "solve R",
    ];
    lab.weighbridge("model fit --linear -o all.json R a=R").expect_code(0);
    for line in commands {
        lab.weighbridge(&format!("{line} --select kind=b")).expect_code_of(&[0, 2, 3]);
        let ran = lab.weighbridge(&format!("{line} --select knd=b")).expect_code(4);
        assert!(ran.err.contains("did you mean `kind`?"), "{line}: {}", ran.transcript());
    }
    for (line, all) in [("analyze R a=R", 2), ("analyze R a=R --select kind=b", 1)] {
        let table = lab.weighbridge(line).expect_code(0).out.clone();
        let kinds = ["kind=a", "kind=b"].into_iter().filter(|kind| table.contains(kind)).count();
        assert_eq!(kinds, all, "{line}: {table}");
    }
    let [model, selected] = ["all.json", "m.json"].map(|file| lab.read(file));
    assert!(model.contains("kind=a") && !selected.contains("kind=a") && selected.contains("kind=b"), "{selected}");
}

#[test]
fn a_misspelt_run_folder_gets_a_suggestion() {
    let lab = lab_with_run();
    for name in ["build-1", "build-2", "runs/first"] {
        copy_folder(&lab.path("R"), &lab.path(name));
    }
    std::fs::create_dir(lab.path("bulid-3")).unwrap();
    let commands = ["report", "summary", "format", "study", "solve", "pack -o p", "snapshot -o s", "peers report"];
    for command in commands {
        for (given, near) in [("latst", "latest"), ("bulid-1", "build-1"), ("runs/frist", "runs/first")] {
            let ran = lab.weighbridge(&format!("{command} {given}")).expect_code(1);
            ran.expect_stderr(&format!("error: no such run folder: `{given}`\nhelp: did you mean `{near}`?"));
        }
    }
    let builds = [
        "compare bulid-1 build-2",
        "analyze build-1 new=bulid-2",
        "nearest build-1 bulid-2 R",
        "compare R a=R,bulid-1",
    ];
    for line in builds {
        lab.weighbridge(line)
            .expect_code(1)
            .expect_stderr("no such run folder: `bulid-")
            .expect_stderr("did you mean `build-");
    }
    lab.weighbridge("report entirely-different").expect_code(1).expect_stderr("entirely-different");
}

#[test]
fn a_removed_option_names_what_replaces_it() {
    let lab = Lab::new();
    lab.weighbridge("compare R S --trust-single-run")
        .expect_code(1)
        .expect_stderr("error: `--trust-single-run` was removed\nhelp: write `--run-noise 0` instead");
    lab.weighbridge("summary R --trust-single-run").expect_code(1).expect_stderr("unknown option `--trust-single-run`");
}

/// Makes the first invocation of a run begin at another time.
fn set_started(lab: &Lab, run: &str, started: &str) {
    let mut file = lab.read_json(format!("{run}/run.json"));
    file["invocations"][0]["started"] = started.into();
    lab.write(&format!("{run}/run.json"), &file.to_string());
}

#[test]
fn latest_is_the_run_that_started_last() {
    let lab = lab_with_run();
    copy_folder(&lab.path("R"), &lab.path("newest"));
    copy_folder(&lab.path("R"), &lab.path("written-last"));
    std::fs::create_dir(lab.path("zzz")).unwrap();
    set_started(&lab, "newest", "2100-01-01T00:00:00Z");
    set_started(&lab, "written-last", "2001-01-01T00:00:00Z");
    for line in ["report", "summary", "format", "study", "solve", "pack -o p.tar.gz", "snapshot -o s.tar.gz"] {
        for argument in ["", " latest"] {
            let ran = lab.weighbridge(&format!("{line}{argument}")).expect_code(0);
            for archive in ["p.tar.gz", "s.tar.gz"] {
                // Absent after commands that write none.
                let _ = std::fs::remove_file(lab.path(archive));
            }
            assert_eq!(ran.err.lines().next(), Some("note: latest run: newest"), "{line}{argument}");
        }
    }
    let ran = lab.weighbridge("compare R b=latest --json");
    ran.expect_stderr("note: latest run: newest\n");
    let named = lab.weighbridge("compare R b=newest --json");
    assert_eq!(ran.json(), named.json());
    // A folder of this name is what it says.
    copy_folder(&lab.path("R"), &lab.path("latest"));
    let ran = lab.weighbridge("summary latest --json").expect_code(0);
    assert_eq!((ran.json()["run"]["name"].as_str(), ran.err.as_str()), (Some("latest"), ""));
}

#[test]
fn without_a_run_the_searched_folder_is_named() {
    let lab = Lab::new();
    let lines = [
        "report",
        "summary latest",
        "format",
        "study",
        "pack",
        "snapshot latest",
        "peers report",
        "peers report latest",
        "compare latest latest",
    ];
    for line in lines {
        let ran = lab.weighbridge(line).expect_code(1);
        ran.expect_stderr(&format!("error: no run in {}\n", lab.path("").canonicalize().unwrap().display()));
    }
}

#[test]
fn study_is_reproducible() {
    let lab = lab_with_run();
    let path = lab.path("R/Localhost/steady/0000/result.json");
    let before = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    lab.weighbridge("study R").expect_code(0);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), before);
}

#[test]
fn pages_and_tables_are_written() {
    let lab = lab_with_run();
    lab.weighbridge("report R --html R/report.html --csv R/figures").expect_code(0);
    let page = lab.read("R/report.html");
    assert!(page.contains("kind=a") && page.contains("<svg"), "the page shows its cells");
    let csv = lab.read("R/figures.csv");
    assert_eq!(csv.lines().count(), 1 + 2, "{csv}");
    let samples = lab.read("R/figures-samples.csv");
    assert!(samples.lines().count() > 12, "{samples}");
    // The name of the file as a prefix writes the same files.
    lab.weighbridge("report R --csv other.csv")
        .expect_code(0)
        .expect_stderr("figures: other.csv and other-samples.csv");
    assert_eq!((lab.read("other.csv"), lab.read("other-samples.csv")), (csv, samples));
}

#[test]
fn unreadable_telemetry_causes_a_warning() {
    let lab = lab_with_run();
    let study = lab.weighbridge("summary R --json").json();
    let folder = study["cells"][0]["attempts"][1]["folder"].as_str().unwrap();
    lab.write(&format!("R/{folder}/telemetry.json"), "{");
    let ran = lab.weighbridge("report R --html R/report.html").expect_code(3);
    ran.expect_stderr(&format!("warning: the page has no telemetry of {folder}: "));
}

#[test]
fn measured_system_is_described() {
    let lab = lab_with_run();
    let output = lab.weighbridge("format R --select *kind=a").out;
    let table = output.split("\nsystem ").nth(1).unwrap();
    for property in ["memory", "kernel", "file system"] {
        assert!(table.contains(&format!("\n  {property} ")), "{property}: {output}");
    }
    let systems = &lab.weighbridge("summary R --json").json()["run"]["systems"];
    assert_eq!(systems.as_array().map(Vec::len), Some(1), "{systems}");
    lab.weighbridge("report R --html R/report.html").expect_code(0);
    assert!(lab.read("R/report.html").contains("class=\"systems\""));
}

#[test]
fn doctor_exit_status_matches_its_findings() {
    let lab = Lab::new();
    let ran = lab.weighbridge("doctor --json");
    let noisy = ran.json()["findings"].as_array().unwrap().iter().any(|finding| finding["verdict"] == "noisy");
    assert_eq!(ran.code, if noisy { 3 } else { 0 });
    assert!(lab.weighbridge("doctor --all").out.contains("no noise"));
}

#[test]
fn environment_change_between_invocations_is_reported() {
    let lab = Lab::new();
    let run = |samples: u32, threads: &str| {
        let mut command =
            lab.command(&format!("run steady --min-time 1ms --warm-up 0 --samples {samples} --into R -q"));
        command.env("OMP_NUM_THREADS", threads);
        assert!(command.output().unwrap().status.success());
        lab.weighbridge("summary R").out
    };
    let changed = "the environment changed during the run";
    assert!(!run(6, "1").contains("OMP_NUM_THREADS"));
    assert!(!run(7, "1").contains("OMP_NUM_THREADS"));
    let summary = run(8, "2");
    let line = summary.lines().find(|line| line.contains("variables/OMP_NUM_THREADS"));
    assert!(summary.contains(changed) && line.is_some_and(|line| line.contains("1 → 2")), "{summary}");
}

#[test]
fn secrets_in_the_environment_are_not_recorded() {
    let lab = Lab::new();
    let planted = "s3cr3t-Pl4nted";
    let mut command = lab.command("run steady --min-time 1ms --samples 6 --retakes 0 --into R --metadata note=fine");
    command.env("MY_TOKEN", planted).env("AWS_SECRET_ACCESS_KEY", planted).env("LD_CONFIG_PASSWORD", planted);
    command.args(["--tool", &format!("true --password={planted}")]);
    assert!(command.output().unwrap().status.success());
    let found =
        std::process::Command::new("grep").args(["-rl", planted, "R"]).current_dir(lab.path("")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
}
