//! Profiles without guests: applied to hosts and reverted.

use std::path::PathBuf;
use std::process::Child;

use wb_test_net::{kill_after_children, suspend, wait_until};

use crate::json_schema::validate;
use crate::lab::Lab;

const QUICK: &str = "--min-time 1ms --warm-up 0 --samples 6 --into R";

/// Defines a profile with a file and a command, both in the lab's folder.
fn define_profile(lab: &Lab) -> [PathBuf; 2] {
    define_file_and_flag(lab, "summary = \"a file and a flag\"\ntests = [\"steady:kind=b\", \"$@\"]\n\n")
}

/// Defines a profile with a file and a command, both in the lab's folder, after these lines.
pub(crate) fn define_file_and_flag(lab: &Lab, head: &str) -> [PathBuf; 2] {
    let [file, flag] = ["state.conf", "flag"].map(|name| lab.path(name));
    let text = format!(
        "{head}[[files]]\npath = \"{}\"\ntext = \"measuring\\n\"\n\n[[commands]]\nname = \"the flag\"\n\
         check = \"test -e {flag}\"\napply = \"touch {flag}\"\nrevert = \"rm {flag}\"\n",
        file.display(),
        flag = flag.display()
    );
    lab.write("config/weighbridge/profiles.d/Mine.toml", &text);
    lab.write("state.conf", "as it was\n");
    [file, flag]
}

/// Kills a run and its agents, so that neither can revert anything.
fn kill_with_agents(run: Child) {
    suspend(&run);
    kill_after_children(run);
}

