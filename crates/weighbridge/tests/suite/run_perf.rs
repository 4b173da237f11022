//! Command lines of run-perf, run by a shell through symbolic links with the names of its programs.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use crate::compare::{samples_around, write_build};
use crate::lab::{CommandResult, Lab};

const PROGRAMS: [&str; 6] = ["weighbridge", "run-perf", "compare-perf", "analyze-perf", "diff-perf", "strip-run-perf"];

/// A lab in which run-perf's programs are symbolic links to this program.
fn lab() -> Lab {
    let lab = Lab::new();
    std::fs::create_dir_all(lab.path("bin")).unwrap();
    for program in PROGRAMS {
        symlink(env!("CARGO_BIN_EXE_weighbridge"), lab.path(&format!("bin/{program}"))).unwrap();
    }
    lab
}

/// A lab with six builds, the last two slower by ten percent.
fn with_builds() -> Lab {
    let lab = lab();
    for (name, level) in [("src", 1000.0), ("result_1", 1004.0), ("result_2", 996.0), ("result_3", 1001.0)] {
        write_build(&lab, name, &samples_around(level));
    }
    write_build(&lab, "dst", &samples_around(900.0));
    write_build(&lab, "slow", &samples_around(901.0));
    lab
}

/// Runs a command line in a shell.
fn run_in_shell(lab: &Lab, line: &str) -> CommandResult {
    let mut shell = Command::new("sh");
    let program = lab.command("");
    shell.args(["-c", line]).current_dir(lab.path("")).env_remove("NO_COLOR").stdin(std::process::Stdio::null());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    lab.run_command(&mut shell)
}

/// The equivalent command that the program prints.
fn equivalent_command(ran: &CommandResult) -> &str {
    let mut lines = ran.err.lines().filter_map(|line| line.strip_prefix("note: equivalent command: "));
    let line = lines.next().unwrap_or_else(|| panic!("no equivalent command: {}", ran.transcript()));
    assert_eq!(lines.next(), None, "printed once: {}", ran.transcript());
    line
}

/// The table of scores in the output.
fn scores(ran: &CommandResult) -> String {
    let (_, rest) = ran.out.split_once("scores of primary means").unwrap_or_else(|| panic!("{}", ran.transcript()));
    rest.lines().skip(1).take_while(|line| !line.is_empty()).map(|line| format!("{}\n", line.trim_end())).collect()
}

#[test]
fn provisioner_gets_the_hosts_of_run_perf() {
    let lab = lab();
    let program =
        "#!/bin/sh\ncat > asked.json\necho '{\"event\":\"failed\",\"host\":\"lab\",\"reason\":\"no free machine\"}'\n";
    lab.program("weighbridge-provision-pool", program);
    let ran = run_in_shell(
        &lab,
        r#"run-perf -vvv --hosts lab:192.0.2.1 --provisioner pool --distro Fedora-32 --default-password s3cret-word --profiles Localhost TunedLibvirt -- uperf fio:'{"type":"read", "ramptime":"1", "runtime":"10", "samples":"1", "file-size": "100", "targets": "/fio"}'"#,
    );
    assert_eq!(ran.code, 3, "{}", ran.transcript());
    let line = equivalent_command(&ran);
    let (before, folder) = line.split_once(" --into result_").unwrap();
    insta::assert_snapshot!(before, @"weighbridge run --profiles Localhost --profiles TunedLibvirt --hosts lab:root@192.0.2.1 --distro Fedora-32 --budget 7d --provisioner pool");
    let (folder, after) = folder.split_once(" --layout 'run-perf=result_").unwrap();
    let (layout, after) = after.split_once("' ").unwrap();
    assert_eq!(folder, format!("{layout}/.weighbridge"));
    insta::assert_snapshot!(after, @"-- 'uperf:message-sizes=[1,64,16384],protocols=tcp,runtime=60,samples=3,test-types=stream' 'fio:file-size=100m,ramptime=1,runtime=10,samples=1,targets=/fio,test-types=read'");
    ran.expect_stderr("the provisioner `pool` failed: no free machine");
    ran.expect_stderr("note: --default-passwords has no effect: ssh logs in with your keys");
    let request = lab.read_json("asked.json");
    let host = &request["hosts"][0];
    assert_eq!(
        (&host["name"], &host["address"], &host["user"], &host["distro"]),
        (&"lab".into(), &"192.0.2.1".into(), &"root".into(), &"Fedora-32".into())
    );
    // The password is not recorded anywhere.
    let grep = Command::new("grep").args(["-rl", "s3cret-word", "."]).current_dir(lab.path("")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&grep.stdout), "");
    assert!(!ran.transcript().contains("s3cret-word"), "{}", ran.transcript());
}

