//! Secrets are not recorded anywhere.

use std::path::Path;

use wb_model::secrets::{mask_argument, mask_arguments, mask_param};
use wb_model::{Declaration, ParamKind};
use wb_plan::masking::mask_plan;

use crate::archive::rerun;
use crate::lab::Lab;

const QUICK: &str = "--min-time 1ms --warm-up 0 --samples 6 --retakes 0 --precision 100";

/// The files in a folder whose name or content contains a text.
fn files_containing(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        let name = path.display().to_string();
        if path.is_dir() {
            found.extend(files_containing(&path, text));
        } else if String::from_utf8_lossy(&std::fs::read(&path).unwrap()).contains(text) {
            found.push(name.clone());
        }
        if entry.file_name().to_string_lossy().contains(text) {
            found.push(name);
        }
    }
    found
}

#[test]
fn run_folder_contains_no_secrets() {
    let lab = Lab::new();
    lab.define_figure(
        "curling",
        "name = \"curling\"\nsummary = \"has secrets in its definition\"\nversion = 1\n\
         command = [\"sh\", \"-c\", \"echo figure: 1\", \"sh\", \"-u\", \"joe:planted-argv\", \"--password\", \"planted-word two\", \"declared-dd-argv\"]\n\
         [env]\nAPI_TOKEN = \"planted-definition-env\"\n",
    );
    let plan = "# mirror: https://joe:planted-comment@host/\npublish = \"sh hook.sh --token planted-publish\"\n\
                tools = [\"sh -c 'sleep 60' -- --api-key=planted-tool\"]\n\
                [[test]]\nname = \"curling\"\nenv = [\"DB_PASSWORD=planted-env with blanks\", \"PLAIN=declared-bb\"]\n\
                before = \"true -u joe:planted-before https://joe:planted-url@host/\"\n";
    lab.write("p.toml", plan);
    lab.write("set-up.sh", "true\n");
    lab.write("hook.sh", "[ \"$WEIGHBRIDGE_METADATA_API_TOKEN\" = planted-metadata ] || exit 9\n");
    lab.write("declared", "declared-aa\n\ndeclared-cc with blanks\n");
    let line = format!("run --plan p.toml {QUICK} --into R --secret-from declared --secret-from env:MY_WORD");
    let mut command = lab.command(&line);
    let provisioner = r#"command:{"command": "true -p planted-short --pass planted-provisioner https://me:planted-provisioner-url@x --y declared-bb"}"#;
    command.args(["--provisioner", provisioner]);
    let provisioner = r#"command:{"command":"true -H 'Authorization: Bearer planted-authorization' x"}"#;
    command.args([
        "--provisioner",
        provisioner,
        "--metadata",
        "note=use Bearer of news now",
        "--metadata",
        "header=Bearer planted-bearer",
    ]);
    command.args(["--host-setup-script", "set-up.sh --secret planted-script -u joe:planted-script-user declared-aa"]);
    command.args(["--worker-setup-script", "set-up.sh 'declared-cc with blanks' declared-dd-script"]);
    command.args([
        "--metadata",
        "api_token=planted-metadata",
        "--metadata",
        "url=https://joe:planted-metadata-url@host/x",
    ]);
    command.args(["--metadata", "plain=of declared-aa", "--tool", "sh -c 'sleep 60' -- --token planted-flag-tool"]);
    command.env("MY_WORD", "declared-bb").env("OTHER_TOKEN", "planted-own-env");
    lab.write("more", "declared-dd-argv\ndeclared-dd-script");
    command.args(["--secret-from", "more"]);
    lab.run_command(&mut command).expect_code(0);
    let _ = lab.weighbridge("report R --html R/report.html --csv R/report");
    for secret in ["planted", "declared-aa", "declared-bb", "declared-cc", "declared-dd", "with blanks"] {
        assert_eq!(files_containing(&lab.path("R"), secret), [""; 0], "{secret}");
    }
    // The samples can still be read with only the recorded definition.
    std::fs::remove_dir_all(lab.path("config")).unwrap();
    let study = lab.weighbridge("study R --json").json();
    assert_eq!(study["cells"][0]["outcome"]["outcome"], "measured");
    assert_eq!(study["run"]["metadata"]["api_token"], "***");
    assert_eq!(study["run"]["metadata"]["plain"], "of ***");
    assert_eq!(study["run"]["metadata"]["note"], "use Bearer of news now");
    assert_eq!(study["run"]["metadata"]["header"], "Bearer ***");
}

