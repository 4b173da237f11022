//! Two runs at the same time on one machine: neither is refused, and both say that their samples are disturbed.

use std::process::Stdio;

use crate::lab::{Lab, Ran};

/// Its first sample lasts until a file is there.
const WAITS: &str = r#"
name = "waits"
summary = "a figure that comes when a file is there"
version = 1
command = ["sh", "-c", "touch {here}/begun; while [ ! -e {here}/go ]; do sleep 0.01; done; echo figure: 1"]
"#;

/// The other runs are looked for as often as telemetry is read.
const PLAN: &str = r#"
[sampling]
min-time = "1ms"
warm-up = 0
min-samples = 6
max-samples = 6
retakes = 0
precision = 100
telemetry-interval = "10ms"

[[test]]
name = "waits"
"#;

const QUICK: &str = "--min-time 1ms --warm-up 0 --samples 6 --retakes 0 --precision 100";

/// How many attempts of a run found another run of this process, and how many there are.
fn disturbed(lab: &Lab, run: &str, process: u32) -> (usize, usize) {
    let finding = "another run measured on this machine at the same time: ";
    let of = format!(" (process {process} there, its agent ");
    let journal = lab.journal(run);
    let attempts: Vec<_> = journal.iter().filter(|line| line["event"] == "attempt-ended").collect();
    let found = |line: &&&serde_json::Value| {
        let findings = line["findings"].as_array().into_iter().flatten().filter_map(|finding| finding.as_str());
        findings.into_iter().any(|text| text.starts_with(finding) && text.contains(&of))
    };
    (attempts.iter().filter(found).count(), attempts.len())
}

#[test]
fn two_runs_at_one_time_warn_of_each_other_and_record_it() {
    let lab = Lab::new();
    lab.define_figure("waits", WAITS);
    lab.write("waits.toml", PLAN);
    let flag = |name: &str| lab.path(&format!("config/weighbridge/tests.d/{name}"));
    let first = lab.command("run --plan waits.toml --into A").stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let first = first.unwrap();
    let one = first.id();
    wb_lab::eventually("the first run to measure", || flag("begun").exists());

    // What another user's or another terminal's TMPDIR is makes no difference.
    let mut second = lab.command(&format!("run steady --into B {QUICK}"));
    std::fs::create_dir(lab.path("elsewhere")).unwrap();
    let second = second.env("TMPDIR", lab.path("elsewhere"));
    let second = second.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let other = second.id();
    let second = finished(second);
    assert_eq!(second.code, 0, "{}", second.seen());
    let warning =
        "warning: another run measures on `local` at the same time, and each disturbs the samples of the other: ";
    let of = |process: u32| format!(" (process {process} there, its agent ");
    assert!(second.err.contains(warning) && second.err.contains(&of(one)), "{}", second.seen());
    assert_eq!(second.err.matches(warning).count(), 1, "{}", second.seen());
    assert_eq!(disturbed(&lab, "B", one), (6, 6));

    // The first one measures the machine as it is.
    let changing = lab.weighbridge(&format!("run steady:knobs.drop-caches=all --into K {QUICK}"));
    assert_ne!(changing.code, 0, "{}", changing.seen());
    let refused = "cannot change this machine while another run measures on it: ";
    assert!(changing.out.contains(refused) || changing.err.contains(refused), "{}", changing.seen());

    std::fs::write(flag("go"), "").unwrap();
    let first = finished(first);
    assert_eq!(first.code, 0, "{}", first.seen());
    assert!(first.err.contains(warning) && first.err.contains(&of(other)), "{}", first.seen());
    // The second was over before the other samples began.
    assert_eq!(disturbed(&lab, "A", other), (1, 6));
    for run in ["A", "B"] {
        let summary = lab.weighbridge(&format!("summary {run}")).out;
        assert!(summary.contains("another run measured on this machine at the same time: "), "{summary}");
    }

    let alone = lab.weighbridge(&format!("run steady --into C {QUICK}"));
    assert!(alone.code == 0 && !alone.err.contains("another run"), "{}", alone.seen());
}

fn finished(child: std::process::Child) -> Ran {
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
}