#[test]
fn run_perf_command_line_can_be_planned() {
    let lab = lab();
    lab.program("weighbridge-provision-pool", "#!/bin/sh\n");
    let ran = run_in_shell(
        &lab,
        r#"run-perf --plan -vvv --hosts lab:127.0.0.1 --provisioner pool --distro Fedora-32 --default-password x --profiles Localhost TunedLibvirt -- uperf fio:'{"type":"read", "ramptime":"1", "runtime":"10", "samples":"1", "file-size": "100", "targets": "/fio"}'"#,
    );
    // 3 if fio is not installed.
    assert!([0, 3].contains(&ran.code), "{}", ran.transcript());
    for cell in [
        "Localhost/fio/0000:block-sizes=64k,test-types=read ",
        "Localhost/uperf/0000:instances=8,message-sizes=16k,",
        "TunedLibvirt/fio/0000:test-types=read ",
        "TunedLibvirt/uperf/0000:message-sizes=16k,",
    ] {
        assert!(ran.out.contains(cell), "{cell}: {}", ran.transcript());
    }
    std::fs::create_dir(lab.path("assets")).unwrap();
    let ran = run_in_shell(
        &lab,
        r#"run-perf --plan -vvv --hosts 127.0.0.1 --distro Fedora-33 --default-password x --profiles DefaultLibvirt --paths assets -- linpack:'{"threads": "32"}'"#,
    );
    // 3 if no guest can be run.
    assert!([0, 3].contains(&ran.code), "{}", ran.transcript());
    ran.expect_stdout("DefaultLibvirt/linpack/0000:problem-sizes=4000,threads=32");
    assert!(ran.out.contains("1+3 "), "as many samples as run-perf takes: {}", ran.out);
    insta::assert_snapshot!(equivalent_command(&ran), @"weighbridge plan --profiles DefaultLibvirt --hosts localhost:local --paths assets --distro Fedora-33 -- 'linpack:run-samples=3,threads=32'");
}

/// A stub of fio with the engine libblkio: it checks that the socket exists, and runs the real fio on a file instead.
const FIO_WITH_LIBBLKIO: &str = r#"#!/bin/sh
PATH=${PATH#*:}
case "$*" in
    --enghelp*) printf 'Available IO engines:\n\tlibblkio\n' ;;
    *.job)
        for job; do :; done
        lab=${0%/bin/fio}
        socket=$(sed -n 's/^libblkio_path=//p' "$job")
        test -S "$socket" || exit 9
        echo "$socket" > "$lab/socket"
        sed "s/=libblkio$/=psync/; /^libblkio_/d; /^hipri=/d; s|^filename=.*|filename=$lab/file|" "$job" > "$lab/file.job"
        exec fio --output-format=json+ --eta=never "$lab/file.job"
        ;;
    *) exec fio "$@" ;;
esac
"#;