#[test]
fn output_of_a_failed_provisioner_is_recorded_without_declared_secrets_and_passwords_in_urls() {
    let lab = Lab::new();
    lab.write("word", "planted-word\n");
    let provisioner = r#"command:{"command":"sh -c 'echo 3 passed: 2; echo login with password $WORD failed: https://joe:planted-url@h/ >&2; exit 1' -- -p planted-typed"}"#;
    let mut command = lab.command(&format!("run steady {QUICK} --into R --secret-from word --provisioner"));
    lab.run_command(command.arg(provisioner).env("WORD", "planted-word")).expect_code(3);
    assert_eq!(files_containing(&lab.path("R"), "planted"), [""; 0]);
    let journal = lab.journal("R");
    let provisioned = journal.iter().find(|event| event["log"].is_string()).unwrap();
    let message = "login with password *** failed: https://***@h/";
    assert!(provisioned["reason"].as_str().unwrap().ends_with(message), "{provisioned}");
    let log = std::fs::read_to_string(lab.path("R").join(provisioned["log"].as_str().unwrap())).unwrap();
    assert!(log.contains("3 passed: 2\n") && log.contains(&format!("{message}\n")), "{log}");
    assert!(log.lines().next().unwrap().contains("-p '***'"), "{log}");
}

#[test]
fn variants_retries_and_failures_do_not_record_declared_secrets() {
    let lab = Lab::new();
    lab.write("word", "declared-word");
    lab.define_script("telling", "echo it was $WORD >&2; exit 3");
    let mut command = lab.command(&format!("run telling {QUICK} --attempts 1 --into R --secret-from word --tool"));
    lab.run_command(command.arg("sh -c 'sleep 60' declared-word")).expect_code(3);
    let ab = lab.weighbridge(
        "ab steady base x:env:WORD=declared-word --max-blocks 6 --warm-up 0 --min-time 1ms --into A --secret-from word",
    );
    assert_eq!(ab.code, 0, "{}", ab.transcript());
    for run in ["R", "A"] {
        assert_eq!(files_containing(&lab.path(run), "declared-word"), [""; 0]);
    }
}

