//! Asking for something, rightly and wrongly.

use insta::assert_snapshot;

use crate::lab::Lab;

#[test]
fn an_empty_selection_is_an_error_of_its_own() {
    let lab = Lab::new();
    assert_snapshot!(lab.weighbridge("plan steady:kind=[a,b] --select nosuch*").seen(), @r"
    exit 4
    error: no cell matches `nosuch*`
    help: `weighbridge plan steady:kind=[a,b]` without --select and --ignore lists all 2
    ");
}

#[test]
fn a_wrong_parameter_names_the_right_one() {
    let lab = Lab::new();
    let ran = lab.weighbridge("plan fio:blok-sizes=4k");
    assert_eq!(ran.code, 1);
    assert!(ran.err.starts_with("error: `fio` has no parameter `blok-sizes`\n"), "{}", ran.err);
    assert!(ran.err.contains("did you mean `block-sizes`?"), "{}", ran.err);
    assert!(ran.err.contains("fio:blok-sizes=4k"), "{}", ran.err);
}

#[test]
fn a_mistake_in_a_plan_is_shown_where_it_stands() {
    let lab = Lab::new();
    lab.write("my.toml", "name = \"my\"\n\n[[test]]\nname = \"fio\"\nrw = [\"read\", \"raed\"]\n");
    let ran = lab.weighbridge("plan --plan my.toml");
    assert_eq!(ran.code, 1);
    for part in ["my.toml:5:15", "did you mean `read`?", "help: `test-types` takes read, write"] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
}

#[test]
fn an_unknown_test_names_the_nearest() {
    let lab = Lab::new();
    let ran = lab.weighbridge("run himneo");
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("did you mean `himeno`?"), "{}", ran.err);
}

#[test]
fn mistakes_in_arguments_exit_with_1_and_help_with_0() {
    let lab = Lab::new();
    assert_eq!(lab.weighbridge("run").code, 1);
    assert_eq!(lab.weighbridge("run steady --min-time 5parsec").code, 1);
    assert_eq!(lab.weighbridge("nonsense").code, 1);
    assert_eq!(lab.weighbridge("--help").code, 0);
    assert_eq!(lab.weighbridge("run --help").code, 0);
}

#[test]
fn what_the_machine_decides_is_open_without_one() {
    let lab = Lab::new();
    let ran = lab.weighbridge("plan himeno --no-worker");
    assert_eq!(ran.code, 0);
    assert!(ran.out.contains("open"), "{}", ran.out);
    assert!(ran.out.contains("himeno: isa: the widest of the worker's CPU"), "{}", ran.out);
}

#[test]
fn every_plan_that_comes_with_the_program_can_be_planned() {
    let lab = Lab::new();
    for plan in ["quick", "standard"] {
        let ran = lab.weighbridge(&format!("plan --plan {plan} --json"));
        assert_eq!(ran.code, 0, "{plan}: {}", ran.err);
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
fn an_instruction_set_that_is_not_here_is_unsupported_and_never_replaced() {
    let lab = Lab::new();
    let ran = lab.weighbridge("plan himeno:isa=[scalar,sse2,avx2,avx512] --json");
    let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap();
    for cell in ran.json()["cells"].as_array().unwrap() {
        let isa = cell["params"]["isa"].as_str().unwrap();
        let here = match isa {
            "avx512" => flags.contains("avx512f"),
            "avx2" => flags.contains("avx2"),
            _ => true,
        };
        assert_eq!(cell["unsupported"].is_null(), here, "{isa}");
    }
}

#[test]
fn lists_show_what_there_is() {
    let lab = Lab::new();
    for (line, shown) in [
        ("list", "himeno"),
        ("list tests", "steady"),
        ("list himeno", "huge-pages"),
        ("list tests fio", "block-sizes, bs"),
        ("list metrics himeno", "throughput/throughput (primary)"),
        ("list plans", "quick"),
        ("list plans quick", "[[test]]"),
    ] {
        let ran = lab.weighbridge(line);
        assert_eq!(ran.code, 0, "{line}: {}", ran.err);
        assert!(ran.out.contains(shown), "{line}: {}", ran.out);
    }
    let ran = lab.weighbridge("list hime");
    assert_eq!((ran.code, ran.err.contains("did you mean `himeno`?")), (1, true), "{}", ran.err);
}

#[test]
fn completions_and_man_page_come_from_the_same_declarations() {
    let lab = Lab::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(lab.weighbridge(&format!("completions {shell}")).out.contains("min-time"), "{shell}");
    }
    let man = lab.weighbridge("man").out;
    assert!(man.contains(".TH") && man.contains("min\\-time"), "{man}");
}