#[test]
fn custom_profile_is_applied_measured_and_reverted() {
    let Some(lab) = Lab::with_own_state() else { return };
    let [file, flag] = define_profile(&lab);
    // The test sees the changes of the profile.
    let (file_path, flag_path) = (file.display(), flag.display());
    let sees = format!("grep -q measuring {file_path} && test -e {flag_path} && sleep 0.02 && echo figure: 1");
    lab.define_script("sees", &sees);
    let study = lab.weighbridge(&format!("run sees --profiles Mine {QUICK} --json")).expect_code(0).json();
    let cells: Vec<&str> = study["cells"].as_array().unwrap().iter().map(|cell| cell["id"].as_str().unwrap()).collect();
    assert_eq!(cells, ["Mine/steady/0000:kind=b", "Mine/sees/0000:-"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "as it was\n");
    assert!(!flag.exists());
    let text = lab.read("R/environment/profile-0.json");
    assert!(text.contains("\"name\": \"Mine\"") && text.contains("state.conf"), "{text}");
    let schema = lab.weighbridge("schema profile-state").json();
    validate(&schema, &serde_json::from_str(&text).unwrap()).unwrap_or_else(|error| panic!("{error}"));
    // Nothing is measured again, and nothing stays changed.
    lab.weighbridge(&format!("run sees --profiles Mine {QUICK}")).expect_code(4);
    assert!(!flag.exists());
}

#[test]
fn host_is_reverted_after_a_killed_run() {
    let Some(lab) = Lab::with_own_state() else { return };
    let [file, flag] = define_profile(&lab);
    lab.define_script("long", "sleep 100; echo figure: 1");
    for both in [false, true] {
        let mut run = lab.start(&format!("run long --profiles Mine --min-time 1ms --into R{both}"));
        let measures = || {
            let journal = lab.path(&format!("R{both}/journal.jsonl"));
            std::fs::read_to_string(journal).is_ok_and(|text| text.contains("Mine/long"))
        };
        wait_until("the long test to start", measures);
        assert!(flag.exists() && std::fs::read_to_string(&file).unwrap() == "measuring\n");
        if both {
            kill_with_agents(run);
            assert!(flag.exists());
            lab.weighbridge("profile revert").expect_code(0).expect_stdout("the flag: restored");
        } else {
            run.kill().unwrap();
            run.wait().unwrap();
        }
        wait_until("the host to be reverted", || {
            !flag.exists() && std::fs::read_to_string(&file).is_ok_and(|text| text == "as it was\n")
        });
    }
    assert_eq!(lab.weighbridge("profile revert").out, "`local`: nothing to revert\n");
}

#[test]
fn value_changed_by_somebody_else_is_left_and_reported() {
    let Some(lab) = Lab::with_own_state() else { return };
    let [file, flag] = define_profile(&lab);
    lab.define_script("changes", &format!("echo mine > {}; sleep 0.02; echo figure: 1", file.display()));
    let ran = lab.weighbridge(&format!("run changes --profiles Mine {QUICK}")).expect_code(0);
    ran.expect_stderr("left at `mine`, since something else changed it");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine\n");
    assert!(!flag.exists());
}

#[test]
fn profile_that_cannot_be_applied_does_not_stop_the_others() {
    let Some(lab) = Lab::with_own_state() else { return };
    lab.write(
        "config/weighbridge/profiles.d/Wrong.toml",
        "[[commands]]\nname = 'it'\ncheck = 'false'\napply = 'echo no >&2; exit 3'\nrevert = 'true'\n",
    );
    let ran = lab.weighbridge(&format!("run steady --profiles Wrong,Localhost {QUICK} --json")).expect_code(3);
    ran.expect_stderr("warning: `Wrong` on `local`: ").expect_stderr("exit status: 3");
    let cells = ran.json()["cells"].clone();
    let wrong = cells.as_array().unwrap().iter().find(|cell| cell["id"] == "Wrong/steady/0000:kind=a").unwrap();
    assert_eq!(wrong["outcome"]["outcome"], "unsupported", "{cells}");
    assert!(wrong["outcome"].to_string().contains("exit status: 3") && cells.as_array().unwrap().len() == 2, "{cells}");
    // Once it can be, the same command resumes.
    lab.write(
        "config/weighbridge/profiles.d/Wrong.toml",
        "[[commands]]\nname = 'it'\ncheck = 'true'\napply = 'true'\nrevert = 'true'\n",
    );
    let right = lab.weighbridge(&format!("run steady --profiles Wrong,Localhost {QUICK} --json"));
    let cells = right.json()["cells"].clone();
    let measured = |cell: &serde_json::Value| cell["outcome"]["outcome"] == "measured";
    assert!(right.code == 0 && cells.as_array().unwrap().iter().all(measured), "{}", right.transcript());
    lab.write(
        "config/weighbridge/profiles.d/Wrong.toml",
        "[[commands]]\nname = 'it'\ncheck = 'false'\napply = 'exit 3'\nrevert = 'true'\n",
    );
    lab.weighbridge("run steady --profiles Wrong --into S").expect_code(1);
    // Its command was executed on the machine, which is recorded.
    lab.weighbridge("summary S").expect_code_of(&[0, 3]).expect_stdout("exit status: 3");
}

#[test]
fn invalid_profiles_are_refused_with_help() {
    let lab = Lab::new();
    let seen = |line: &str| lab.weighbridge(line).transcript();
    let all = [
        seen("plan steady --no-worker --profiles Lokalhost"),
        seen("plan steady --no-worker --profiles Localhost:{\"force_no_vms\":2}"),
        seen("plan steady --no-worker --profiles DefaultLibvirt:{\"image\":\"debain-12\"}"),
        seen("plan steady --no-worker --profiles TunedHost:{\"sets\":[\"loud\"]}"),
        seen("plan steady --no-worker --profiles Localhost,Localhost"),
        seen("ab steady a:param:kind=a b:param:kind=b --profiles Localhost,TunedHost --into R"),
        seen("profile show Nope"),
    ];
    insta::assert_snapshot!(all.join("\n"));
    lab.write("config/weighbridge/profiles.d/Bad.toml", "summary = 'x'\nknob = 1\n");
    lab.weighbridge("profile list").expect_code(1).expect_stderr("unknown field `knob`");
}

#[test]
fn profiles_are_listed_shown_and_planned() {
    let lab = Lab::new();
    let seen = |line: &str| lab.weighbridge(line).transcript();
    let all = [
        seen("profile list"),
        seen("profile show DefaultLibvirtMulti"),
        seen("plan steady --no-worker --profiles Localhost,DefaultLibvirt"),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn run_folder_has_one_definition_of_a_profile_without_its_secrets() {
    let Some(lab) = Lab::with_own_state() else { return };
    let [file, _] = define_profile(&lab);
    let profile = |more: &str| {
        let text = format!(
            "summary = \"mine\"\n{more}\n[[files]]\npath = \"{}\"\ntext = \"password = planted-one\\nport = 1\\n\"\n\
             [[commands]]\nname = \"c\"\ncheck = \"true\"\napply = \"x --token planted-two\"\nrevert = \"true\"\n",
            file.display()
        );
        lab.write("config/weighbridge/profiles.d/Mine.toml", &text);
    };
    profile("");
    lab.weighbridge(&format!("run steady --profiles Mine {QUICK}")).expect_code_of(&[0, 3]);
    let recorded = lab.read("R/environment/profile-0.json");
    assert!(recorded.contains("port = 1") && !recorded.contains("planted"), "{recorded}");
    // The tests of a profile are not part of its definition.
    profile("tests = [\"$@\"]");
    lab.weighbridge(&format!("run steady --profiles Mine {QUICK}")).expect_code(4);
    // Also if all cells are measured, which is found before guests are started.
    for more in ["[knobs]\naslr = 1", "[guests]\ncpus = 1\nimage = \"debian-12\""] {
        profile(more);
        let ran = lab.weighbridge(&format!("run steady --profiles Mine {QUICK}")).expect_code(1);
        ran.expect_stderr("R was measured with a different definition of profile `Mine`");
    }
}

#[test]
fn edited_set_changes_the_profile() {
    let Some(lab) = Lab::with_own_state() else { return };
    let set = |scheduler: &str| {
        let text = format!("summary = \"db\"\n[knobs]\n\"io-scheduler@nosuchdisk\" = \"{scheduler}\"\n");
        lab.write("config/weighbridge/knobs.d/db.toml", &text);
    };
    lab.write("config/weighbridge/profiles.d/Db.toml", "summary = \"a database's\"\nsets = [\"db\"]\n");
    set("none");
    lab.weighbridge(&format!("run steady --profiles Db {QUICK}")).expect_code_of(&[0, 3]);
    lab.weighbridge(&format!("run steady --profiles Db {QUICK}")).expect_code(4);
    set("mq-deadline");
    let ran = lab.weighbridge(&format!("run steady --profiles Db {QUICK}")).expect_code(1);
    ran.expect_stderr("R was measured with a different definition of profile `Db`");
}

#[test]
fn command_without_effect_is_an_error() {
    let Some(lab) = Lab::with_own_state() else { return };
    let text =
        "summary = \"idle\"\n[[commands]]\nname = \"idle\"\ncheck = \"false\"\napply = \"true\"\nrevert = \"true\"\n";
    lab.write("config/weighbridge/profiles.d/Idle.toml", text);
    let ran = lab.weighbridge(&format!("run steady --profiles Idle {QUICK}")).expect_code(1);
    ran.expect_stderr("command `idle` had no effect");
}

#[test]
fn runs_differ_only_if_the_content_of_their_profile_differs() {
    let Some(lab) = Lab::with_own_state() else { return };
    let [file, flag] = define_profile(&lab);
    let quick = QUICK.trim_end_matches("--into R");
    let run = |name: &str| {
        let ran = lab.weighbridge(&format!("run steady --profiles Mine {quick} --into {name}"));
        assert!([0, 3].contains(&ran.code), "{}", ran.transcript());
    };
    // Other tests may run on this machine meanwhile, so only the sections of the profile are compared.
    let differing = |one: &str, other: &str| {
        let outcome = lab.weighbridge(&format!("compare {one} {other} --json")).json();
        let all = outcome["context"]["environment"].as_array().unwrap().clone();
        let of_profile =
            all.into_iter().filter(|section| ["profile", "knobs"].contains(&section["section"].as_str().unwrap()));
        of_profile
            .map(|section| (section["machines"][0]["environment"].clone(), section["changes"].clone()))
            .collect::<Vec<_>>()
    };
    run("R1");
    run("R2");
    assert_eq!(differing("R1", "R2"), []);
    let path = lab.path("config/weighbridge/profiles.d/Mine.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("measuring", "otherwise").replace("the flag", "a flag")).unwrap();
    run("R3");
    let [(profile, changes)] = &differing("R1", "R3")[..] else { panic!("one section") };
    assert_eq!(profile, "Mine");
    let of = |name: &str| changes.as_array().unwrap().iter().find(|change| change["name"] == name).unwrap().clone();
    let of_file = of(&format!("files.{}.text", file.display()));
    assert_eq!((&of_file["before"], &of_file["after"]), (&"measuring".into(), &"otherwise".into()));
    assert_eq!(of("commands.a flag.check")["after"], format!("test -e {}", flag.display()));
}

/// Kills a run and its agent while a command of its profile sleeps.
fn killed_while_a_command_runs(lab: &Lab) -> [PathBuf; 2] {
    let [file, flag] = define_profile(lab);
    let profile = lab.path("config/weighbridge/profiles.d/Mine.toml");
    let text = std::fs::read_to_string(&profile).unwrap().replace("apply = \"touch", "apply = \"sleep 25; touch");
    std::fs::write(&profile, text).unwrap();
    let run = lab.start("run steady --profiles Mine --into killed");
    wait_until("the command to sleep", || lab.processes().iter().any(|command| command.starts_with("sleep 25")));
    kill_with_agents(run);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "measuring\n");
    [file, flag]
}

#[test]
fn half_applied_profile_is_reverted_after_its_command_ends() {
    let Some(lab) = Lab::with_own_state() else { return };
    let [file, flag] = killed_while_a_command_runs(&lab);
    let reverted = lab.weighbridge("profile revert");
    let line = format!("`local`: {}: restored\n", file.display());
    assert!(reverted.code == 0 && reverted.out.contains(&line), "{}", reverted.transcript());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "as it was\n");
    assert_eq!(lab.wait_for_processes(), [""; 0], "processes of the command have ended");
    assert!(!flag.exists());

    killed_while_a_command_runs(&lab);
    let ran = lab.weighbridge(&format!("run steady {QUICK}"));
    let note = format!("note: a run that was killed had changed {}: restored", file.display());
    assert!(ran.code == 0 && ran.err.contains(&note), "{}", ran.transcript());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "as it was\n");
    assert!(!flag.exists() && lab.wait_for_processes().is_empty());
}

#[test]
fn host_held_by_another_run_is_neither_measured_nor_reverted() {
    let Some(lab) = Lab::with_own_state() else { return };
    let [file, flag] = define_profile(&lab);
    lab.define_script("long", "sleep 100; echo figure: 1");
    let mut run = lab.start("run long --profiles Mine --min-time 1ms --into A");
    let measures = || std::fs::read_to_string(lab.path("A/journal.jsonl")).is_ok_and(|text| text.contains("Mine/long"));
    wait_until("the long test to start", measures);
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", run.id())).unwrap();
    let reason = format!("this machine is being changed by `weighbridge run` (process {}, since ", children.trim());
    for line in ["profile revert", &format!("run steady {QUICK}")] {
        let refused = lab.weighbridge(line);
        let still = format!("); still changed: {}, the flag\nhelp: wait for it to finish or stop it: ", file.display());
        let error = format!("error: `local`: {reason}");
        let is_named = refused.err.contains(&error) && refused.err.contains(&still);
        assert!(refused.code == 1 && is_named && refused.out.is_empty(), "{}", refused.transcript());
    }
    lab.weighbridge("tune revert").expect_code(1).expect_stderr(&format!("error: {reason}"));
    assert!(flag.exists() && !lab.path("R").exists());
    run.kill().unwrap();
    run.wait().unwrap();
    wait_until("the host to be reverted", || {
        !flag.exists() && std::fs::read_to_string(&file).is_ok_and(|text| text == "as it was\n")
    });
}

#[test]
fn host_that_cannot_be_reverted_is_excluded_from_other_profiles() {
    let Some(lab) = Lab::with_own_state() else { return };
    let [_, flag] = define_profile(&lab);
    let profile = lab.path("config/weighbridge/profiles.d/Mine.toml");
    let text = std::fs::read_to_string(&profile).unwrap();
    let fixed = lab.path("fixed");
    std::fs::write(&profile, text.replace("revert = \"", &format!("revert = \"test -e {} && ", fixed.display())))
        .unwrap();
    let ran = lab.weighbridge(&format!("run steady --profiles Mine,Localhost {QUICK} --json")).expect_code(3);
    ran.expect_stderr("; still changed: the flag\nhelp: `weighbridge profile revert`");
    let cells = ran.json()["cells"].clone();
    let of = |name: &str| cells.as_array().unwrap().iter().find(|cell| cell["id"] == name).unwrap()["outcome"].clone();
    assert_eq!(of("Mine/steady/0000:kind=b")["outcome"], "measured");
    let other = of("Localhost/steady/0000:kind=a");
    assert!(other["outcome"] == "unsupported" && other.to_string().contains("still changed: the flag"), "{other}");
    // Another run does not measure on it either.
    lab.weighbridge(&format!("run steady {QUICK}S")).expect_code(1).expect_stderr("still changed: the flag");
    let reverted = lab.weighbridge("profile revert").expect_code(3);
    reverted.expect_stderr("error: `local`: not everything was restored: the flag: ");
    std::fs::write(&fixed, "").unwrap();
    let reverted = lab.weighbridge("profile revert");
    assert_eq!(
        (reverted.code, reverted.out.as_str()),
        (0, "`local`: the flag: restored\n"),
        "{}",
        reverted.transcript()
    );
    assert!(!flag.exists());
}

#[test]
fn host_is_reverted_by_a_new_agent_after_its_agent_is_killed() {
    let Some(lab) = Lab::with_own_state() else { return };
    let [file, flag] = define_profile(&lab);
    lab.define_script("deadly", "kill -9 $PPID; sleep 5");
    let ran = lab.weighbridge(&format!("run deadly --profiles Mine {QUICK}")).expect_code(3);
    ran.expect_stderr("note: a run that was killed had changed the flag: restored");
    assert!(!flag.exists() && std::fs::read_to_string(&file).unwrap() == "as it was\n");
    assert_eq!(lab.weighbridge("profile revert").out, "`local`: nothing to revert\n");
}