#[test]
fn invalid_secret_sources_are_refused() {
    let lab = Lab::new();
    lab.write("short", "abc\n");
    let all = ["short", "nosuch", "env:NO_SUCH_VARIABLE"].map(|from| {
        lab.run_command(lab.command(&format!("run steady {QUICK} --into R --secret-from")).arg(from)).transcript()
    });
    insta::assert_snapshot!(all.concat(), @r"
    exit 1
    error: --secret-from short: no line has at least 6 characters
    help: a shorter secret would also mask parts of other words
    exit 1
    error: --secret-from: cannot read `nosuch`: No such file or directory
    help: expected FILE, or env:NAME for an environment variable
    exit 1
    error: --secret-from: environment variable `NO_SUCH_VARIABLE` is not set
    help: expected FILE, or env:NAME for an environment variable
    ");
    assert!(!lab.path("R").exists());
}

#[test]
fn secret_in_a_cell_name_is_refused() {
    let lab = Lab::new();
    lab.write("word", "sesame-open\n");
    lab.define_figure(
        "named",
        "name = \"named\"\nsummary = \"s\"\nversion = 1\ncommand = [\"echo\", \"figure:\", \"1\", \"{word}\"]\n\
         [[param]]\nname = \"word\"\nhelp = \"a word\"\nkind = \"text\"\ndefault = \"x\"\naxis = true\n",
    );
    let ran = lab.weighbridge(&format!("run named:word=sesame-open {QUICK} --into R --secret-from word"));
    insta::assert_snapshot!(ran.transcript(), @r"
    exit 1
    error: a declared secret is part of a cell name of `named`
    help: pass it in a file or a variable: cell names cannot be masked
    ");
    assert!(!lab.path("R").exists());
}

#[test]
fn secrets_of_several_words_or_in_urls_are_not_recorded() {
    let lab = Lab::new();
    lab.write("hook.sh", "exit 0\n");
    let mut command = lab.command(&format!("run {QUICK} --into R"));
    command.arg("steady:env=[\"H=Bearer planted-env\"]");
    for metadata in [
        "auth=Bearer planted-a",
        "token=Bearer planted-b",
        "password=a planted-c",
        "h=Bearer planted-d",
        "i=bearer planted-e",
        "url=https://joe:planted-f@x/y?token=abcdef",
        "db-password=\"planted-g\"",
    ] {
        command.args(["--metadata", metadata]);
    }
    command.args(["--provisioner", r#"command:{"command":"true https://joe:planted-h@h/?token=a"}"#]);
    let ran = lab.run_command(&mut command).expect_code(0);
    assert!(!ran.transcript().contains("planted"), "{}", ran.transcript());
    assert_eq!(files_containing(&lab.path("R"), "planted"), [""; 0]);
    let metadata = &lab.weighbridge("study R --json").json()["run"]["metadata"];
    assert_eq!((&metadata["h"], &metadata["url"]), (&"Bearer ***".into(), &"https://***@x/y?token=***".into()));
}

#[test]
fn variant_names_contain_no_secrets() {
    let lab = Lab::new();
    let mut command = lab.command("ab steady --max-blocks 8 --warm-up 0 --min-time 1ms --into A --");
    command.args(["base", "env:AUTH=Bearer planted-a", "env:URL=https://joe:planted-b@h/?token=abc"]);
    let ran = lab.run_command(&mut command);
    assert!(
        !ran.transcript().contains("planted") && ran.transcript().contains("URL-https-h-token"),
        "{}",
        ran.transcript()
    );
    assert_eq!(files_containing(&lab.path("A"), "planted"), [""; 0]);
}

#[test]
fn command_with_a_secret_in_a_cell_name_is_refused() {
    let lab = Lab::new();
    lab.write(
        "p.toml",
        "[[test]]\nname = \"steady\"\nbefore = [\"curl -H 'Authorization: Bearer planted-plan' || true\", \"true\"]\n",
    );
    let mut plan = lab.command(&format!("run --plan p.toml {QUICK} --into R"));
    let mut line = lab.command(&format!("run {QUICK} --into R"));
    line.arg("steady:before=[\"true --password planted-line -u joe:planted-user\", \"true\"]");
    let seen = [&mut plan, &mut line].map(|command| lab.run_command(command).transcript());
    insta::assert_snapshot!(seen.concat(), @r#"
    exit 1
    error: `before` of `steady` appears to contain a secret, and its value is part of cell names
    help: pass it in a variable: `env=["DB_PASSWORD=…"]` and `--password $DB_PASSWORD`; or use a script that reads it from a file
    exit 1
    error: `before` of `steady` appears to contain a secret, and its value is part of cell names
    help: pass it in a variable: `env=["DB_PASSWORD=…"]` and `--password $DB_PASSWORD`; or use a script that reads it from a file
    "#);
    assert!(!lab.path("R").exists());

    let mut variable = lab.command(&format!("run {QUICK} --into R"));
    variable.arg(
        "steady:env=[\"MY_PASSWORD=planted-variable\"],\
         before=[\"test x$MY_PASSWORD != x\", \"true --password $MY_PASSWORD\"]",
    );
    lab.run_command(&mut variable).expect_code(0);
    assert_eq!(files_containing(&lab.path("R"), "planted"), [""; 0]);
}

#[test]
fn equivalent_command_of_run_perf_shows_no_secret() {
    let lab = Lab::new();
    let mut command = lab.command("run-perf --plan");
    command.args(["--metadata", "x=Bearer planted-a", "--metadata", "url=https://joe:planted-b@x/y?token=abcdef"]);
    for option in ["--host-rpms", "--worker-rpms"] {
        command.args([option, "http://joe:planted-c@x/p.rpm"]);
    }
    command.args(["--", "linpack"]);
    let ran = lab.run_command(&mut command);
    assert!(!ran.transcript().contains("planted"), "{}", ran.transcript());
    assert!(ran.err.contains("--worker-rpms 'http://***@x/p.rpm'"), "{}", ran.transcript());
}

/// Texts that would be masked if they were not parameters.
const LIKE_SECRETS: [&str; 4] = ["x --password abc", "token=abc", "Bearer abc", "joe:abc@host"];

#[test]
fn every_declared_parameter_of_every_test_is_recorded_as_typed() {
    let registry = wb_tests::built_in();
    let mut count = 0;
    for Declaration { name: test, params, .. } in registry.declarations() {
        // Variables and a command, in which secrets are masked.
        for param in params.iter().filter(|param| !["env", "before"].contains(&param.name.as_str())) {
            let mut values: Vec<String> = param.default.iter().map(ToString::to_string).collect();
            if let ParamKind::Choice { values: choices } = &param.kind {
                values.extend(choices.iter().cloned());
            }
            values.extend(LIKE_SECRETS.map(str::to_owned));
            for name in [&param.name].into_iter().chain(&param.aliases) {
                for value in &values {
                    assert_recorded_as_typed(test.as_str(), name, value);
                    count += 1;
                }
            }
        }
    }
    assert!(count > 500, "{count}");
}

fn assert_recorded_as_typed(test: &str, name: &str, value: &str) {
    let quoted = serde_json::Value::from(value);
    let words = [
        format!("{test}:{name}={quoted},command=get"),
        format!("{test}:command=get,{name}=[{quoted},5]"),
        format!("{test}:{{\"{name}\":{quoted}}}"),
        format!("param:{name}={quoted}"),
        format!("x:param:{name}={quoted}"),
    ];
    for word in &words {
        assert_eq!(mask_argument(word), *word);
        let line = ["weighbridge", "run", word, "--metadata", "a=b", "--", word];
        assert_eq!(mask_arguments(line), line);
    }
    let plan = format!("[[test]]\nname = \"{test}\"\n\"{name}\" = {quoted}\n");
    assert_eq!(mask_plan(&plan), plan);
    assert_eq!(mask_param(name, value), value);
}

// The value was recorded as `***`: a name with `key` in it was taken for that of a secret.
#[test]
fn command_with_a_keyspace_is_recorded_as_typed_and_measured_again() {
    let lab = Lab::new();
    let test = "redis:keyspace=1000,command=get,requests=2000,clients=3";
    lab.weighbridge(&format!("run {test} {QUICK} --into R")).expect_code(0);
    let command = |run: &str| lab.read_json(format!("{run}/run.json"))["invocations"][0]["command"].clone();
    assert!(command("R").as_array().unwrap().contains(&test.into()), "{}", command("R"));
    lab.weighbridge("snapshot R -o s.tar.gz").expect_code(0);
    lab.weighbridge("unpack s.tar.gz").expect_code(0);
    rerun(&lab, "s", &[]).expect_code(0).expect_stdout("redis");
    assert!(command("s/rerun-1").as_array().unwrap().contains(&test.into()), "{}", command("s/rerun-1"));
}

// Their values were masked, so that they had one name.
#[test]
fn variants_of_a_keyspace_have_different_names() {
    let lab = Lab::new();
    lab.define_figure(
        "kv",
        "name = \"kv\"\nsummary = \"s\"\nversion = 1\ncommand = [\"echo\", \"figure:\", \"1\", \"{keyspace}\"]\n\
         [[param]]\nname = \"keyspace\"\nhelp = \"keys\"\nkind = \"integer\"\ndefault = 1\naxis = true\n",
    );
    let ran = lab.weighbridge(
        "ab kv --max-blocks 6 --warm-up 0 --min-time 1ms --into A -- param:keyspace=1000 param:keyspace=2000",
    );
    for (shown, name) in [("param:keyspace=1000", "keyspace-1000"), ("param:keyspace=2000", "keyspace-2000")] {
        assert!(ran.out.contains(shown), "{}", ran.transcript());
        assert!(!files_containing(&lab.path("A"), name).is_empty(), "{name}");
    }
    let command = lab.read_json("A/run.json")["invocations"][0]["command"].clone();
    let words = command.as_array().unwrap();
    assert!(
        ["param:keyspace=1000", "param:keyspace=2000"].iter().all(|word| words.contains(&(*word).into())),
        "{command}"
    );
}
