//! Messages for invalid command lines, plans and builds.

use insta::assert_snapshot;

use crate::compare::{samples_around, write_build};
use crate::lab::Lab;

/// Runs the program with arguments that may contain spaces.
fn words(lab: &Lab, words: &[&str]) -> String {
    lab.run_command(lab.command("").args(words)).transcript()
}

#[test]
fn profiles_without_a_name_are_refused_by_every_command() {
    let lab = Lab::new();
    assert_snapshot!(words(&lab, &["plan", "steady", "--profiles", ""]), @r"
    exit 1
    error: invalid value `` of --profiles: expected the name of a profile
    help: `weighbridge profile list` lists all profiles; without --profiles the host is measured unchanged
    ");
    let run = words(&lab, &["run", "steady", "--profiles", "Localhost", "--profiles", ",", "--into", "R"]);
    assert!(run.starts_with("exit 1\nerror: invalid value `,` of --profiles: "), "{run}");
    assert!(!lab.path("R").exists());
}

#[test]
fn second_word_after_profiles_or_hosts_suggests_a_comma() {
    let lab = Lab::new();
    assert_snapshot!(lab.weighbridge("plan steady --profiles Localhost TunedHost").transcript(), @r"
    exit 1
    error: unknown test `TunedHost`: the word after `--profiles Localhost` is read as a test
    help: separate the values of --profiles with commas, or repeat the flag: `--profiles Localhost,TunedHost`
    ");
    let ran = lab.weighbridge("plan --hosts a b c:root@d steady").expect_code(1);
    ran.expect_stderr("or repeat the flag: `--hosts a,b`");
    // A test in the same position is accepted.
    lab.weighbridge("plan --profiles Localhost steady --no-worker").expect_code(0);
}

#[test]
fn build_named_with_a_colon_suggests_an_equals_sign() {
    let lab = Lab::new();
    write_build(&lab, "src", &samples_around(1000.0));
    write_build(&lab, "dst", &samples_around(1000.0));
    assert_snapshot!(lab.weighbridge("compare a:src b:dst").transcript(), @r"
    exit 1
    error: cannot read `a:src`: No such file or directory
    help: separate the name with `=`: `a=src`
    ");
    lab.weighbridge("compare a=src b=dst").expect_code(0);
}

#[test]
fn folder_of_result_folders_is_refused_and_lists_them() {
    let lab = Lab::new();
    for build in ["all/one", "all/two", "all/three"] {
        write_build(&lab, build, &samples_around(1000.0));
    }
    lab.write("all/notes/text", "");
    assert_snapshot!(lab.weighbridge("compare all all/one").transcript(), @r"
    exit 1
    error: all is not a single result folder: it contains 3 result folders: one, three, two
    help: name the folders themselves: `all/one all/three`
    ");
    let ran = lab.weighbridge("compare all/notes all/one");
    assert!(
        ran.err.starts_with("error: all/notes has no results: expected PROFILE/TEST/SERIAL/"),
        "{}",
        ran.transcript()
    );
}

#[test]
fn copy_of_a_result_folder_is_refused() {
    let lab = Lab::new();
    for build in ["perf", "copy", "dst"] {
        write_build(&lab, build, &samples_around(1000.0));
    }
    write_build(&lab, "other", &samples_around(1001.0));
    let ran = lab.weighbridge("compare src=perf,copy dst").expect_code(1);
    ran.expect_stderr("copy is a copy of perf, or an import of the same file: a run counts once");
    lab.weighbridge("compare src=perf,other dst").expect_code(0);
}

#[test]
fn own_runs_and_run_perf_results_are_not_mixed() {
    let lab = Lab::new();
    write_build(&lab, "perf", &samples_around(1000.0));
    lab.weighbridge("run steady --min-time 1ms --warm-up 0 --samples 6 --into own").expect_code(0);
    assert_snapshot!(lab.weighbridge("compare own perf").transcript(), @r"
    exit 4
    error: `own` is a Weighbridge run and `perf` is a run-perf result folder: they name their checks differently and have none in common
    help: measure all builds with `weighbridge run`, or all with run-perf
    ");
    let ran = lab.weighbridge("compare perf own");
    assert!(ran.code == 4 && !ran.out.contains("missing"), "{}", ran.transcript());
    for line in ["analyze perf own", "nearest own perf", "model fit --linear --output m perf own", "diff-perf own perf"]
    {
        let ran = lab.weighbridge(line);
        assert!(
            ran.code != 0 && ran.err.contains("they name their checks differently"),
            "{line}: {}",
            ran.transcript()
        );
    }
}

#[test]
fn invalid_profile_parameter_is_reported_as_typed() {
    let lab = Lab::new();
    assert_snapshot!(words(&lab, &["plan", "steady", "--profiles", r#"DefaultLibvirt:{"force_guest_cpus":"2"}"#]), @r#"
    exit 1
    error: `DefaultLibvirt:{"force_guest_cpus":"2"}`: `force_guest_cpus`: invalid value "2": expected a whole number from 0 to 4294967295
    help: expected NAME or NAME:{JSON} with the parameters name, force-guest-cpus, force-guest-mem (MiB), force-no-vms, qemu-bin, image-format, virt-install-extra, xml, tuned-adm-profile, irqbalance, grub-args, image, disk, network, virt-type, limit, sets, knobs, tests
    "#);
    let unknown = words(&lab, &["plan", "steady", "--profiles", r#"DefaultLibvirt:{"__NAME__":"x"}"#]);
    assert!(unknown.contains("unknown parameter `__NAME__`\n") && !unknown.contains("--NAME--"), "{unknown}");
    let forced = words(&lab, &["plan", "steady", "--force-params", "[1]"]);
    assert!(forced.contains("invalid value of a list: expected names and values"), "{forced}");
}

#[test]
fn plan_errors_do_not_mention_rust_types() {
    let lab = Lab::new();
    lab.write("p.toml", "[sampling]\nwarm-up = \"two\"\n\n[[test]]\nname = \"steady\"\n");
    assert_snapshot!(lab.weighbridge("plan --plan p.toml").transcript(), @r#"
    exit 1
    error: invalid plan: invalid value "two": expected a whole number from 0 to 4294967295
       ╭─[p.toml:2:11]
     1 │ [sampling]
     2 │ warm-up = "two"
       ·           ──┬──
       ·             ╰── here
     3 │ 
       ╰────
    help: a plan has `name`, `summary`, `tools`, `on`, `publish`, [sampling], [tool-groups], one [[test]] per test and one [[peers]] per matrix
    "#);
}

#[test]
fn every_mistake_of_a_plan_is_shown_at_once() {
    let lab = Lab::new();
    let plan = "publish = \"upload '\"\n\n[sampling]\nmin-samples = 0\n\n[[test]]\nname = \"steady\"\nid = \"0001\"\n\n[[test]]\nkind = \"a\"\n";
    lab.write("read.toml", plan);
    assert_snapshot!(lab.weighbridge("plan --plan read.toml").transcript(), @r#"
    exit 1
    error: invalid `min-samples` 0: expected a value greater than 0
       ╭─[read.toml:4:1]
     3 │ [sampling]
     4 │ min-samples = 0
       · ───────┬───────
       ·        ╰── here
     5 │ 
       ╰────
    error: invalid `publish` command: expected a non-empty command line with closed quotes
       ╭─[read.toml:1:11]
     1 │ publish = "upload '"
       ·           ─────┬────
       ·                ╰── here
     2 │ 
       ╰────
    error: invalid id `0001`: expected at least one letter
       ╭─[read.toml:8:6]
     7 │ name = "steady"
     8 │ id = "0001"
       ·      ───┬──
       ·         ╰── digits alone denote a position
     9 │ 
       ╰────
    help: `id` names a test's position in the plan, so that inserting another test does not renumber it
    error: missing test name
        ╭─[read.toml:10:1]
      9 │ 
     10 │ [[test]]
        · ────┬───
        ·     ╰── missing `name = "…"`
     11 │ kind = "a"
        ╰────
    "#);
    let plan = "[[test]]\nname = \"steady\"\nkind = [\"a\", \"d\", \"e\"]\nkindd = 1\n\n[[test]]\nname = \"stedy\"\n";
    lab.write("expand.toml", plan);
    let errors = |line: &str| {
        let err = lab.weighbridge(line).err;
        err.lines().filter(|line| line.starts_with("error: ")).map(str::to_owned).collect::<Vec<_>>().join("\n")
    };
    let lines =
        ["plan --plan expand.toml --no-worker", "plan steady:kind=z stead:x=1", "plan steady:kind= steady:id=1"];
    assert_snapshot!(lines.map(errors).join("\n\n"), @r"
    error: `kind` of `steady`: invalid value `d`
    error: `kind` of `steady`: invalid value `e`
    error: unknown parameter `kindd` for test `steady`
    error: unknown test `stedy`

    error: `kind` of `steady`: invalid value `z`
    error: unknown test `stead`

    error: `kind` has no value
    error: invalid id `1`: expected at least one letter
    ");
}

#[test]
fn long_line_is_cut_around_the_mistake() {
    let lab = Lab::new();
    let sizes: Vec<String> = (1..100).map(|size| format!("{size}k")).collect();
    let line = format!("plan fio:rw=read,bs=[{}],iodepht=1 --no-worker", sizes.join(","));
    assert!(line.len() > 400);
    assert_snapshot!(lab.weighbridge(&line).transcript(), @r"
    exit 1
    error: unknown parameter `iodepht` for test `fio`
       ╭─[command line:1:405]
     1 │ …k,84k,85k,86k,87k,88k,89k,90k,91k,92k,93k,94k,95k,96k,97k,98k,99k],iodepht=1
       ·                                                                     ───┬───
       ·                                                                        ╰── did you mean `iodepth`?
       ╰────
    help: `weighbridge list fio` shows all 32 parameters
    ");
}

#[test]
fn long_path_is_printed_in_full() {
    let lab = Lab::new();
    let folder = "a-folder-with-a-long-name/".repeat(10);
    let path = format!("{folder}plan.toml");
    lab.write(&path, "[[test]]\nname = \"steady\"\nkidn = \"a\"\n");
    lab.weighbridge(&format!("plan --plan {path} --no-worker")).expect_stderr(&format!("[{path}:3:1]"));
    let ran = lab.weighbridge(&format!("compare {folder} {folder}"));
    assert!(ran.err.lines().next().unwrap().contains(&folder), "{}", ran.transcript());
    let missing = format!("{folder}nothing");
    lab.weighbridge(&format!("plan steady --paths {missing}")).expect_stderr(&missing);
}

#[test]
fn mistake_in_a_custom_profile_is_shown_with_its_position() {
    let lab = Lab::new();
    lab.write("config/weighbridge/profiles.d/Mine.toml", "summary = 'x'\n[guests]\ncpus = 'two'\n");
    let seen = lab.weighbridge("plan steady --profiles Mine").transcript();
    assert_snapshot!(seen.replace(&format!("{}", lab.path("").display()), "LAB/"), @r#"
    exit 1
    error: invalid value "two": expected a whole number from 0 to 4294967295
       ╭─[LAB/config/weighbridge/profiles.d/Mine.toml:3:8]
     2 │ [guests]
     3 │ cpus = 'two'
       ·        ──┬──
       ·          ╰── here
       ╰────
    help: `weighbridge schema profile` shows the schema of profiles
    "#);
}

#[test]
fn marks_of_direction_in_names_are_shown_as_escapes() {
    let lab = Lab::new();
    let ran = lab.run_command(lab.command("summary").arg("no\u{202e}such"));
    assert_eq!(ran.code, 1, "{}", ran.transcript());
    ran.expect_stderr("`no\\u{202e}such`");
    assert!(!ran.err.contains('\u{202e}'));
}