#[test]
fn vhost_user_export_is_created_for_fio_and_removed() {
    let is_installed = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !is_installed("fio") || !is_installed("qemu-storage-daemon") {
        wb_test_skip::skip!("no fio and qemu-storage-daemon here");
        return;
    }
    let lab = lab();
    lab.program("fio", FIO_WITH_LIBBLKIO);
    let line = r#"run-perf --output run -- fio-libblkio:'{"type":"read,randrw","block-sizes":"4","runtime":"1","ramptime":"0","samples":"1","file-size":"8","hipri":1,"sysinfo":"none"}'"#;
    let ran = run_in_shell(&lab, line).expect_code(0);
    insta::assert_snapshot!(equivalent_command(&ran), @"weighbridge run --budget 7d --into run/.weighbridge --layout 'run-perf=run' -- 'fio-libblkio:block-sizes=4k,direct=false,file-size=8m,hipri=1,ramptime=0,runtime=1,samples=1,sysinfo=none,target=/dev/shm,test-types=[read,randrw]'");
    ran.expect_stderr("replaces the RAM disk `/dev/ram0` of `fio-libblkio`");
    let sample = lab.path("run/.weighbridge/Localhost/fio-libblkio/0000/block-sizes=4k,test-types=randrw/0000.0");
    let text =
        |name: &str| std::fs::read_to_string(sample.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(text("fio.job").contains("libblkio_driver=virtio-blk-vhost-user\n"), "{}", text("fio.job"));
    let socket = lab.read("socket").trim().to_owned();
    let server = text("server.process.json");
    assert!(server.contains("vhost-user-blk") && server.contains("/dev/shm/"), "{server}");
    assert!(!Path::new(&socket).exists(), "{socket} is left behind");
    let running = Command::new("pgrep").args(["-f", &socket]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&running.stdout), "", "the server of {socket} is left behind");
    let journal = lab.read("run/.weighbridge/journal.jsonl");
    assert!(journal.contains("in memory: this measures memory, not storage"), "{journal}");
}

#[test]
fn plan_reports_a_missing_fio_engine() {
    let lab = lab();
    lab.program("qemu-storage-daemon", "#!/bin/sh\n");
    lab.program("fio", "#!/bin/sh\ncase $* in --enghelp*) exit 1 ;; esac\n");
    let ran = run_in_shell(&lab, "weighbridge plan fio-libblkio:rw=read,bs=4k").expect_code(3);
    let reason = "`fio` on local lacks the ioengine `libblkio`: build fio 3.34 or newer with libblkio (Debian's \
                  package libblkio-dev)";
    ran.expect_stdout(reason);
}

#[test]
fn plan_checks_the_preparation_of_machines() {
    let lab = lab();
    for (line, reason) in [
        ("run-perf --plan --provisioner nosuch -- steady", "weighbridge-provision-nosuch"),
        ("run-perf --plan --provisioner 'pool:{\"a\":1' -- steady", "pool"),
        ("run-perf --plan --worker-setup-script /bin/nosuch -- steady", "/bin/nosuch"),
        ("weighbridge plan --host-setup-script /bin/nosuch steady", "/bin/nosuch"),
        ("weighbridge plan --publish nosuch steady", "no such program: `nosuch`"),
    ] {
        run_in_shell(&lab, line).expect_code(1).expect_stderr(reason);
    }
}

#[test]
fn models_are_fitted_and_tables_written() {
    let lab = with_builds();
    let ran = run_in_shell(&lab, "analyze-perf -vvv -l model1.json -t 3 -- result*").expect_code(0);
    insta::assert_snapshot!(equivalent_command(&ran), @"weighbridge model fit --linear --output model1.json --tolerance 3 -- result_1 result_2 result_3");
    let model = lab.read_json("model1.json");
    assert!(model.to_string().contains("iops_sec.mean"), "{model}");

    let ran = run_in_shell(&lab, "analyze-perf -c values.csv -l linear.json -s stddev.json -t 4 -- src dst");
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    insta::assert_snapshot!(equivalent_command(&ran), @"weighbridge analyze --primary --output values.csv -- src dst && weighbridge model fit --linear --output linear.json --tolerance 4 -- src dst && weighbridge model fit --stddev --output stddev.json --tolerance 4 -- src dst");
    let table = lab.read("values.csv");
    assert!(table.starts_with("check,src,dst\n") && table.contains("iops_sec.mean,999.5,899.55"), "{table}");
    assert!(lab.path("linear.json").is_file() && lab.path("stddev.json").is_file());
    let rebased = run_in_shell(&lab, "analyze-perf --rebase-model linear.json -l rebased.json -- dst").expect_code(0);
    insta::assert_snapshot!(equivalent_command(&rebased), @"weighbridge model rebase --linear --output rebased.json -- linear.json dst");
    run_in_shell(&lab, "analyze-perf --rebase-model linear.json dst").expect_code(1);
}

