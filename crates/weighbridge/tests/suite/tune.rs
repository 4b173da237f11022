//! Output of `tune` and `doctor`, without changing anything.

use insta::assert_snapshot;

use crate::lab::Lab;

#[test]
fn unknown_knob_suggests_only_similar_names() {
    let lab = Lab::new();
    let help = |line: &str| {
        let ran = lab.weighbridge(line);
        assert!(ran.code == 1 && ran.out.is_empty(), "{}", ran.transcript());
        ran.err.lines().find(|line| line.contains("help: ")).unwrap_or_default().trim().to_owned()
    };
    assert_snapshot!(help("tune apply xyz=1"), @"help: `weighbridge doctor --all` shows each knob and its state here");
    assert_snapshot!(help("tune status swapiness@sda=1"), @"help: did you mean `swappiness`? `weighbridge doctor --all` shows each knob and its state here");
}

#[test]
fn unreadable_sets_are_an_error() {
    let lab = Lab::new();
    let file = lab.write("config/weighbridge/knobs.d", "no folder");
    let ran = lab.weighbridge("tune status");
    let folder = file.display().to_string();
    assert!(ran.code == 1 && ran.err.contains(&format!("`{folder}`: Not a directory")), "{}", ran.transcript());
    std::fs::remove_file(&file).unwrap();
    assert_eq!(lab.weighbridge("tune status").code, 0, "the folder is optional");
    lab.write("config/weighbridge/knobs.d/mine.toml/other", "");
    lab.weighbridge("tune apply thp=never").expect_code(1).expect_stderr("mine.toml`: Is a directory");
}

#[test]
fn ambiguous_huge_page_size_is_refused() {
    let sizes: Vec<String> = std::fs::read_dir("/sys/kernel/mm/hugepages")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().replace("hugepages-", ""))
        .collect();
    if sizes.len() < 2 {
        wb_test_skip::skip!("huge pages of several sizes: this machine has {sizes:?}");
        return;
    }
    let lab = Lab::new();
    for line in ["tune apply hugetlb=4", "tune status hugetlb=4"] {
        let ran = lab.weighbridge(line);
        let contains = |text: &str| ran.err.contains(text);
        assert!(
            ran.code == 1 && contains("`hugetlb=4` needs a page size, since there are several here"),
            "{}",
            ran.transcript()
        );
        assert!(sizes.iter().all(|size| contains(&format!("`hugetlb@{size}=4`"))), "{}", ran.transcript());
    }
    // In a plan the cell is refused with the same reason.
    let ran = lab.weighbridge("run steady:knobs.hugetlb=4 --into R");
    assert!(ran.code == 3 && ran.transcript().contains("needs a page size"), "{}", ran.transcript());
}

#[test]
fn status_exits_with_3_if_a_named_knob_is_unsupported() {
    let lab = Lab::new();
    for line in ["tune status io-scheduler@nosuch=none", "tune status thp=maybe", "tune status dirty-limit=1"] {
        lab.weighbridge(line).expect_code(3).expect_stdout("unsupported: ");
    }
    assert_eq!(lab.weighbridge("tune status quiet").code, 0, "a set has values for other machines too");
    let help = lab.weighbridge("tune revert --help").out;
    assert!(help.contains("3 not everything"), "{help}");
}

#[test]
fn knob_with_target_is_accepted_in_plans_and_variants() {
    let lab = Lab::new();
    let knobs = |line: &str| {
        let plan = lab.weighbridge(line).json();
        let params = plan["cells"][0]["params"].as_object().unwrap().clone();
        params.keys().filter(|name| name.starts_with("knobs.")).cloned().collect::<Vec<_>>()
    };
    let named = ["knobs.hugetlb@2048kB", "knobs.io-scheduler@vda"];
    assert_eq!(knobs("plan steady:knobs.hugetlb@2048kB=2,knobs.scheduler@vda=none --json"), named);
    assert_eq!(knobs(r#"plan steady:"knobs.hugetlb@2048kB"=2,"knobs.scheduler@vda"=none --json"#), named);
    lab.write("plan.toml", "[[test]]\nname = \"steady\"\nknobs.\"hugetlb@2048kB\" = 2\n");
    assert_eq!(knobs("plan --plan plan.toml --json"), &named[..1]);
    // A variant accepts the same form, and shows a mistake as typed.
    let ran = lab.weighbridge("ab steady --max-blocks 6 --into A -- base knob:hugetlb@nosuch=2");
    assert!(ran.code == 3 && ran.transcript().contains("no such target: `nosuch`"), "{}", ran.transcript());
    let ran = lab.weighbridge("ab steady --into B -- base knob:hugetbl@2048kB=2").expect_code(1);
    ran.expect_stderr("unknown knob `hugetbl`");
    assert!(ran.err.contains("knob:hugetbl@2048kB=2") && !ran.err.contains("knobs.hugetbl"), "{}", ran.transcript());
}

#[test]
fn doctor_ends_with_the_command_that_applies_its_remedies() {
    let lab = Lab::new();
    let remedies = lab.weighbridge("doctor --json").json()["remedies"].clone();
    let text = lab.weighbridge("doctor").out;
    let last = text.lines().last().unwrap().trim().trim_start_matches("sudo ").to_owned();
    match remedies.as_array() {
        Some(remedies) => {
            let words: Vec<&str> = remedies.iter().map(|remedy| remedy.as_str().unwrap()).collect();
            let line = last.strip_prefix("weighbridge ").unwrap();
            assert_eq!(line, format!("tune apply {}", words.join(" ")));
            let status = lab.weighbridge(&line.replace("apply", "status"));
            assert!(
                status.code == 0 && status.out.contains("would be changed") || status.out.contains("only root"),
                "{}",
                status.transcript()
            );
        }
        None => assert!(last.contains(" noisy, "), "{text}"),
    }
}

#[test]
fn cpu_lists_have_the_same_syntax_in_plans_and_arguments() {
    let lab = Lab::new();
    lab.write(
        "plan.toml",
        "[[test]]\nname = \"steady\"\ncpus = \"0-1\"\n[[test]]\nname = \"steady\"\ncpus = [\"0-1\"]\n",
    );
    let cpus = |line: &str| {
        let plan = lab.weighbridge(line).json();
        plan["cells"].as_array().unwrap().iter().map(|cell| cell["params"]["cpus"].to_string()).collect::<Vec<_>>()
    };
    assert_eq!(cpus("plan --plan plan.toml --json"), ["[0,1]", "[0,1]"]);
    assert_eq!(cpus("plan steady:cpus=0-1 steady:cpus=[0-1] steady:cpus=[0,1] --json"), ["[0,1]", "[0,1]", "[0,1]"]);
}
