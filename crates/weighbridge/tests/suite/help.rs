//! The help of commands, and messages about their arguments.

use insta::assert_snapshot;

use crate::lab::Lab;

/// The help of a command, with one space between words.
fn help(lab: &Lab, command: &str) -> String {
    let ran = lab.run_command(lab.command(&format!("{command} --help")).env("COLUMNS", "200")).expect_code(0);
    ran.out.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first paragraph of the message for arguments that are refused, and its help.
fn refusal(lab: &Lab, words: &[&str]) -> String {
    let ran = lab.run_command(lab.command("").args(words)).expect_code(1);
    let help = ran.err.lines().filter(|line| line.starts_with("help: "));
    ran.err
        .lines()
        .take_while(|line| !line.is_empty() && !line.starts_with("help: "))
        .chain(help)
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn options_show_the_defaults_of_their_types() {
    let lab = Lab::new();
    let peers = help(&lab, "peers run");
    for default in [
        "uploads and of downloads [default: 10]",
        "Size of an upload; 0 for none [default: 32m]",
        "Size of a download; 0 for none [default: 32m]",
        "round trips of one byte [default: 100]",
        "[default: podman]",
        "nothing in it is measured twice [default: weighbridge-DATE-TIME]",
        "without a duration of their own (`runtime`) [default: 5s]",
    ] {
        assert!(peers.contains(default), "{default}: {peers}");
    }
    for (command, default) in [
        ("run", "[default: weighbridge-DATE-TIME]"),
        ("run", "its minimum number of samples [default: 10min]"),
        ("run", "pages of measured processes [default: inherit]"),
        ("ab", "[default: weighbridge-ab-DATE-TIME]"),
        ("calibrate", "[default: weighbridge-calibrate-DATE-TIME]"),
    ] {
        let text = help(&lab, command);
        assert!(text.contains(default), "{command}: {default}: {text}");
    }
}

#[test]
fn help_of_plan_begins_with_its_arguments() {
    let lab = Lab::new();
    let out = lab.weighbridge("plan --help").out;
    let headings: Vec<&str> = out.lines().filter(|line| !line.starts_with(' ') && line.ends_with(':')).collect();
    assert_eq!(headings[..2], ["Arguments:", "Options:"], "{out}");
}

#[test]
fn table_of_variants_fits_into_80_columns() {
    let lab = Lab::new();
    let out = lab.run_command(lab.command("ab --help").env("COLUMNS", "80")).out;
    let table = out.lines().skip_while(|line| !line.starts_with("Variants; ")).skip(1);
    let table: Vec<&str> = table.take_while(|line| line.starts_with("  ")).collect();
    assert!(table.len() == 8 && table.iter().all(|line| line.chars().count() <= 78), "{table:#?}");
}

#[test]
fn run_folder_is_accepted_and_shown_only_where_it_is_used() {
    let lab = Lab::new();
    for command in ["run", "plan", "summary", "format", "study", "solve", "pack", "merge"] {
        assert!(help(&lab, command).contains("-r, --run-folder <DIR>"), "{command}");
    }
    for command in ["compare", "list", "net token", "man", "tune status"] {
        assert!(!help(&lab, command).contains("run-folder"), "{command}");
    }
    lab.weighbridge("-r R plan steady --no-worker").expect_code(0);
    lab.weighbridge("plan steady --no-worker -r R").expect_code(0);
    let refused = ["list -r home", "-r home net token"].map(|line| lab.weighbridge(line).transcript());
    assert_snapshot!(refused.join("\n"), @"
    exit 1
    error: --run-folder has no effect on `list`: expected one of run, plan, summary, format, study, solve, pack, merge
    help: remove -r

    exit 1
    error: --run-folder has no effect on `net`: expected one of run, plan, summary, format, study, solve, pack, merge
    help: remove -r
    ");
    // 1 would be the index of a build.
    assert_eq!(lab.weighbridge("-r home nearest --exit-index a b c").code, 255);
}

#[test]
fn usage_shows_what_is_required() {
    let lab = Lab::new();
    let usage = |line: &str| {
        let ran = lab.weighbridge(line);
        let text = format!("{}{}", ran.out, ran.err);
        let usage = text.lines().find_map(|line| line.strip_prefix("Usage: ").or(line.strip_prefix("help: usage: ")));
        usage.unwrap_or_default().to_owned()
    };
    let lines = ["merge --help", "bisect run --help", "net iperf3", "net uperf", "nearest a"];
    assert_snapshot!(lines.map(usage).join("\n"), @"
    weighbridge merge [OPTIONS] --run-folder <DIR> <RUN|FILE>...
    weighbridge bisect run [OPTIONS] --into <DIR> --good <REVISION> --bad <REVISION> (--measure <COMMAND> | -- <RUN_ARGS>...)
    weighbridge net iperf3 <--client <HOST>|--server|--version>
    weighbridge net uperf <-m <PROFILE>|-s|-V>
    weighbridge nearest <[NAME=]RUN[,RUN…]> <CANDIDATE>...
    ");
    assert_ne!(lab.weighbridge("net iperf3 -c h -s").code, 0);
    lab.weighbridge("net uperf -V").expect_code(0);
}

#[test]
fn hidden_commands_are_not_suggested() {
    let lab = Lab::new();
    let refused = ["-q", "agnet", "image", "pln"].map(|line| lab.weighbridge(line).expect_code(1).err);
    assert_snapshot!(refused.join(""), @"
    error: missing command
    help: `weighbridge --help` lists all commands
    error: unknown command `agnet`
    help: did you mean `net`? `weighbridge --help` lists all commands
    error: unknown command `image`
    help: `weighbridge --help` lists all commands
    error: unknown command `pln`
    help: did you mean `plan`? `weighbridge --help` lists all commands
    ");
}

#[test]
fn mistakes_in_the_command_line_show_the_way_out() {
    let lab = Lab::new();
    let refused = [
        "run --sample 3",
        "run t --samples 3 --min-samples 2",
        "run -i a -i b t",
        "run t --samples",
        "plan --budget 10x t",
        "ab t base",
        "strip a b c",
        "--color purple list",
        "exec himen {}",
        "net sweep h --preset udp-rr --protocol ssl",
    ];
    assert_snapshot!(refused.map(|line| lab.weighbridge(line).expect_code(1).err).join(""), @"
    error: unknown option `--sample`
    help: did you mean `--samples`? `weighbridge run --help` describes all options
    error: `--samples <N>` and `--min-samples <N>` are mutually exclusive
    help: remove one. `weighbridge run --help` describes all options
    error: `--into <DIR>` is given more than once
    help: remove one. `weighbridge run --help` describes all options
    error: missing value of `--samples <N>`
    help: `weighbridge run --help` describes all options
    error: --budget: invalid time `10x`: expected a number with ns, us, ms, s, min, h, d or w, or plain seconds
    help: `weighbridge plan --help` describes all options
    error: missing values of `<VARIANT> <VARIANT>...`: expected at least 2, found 1
    help: usage: weighbridge ab [OPTIONS] <TEST> <VARIANT> <VARIANT>...
    error: unexpected argument `c`
    help: usage: weighbridge strip [OPTIONS] <FROM> <INTO>
    error: invalid --color `purple`: expected one of auto, always, never
    help: `weighbridge list --help` describes all options
    error: invalid KERNEL `himen`: expected one of himeno, ramspeed, ramspeed-sweep, linpack, ceiling-server, ceiling-client, hashd, hashd-params, memory-hog, io-latency, hold-device
    help: did you mean `himeno`? `weighbridge exec --help` describes all options
    error: invalid --protocol: expected udp with --preset udp-rr
    help: remove --protocol, or sweep rr
    ");
}

#[test]
fn invalid_values_are_refused_with_what_is_expected() {
    let lab = Lab::new();
    let refused: [&[&str]; 21] = [
        &["run", "t", "--metadata", "a"],
        &["run", "t", "--metadata", "=a"],
        &["run", "t", "--program", "a"],
        &["compare", "a", "b", "--map", "a"],
        &["net", "check", "f", "--var", "a"],
        &["net", "stream", "h", "--server", "a"],
        &["peers", "list", "f", "--axis-select", "a"],
        &["run", "t", "--precision", "x"],
        &["run", "t", "--tool", "a '"],
        &["run", "t", "--cpus", "x"],
        &["run", "t", "--seed", "-3"],
        &["plan", "storage", "--swappiness", "500"],
        &["hashd", "--rps-target", "x"],
        &["hashd", "--open-loop", "-3"],
        &["hashd", "--compressibility", "2"],
        &["hashd", "--find-params", "f", "--grain", "x"],
        &["net", "serve", "--listen", "x"],
        &["net", "serve", "--max-sessions", "0"],
        &["peers", "run", "f", "--iterations", "x"],
        &["clean", "--older-than", "5"],
        &["plan", "steady", "--force-params", "{"],
    ];
    assert_snapshot!(refused.map(|words| refusal(&lab, words)).join("\n"), @r#"
    error: invalid --metadata `a`: expected KEY=VALUE
    help: `weighbridge run --help` describes all options
    error: invalid --metadata `=a`: expected a key before `=`
    help: `weighbridge run --help` describes all options
    error: invalid --program `a`: expected PROGRAM=PATH
    help: `weighbridge run --help` describes all options
    error: invalid --map `a`: expected PROFILE=PROFILE
    help: `weighbridge compare --help` describes all options
    error: invalid --var `a`: expected NAME=VALUE
    help: `weighbridge net check --help` describes all options
    error: invalid --server `a`: expected HOST=ADDRESS[:PORT]
    help: `weighbridge net stream --help` describes all options
    error: invalid --axis-select `a`: expected AXIS=FILTER
    help: `weighbridge peers list --help` describes all options
    error: invalid --precision `x`: expected a percentage, such as `2` or `2%`
    help: `weighbridge run --help` describes all options
    error: invalid --tool `a '`: expected a non-empty command line with closed quotes
    help: `weighbridge run --help` describes all options
    error: invalid --cpus `x`: expected numbers and ranges, such as `0-3,8`
    help: `weighbridge run --help` describes all options
    error: invalid --seed `-3`: expected a whole number from 0
    help: `weighbridge run --help` describes all options
    error: invalid --swappiness `500`: expected a whole number from 0 to 200
    help: `weighbridge plan --help` describes all options
    error: invalid --rps-target `x`: expected a number of 0 or more
    help: `weighbridge hashd --help` describes all options
    error: invalid --open-loop `-3`: expected a number of 0 or more
    help: `weighbridge hashd --help` describes all options
    error: invalid --compressibility `2`: expected a number from 0 to 1
    help: `weighbridge hashd --help` describes all options
    error: invalid --grain `x`: expected a number of 0 or more
    help: `weighbridge hashd --help` describes all options
    error: invalid --listen `x`: expected an IP address, such as 0.0.0.0 or ::
    help: `weighbridge net serve --help` describes all options
    error: invalid --max-sessions `0`: expected a whole number from 1
    help: `weighbridge net serve --help` describes all options
    error: invalid --iterations `x`: expected a whole number from 0 to 4294967295
    help: `weighbridge peers run --help` describes all options
    error: invalid --older-than `5`: expected a number with a unit, such as 36h, 30d or 8w
    help: `weighbridge clean --help` describes all options
    error: invalid --force-params: incomplete JSON at line 1 column 1
    help: expected `{"HOST": {"guest-cpus": 4}}`, or `{"guest-cpus": 4}` for all hosts
    "#);
    let profile = refusal(&lab, &["plan", "steady", "--profiles", "DefaultLibvirt:{"]);
    assert!(profile.starts_with("error: `DefaultLibvirt:{`: incomplete JSON at line 1 column 1\n"), "{profile}");
}

#[test]
fn unreadable_and_unwritable_files_are_named_with_the_cause() {
    let lab = Lab::new();
    lab.write("text", "hello world\n");
    std::fs::create_dir(lab.path("empty")).unwrap();
    let refused: [&[&str]; 11] = [
        &["plan", "--plan", "missing.toml"],
        &["plan", "steady", "--inventory", "missing"],
        &["net", "check", "missing.xml"],
        &["import", "--into", "R", "missing"],
        &["man", "--into", "text/pages"],
        &["list", "--log", "no/log"],
        &["summary", "missing"],
        &["summary", "empty"],
        &["unpack", "missing.tar"],
        &["list", "--tests-d", "missing"],
        &["peers", "list", "text"],
    ];
    assert_snapshot!(refused.map(|words| refusal(&lab, words)).join("\n"), @r"
    error: cannot read `missing.toml`: No such file or directory
    error: cannot read `missing`: No such file or directory
    error: cannot read `missing.xml`: No such file or directory
    error: cannot read `missing`: no such file or folder
    help: name files or folders of results
    error: cannot create `text/pages`: Not a directory
    error: cannot write `no/log`: No such file or directory
    error: cannot read run `missing`: no such folder
    help: `weighbridge run --into` creates a run folder
    error: `empty` is not a run folder: it has no run.json
    help: name the folder of `weighbridge run --into`
    error: cannot read `missing.tar`: No such file or directory
    error: cannot read `missing`: No such file or directory
    help: name an existing folder
    error: invalid peers file: expected TOML or YAML
       ╭─[text:1:1]
     1 │ hello world
       · ─────┬─────
       ·      ╰── here
       ╰────
    ");
}

#[test]
fn presets_of_udp_refuse_other_protocols() {
    let lab = Lab::new();
    assert_snapshot!(refusal(&lab, &["net", "udp-rr", "h", "--protocols", "tcp,quic"]), @"
    error: --protocols has no effect on `net udp-rr`
    help: remove --protocols. `weighbridge net udp-rr --help` describes all options
    ");
    let protocols = help(&lab, "net stream");
    let listed = protocols.split("measured one after the other: ").nth(1).and_then(|rest| rest.split(" [").next());
    assert_eq!(listed.map(|names| names.split(", ").count()), Some(9), "{protocols}");
}

#[test]
fn contention_benches_are_listed_with_their_properties() {
    let lab = Lab::new();
    lab.weighbridge("list").expect_code(0).expect_stdout("iocost-tune");
    let shown = lab.weighbridge("list storage").expect_code(0);
    shown.expect_stdout("storage: how much memory").expect_stdout("mem-avail-err-max");
    assert_eq!(lab.weighbridge("list benches storage").out, shown.out);
    let json = lab.weighbridge("list storage --json").json();
    let loops = json["properties"].as_array().unwrap().iter().find(|property| property["name"] == "loops").unwrap();
    assert_eq!((&loops["default"], &loops["group"]), (&"3".into(), &"first".into()));
    assert_eq!(lab.weighbridge("list benches --json").json().as_array().map(Vec::len), Some(6));
    assert_snapshot!(lab.weighbridge("list benches storge").transcript(), @r"
    exit 1
    error: unknown contention bench `storge`
    help: did you mean `storage`? expected one of storage, iocost-params, hashd-params, iocost-qos, iocost-tune, protection
    ");
}