#[test]
fn builds_are_compared_with_tolerances_and_a_model() {
    let lab = with_builds();
    assert_eq!(run_in_shell(&lab, "analyze-perf -vvv -l model1.json -t 3 -- result*").code, 0);
    let ran = run_in_shell(
        &lab,
        "compare-perf -vvv --tolerance 5 --stddev-tolerance 10 -l model1.json --xunit result.xml --html result.html -- src result* dst",
    );
    assert_eq!(ran.code, 2, "{}", ran.transcript());
    insta::assert_snapshot!(equivalent_command(&ran), @"weighbridge compare --method tolerance --fail-on missing --tolerance 5 --stddev-tolerance 10 --model model1.json --html result.html --no-charts --junit result.xml --verbose -- src result_1 result_2 result_3 dst");
    insta::assert_snapshot!(scores(&ran), @r"
                n  median     min     max     sum    mean
    total       1  -11.03  -11.03  -11.03  -11.03  -11.03
    improved    0       –       –       –       –       –
    minor-gain  0       –       –       –       –       –
    equivalent  0       –       –       –       –       –
    minor-loss  0       –       –       –       –       –
    regressed   1  -11.03  -11.03  -11.03  -11.03  -11.03
    ");
    ran.expect_stdout("regressed    Localhost/fio/0000:./read-4k/throughput/iops_sec.mean");
    assert!(lab.read("result.xml").contains("<testsuite"));
    assert!(lab.read("result.html").contains("iops_sec"));

    // The second time, `result*` also matches the page and the report.
    for line in [
        "compare-perf -vvv --tolerance 5 --stddev-tolerance 10 -l model1.json --xunit result.xml --html result.html -- src result* dst",
        "analyze-perf -vvv -l model2.json -t 3 -- result*",
    ] {
        let again = run_in_shell(&lab, line);
        assert_eq!(again.code, if line.starts_with("compare") { 2 } else { 0 }, "{}", again.transcript());
        again.expect_stderr("note: `result.html` is a file, not a results folder: skipped");
    }
    // Where too few remain, the error has them.
    for line in ["compare-perf src result.html", "analyze-perf -l model3.json -- result.html"] {
        let refused = run_in_shell(&lab, line).expect_code(1);
        refused.expect_stderr("; `result.html` is a file, not a results folder: skipped");
    }

    let charted =
        run_in_shell(&lab, "compare-perf -l model1.json --html charted.html --html-with-charts -- src result_* dst");
    assert_eq!(charted.code, 2, "{}", charted.transcript());
    run_in_shell(&lab, "compare-perf --html small.html --html-small-file -- src dst").expect_code(2);
    let model = "<small class=\"model\">model1.json</small>";
    for (name, has_charts, has_model, has_tests) in
        [("charted.html", true, true, true), ("result.html", false, true, true), ("small.html", false, false, false)]
    {
        let page = lab.read(name);
        assert_eq!(page.contains("improvements of Localhost/fio over the builds"), has_charts, "{name}");
        assert_eq!(page.contains(model), has_model, "{name}");
        assert_eq!(page.contains(">Tests</a>"), has_tests, "{name}");
        assert!(page.contains(">not primary, failed</th>"), "{name}");
    }

    run_in_shell(&lab, "compare-perf --html comparison.html result_*").expect_code(0);
    assert!(lab.path("comparison.html").is_file());
    let named = run_in_shell(&lab, "compare-perf old:src new:dst").expect_code(2);
    insta::assert_snapshot!(equivalent_command(&named), @"weighbridge compare --method tolerance --fail-on missing -- 'old=src' 'new=dst'");
    let as_subcommand =
        run_in_shell(&lab, "weighbridge compare-perf --tol 20 -t 30 --csv-prefix table old:src new:dst");
    assert_eq!(as_subcommand.code, 0, "the last value is used: {}", as_subcommand.transcript());
    assert!(lab.path("table.csv").is_file());
    let nowhere = run_in_shell(&lab, "compare-perf old:nowhere new:dst");
    insta::assert_snapshot!(nowhere.transcript(), @r"
    exit 1
    error: cannot read `old:nowhere`: neither `nowhere` nor `old:nowhere` exists
    help: a build is written FOLDER or NAME:FOLDER
    ");
}

#[test]
fn nearest_build_is_the_exit_status() {
    let lab = with_builds();
    let ran = run_in_shell(&lab, "diff-perf slow src -- dst");
    assert_eq!((ran.code, ran.out.as_str()), (1, "1\n"), "{}", ran.transcript());
    insta::assert_snapshot!(equivalent_command(&ran), @"weighbridge nearest --exit-index -- slow src dst");
    let grouped =
        run_in_shell(&lab, "diff-perf -vvv --flatten-coefficient 2 -g dst slow -g result_1 result_2 -- src result_3");
    assert_eq!(grouped.code, 0, "{}", grouped.transcript());
    insta::assert_snapshot!(equivalent_command(&grouped), @"weighbridge nearest --exit-index --flatten 2 --group dst slow --group result_1 result_2 -- src result_3");
    for line in ["diff-perf slow src", "diff-perf --nope slow src dst", "diff-perf slow src nowhere"] {
        run_in_shell(&lab, line).expect_code(255);
    }
}

#[test]
fn results_are_stripped_with_system_information() {
    let lab = with_builds();
    lab.write("src/__sysinfo_before__/host/dmesg", "booted\n");
    lab.write("src/Localhost/fio/failed/result.json", &lab.read("src/Localhost/fio/0000/result.json"));
    let ran = run_in_shell(&lab, "strip-run-perf src small").expect_code(0);
    insta::assert_snapshot!(equivalent_command(&ran), @"weighbridge strip -- src small");
    assert!(!lab.path("small/__sysinfo_before__").exists() && !lab.path("small/Localhost/fio/failed").exists());
    let ran = run_in_shell(&lab, "strip-run-perf -i -s src all").expect_code(0);
    insta::assert_snapshot!(equivalent_command(&ran), @"weighbridge strip --include-incorrect --attach-sysinfo -- src all");
    assert!(lab.path("all/__sysinfo_before__/host/dmesg").is_file() && lab.path("all/Localhost/fio/failed").is_dir());
    assert_eq!(run_in_shell(&lab, "compare-perf small all").code, 0);
    // What only its owner may read stays so, and nothing is written into the source.
    std::fs::set_permissions(lab.path("src/__sysinfo_before__/host/dmesg"), Permissions::from_mode(0o600)).unwrap();
    run_in_shell(&lab, "strip-run-perf -s src private").expect_code(0);
    let copied = std::fs::metadata(lab.path("private/__sysinfo_before__/host/dmesg")).unwrap();
    assert_eq!(copied.mode() & 0o777, 0o600);
    for inside in ["src/inside", "src/new/inside", "../${PWD##*/}/src/inside"] {
        let refused = run_in_shell(&lab, &format!("strip-run-perf src {inside}")).expect_code(1);
        refused.expect_stderr("is in the stripped folder: name one outside of it");
        assert!(!lab.path("src/inside").exists() && !lab.path("src/new").exists());
    }
}

#[test]
fn log_of_a_translated_command_may_be_a_fifo() {
    let lab = with_builds();
    let ran = run_in_shell(&lab, "mkfifo log && { cat log >copy & timeout 60 compare-perf --log log src slow; wait; }");
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    assert_eq!(lab.read("copy").lines().count(), ran.err.lines().count(), "{}", ran.transcript());
}

#[test]
fn run_perf_command_is_measured_recorded_and_logged() {
    let lab = lab();
    lab.program("dnf", &format!("#!/bin/sh\necho \"$@\" >> {}\n", lab.path("dnf.log").display()));
    std::fs::create_dir(lab.path("out")).unwrap();
    let ran = run_in_shell(
        &lab,
        r#"run-perf --log log.txt --output out/R --metadata build=7 project=nightly --host-rpms a-1.rpm b --worker-rpms c --default-passwords s3cret-one s3cret-two --profiles 'Localhost:{"RUNPERF_TESTS": ["$@", ["steady", {"kind": ["b"]}]], "__NAME__": "My host"}' -- steady:'{"kind": "a", "__NAME__": "first"}'"#,
    );
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    let cells = ["My_host/steady/first:kind=a", "My_host/steady/0000:kind=b"];
    let study = lab.weighbridge("summary out/R/.weighbridge --json").json();
    let all: Vec<&str> = study["cells"].as_array().unwrap().iter().map(|cell| cell["id"].as_str().unwrap()).collect();
    assert_eq!(all, cells);
    let metadata = &study["run"]["metadata"];
    assert_eq!((&metadata["build"], &metadata["project"]), (&"7".into(), &"nightly".into()));
    let packages = lab.read("dnf.log");
    let install = "install -y --nobest --skip-broken";
    assert_eq!(packages, format!("{install} a-1.rpm b\n{install} c\n"));
    let head = lab.read("out/R/.weighbridge/run.json");
    assert!(head.contains("\"--host-rpms\"") && !head.contains("s3cret"), "{head}");
    let log = lab.read("log.txt");
    assert_eq!(log.lines().count(), ran.err.lines().count(), "{log}\n{}", ran.err);
    assert!(
        log.lines().all(|line| line.split_once("Z ").is_some()) && log.contains("Z note: equivalent command: "),
        "{log}"
    );
    // The same command resumes the run.
    let quiet = run_in_shell(
        &lab,
        "run-perf -q --output out/R --profiles 'Localhost:{\"__NAME__\": \"My host\"}' -- steady:'{\"kind\": \"a\", \"__NAME__\": \"first\"}'",
    );
    assert_eq!(quiet.code, 4, "{}", quiet.transcript());
    assert!(!quiet.err.contains("equivalent"), "{}", quiet.err);
}

#[test]
fn differences_and_errors_are_explained() {
    let lab = lab();
    let seen = |line: &str| {
        let ran = run_in_shell(&lab, line);
        let lines = ran.err.lines().filter(|line| !line.starts_with("note: equivalent")).collect::<Vec<_>>();
        format!("exit {}\n{}", ran.code, lines.join("\n"))
    };
    let all = [
        "run-perf fio:'{\"type\": }'",
        "run-perf --profiles 'TunedLibvirt:{\"rc_local_file\": \"x\"}' -- steady",
        "run-perf --plan --keep-tmp-files --metadata pbench_server_publish=yes pbench_server=http://x --profiles 'Localhost:{\"__KEEP_ASSETS__\": \"yes\"}' -- steady:'{\"__OTHER__\": 1, \"pbench_tools\": [\"blktrace\"]}'",
        "run-perf --profiles Localhost steady",
        "compare-perf src",
    ];
    insta::assert_snapshot!(all.map(seen).join("\n\n"), @r#"
    exit 1
    error: invalid test `fio:{"type": }`: the JSON after the colon cannot be read: expected value at line 1 column 10
    help: a test is written NAME or NAME:JSON, such as `fio:{"key": "value"}`, in quotes for the shell

    exit 1
    error: `rc_local_file` of `TunedLibvirt` is not supported: rc.local of hosts is never changed
    help: write a custom profile with [[commands]]; see docs/profiles.md

    exit 0
    note: pbench's tool `blktrace` is skipped: pass its command with --tool of `weighbridge run`
    note: `__OTHER__` of `steady` has no effect
    note: `__KEEP_ASSETS__` of `Localhost` has no effect: images always stay in the cache until `weighbridge clean` removes them
    note: --keep-tmp-files has no effect: the files of the tests are in the results folder
    note: metadata `pbench_server` has no effect: no pbench is installed, and results stay in the run folder
    note: metadata `pbench_server_publish` has no effect: pass a command that publishes results with --publish of `weighbridge run`

    exit 1
    error: missing `<TEST[:JSON]>...`
    help: usage: weighbridge run-perf --profiles <PROFILE[:JSON]>... <TEST[:JSON]>...

    exit 1
    error: too few builds: expected two or more
    help: the first build is the reference, the last one is judged
    "#);
}

/// The `ADDRESS.yaml` of run-perf's own example, with this machine's numbers of CPUs and memory.
const HOST_FILE: &str = "arch: x86_64\nhugepage_kb: 1048576\nnuma_nodes: 1\nhost_cpus: 2\nguest_cpus: 1\n\
                         guest_mem_m: 512\ndisable_smt: true\n";

/// Every option of run-perf, with values that are accepted here.
const EVERY_OPTION: &str = "run-perf --plan -vv --log out.log --hosts h:localhost --paths assets --distro d-1 --guest-distro debian-12 \
    --force-params '{\"localhost\":{\"guest_mem_m\":768,\"extra\":{\"rack\":\"B7\"}}}' --profiles Localhost DefaultLibvirt Overcommit1_5 \
    --provisioner pool --host-rpms a b --worker-rpms c --host-setup-script script --worker-setup-script script \
    --metadata build=1 project=p 'machine_url_base=http://m/%(machine)s' pbench_server=http://x pbench_copr_repos=r \
    --default-passwords x y --keep-tmp-files --retry-tests 2 --output R -- steady";

#[test]
fn every_option_and_host_parameter_of_run_perf_is_used_or_its_difference_is_named() {
    let lab = lab();
    lab.program("weighbridge-provision-pool", "#!/bin/sh\n");
    lab.write("script", "#!/bin/sh\n");
    lab.write("assets/hosts/localhost.yaml", HOST_FILE);
    // 3 where there is no libvirt.
    let ran = run_in_shell(&lab, EVERY_OPTION).expect_code_of(&[0, 3]);
    let notes: Vec<&str> = ran.err.lines().filter(|line| line.contains("has no effect")).collect();
    insta::assert_snapshot!(notes.join("\n"), @r"
    note: --default-passwords has no effect: ssh logs in with your keys (`ssh-copy-id root@ADDRESS` installs one)
    note: --keep-tmp-files has no effect: the files of the tests are in the results folder
    note: metadata `pbench_server` has no effect: no pbench is installed, and results stay in the run folder
    note: metadata `pbench_copr_repos` has no effect: no pbench is installed; --host-rpms and --worker-rpms install packages
    ");
    insta::assert_snapshot!(equivalent_command(&ran), @r#"weighbridge plan --profiles Localhost --profiles DefaultLibvirt --profiles Overcommit1_5 --hosts h:local --paths assets --force-params '{"localhost":{"guest_mem_m":768,"extra":{"rack":"B7"}}}' --distro d-1 --guest-distro debian-12 --attempts 2 --provisioner pool --host-setup-script script --host-rpms a --host-rpms b --worker-setup-script script --worker-rpms c -- steady"#);
    // The guests have the CPUs of the file, and the memory that overrides it: 2 / 1 × 1.5 of them.
    ran.expect_stdout("DefaultLibvirt on `h`: `h-vm1` with 1 CPU, 768 MiB of memory and a disk of 20 GiB of debian-12");
    ran.expect_stdout("Overcommit1_5 on `h`: `h-vm3` with 1 CPU, 256 MiB of memory");
    ran.expect_stderr("note: `h`: `distro` is set to \"d-1\"");

    // Anything else in a file is an error at its place.
    lab.write("assets/hosts/localhost.yaml", "guest_cpus: '1'\n");
    let ran = run_in_shell(&lab, EVERY_OPTION).expect_code(1);
    ran.expect_stderr("ambiguous value \"1\" for `guest-cpus`").expect_stderr("assets/hosts/localhost.yaml:1:13");
}

#[test]
fn loopback_addresses_mean_this_machine_in_parameters_and_host_files() {
    let lab = Lab::new();
    for (address, hosts) in [
        ("127.0.0.1", "--hosts foo:127.0.0.1"),
        ("localhost", "--hosts foo:127.0.0.1"),
        ("127.0.0.1", "--hosts 127.0.0.1"),
        ("localhost", ""),
    ] {
        let forced = format!("{{\"{address}\":{{\"guest_cpus\":4}}}}");
        lab.weighbridge(&format!("run-perf --plan --force-params {forced} {hosts} -- linpack")).expect_code_of(&[0, 3]);
    }
    let other = lab.weighbridge("run-perf --plan --force-params {\"10.0.0.1\":{\"guest_cpus\":4}} -- linpack");
    assert!(
        other.code == 1 && other.err.contains("--force-params names unknown host `10.0.0.1`"),
        "{}",
        other.transcript()
    );
    for address in ["localhost", "127.0.0.1"] {
        lab.write(&format!("assets-{address}/hosts/{address}.yaml"), "rack: B7\n");
        let line = format!("run-perf --paths assets-{address} --hosts foo:127.0.0.1 -- steady");
        lab.weighbridge(&line.replace("run-perf", "run-perf --plan")).expect_code(0);
        let quick = "--min-time 1ms --warm-up 0 --samples 6";
        let line = format!("run steady --paths assets-{address} {quick} --into R-{address}");
        lab.weighbridge(&line).expect_code(0);
        let head = lab.read(format!("R-{address}/run.json"));
        let head: serde_json::Value = serde_json::from_str(&head).unwrap();
        assert_eq!(head["invocations"][0]["hosts"]["local"]["params"]["extra"]["rack"], "B7", "{head}");
    }
}

#[test]
fn pbench_sets_are_repeated_without_a_budget() {
    let lab = Lab::new();
    for (test, command) in
        [("fio:{\"type\":\"read\",\"block-sizes\":\"4\"}", "--budget 7d"), ("uperf", "--budget 7d"), ("steady", "")]
    {
        let ran = lab.weighbridge(&format!("run-perf --plan -- {test}")).expect_code_of(&[0, 3]);
        assert_eq!(ran.err.contains("--budget"), !command.is_empty(), "{}", ran.transcript());
        assert!(command.is_empty() || ran.out.contains("1+3–18 "), "{}", ran.transcript());
    }
    // Only as many samples as the time beside them allows.
    let own = lab.weighbridge("plan fio:test-types=read,block-sizes=4k,runtime=180,ramptime=10,samples=3");
    assert!(own.out.contains("1+3 "), "{}", own.transcript());
}

#[test]
fn guest_definition_of_this_machine_is_found_by_any_of_its_addresses() {
    let lab = Lab::new();
    for file in ["localhost", "127.0.0.1", "::1"] {
        lab.write(&format!("{file}-assets/libvirt/{file}-tuned.xml"), "<domain/>\n");
        for hosts in ["", "--hosts localhost", "--hosts foo:127.0.0.1", "--hosts ::1"] {
            let line = format!("run-perf --plan {hosts} --paths {file}-assets --profiles TunedLibvirt -- steady");
            let ran = lab.weighbridge(&line);
            assert!(ran.err.contains("libvirt/%(address)s-tuned.xml"), "{file} {hosts}: {}", ran.transcript());
        }
    }
}

#[test]
fn outputs_to_one_file_are_refused() {
    let lab = Lab::new();
    lab.write("build/x", "");
    for [one, other] in [["-l", "-c"], ["-s", "-c"], ["-l", "-s"]] {
        for file in ["same", "./same", "build/../same"] {
            let ran = lab.weighbridge(&format!("analyze-perf {one} same {other} {file} build")).expect_code(1);
            assert!(ran.err.contains("would both write `"), "{}", ran.transcript());
            assert!(!lab.path("same").exists());
        }
    }
    lab.weighbridge("compare-perf --html same --xunit ./same build build")
        .expect_code(1)
        .expect_stderr("would both write");
}
