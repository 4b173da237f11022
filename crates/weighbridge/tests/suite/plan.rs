//! `plan` and `list`, with valid and invalid arguments.

use insta::assert_snapshot;

use crate::lab::{Lab, copy_folder};

#[test]
fn empty_selection_exits_with_4() {
    let lab = Lab::new();
    assert_snapshot!(lab.weighbridge("plan steady:kind=[a,b] --select nosuch*").transcript(), @r"
    exit 4
    error: no cell matches `nosuch*`
    help: `weighbridge plan steady:kind=[a,b]` without --select and --ignore lists all 2
    ");
}

#[test]
fn cells_are_selected_by_parameters_in_any_order_and_by_aliases() {
    let lab = Lab::new();
    let cells = |select: &str| -> Vec<String> {
        let line = format!("plan fio:rw=[read,randread],bs=[4k,64k] --no-worker --json {select}");
        let plan = lab.weighbridge(&line).expect_code(0).json();
        let case = |cell: &serde_json::Value| cell["id"].as_str().unwrap().rsplit(':').next().unwrap().to_owned();
        plan["cells"].as_array().unwrap().iter().map(case).collect()
    };
    for select in [
        "--select rw=randread,bs=4k",
        "--select bs=4096,test-types=randread",
        "--select fio:block-sizes=4k,rw=rand*",
        "--ignore rw=read --ignore bs=64k",
        "--select *block-sizes=4k,test-types=randread",
    ] {
        assert_eq!(cells(select), ["block-sizes=4k,test-types=randread"], "{select}");
    }
    assert_eq!(cells("--select bs=[4k,64k],rw=read").len(), 2);
    assert_eq!(cells("--select runtime=180s").len(), 4, "a parameter that is not part of the name");
}

#[test]
fn selection_of_a_name_or_value_that_no_cell_has_lists_the_near_ones() {
    let lab = Lab::new();
    assert_snapshot!(lab.weighbridge("plan steady:kind=[a,b] --select kin=a").transcript(), @r"
    exit 4
    error: unknown parameter `kin` in `--select kin=a`
    help: did you mean `kind`? the cells have aslr, cpus, huge-pages, kind, memory-nodes
    ");
    assert_snapshot!(lab.weighbridge("run steady:kind=[a,b] --ignore kind=c --into R").transcript(), @r"
    exit 4
    error: no cell has `kind=c`, which `--ignore kind=c` names
    help: `kind` is a, b in these cells
    ");
    // Both exist, but not together.
    lab.weighbridge("plan steady:kind=a steady:kind=b,huge-pages=never --select kind=a,huge-pages=never")
        .expect_code(4)
        .expect_stderr("no cell matches `kind=a,huge-pages=never`");
}

#[test]
fn quotes_keep_commas_in_values() {
    let lab = Lab::new();
    let param = "[[param]]\nname = \"argv\"\nhelp = \"arguments\"\nkind = \"text\"\ndefault = \"\"\naxis = true\n";
    let head = "name = \"cmd\"\nsummary = \"s\"\nversion = 1\ncommand = [\"echo\", \"figure: 1\", \"{argv}\"]\n";
    lab.define_figure("cmd", &format!("{head}{param}"));
    lab.write("quoted.toml", "[[test]]\nname = \"cmd\"\nargv = \"sort -k1,2\"\n");
    for words in [
        &[r#"cmd:argv="sort -k1,2""#][..],
        &[r#"cmd:{"argv":"sort -k1,2"}"#],
        &["--plan", "quoted.toml"],
        &["--profiles", r#"Localhost:{"tests":["cmd:argv=\"sort -k1,2\""]}"#, "cmd"],
    ] {
        let ran = lab.run_command(lab.command("plan --json").args(words)).expect_code(0);
        let cells = ran.json()["cells"].as_array().unwrap().clone();
        assert_eq!(cells.len(), 1, "{words:?}");
        assert_eq!(cells[0]["params"]["argv"], "sort -k1,2", "{words:?}");
    }
    let ran = lab.run_command(lab.command("plan").arg("cmd:argv=sort -k1,2")).expect_code(1);
    ran.expect_stderr(r#"a value without quotes ends at `,`; to keep it, write 'cmd:argv="sort -k1,2"'"#);
}

#[test]
fn unknown_parameter_suggests_the_nearest() {
    let lab = Lab::new();
    let ran = lab.weighbridge("plan fio:blok-sizes=4k").expect_code(1);
    assert!(ran.err.starts_with("error: unknown parameter `blok-sizes` for test `fio`\n"), "{}", ran.err);
    ran.expect_stderr("did you mean `block-sizes`?").expect_stderr("fio:blok-sizes=4k");
}

#[test]
fn mistake_in_a_plan_is_shown_with_its_position() {
    let lab = Lab::new();
    lab.write("my.toml", "name = \"my\"\n\n[[test]]\nname = \"fio\"\nrw = [\"read\", \"raed\"]\n");
    let ran = lab.weighbridge("plan --plan my.toml").expect_code(1);
    for part in ["my.toml:5:15", "did you mean `read`?", "help: expected one of read, write"] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
}

#[test]
fn lists_may_be_strings_with_commas() {
    let lab = Lab::new();
    lab.write("commas.toml", "[[test]]\nname = \"fio\"\nrw = \"read,randwrite\"\nbs = \"4k,64k\"\n");
    let cells = |words: &[&str]| -> Vec<String> {
        let ran = lab.run_command(lab.command("plan --json").args(words));
        // 3 if fio is not installed.
        assert!([0, 3].contains(&ran.code), "{words:?}: {}", ran.transcript());
        ran.json()["cells"].as_array().unwrap().iter().map(|cell| cell["id"].as_str().unwrap().to_owned()).collect()
    };
    let lists = cells(&["fio:rw=[read,randwrite],bs=[4k,64k]"]);
    assert_eq!(lists.len(), 4);
    for words in [
        &[r#"fio:{"test-types": "read,randwrite", "block-sizes": "4k,64k"}"#][..],
        &[r#"fio:rw="read,randwrite",bs="4k, 64k""#],
        &["--plan", "commas.toml"],
        &["--profiles", r#"Localhost:{"tests":["fio:{\"rw\":\"read,randwrite\",\"bs\":\"4k,64k\"}"]}"#, "fio"],
    ] {
        assert_eq!(cells(words), lists, "{words:?}");
    }
    // Parameters that are plain text are not split.
    assert_eq!(cells(&[r#"fio:{"rw":"read","bs":"4k","config":"a,b","targets":"/var/tmp/a,b"}"#]).len(), 1);
    let ran = lab.run_command(lab.command("plan").arg(r#"fio:{"rw":"read,raed"}"#)).expect_code(1);
    ran.expect_stderr("invalid value `raed`");
    let ran = lab.run_command(lab.command("run --samples 1 --warm-up 0 --into out").arg(r#"steady:{"kind":"a,b"}"#));
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    for kind in ["a", "b"] {
        assert!(lab.path(&format!("out/Localhost/steady/0000/kind={kind}")).is_dir(), "{}", ran.transcript());
    }
}

#[test]
fn unknown_test_suggests_the_nearest() {
    let lab = Lab::new();
    lab.weighbridge("run himneo").expect_code(1).expect_stderr("did you mean `himeno`?");
}

#[test]
fn mistakes_in_arguments_exit_with_1_and_help_with_0() {
    let lab = Lab::new();
    lab.weighbridge("run").expect_code(1);
    lab.weighbridge("run steady --min-time 5parsec").expect_code(1);
    lab.weighbridge("nonsense").expect_code(1);
    lab.weighbridge("--help").expect_code(0);
    lab.weighbridge("run --help").expect_code(0);
}

#[test]
fn machine_dependent_values_are_unresolved_without_a_worker() {
    let lab = Lab::new();
    let ran = lab.weighbridge("plan himeno --no-worker").expect_code(0);
    ran.expect_stdout("unresolved").expect_stdout("himeno: isa: the widest of the worker's CPU");
}

#[test]
fn every_builtin_plan_can_be_planned() {
    let lab = Lab::new();
    for plan in ["quick", "standard"] {
        let ran = lab.weighbridge(&format!("plan --plan {plan} --json"));
        assert!([0, 3].contains(&ran.code), "{plan}: {}", ran.err);
        let tests: std::collections::BTreeSet<String> = ran.json()["cells"]
            .as_array()
            .unwrap()
            .iter()
            .map(|cell| cell["id"].as_str().unwrap().split('/').nth(1).unwrap().to_owned())
            .collect();
        for test in ["himeno", "ramspeed", "linpack", "redis", "fio"] {
            assert!(tests.contains(test), "{plan} has no {test}");
        }
    }
}

#[test]
fn missing_instruction_set_is_unsupported_and_never_replaced() {
    let lab = Lab::new();
    let ran = lab.weighbridge("plan himeno:isa=[scalar,sse2,avx2,avx512] --json");
    let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap();
    for cell in ran.json()["cells"].as_array().unwrap() {
        let isa = cell["params"]["isa"].as_str().unwrap();
        let is_available = match isa {
            "avx512" => flags.contains("avx512f"),
            "avx2" => flags.contains("avx2"),
            _ => true,
        };
        assert_eq!(cell["unsupported"].is_null(), is_available, "{isa}");
    }
}

#[test]
fn lists_show_tests_metrics_and_plans() {
    let lab = Lab::new();
    for (line, shown) in [
        ("list", "himeno"),
        ("list tests", "steady"),
        ("list himeno", "huge-pages"),
        ("list tests fio", "block-sizes, bs"),
        ("list metrics himeno", "throughput/throughput (primary)"),
        ("list plans", "quick"),
        ("list plans quick", "[[test]]"),
        ("list plans quick --json", "\"test\": ["),
        ("list fio", "randread|"),
    ] {
        lab.weighbridge(line).expect_code(0).expect_stdout(shown);
    }
    let ran = lab.weighbridge("list hime");
    assert_eq!((ran.code, ran.err.contains("did you mean `himeno`?")), (1, true), "{}", ran.err);
}

#[test]
fn completions_and_man_page_contain_all_declarations() {
    let lab = Lab::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = lab.weighbridge(&format!("completions {shell}")).out;
        for part in ["min-time", "interleaved", "inherit"] {
            assert!(script.contains(part), "{shell}: {part}");
        }
    }
    assert!(lab.weighbridge("completions bash").out.contains("journal-line"));
    lab.weighbridge("man --into pages").expect_code(0);
    for page in ["weighbridge", "weighbridge-run", "weighbridge-tune-apply"] {
        let text = lab.read(format!("pages/{page}.1"));
        assert!(text.contains(".SH NAME") && text.contains("EXIT STATUS") == (page == "weighbridge"), "{page}: {text}");
    }
    let man = lab.weighbridge("man").out;
    assert!(man.contains(".TH") && man.contains("min\\-time"), "{man}");
    let sections: Vec<&str> = man.lines().filter_map(|line| line.strip_prefix(".SH ")).collect();
    assert_eq!(
        sections,
        ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "COMMANDS", "\"EXIT STATUS\"", "ENVIRONMENT", "FILES"]
    );
}

#[test]
fn closed_pipe_is_ignored_and_a_full_disk_is_an_error() {
    let lab = Lab::new();
    for line in ["man", "completions bash", "list"] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = lab.command(line).stdout(full).output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{line}: {err}");
        assert!(err.starts_with("error: cannot write standard output: "), "{line}: {err}");

        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = lab.command(line).stdout(writer).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{line}: {}", String::from_utf8(output.stderr).unwrap());
    }
}

#[test]
fn budget_below_the_minimum_number_of_samples_causes_a_warning() {
    let lab = Lab::new();
    assert_snapshot!(lab.weighbridge("plan fio:samples=3 --budget 5min").err, @r"
    warning: fio (6 cells): the budget of 5 min suffices for 1 of 3 samples
    help: lower `runtime`, or raise --budget
    ");
    assert_snapshot!(lab.weighbridge("plan steady --budget 1ms").err, @r"
    warning: steady (1 cell): the budget of 1 ms suffices for 0 of 6 samples
    help: raise --budget
    ");
    for (test, help) in [
        ("redis:requests=1000000000", "set `requests=auto`, which fills --min-time, or raise --budget"),
        ("redis:requests=auto", "lower --min-time, or raise --budget"),
        ("linpack:run-trials=1000", "set `run-trials=auto`, which fills --min-time, or raise --budget"),
        ("linpack", "lower --min-time, or raise --budget"),
        ("uperf", "lower `runtime`, or raise --budget"),
        ("himeno", "lower --min-time, or raise --budget"),
    ] {
        let ran = lab.weighbridge(&format!("plan {test} --no-worker --budget 2s"));
        assert!(ran.err.ends_with(&format!("\nhelp: {help}\n")), "{test}: {}", ran.transcript());
    }
    assert_eq!(lab.weighbridge("plan steady fio").err, "");
}

#[test]
fn plan_without_measurable_cells_exits_with_3() {
    let lab = Lab::new();
    let ran = lab.weighbridge("plan steady:kind=[a,b] --cpus 9999").expect_code(3);
    assert!(ran.out.ends_with("\n0 of 2 cells can be measured here\n"), "{}", ran.out);
}

#[test]
fn excluded_cells_are_counted() {
    let lab = Lab::new();
    lab.weighbridge("plan steady:kind=[a,b,c] --select *kind=b*").expect_stdout("excluded\n  2 cells not selected\n");
}

#[test]
fn plan_given_as_a_test_is_recognised() {
    let lab = Lab::new();
    lab.write("p/a.toml", "");
    for line in ["plan quick", "run quick", "plan steady p/a.toml"] {
        let ran = lab.weighbridge(line);
        let plan = line.rsplit(' ').next().unwrap();
        let message = format!("error: expected a test, but `{plan}` is a plan\nhelp: write `--plan {plan}`\n");
        assert_eq!((ran.code, ran.err), (1, message));
    }
    assert_snapshot!(lab.weighbridge("list quick").err, @r"
    error: expected a test, but `quick` is a plan
    help: `weighbridge list plans quick` shows it, `weighbridge plan --plan quick` its cells
    ");
    assert_snapshot!(lab.weighbridge("plan").err, @r"
    error: missing test or plan
    help: name a test (`weighbridge list` shows all) or a plan: `--plan quick`
    ");
    assert_snapshot!(lab.weighbridge("plan --plan p/a.toml").err, @r#"
    error: the plan has no test
    help: add a test: `[[test]]` with `name = "himeno"`; `weighbridge list` shows all tests
    "#);
}

#[test]
fn long_message_is_printed_once_above_its_source() {
    let lab = Lab::new();
    lab.write(
        "p.toml",
        "[sampling]\nbudget = \"a time that is far too long to stand in one line of a narrow frame\"\n",
    );
    let err = lab.weighbridge("plan --plan p.toml").err;
    let starts: Vec<&str> = err.lines().map(|line| line.trim_start().split(' ').next().unwrap()).collect();
    assert_eq!(starts, ["error:", "╭─[p.toml:2:10]", "1", "2", "·", "·", "╰────", "help:"], "{err}");
}

#[test]
fn zero_limits_are_refused() {
    let lab = Lab::new();
    for option in ["--min-time 0", "--limit 0", "--budget 0", "--precision 0"] {
        let ran = lab.weighbridge(&format!("plan steady {option}"));
        assert_eq!(ran.code, 1, "{option}: {}", ran.out);
        ran.expect_stderr(&format!("invalid `{}` 0", &option[2..option.len() - 2]));
    }
    for option in ["--attempts 0", "--samples 0", "--samples abc", "--max-samples 3.5"] {
        let ran = lab.weighbridge(&format!("plan steady {option}"));
        assert_eq!(ran.code, 1, "{option}: {}", ran.out);
        ran.expect_stderr("expected a whole number from ");
    }
    let mut command = lab.command("plan steady");
    let output = command.args(["--tool", ""]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn samples_flag_disables_retakes() {
    let lab = Lab::new();
    let retakes = |line: &str| lab.weighbridge(line).json()["sampling"]["retakes"].clone();
    assert_eq!(retakes("plan steady --samples 7 --json"), 0);
    assert_eq!(retakes("plan steady --samples 7 --retakes 2 --json"), 2);
    assert_eq!(retakes("plan steady --precision 5% --json"), 6);
}

#[test]
fn malformed_definition_affects_only_its_own_test() {
    let lab = Lab::new();
    lab.define("broken", "name = \"broken\"\ncomand = [\"true\"]\n");
    for line in ["list", "plan steady"] {
        let ran = lab.weighbridge(line).expect_code(0);
        assert!(ran.err.starts_with("warning: ") && ran.err.contains("broken.toml:2:1"), "{line}: {}", ran.err);
    }
    for line in [
        "plan steady broken",
        "run broken --into R",
        "ab broken -- base env:A=1",
        "list broken",
        "plan steady --profiles Localhost:{\"tests\":[\"broken\"]}",
        "list tests broken",
    ] {
        let ran = lab.weighbridge(line).expect_code(1);
        for part in ["error: unknown field `comand`\n", "broken.toml:2:1", "did you mean `command`?", "╰"] {
            assert!(ran.err.contains(part), "{line}: {part}: {}", ran.err);
        }
    }
    // One warning of each command, however often it reads the definitions.
    lab.weighbridge("run steady --samples 1 --warm-up 0 --min-time 1ms --into R").expect_code(0);
    copy_folder(&lab.path("R"), &lab.path("S"));
    std::fs::remove_file(lab.path("R/Localhost/steady/0000/result.json")).unwrap();
    std::fs::remove_file(lab.path("S/Localhost/steady/0000/result.json")).unwrap();
    for line in ["plan steady", "summary R", "report R", "compare R,S S --select kind=a", "study R"] {
        let ran = lab.weighbridge(line);
        assert_eq!(ran.err.matches("broken.toml:2:1").count(), 1, "{line}: {}", ran.transcript());
    }
}

/// The same arguments of `plan` and `run`.
fn measured(arguments: &[&'static str]) -> [(&'static str, Vec<&'static str>); 2] {
    ["plan", "run --into R"].map(|command| (command, arguments.to_vec()))
}

// A malformed value made its cell unsupported while the others were measured.
#[test]
fn invalid_knobs_are_refused_before_anything_is_measured() {
    let lab = Lab::new();
    lab.write("unknown.toml", "[[test]]\nname = \"steady\"\nknobs.swapiness = 1\n");
    lab.write("malformed.toml", "[[test]]\nname = \"steady\"\n[test.knobs]\nswappiness = \"many\"\n");
    lab.write("unknown-set.toml", "summary = \"s\"\n[knobs]\nswapiness = 1\n");
    lab.write("malformed-set.toml", "summary = \"s\"\n[knobs]\nswappiness = \"many\"\n");
    let mut unknown = Vec::new();
    unknown.extend(measured(&["steady:knobs.swapiness=1"]));
    unknown.extend(measured(&["steady:knobs.swapiness@x=[1,2]"]));
    unknown.extend(measured(&["--plan", "unknown.toml"]));
    unknown.extend(measured(&["steady", "--profiles", r#"TunedHost:{"knobs":{"swapiness":1}}"#]));
    unknown.push(("ab steady --into R", vec!["--", "base", "knob:swapiness=1"]));
    unknown.push(("tune status", vec!["swapiness=1"]));
    unknown.push(("tune apply", vec!["./unknown-set.toml"]));
    let mut malformed = Vec::new();
    malformed.extend(measured(&["steady:knobs.swappiness=many"]));
    malformed.extend(measured(&["steady:knobs.swappiness=[1,201]"]));
    malformed.extend(measured(&["steady:knobs.thp=nevr"]));
    malformed.extend(measured(&["--plan", "malformed.toml"]));
    malformed.extend(measured(&["steady", "--profiles", r#"TunedHost:{"knobs":{"swappiness":"many"}}"#]));
    malformed.push(("ab steady --into R", vec!["--", "base", "knob:swappiness=many"]));
    malformed.push(("tune apply", vec!["./malformed-set.toml"]));
    for (message, lines) in [("unknown knob `swapiness`", unknown), ("invalid value `", malformed)] {
        for (command, arguments) in lines {
            let ran = lab.run_command(lab.command(command).args(&arguments)).expect_code(1);
            ran.expect_stderr(message);
            let explains = ran.err.contains("did you mean `swappiness`?") || ran.err.contains("expected ");
            assert!(explains, "{command} {arguments:?}: {}", ran.err);
        }
    }
    assert!(!lab.path("R").exists(), "a run began");
}

#[test]
fn a_value_of_a_knob_that_the_machine_does_not_offer_is_refused_before_anything_is_measured() {
    let offered = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
    let Ok(offered) = std::fs::read_to_string(offered) else {
        wb_test_skip::skip!("the kernel does not list its clock sources");
        return;
    };
    let first = offered.split_whitespace().next().unwrap();
    let typo = format!("{first}x");
    let lab = Lab::new();
    lab.write("plan.toml", &format!("[[test]]\nname = \"steady\"\nknobs.clocksource = [\"{first}\", \"{typo}\"]\n"));
    let test = format!("steady:knobs.clocksource={typo}");
    let several = format!("steady:knobs.clocksource=[{first},{typo}]");
    let variant = format!("knob:clocksource={typo}");
    let profile = format!(r#"TunedHost:{{"knobs":{{"clocksource":"{typo}"}}}}"#);
    let lines: [(&str, Vec<&str>); 8] = [
        ("plan", vec![&test]),
        ("run --into R", vec![&test]),
        ("plan", vec![&several]),
        ("run --into R", vec![&several]),
        ("run --into R", vec!["--plan", "plan.toml"]),
        ("ab steady --into R", vec!["--", "base", &variant]),
        ("run steady --into R", vec!["--profiles", &profile]),
        ("run steady --into R", vec!["--profiles", "Localhost", "--profiles", &profile]),
    ];
    for (command, arguments) in lines {
        let ran = lab.run_command(lab.command(command).args(&arguments)).expect_code(1);
        for part in ["clocksource", &format!("`{typo}`"), &format!("did you mean `{first}`?")] {
            assert!(ran.err.contains(part), "{part}: {command} {arguments:?}: {}", ran.transcript());
        }
        assert!(!lab.path("R/Localhost").exists(), "{command} {arguments:?} measured");
    }
}

#[test]
fn unknown_host_parameters_are_refused_with_the_nearest_at_their_place() {
    let lab = Lab::new();
    lab.write("hosts.toml", "[hosts.a]\naddress = \"local\"\n[hosts.a.params]\nguest-cpu = 2\n");
    for (arguments, place) in [
        (vec!["--inventory", "hosts.toml"], "hosts.toml:4:1"),
        (vec!["--force-params", r#"{"guest-cpu": 2}"#], "--force-params:1:2"),
        (vec!["--force-params", r#"{"localhost": {"arch": "x86_64", "guest-cpu": 2}}"#], "--force-params:1:34"),
    ] {
        for command in ["plan steady", "run steady --into R"] {
            let ran = lab.run_command(lab.command(command).args(&arguments)).expect_code(1);
            for part in ["unknown host parameter `guest-cpu`\n", place, "did you mean `guest-cpus`?"] {
                ran.expect_stderr(part);
            }
        }
    }
    // Without a similar one, all are listed.
    let ran = lab.run_command(lab.command("plan steady --force-params").arg(r#"{"zebra": 1}"#)).expect_code(1);
    ran.expect_stderr("help: host parameters: hugepage-kb, numa-nodes, ");
}

#[test]
fn cells_on_missing_cpus_are_unsupported_with_the_reason_that_a_run_gives() {
    let lab = Lab::new();
    for (arguments, reason) in [
        ("steady:cpus=[[0],[4095]]", "no such CPU on this worker: 4095"),
        ("steady:memory-nodes=[[0],[1023]]", "no such NUMA node on this worker: 1023"),
        ("himeno:grid=XS,threads=[1,4096]", "4096 threads exceed two per CPU on"),
    ] {
        let plan = lab.weighbridge(&format!("plan {arguments} --json")).expect_code(3).json();
        let of_plan: Vec<Option<&str>> =
            plan["cells"].as_array().unwrap().iter().map(|cell| cell["unsupported"].as_str()).collect();
        assert!(of_plan[0].is_none() && of_plan[1].is_some_and(|it| it.starts_with(reason)), "{of_plan:?}");
        let text = lab.weighbridge(&format!("plan {arguments}")).expect_code(3);
        text.expect_stdout("cannot be measured here\n").expect_stdout(reason).expect_stdout("1 of 2 cells");
        let run = format!("run {arguments} --samples 1 --warm-up 0 --min-time 1ms --retakes 0 --into R --json");
        let study = lab.weighbridge(&run).expect_code(3).json();
        assert!(study["cells"][1].to_string().contains(of_plan[1].unwrap()), "{arguments}");
        std::fs::remove_dir_all(lab.path("R")).unwrap();
    }
    let whole = lab.weighbridge("plan steady --cpus 4095").expect_code(3);
    whole.expect_stdout("0 of 1 cell can be measured here");
}

#[test]
fn sampling_options_show_their_defaults() {
    let lab = Lab::new();
    let help = lab.weighbridge("run --help").out;
    let joined = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for default in ["[default: 5s]", "[default: 2]", "[default: 30]", "[default: interleaved]"] {
        assert!(joined.contains(default), "{default}: {help}");
    }
}

#[test]
fn plan_sets_the_workers_of_tests_without_workers() {
    let Some(lab) = Lab::with_hosts() else { return };
    let tests = "[[test]]\nname = \"steady\"\n[[test]]\nname = \"steady\"\non = \"a\"\n[[test]]\nname = \"steady\"\n";
    lab.write("p.toml", &format!("on = \"b\"\n{tests}"));
    let json = lab.weighbridge("plan --plan p.toml --hosts a:127.0.0.2,b:127.0.0.3 --json").json();
    let workers: Vec<&str> =
        json["cells"].as_array().unwrap().iter().map(|cell| cell["roles"][0]["worker"].as_str().unwrap()).collect();
    assert_eq!(workers, ["b", "a", "b"], "{json}");
    lab.write("wrong.toml", &format!("on = [\"c\"]\n{tests}"));
    let ran = lab.weighbridge("plan --plan wrong.toml --hosts a:127.0.0.2,b:127.0.0.3");
    assert_eq!((ran.code, ran.err.matches("error: ").count()), (1, 1), "{}", ran.transcript());
    ran.expect_stderr("unknown worker `c`").expect_stderr("wrong.toml:1:6");
}

#[test]
fn host_as_both_server_and_client_among_others_is_refused() {
    let Some(lab) = Lab::with_hosts() else { return };
    // The first command transfers the program, which is reported.
    assert_ne!(lab.weighbridge("plan uperf:server=a,client=a --hosts a:127.0.0.2,b:127.0.0.3").code, 1);
    let ran = lab.weighbridge("plan uperf:server=a,clients=each --hosts a:127.0.0.2,b:127.0.0.3");
    assert_snapshot!(ran.transcript(), @r"
    exit 1
    error: `a` would be both server and client of `uperf`
       ╭─[command line:1:24]
     1 │ uperf:server=a,clients=each
       ·                        ──┬─
       ·                          ╰── a client that also serves
       ╰────
    help: `clients=[b]` measures from the others; `server=a,client=a` measures within `a` alone
    ");
}

#[test]
fn plan_shows_the_duration_of_samples_and_in_total() {
    let lab = Lab::new();
    lab.define_figure("own", "name = \"own\"\nsummary = \"takes its own time\"\nversion = 1\ncommand = [\"true\"]\n");
    let shown = |line: &str| lab.weighbridge(line).out.lines().last().unwrap_or_default().to_owned();
    let all = [
        "plan fio:rw=read,bs=4k,runtime=1s --no-worker",
        "plan steady --no-worker",
        "plan own --no-worker",
        "plan own steady --no-worker",
    ];
    assert_snapshot!(all.map(shown).join("\n"), @r"
    1 cell, about 46 s with the fewest samples, 4 min with the most; interleaved order
    1 cell, about 140 ms with the fewest samples, 740 ms with the most; interleaved order
    1 cell, of unknown duration (no `estimate` in the definition); interleaved order
    2 cells, about 140 ms with the fewest samples, 740 ms with the most, and 1 cell of unknown duration (no `estimate` in the definition); interleaved order
    ");
    let row = |line: &str, name: &str| {
        let out = lab.weighbridge(line).out;
        let row = out.lines().find(|row| row.contains(name)).unwrap_or_default().to_owned();
        row.split_whitespace().skip(2).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("plan fio:rw=read,bs=4k,runtime=1s --no-worker", "fio/0000"), "1+3–18 11.5 s 46 s–4 min");
    assert_eq!(row("plan own --no-worker", "own/0000"), "1+6–30 ? ?");
}

#[test]
fn the_version_names_commit_and_build() {
    let lab = Lab::new();
    let version = lab.weighbridge("--version").out;
    let rest = version.strip_prefix(concat!("weighbridge ", env!("CARGO_PKG_VERSION"), " (")).unwrap();
    assert!(rest.contains(" build for ") && version.lines().count() == 1, "{version}");
    let git = std::process::Command::new("git").args(["log", "-1", "--format=%h %cs"]).output();
    let Some(git) = git.ok().filter(|output| output.status.success()) else {
        assert!(rest.starts_with("unknown commit, "), "{version}");
        return;
    };
    assert!(rest.starts_with(String::from_utf8(git.stdout).unwrap().trim()), "{version}");
}

#[test]
fn example_of_compilers_and_nodes_has_three_tests() {
    let lab = Lab::new();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/compiler-and-nodes.toml");
    // 3: programs, or a second node, may be missing.
    let plan = lab.weighbridge(&format!("plan -p {example} --json")).expect_code_of(&[0, 3]).json();
    let count = |test: &str| {
        let cells = plan["cells"].as_array().unwrap().iter();
        cells.filter(|cell| cell["id"].as_str().unwrap().contains(&format!("/{test}/"))).count()
    };
    assert_eq!(["ramspeed-c", "himeno-c", "redis"].map(count), [16, 3, 15]);
}
