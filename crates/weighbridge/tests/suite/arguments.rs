//! Arguments that are not UTF-8, out of range, in every notation of numbers, and nested deeply: each works or is refused
//! with its reason.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use crate::lab::{CommandResult, Lab, copy_folder};

/// A name that is not UTF-8.
const NOT_UTF8: &[u8] = b"x\xff";

/// The exit status of a panic.
const PANIC: i32 = 101;

/// What hyperfine writes.
const HYPERFINE: &str =
    r#"{"results":[{"command":"sleep 1","times":[1.0,1.1,1.2],"exit_codes":[0,0,0],"mean":1.1,"median":1.1}]}"#;

/// Runs a command, which must end by itself and without a panic.
#[track_caller]
fn run(command: &mut Command) -> CommandResult {
    let output = command.output().unwrap();
    let shown = format!("{:?}: {}", command.get_args().collect::<Vec<_>>(), String::from_utf8_lossy(&output.stderr));
    let shown: String = shown.chars().take(2000).collect();
    assert_eq!(output.status.signal(), None, "{shown}");
    assert_ne!(output.status.code(), Some(PANIC), "{shown}");
    CommandResult::from(output)
}

/// Replaces a placeholder in a word by bytes.
fn fill(word: &[u8], placeholder: &str, bytes: &[u8]) -> Vec<u8> {
    match word.windows(placeholder.len()).position(|window| window == placeholder.as_bytes()) {
        Some(position) => [&word[..position], bytes, &word[position + placeholder.len()..]].concat(),
        None => word.to_vec(),
    }
}

