//! Other machines, reached over ssh: hosts in network namespaces, with an sshd each.

use std::process::Command;

use wb_lab::{Host, SshHosts, Sshd};

use crate::lab::{Lab, Ran};

const QUICK: &str = "--min-time 1ms --warm-up 0 --samples 6";

/// So many hosts and a lab whose `ssh` leads to them; none, aloud, where there can be none.
fn lab(hosts: u8) -> Option<(SshHosts, Lab)> {
    let hosts = SshHosts::new(hosts)?;
    let lab = Lab::new();
    lab.write("bin/ssh", &std::fs::read_to_string(hosts.path("ssh")).unwrap());
    Command::new("chmod").arg("755").arg(lab.path("bin/ssh")).status().unwrap();
    Some((hosts, lab))
}

/// Runs the program with the user's ssh being that of the lab.
fn weighbridge(hosts: &SshHosts, lab: &Lab, line: &str) -> Ran {
    let path = format!("{}:{}", lab.path("bin").display(), std::env::var("PATH").unwrap());
    let line = format!("{line} --ssh-config {}", hosts.path("config").display());
    lab.ran(lab.command(&line).env("PATH", path))
}

fn addresses(hosts: std::ops::RangeInclusive<u8>) -> String {
    hosts.map(|host| format!("host{host}:{}", Host(host).v4())).collect::<Vec<_>>().join(",")
}

#[test]
fn two_other_machines_are_weighed_and_left_as_they_were() {
    let Some((hosts, lab)) = lab(2) else { return };
    let line = format!("run steady himeno:grid=XS,threads=1 --hosts {} {QUICK} --into R --json", addresses(1..=2));
    let ran = weighbridge(&hosts, &lab, &line);
    assert!([0, 3].contains(&ran.code), "{}\n{}", ran.seen(), hosts.log(Host(1)));
    let study = ran.json();
    let cells = study["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2);
    for cell in cells {
        let workers: Vec<&str> =
            cell["metrics"].as_array().unwrap().iter().filter_map(|metric| metric["worker"].as_str()).collect();
        assert!(workers.contains(&"host1") && workers.contains(&"host2"), "{workers:?}");
    }
    // Both start at one time, by their own clocks.
    let folder = lab.path("R/Localhost/himeno/0000/grid=XS,threads=1/0000.0");
    for host in ["host1", "host2"] {
        let text = std::fs::read_to_string(folder.join(host).join("report.process.json")).unwrap();
        let process: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(process["start"]["late"].is_number() || process["start"]["late"].is_string(), "{process}");
    }
    let head: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(lab.path("R/run.json")).unwrap()).unwrap();
    assert!(head["entries"][0]["hosts"]["host1"]["address"].is_string(), "{head}");
    // The same line does nothing; the program is there already.
    let again = weighbridge(&hosts, &lab, &line);
    assert_eq!(again.code, 4, "{}", again.seen());
    for host in [Host(1), Host(2)] {
        hosts.is_quiet(host);
        let found = hosts.cached(host);
        assert_eq!(found.iter().filter(|path| path.ends_with("/weighbridge")).count(), 1, "{found:?}");
    }
    assert_eq!(lab.processes_left(), [""; 0]);
}

#[test]
fn a_network_test_goes_from_one_host_to_another() {
    let Some((hosts, lab)) = lab(3) else { return };
    let test = "uperf:test-types=stream,message-sizes=16k,protocols=tcp,instances=1,runtime=300ms,samples=2";
    let line = format!("run {test},server=host3 --hosts {} --into R --json", addresses(1..=3));
    let ran = weighbridge(&hosts, &lab, &line);
    assert!([0, 3].contains(&ran.code), "{}", ran.seen());
    let study = ran.json();
    let cell = &study["cells"][0];
    let summary = |worker: Option<&str>| {
        let of = |metric: &&serde_json::Value| metric["worker"].as_str() == worker;
        cell["metrics"].as_array().unwrap().iter().find(of).unwrap()["summary"]["mean"].as_f64().unwrap()
    };
    let (all, each) = (summary(None), summary(Some("host1")) + summary(Some("host2")));
    assert!((all - each).abs() < all * 1e-9, "{all} {each}");
    hosts.is_quiet(Host(3));
}

