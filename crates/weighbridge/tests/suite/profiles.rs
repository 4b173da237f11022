//! Profiles without guests: hosts put into states and brought back.

use std::path::PathBuf;
use std::process::{Child, Command};

use wb_lab::eventually;

use crate::lab::Lab;

const QUICK: &str = "--min-time 1ms --warm-up 0 --samples 6 --into R";

/// A profile of a file and a command, both in the lab's own folder.
fn mine(lab: &Lab) -> [PathBuf; 2] {
    let [file, flag] = ["state.conf", "flag"].map(|name| lab.path(name));
    let text = format!(
        "summary = \"two things of the lab\"\ntests = [\"steady:kind=b\", \"$@\"]\n\n[[files]]\npath = \"{}\"\ntext = \
         \"measuring\\n\"\n\n[[commands]]\nname = \"the flag\"\nis = \"test -e {flag}\"\napply = \"touch {flag}\"\nrevert = \
         \"rm {flag}\"\n",
        file.display(),
        flag = flag.display()
    );
    lab.write("config/weighbridge/profiles.d/Mine.toml", &text);
    lab.write("state.conf", "as it was\n");
    [file, flag]
}

/// Kills a run and its agents, so that neither can bring anything back. The run is stopped first: it would start another
/// agent; and an agent that is stopped goes on when its run ends, since its process group is an orphan then.
fn kill_with_agents(mut run: Child) {
    let id = run.id().to_string();
    assert!(Command::new("kill").args(["-STOP", &id]).status().unwrap().success());
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    let agents: Vec<&str> = children.split_whitespace().collect();
    assert!(!agents.is_empty());
    assert!(Command::new("kill").arg("-KILL").args(&agents).status().unwrap().success());
    run.kill().unwrap();
    run.wait().unwrap();
}