#[test]
fn arguments_that_are_not_utf8_work_or_are_refused() {
    let lab = Lab::new();
    for run in ["R", "S"] {
        lab.weighbridge(&format!("run steady --samples 2 --warm-up 0 -q --into {run}")).expect_code(0);
    }
    let named = |prefix: &[u8]| OsString::from_vec([prefix, NOT_UTF8].concat());
    copy_folder(&lab.path("R"), &lab.path("").join(named(b"run-")));
    std::fs::create_dir(lab.path("").join(named(b"folder-"))).unwrap();
    for name in [OsString::from("results.json"), named(b"results-")] {
        std::fs::write(lab.path("").join(name), HYPERFINE).unwrap();
    }
    let lines = include_str!("../fixtures/not-utf8").lines().filter(|line| !line.starts_with('#'));
    for line in lines {
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, command, outcome] = fields[..] else { continue };
        let words = command.split_whitespace().map(|word| {
            let names = [("{x}", &b""[..]), ("{run}", b"run-"), ("{folder}", b"folder-"), ("{results}", b"results-")];
            let word = names.iter().fold(word.as_bytes().to_vec(), |word, (placeholder, prefix)| {
                fill(&word, placeholder, &[prefix, NOT_UTF8].concat())
            });
            OsString::from_vec(word)
        });
        let result = run(lab.command("").args(words));
        match outcome {
            // 4: there is nothing to do for it.
            "accepted" => assert!([0, 3, 4].contains(&result.code), "{command}\n{}", result.transcript()),
            // The message shows the name.
            "missing" => assert!(result.code != 0 && result.err.contains("x\u{fffd}"), "{}", result.transcript()),
            "refused" => {
                assert!(result.code != 0, "{command}\n{}", result.transcript());
                assert!(result.err.contains("x\u{fffd}`: expected "), "{command}\n{}", result.transcript());
            }
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_run_folder_that_is_not_utf8_is_recorded_with_a_warning() {
    let lab = Lab::new();
    // As it is typed: `run himeno --into $'run-\xff'`.
    let words = ["run", "himeno:grid=XS,threads=1", "--samples", "1", "--min-time", "10ms", "--warm-up", "0", "--into"];
    let folder = OsStr::from_bytes(b"run-\xff");
    let result = run(lab.command("").args(words).arg(folder)).expect_code_of(&[0, 3]);
    result.expect_stderr("warning: bytes of the command line that are not UTF-8 are recorded as `\u{fffd}`");
    let record: serde_json::Value =
        serde_json::from_slice(&std::fs::read(lab.path("").join(folder).join("run.json")).unwrap()).unwrap();
    let recorded = record["invocations"][0]["command"].as_array().unwrap();
    assert_eq!(recorded.last().unwrap(), "run-\u{fffd}");

    // As it is typed: `import -o $'im\xff' F`.
    lab.write("F", HYPERFINE);
    run(lab.command("import").arg("-o").arg(OsStr::from_bytes(b"im\xff")).arg("F")).expect_code(0);
}

#[test]
fn a_merged_result_is_recorded_without_secrets() {
    let Some(device) = crate::contention::device() else { return };
    let lab = Lab::new();
    crate::contention::write_run(&lab, "token=hunter22", &device);
    lab.weighbridge("-r merged merge token=hunter22").expect_code(0);
    let text = lab.read("merged/run.json");
    assert!(text.contains("\"merge\"") && text.contains("token=***") && !text.contains("hunter22"), "{text}");
}

#[test]
fn a_number_out_of_range_is_an_error_at_its_place() {
    let lab = Lab::new();
    let result = lab.weighbridge("plan fio:iodepth=99999999999").expect_code(1);
    insta::assert_snapshot!(result.transcript(), @r"
    exit 1
    error: `iodepth` of `fio`: invalid value 99999999999: expected at most 4294967295
       ╭─[command line:1:13]
     1 │ fio:iodepth=99999999999
       ·             ─────┬─────
       ·                  ╰── expected a whole number from 1
       ╰────
    ");
}

#[test]
fn counts_and_sizes_are_read_in_every_notation() {
    let lab = Lab::new();
    let cell = |test: &str| {
        let plan = lab.weighbridge(&format!("plan {test} --no-worker --json")).expect_code_of(&[0, 3]).json();
        plan["cells"][0]["params"].clone()
    };
    for written in
        ["redis:command=get,requests=10M", "redis:command=get,requests=1e7", "redis:command=get,requests=10000k"]
    {
        assert_eq!(cell(written)["requests"], "10000000", "{written}");
    }
    assert_eq!(cell("redis:command=get,keyspace=1e6"), cell("redis:command=get,keyspace=1M"));
    assert_eq!(cell("redis:command=get,data-size=1e3")["data-size"], "1000");
    assert_eq!(cell("fio:iodepth=[1e1],file-size=1e9")["iodepth"], 10);
    lab.weighbridge("run steady --samples 1e0 --warm-up 0 -q --into R").expect_code(0);
}

/// The tests with their parameters.
fn declarations(lab: &Lab) -> Vec<serde_json::Value> {
    lab.weighbridge("list --json").expect_code(0).json().as_array().unwrap().clone()
}

/// Plans every declared number with the `tried` first of its largest values.
fn plan_largest_values(tried: usize) {
    let lab = Lab::new();
    for test in declarations(&lab) {
        for param in test["params"].as_array().unwrap() {
            let of = |key: &str| param["of"][key].as_str().or(param[key].as_str()).unwrap_or_default().to_owned();
            let largest: &[&str] = match of("kind").as_str() {
                "integer" => &["9223372036854775807", "4294967295", "65535", "99999999999999999999"],
                "bytes" | "count" => &["18446744073709551615", "1e30"],
                "duration" => &["18446744073709551615ns", "1e30s"],
                "number" => &["1e308"],
                _ => continue,
            };
            for value in largest.iter().take(tried) {
                let (test, param) = (test["name"].as_str().unwrap(), param["name"].as_str().unwrap());
                run(lab.command("plan --no-worker").arg(format!("{test}:{param}={value}")));
            }
        }
    }
}

// linpack listed a CPU per thread before it refused their number; ab reserved memory for all blocks.
#[test]
fn every_declared_number_may_have_its_largest_value() {
    plan_largest_values(1);
}

#[test]
#[ignore = "plans each number with several more values: make test-long"]
fn soak_every_declared_number_may_have_any_large_value() {
    plan_largest_values(usize::MAX);
}

#[test]
fn every_sampling_option_may_have_its_largest_value() {
    let lab = Lab::new();
    const MOST: &str = "18446744073709551615";
    for option in ["samples", "min-samples", "max-samples", "retakes", "seed"] {
        run(&mut lab.command(&format!("plan steady --{option} {MOST}"))).expect_code(0);
        run(&mut lab.command(&format!("plan redis himeno fio:samples=9,max-failures=4294967295 --{option} {MOST}")));
        run(&mut lab.command(&format!("plan steady --{option} 18446744073709551616"))).expect_code(1);
    }
    for option in ["warm-up", "attempts"] {
        run(&mut lab.command(&format!("plan steady --{option} 4294967295 --max-samples {MOST}"))).expect_code(0);
    }
    for option in ["min-time", "budget", "limit"] {
        run(&mut lab
            .command(&format!("plan steady himeno redis --{option} {MOST}ns --max-samples {MOST} --retakes {MOST}")));
    }
    // The rule is met long before.
    let line = format!("run steady --min-samples 6 --max-samples {MOST} --retakes {MOST} --warm-up 0 --precision 99");
    run(&mut lab.command(&format!("{line} --budget 20s --into R"))).expect_code_of(&[0, 3]);
    for command in ["summary R", "format R", "report R --html R.html", "report R --json"] {
        run(&mut lab.command(command)).expect_code_of(&[0, 3]);
    }
    let refused = run(&mut lab.command(&format!("ab steady --max-blocks {MOST} -- param:kind=a param:kind=b")));
    refused.expect_stderr("invalid --max-blocks `18446744073709551615`: expected a whole number from 1 to 1000");
}

/// Runs a command with a word that is nested deeply.
fn refuse_nested(lab: &Lab, line: &str, word: &str) {
    refuse(lab.command(line), line, word);
}

fn refuse(mut command: Command, line: &str, word: &str) {
    let result = run(command.arg(word));
    assert!((1..=4).contains(&result.code), "{line}: {}", result.code);
    // The program does not print what it refuses in full several times.
    assert!(!result.err.is_empty(), "{line}");
}

#[test]
fn deeply_nested_arguments_are_refused() {
    let lab = Lab::new();
    for depth in [5_000, 30_000] {
        for (open, close) in [("[", ""), ("[", "]"), ("{", ""), ("{\"a\":", ""), ("(", ""), ("{a,", ""), ("\"[", "")] {
            // The kernel takes words of up to 128 KiB.
            let depth = depth.min(60_000 / open.len());
            let nested = open.repeat(depth) + &close.repeat(depth);
            refuse_nested(&lab, "plan", &format!("fio:rw={nested}"));
            refuse_nested(&lab, "plan", &format!("fio:{{\"rw\":{nested}}}"));
            refuse_nested(&lab, "plan", &format!("fio:{nested}"));
            refuse_nested(&lab, "plan", &format!("iocost-qos:min={nested}"));
            refuse_nested(&lab, "plan fio --select", &nested);
            refuse_nested(&lab, "ab fio -- param:rw=read", &format!("param:rw={nested}"));
            refuse_nested(&lab, "run-perf localhost", &format!("fio:{nested}"));
            refuse_nested(&lab, "exec himeno", &nested);
            let mut order = Command::new(env!("CARGO_BIN_EXE_weighbridge-agent"));
            order.arg("images");
            refuse(order, "images", &nested);
            refuse_nested(&lab, "net rr localhost -t", &nested);
        }
    }
}

/// Commands that read files of a kind; others are given it by mistake.
fn readers(extension: &str) -> &'static [&'static str] {
    match extension {
        "json" => &["import --into I", "hashd --params", "model show"],
        "yaml" => &["import --into I", "unpack"],
        "toml" => &["plan --plan", "peers list", "plan fio --inventory"],
        "xml" => &["net check", "net uperf -m", "import --into I", "profile show --paths . --guest-distro"],
        _ => unreachable!("{extension}"),
    }
}

#[test]
fn deeply_nested_files_are_refused() {
    refuse_nested_files(readers);
}

#[test]
#[ignore = "gives every file to every command: make test-long"]
fn soak_deeply_nested_files_are_refused_by_every_command() {
    refuse_nested_files(|_| {
        &[
            "plan --plan",
            "peers list",
            "plan fio --inventory",
            "net run",
            "net check",
            "net uperf -m",
            "hashd --params",
            "model show",
            "import --into I",
            "compare R --model",
            "profile show --paths . --guest-distro",
            "unpack",
        ]
    });
}

/// Gives each of several deeply nested files to the commands that are selected by its extension, and as a part of a run.
fn refuse_nested_files(commands: impl Fn(&str) -> &'static [&'static str]) {
    let lab = Lab::new();
    const DEPTH: usize = 100_000;
    let repeat = |text: &str| text.repeat(DEPTH);
    let both = |open: &str, middle: &str, close: &str| repeat(open) + middle + &repeat(close);
    let indented: String = (0..3_000).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    let files = [
        ("list.json", both("[", "", "]")),
        ("object.json", both("{\"results\":", "1", "}")),
        ("open.json", repeat("[")),
        ("list.yaml", both("[", "", "]")),
        ("items.yaml", repeat("- ")),
        ("indented.yaml", indented),
        ("map.yaml", repeat("{a: ")),
        ("keys.yaml", repeat("? ")),
        ("array.toml", format!("a = {}", both("[", "", "]"))),
        ("table.toml", format!("a = {}", both("{a=", "1", "}"))),
        ("keys.toml", format!("a{} = 1", repeat(".a"))),
        ("header.toml", format!("[a{}]", repeat(".a"))),
        ("open.xml", repeat("<a>")),
        ("profile.xml", both("<profile name=\"p\">", "", "</profile>")),
        ("group.xml", format!("<profile name=\"p\">{}</profile>", both("<group nthreads=\"1\">", "", "</group>"))),
        ("phoronix.xml", format!("<?xml version=\"1.0\"?><PhoronixTestSuite>{}", both("<Result>", "", "</Result>"))),
        ("guest.xml", format!("<domain>{}</domain>", both("<devices>", "", "</devices>"))),
    ];
    const RECORDED: [&str; 3] = ["run.json", "journal.jsonl", "Localhost/steady/0000/kind=a/result.json"];
    lab.weighbridge("run steady --samples 1 --warm-up 0 -q --into R").expect_code(0);
    for (name, text) in &files {
        lab.write(name, text);
        let (_, extension) = name.rsplit_once('.').unwrap();
        if extension == "toml" {
            lab.define("nested", text);
            run(&mut lab.command("plan steady"));
            std::fs::remove_file(lab.path("config/weighbridge/tests.d/nested.toml")).unwrap();
        }
        for command in commands(extension) {
            let result = run(lab.command(command).arg(name));
            assert_ne!(result.code, 0, "{command} {name}");
        }
        // What a run folder contains may come from others; all of it is JSON.
        let recorded = if name.ends_with(".json") { &RECORDED[..] } else { &[] };
        for recorded in recorded {
            let path = lab.path(&format!("R/{recorded}"));
            let Ok(original) = std::fs::read(&path) else { continue };
            std::fs::write(&path, text).unwrap();
            for command in ["summary R", "report R", "compare R R"] {
                run(&mut lab.command(command));
            }
            std::fs::write(&path, original).unwrap();
        }
    }
}