#[test]
fn a_host_that_is_not_there_keeps_no_other_from_being_measured() {
    let Some((mut hosts, lab)) = (|| Some((SshHosts::bare(2)?, Lab::new())))() else { return };
    hosts.start(Host(1), &Sshd::default());
    lab.write("bin/ssh", &std::fs::read_to_string(hosts.path("ssh")).unwrap());
    Command::new("chmod").arg("755").arg(lab.path("bin/ssh")).status().unwrap();
    let inventory = format!(
        "[hosts.up]\naddress = '{}'\n[hosts.down]\naddress = '{}'\n[groups]\nboth = ['up', 'down']\n",
        Host(1).v4(),
        Host(2).v4()
    );
    lab.write("hosts.toml", &inventory);
    let run = format!("run steady:on=up steady:id=all --inventory hosts.toml {QUICK} --into R --json");
    let ran = weighbridge(&hosts, &lab, &run);
    assert_eq!(ran.code, 3, "{}", ran.seen());
    assert!(ran.err.contains("warning: `down` (") && ran.err.contains("help: "), "{}", ran.err);
    let study = ran.json();
    let outcomes: Vec<&str> =
        study["cells"].as_array().unwrap().iter().map(|cell| cell["outcome"]["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["measured", "unsupported"]);
    let none = weighbridge(&hosts, &lab, &format!("run steady --inventory hosts.toml --hosts down {QUICK} --into S"));
    assert_eq!(none.code, 1, "{}", none.seen());
    assert!(!lab.path("S").exists());
}

#[test]
fn a_host_that_is_cut_off_in_the_middle_is_lost_and_the_rest_goes_on() {
    let Some((hosts, lab)) = lab(2) else { return };
    lab.define_figure(
        "long",
        "name = \"long\"\nsummary = \"takes its time\"\nversion = 1\ncommand = [\"sh\", \"-c\", \"sleep 100; echo figure: 1\"]\n",
    );
    let line = format!("run long:on=host2 steady:on=host1 --hosts {} {QUICK} --into R", addresses(1..=2));
    let path = format!("{}:{}", lab.path("bin").display(), std::env::var("PATH").unwrap());
    let line = format!("{line} --ssh-config {}", hosts.path("config").display());
    let mut command = lab.command(&line);
    let child = command.env("PATH", path).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = child.spawn().unwrap();
    let started =
        || std::fs::read_to_string(lab.path("R/journal.jsonl")).is_ok_and(|text| text.contains("attempt-started"));
    let on_two = || started() && std::fs::read_to_string(lab.path("R/journal.jsonl")).unwrap().contains("/long/");
    wb_lab::eventually("the long one to be started", on_two);
    hosts.lab.cut(Host(2));
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{err}");
    let study = lab.weighbridge("study R --json").json();
    let outcomes: Vec<(String, String)> = study["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cell| {
            (cell["cell"].as_str().unwrap().to_owned(), cell["outcome"]["outcome"].as_str().unwrap().to_owned())
        })
        .collect();
    assert_eq!(outcomes[0].1, "failed", "{outcomes:?}");
    assert_eq!(outcomes[1].1, "measured", "{outcomes:?}");
}

#[test]
fn a_host_is_cleaned_of_all_that_stays_there() {
    let Some((hosts, lab)) = lab(1) else { return };
    let address = addresses(1..=1);
    let shown = weighbridge(&hosts, &lab, &format!("clean --programs --dry-run --hosts {address}"));
    assert!(shown.code == 0 && shown.out.contains("host1  program"), "{}", shown.seen());
    assert!(!hosts.cached(Host(1)).is_empty());
    let cleaned = weighbridge(&hosts, &lab, &format!("clean --programs --yes --hosts {address}"));
    assert_eq!(cleaned.code, 0, "{}", cleaned.seen());
    assert_eq!(hosts.cached(Host(1)), [""; 0]);
    hosts.is_quiet(Host(1));
}