#[test]
fn a_profile_of_ones_own_is_applied_measured_in_and_brought_back() {
    let Some(lab) = Lab::with_own_state() else { return };
    let [file, flag] = mine(&lab);
    // What the test sees is what the profile made.
    lab.define_figure(
        "sees",
        &format!(
            "name = \"sees\"\nsummary = \"whether the profile is there\"\nversion = 1\ncommand = [\"sh\", \"-c\", \"grep -q \
             measuring {} && test -e {} && sleep 0.02 && echo figure: 1\"]\n",
            file.display(),
            flag.display()
        ),
    );
    let ran = lab.weighbridge(&format!("run sees --profiles Mine {QUICK} --json"));
    assert_eq!(ran.code, 0, "{}", ran.seen());
    let study = ran.json();
    let cells: Vec<&str> =
        study["cells"].as_array().unwrap().iter().map(|cell| cell["cell"].as_str().unwrap()).collect();
    assert_eq!(cells, ["Mine/steady/0000:kind=b", "Mine/sees/0000:-"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "as it was\n");
    assert!(!flag.exists());
    let text = std::fs::read_to_string(lab.path("R/environment/profile-0.json")).unwrap();
    assert!(text.contains("\"name\": \"Mine\"") && text.contains("state.conf"), "{text}");
    let schema = lab.weighbridge("schema profile-state").json();
    jsonschema::validate(&schema, &serde_json::from_str(&text).unwrap()).unwrap_or_else(|error| panic!("{error}"));
    // Nothing is done again, and nothing stays changed.
    assert_eq!(lab.weighbridge(&format!("run sees --profiles Mine {QUICK}")).code, 4);
    assert!(!flag.exists());
}

#[test]
fn a_killed_run_leaves_a_host_that_the_next_start_brings_back() {
    let Some(lab) = Lab::with_own_state() else { return };
    let [file, flag] = mine(&lab);
    lab.define_figure(
        "long",
        "name = \"long\"\nsummary = \"takes its time\"\nversion = 1\ncommand = [\"sh\", \"-c\", \"sleep 100; echo figure: 1\"]\n",
    );
    for both in [false, true] {
        let mut run = lab.start(&format!("run long --profiles Mine --min-time 1ms --into R{both}"));
        let measures = || {
            let journal = lab.path(&format!("R{both}/journal.jsonl"));
            std::fs::read_to_string(journal).is_ok_and(|text| text.contains("Mine/long"))
        };
        eventually("the long one to be started", measures);
        assert!(flag.exists() && std::fs::read_to_string(&file).unwrap() == "measuring\n");
        if both {
            kill_with_agents(run);
            assert!(flag.exists());
            let reverted = lab.weighbridge("profile revert");
            assert_eq!(reverted.code, 0, "{}", reverted.seen());
            assert!(reverted.out.contains("the flag: it is as it was"), "{}", reverted.seen());
        } else {
            run.kill().unwrap();
            run.wait().unwrap();
        }
        eventually("the host to be as it was", || {
            !flag.exists() && std::fs::read_to_string(&file).is_ok_and(|text| text == "as it was\n")
        });
    }
    assert_eq!(lab.weighbridge("profile revert").out, "`local`: nothing was left to put back\n");
}

#[test]
fn what_somebody_else_changed_meanwhile_is_left_and_told() {
    let Some(lab) = Lab::with_own_state() else { return };
    let [file, flag] = mine(&lab);
    let changes = format!(
        "name = \"changes\"\nsummary = \"changes what the profile did\"\nversion = 1\ncommand = [\"sh\", \"-c\", \"echo mine > {}; \
         sleep 0.02; echo figure: 1\"]\n",
        file.display()
    );
    lab.define_figure("changes", &changes);
    let ran = lab.weighbridge(&format!("run changes --profiles Mine {QUICK}"));
    assert_eq!(ran.code, 0, "{}", ran.seen());
    assert!(ran.err.contains("left at `mine`, since somebody else changed it"), "{}", ran.err);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine\n");
    assert!(!flag.exists());
}

#[test]
fn a_profile_that_cannot_be_applied_keeps_no_other_from_being_measured() {
    let Some(lab) = Lab::with_own_state() else { return };
    lab.write(
        "config/weighbridge/profiles.d/Wrong.toml",
        "[[commands]]\nname = 'it'\nis = 'false'\napply = 'echo no >&2; exit 3'\nrevert = 'true'\n",
    );
    let ran = lab.weighbridge(&format!("run steady --profiles Wrong,Localhost {QUICK} --json"));
    assert_eq!(ran.code, 3, "{}", ran.seen());
    assert!(ran.err.contains("warning: `Wrong` on `local`: ") && ran.err.contains("exit status: 3"), "{}", ran.err);
    let cells = ran.json()["cells"].clone();
    let wrong = cells.as_array().unwrap().iter().find(|cell| cell["cell"] == "Wrong/steady/0000:kind=a").unwrap();
    assert_eq!(wrong["outcome"]["outcome"], "unsupported", "{cells}");
    assert!(wrong["outcome"].to_string().contains("exit status: 3") && cells.as_array().unwrap().len() == 2, "{cells}");
    // Once it can be, the same line goes on.
    lab.write(
        "config/weighbridge/profiles.d/Wrong.toml",
        "[[commands]]\nname = 'it'\nis = 'true'\napply = 'true'\nrevert = 'true'\n",
    );
    let right = lab.weighbridge(&format!("run steady --profiles Wrong,Localhost {QUICK} --json"));
    let cells = right.json()["cells"].clone();
    let measured = |cell: &serde_json::Value| cell["outcome"]["outcome"] == "measured";
    assert!(right.code == 0 && cells.as_array().unwrap().iter().all(measured), "{}", right.seen());
    lab.write(
        "config/weighbridge/profiles.d/Wrong.toml",
        "[[commands]]\nname = 'it'\nis = 'false'\napply = 'exit 3'\nrevert = 'true'\n",
    );
    let alone = lab.weighbridge("run steady --profiles Wrong --into S");
    assert_eq!(alone.code, 1, "{}", alone.seen());
    assert!(!lab.path("S").exists());
}

#[test]
fn what_is_no_profile_is_told_with_the_way_out() {
    let lab = Lab::new();
    let seen = |line: &str| lab.weighbridge(line).seen();
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
    let bad = lab.weighbridge("profile list");
    assert!(bad.code == 1 && bad.err.contains("unknown field `knob`"), "{}", bad.seen());
}

#[test]
fn profiles_are_listed_shown_and_planned() {
    let lab = Lab::new();
    let seen = |line: &str| lab.weighbridge(line).seen();
    let all = [
        seen("profile list"),
        seen("profile show DefaultLibvirtMulti"),
        seen("plan steady --no-worker --profiles Localhost,DefaultLibvirt"),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn a_folder_has_one_meaning_of_a_profile_and_no_secrets_of_it() {
    let Some(lab) = Lab::with_own_state() else { return };
    let [file, _] = mine(&lab);
    let profile = |more: &str| {
        let text = format!(
            "summary = \"mine\"\n{more}\n[[files]]\npath = \"{}\"\ntext = \"password = planted-one\\nport = 1\\n\"\n\
             [[commands]]\nname = \"c\"\nis = \"true\"\napply = \"x --token planted-two\"\nrevert = \"true\"\n",
            file.display()
        );
        lab.write("config/weighbridge/profiles.d/Mine.toml", &text);
    };
    profile("");
    let ran = lab.weighbridge(&format!("run steady --profiles Mine {QUICK}"));
    assert!([0, 3].contains(&ran.code), "{}", ran.seen());
    let kept = std::fs::read_to_string(lab.path("R/environment/profile-0.json")).unwrap();
    assert!(kept.contains("port = 1") && !kept.contains("planted"), "{kept}");
    // What it is for is not what it does.
    profile("tests = [\"$@\"]");
    assert_eq!(lab.weighbridge(&format!("run steady --profiles Mine {QUICK}")).code, 4);
    profile("[knobs]\naslr = 1");
    let ran = lab.weighbridge(&format!("run steady --profiles Mine {QUICK}"));
    assert!(ran.code == 1 && ran.err.contains("R was measured in another `Mine` than this one"), "{}", ran.seen());
}

#[test]
fn a_set_that_is_edited_makes_another_profile() {
    let Some(lab) = Lab::with_own_state() else { return };
    let set = |scheduler: &str| {
        let text = format!("summary = \"db\"\n[knobs]\n\"io-scheduler@nosuchdisk\" = \"{scheduler}\"\n");
        lab.write("config/weighbridge/knobs.d/db.toml", &text);
    };
    lab.write("config/weighbridge/profiles.d/Db.toml", "summary = \"a database's\"\nsets = [\"db\"]\n");
    set("none");
    let ran = lab.weighbridge(&format!("run steady --profiles Db {QUICK}"));
    assert!([0, 3].contains(&ran.code), "{}", ran.seen());
    assert_eq!(lab.weighbridge(&format!("run steady --profiles Db {QUICK}")).code, 4);
    set("mq-deadline");
    let ran = lab.weighbridge(&format!("run steady --profiles Db {QUICK}"));
    assert!(ran.code == 1 && ran.err.contains("R was measured in another `Db` than this one"), "{}", ran.seen());
}

#[test]
fn a_command_that_makes_nothing_so_is_told() {
    let Some(lab) = Lab::with_own_state() else { return };
    let text =
        "summary = \"idle\"\n[[commands]]\nname = \"idle\"\nis = \"false\"\napply = \"true\"\nrevert = \"true\"\n";
    lab.write("config/weighbridge/profiles.d/Idle.toml", text);
    let ran = lab.weighbridge(&format!("run steady --profiles Idle {QUICK}"));
    assert!(ran.code == 1 && ran.err.contains("the command `idle` ran"), "{}", ran.seen());
}

#[test]
fn two_runs_in_one_profile_with_other_contents_differ_and_with_the_same_do_not() {
    let Some(lab) = Lab::with_own_state() else { return };
    let [file, flag] = mine(&lab);
    let quick = QUICK.trim_end_matches("--into R");
    let run = |name: &str| {
        let ran = lab.weighbridge(&format!("run steady --profiles Mine {quick} --into {name}"));
        assert!([0, 3].contains(&ran.code), "{}", ran.seen());
    };
    // Other tests may come and go on this machine meanwhile: only what the profile is counts here.
    let differing = |one: &str, other: &str| {
        let outcome = lab.weighbridge(&format!("compare {one} {other} --json")).json();
        let all = outcome["context"]["environment"].as_array().unwrap().clone();
        let of_profile =
            all.into_iter().filter(|section| ["profile", "knobs"].contains(&section["section"].as_str().unwrap()));
        of_profile
            .map(|section| (section["places"][0]["environment"].clone(), section["changes"].clone()))
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
    assert_eq!(of("commands.a flag.is")["after"], format!("test -e {}", flag.display()));
}

/// A run that is killed with its agent while a command of its profile sleeps.
fn killed_while_a_command_runs(lab: &Lab) -> [PathBuf; 2] {
    let [file, flag] = mine(lab);
    let profile = lab.path("config/weighbridge/profiles.d/Mine.toml");
    let text = std::fs::read_to_string(&profile).unwrap().replace("apply = \"touch", "apply = \"sleep 25; touch");
    std::fs::write(&profile, text).unwrap();
    let run = lab.start("run steady --profiles Mine --into killed");
    eventually("the command to sleep", || lab.processes().iter().any(|command| command.starts_with("sleep 25")));
    kill_with_agents(run);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "measuring\n");
    [file, flag]
}

#[test]
fn a_host_that_was_left_half_in_a_profile_is_brought_back_once_its_command_is_ended() {
    let Some(lab) = Lab::with_own_state() else { return };
    let [file, flag] = killed_while_a_command_runs(&lab);
    let reverted = lab.weighbridge("profile revert");
    let line = format!("`local`: {}: it is as it was\n", file.display());
    assert!(reverted.code == 0 && reverted.out.contains(&line), "{}", reverted.seen());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "as it was\n");
    assert_eq!(lab.processes_left(), [""; 0], "what the command had started has ended");
    assert!(!flag.exists());

    killed_while_a_command_runs(&lab);
    let ran = lab.weighbridge(&format!("run steady {QUICK}"));
    let note = format!("note: a run that was killed had changed {}: it is as it was", file.display());
    assert!(ran.code == 0 && ran.err.contains(&note), "{}", ran.seen());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "as it was\n");
    assert!(!flag.exists() && lab.processes_left().is_empty());
}

#[test]
fn a_host_that_another_run_has_in_a_profile_is_neither_measured_nor_reverted() {
    let Some(lab) = Lab::with_own_state() else { return };
    let [file, flag] = mine(&lab);
    lab.define_figure(
        "long",
        "name = \"long\"\nsummary = \"takes its time\"\nversion = 1\ncommand = [\"sh\", \"-c\", \"sleep 100; echo figure: 1\"]\n",
    );
    let mut run = lab.start("run long --profiles Mine --min-time 1ms --into A");
    let measures = || std::fs::read_to_string(lab.path("A/journal.jsonl")).is_ok_and(|text| text.contains("Mine/long"));
    eventually("the long one to be started", measures);
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", run.id())).unwrap();
    let reason = format!("this machine is being changed by `weighbridge run` (process {}, since ", children.trim());
    for line in ["profile revert", &format!("run steady {QUICK}")] {
        let refused = lab.weighbridge(line);
        let still = format!("); still changed: {}, the flag\nhelp: wait for it or end it; ", file.display());
        let error = format!("error: `local`: {reason}");
        let is_named = refused.err.contains(&error) && refused.err.contains(&still);
        assert!(refused.code == 1 && is_named && refused.out.is_empty(), "{}", refused.seen());
    }
    let tune = lab.weighbridge("tune revert");
    assert!(tune.code == 1 && tune.err.contains(&format!("error: {reason}")), "{}", tune.seen());
    assert!(flag.exists() && !lab.path("R").exists());
    run.kill().unwrap();
    run.wait().unwrap();
    eventually("the host to be as it was", || {
        !flag.exists() && std::fs::read_to_string(&file).is_ok_and(|text| text == "as it was\n")
    });
}

#[test]
fn a_host_that_cannot_be_brought_back_is_measured_in_no_other_profile() {
    let Some(lab) = Lab::with_own_state() else { return };
    let [_, flag] = mine(&lab);
    let profile = lab.path("config/weighbridge/profiles.d/Mine.toml");
    let text = std::fs::read_to_string(&profile).unwrap();
    let fixed = lab.path("fixed");
    std::fs::write(&profile, text.replace("revert = \"", &format!("revert = \"test -e {} && ", fixed.display())))
        .unwrap();
    let ran = lab.weighbridge(&format!("run steady --profiles Mine,Localhost {QUICK} --json"));
    assert_eq!(ran.code, 3, "{}", ran.seen());
    assert!(ran.err.contains("; still changed: the flag\nhelp: `weighbridge profile revert`"), "{}", ran.err);
    let cells = ran.json()["cells"].clone();
    let of =
        |name: &str| cells.as_array().unwrap().iter().find(|cell| cell["cell"] == name).unwrap()["outcome"].clone();
    assert_eq!(of("Mine/steady/0000:kind=b")["outcome"], "measured");
    let here = of("Localhost/steady/0000:kind=a");
    assert!(here["outcome"] == "unsupported" && here.to_string().contains("still changed: the flag"), "{here}");
    // Nor by another run.
    let next = lab.weighbridge(&format!("run steady {QUICK}S"));
    assert!(next.code == 1 && next.err.contains("still changed: the flag"), "{}", next.seen());
    let reverted = lab.weighbridge("profile revert");
    assert!(
        reverted.code == 3 && reverted.err.contains("error: `local`: not everything is as it was: the flag: "),
        "{}",
        reverted.seen()
    );
    std::fs::write(&fixed, "").unwrap();
    let reverted = lab.weighbridge("profile revert");
    assert_eq!(
        (reverted.code, reverted.out.as_str()),
        (0, "`local`: the flag: it is as it was\n"),
        "{}",
        reverted.seen()
    );
    assert!(!flag.exists());
}

#[test]
fn a_host_whose_agent_is_killed_is_brought_back_by_another_one() {
    let Some(lab) = Lab::with_own_state() else { return };
    let [file, flag] = mine(&lab);
    lab.define_figure(
        "deadly",
        "name = \"deadly\"\nsummary = \"kills its agent\"\nversion = 1\ncommand = [\"sh\", \"-c\", \"kill -9 $PPID; sleep 5\"]\n",
    );
    let ran = lab.weighbridge(&format!("run deadly --profiles Mine {QUICK}"));
    assert_eq!(ran.code, 3, "{}", ran.seen());
    assert!(ran.err.contains("note: a run that was killed had changed the flag: it is as it was"), "{}", ran.err);
    assert!(!flag.exists() && std::fs::read_to_string(&file).unwrap() == "as it was\n");
    assert_eq!(lab.weighbridge("profile revert").out, "`local`: nothing was left to put back\n");
}
