//! Several workers measuring at the same time.

use insta::assert_snapshot;

use crate::compare_evidence::words;
use crate::lab::Lab;

const QUICK: &str = "--min-time 1ms --warm-up 0 --samples 6";

/// A test whose figure differs from worker to worker.
const OWN: &str =
    "sleep 0.05; case $WEIGHBRIDGE_GROUP in *) echo figure: $(date +%s%N | cut -c 12-16 | sed s/^0*//)1;; esac";

fn metric<'a>(cell: &'a serde_json::Value, worker: Option<&str>) -> &'a serde_json::Value {
    let metrics = cell["metrics"].as_array().unwrap();
    metrics.iter().find(|metric| metric["worker"].as_str() == worker).unwrap()
}

#[test]
fn missing_asset_folder_is_an_error() {
    let lab = Lab::new();
    for line in ["plan steady --paths nosuch", "profile list --paths nosuch"] {
        let ran = lab.weighbridge(line);
        let is_named = ran.err.contains("`nosuch`") && ran.err.contains("no such folder");
        assert!(ran.code == 1 && is_named, "{}", ran.transcript());
    }
}

#[test]
fn each_worker_measures_and_throughput_adds_up() {
    let Some(lab) = Lab::with_hosts() else { return };
    let ran = lab.weighbridge(&format!("run steady --hosts a:127.0.0.2,b:127.0.0.3 {QUICK} --into R --json"));
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    let study = ran.json();
    let cell = &study["cells"][0];
    // Each worker reports 97.
    let median = |worker: Option<&str>| metric(cell, worker)["summary"]["median"].as_f64().unwrap();
    assert_eq!([median(None), median(Some("a")), median(Some("b"))], [194.0, 97.0, 97.0]);
    assert_eq!(cell["params"]["workers"], 2);
    assert_eq!(cell["attempts"][0]["values"]["throughput/figure@b"], 97.0);
    for worker in ["a", "b"] {
        let folder = lab.path("R/Localhost/steady/0000/kind=a/0000.0").join(worker);
        assert!(folder.join("telemetry.json").is_file(), "{}", folder.display());
    }
    let text = lab.weighbridge("format R").out;
    assert!(text.contains("throughput/figure@a"), "{text}");
    assert_eq!(lab.weighbridge("study R --json").json()["cells"], study["cells"]);
    // The same test on other workers is not comparable, because its definition differs.
    let alone = lab.weighbridge(&format!("run steady {QUICK} --into R")).expect_code(1);
    alone.expect_stderr("was measured in this folder with other parameters");
    let again = lab.weighbridge(&format!("run steady --hosts x:127.0.0.2,y:127.0.0.3 {QUICK} --into R"));
    assert_eq!(again.code, 4, "the identity of the workers does not matter: {}", again.transcript());
    assert_eq!(lab.wait_for_processes(), [""; 0]);
}

#[test]
fn summary_names_the_workers_of_a_figure() {
    let Some(lab) = Lab::with_hosts() else { return };
    let tests = "steady:id=both steady:id=one,on=b";
    lab.weighbridge(&format!("run {tests} --hosts a:127.0.0.2,b:127.0.0.3 {QUICK} --into R")).expect_code(0);
    let summary = lab.weighbridge("summary R").out;
    let line = |figure: &str| summary.lines().find(|line| line.contains(figure)).unwrap_or_default().to_owned();
    assert!(line(" 194 /s ").ends_with(", sum of a and b"), "{summary}");
    assert!(line(" 97 /s ").ends_with(", on b"), "{summary}");
    // Without measurements nothing is summed.
    let lacking = "name = \"lacking\"\nsummary = \"needs a program\"\nversion = 1\ncommand = [\"no-such-program\"]\n";
    lab.define_figure(
        "lacking",
        &format!("{lacking}[[requires]]\nprogram = \"no-such-program\"\npackage = \"none\"\n"),
    );
    let ran = lab.weighbridge(&format!("run lacking --hosts a:127.0.0.2,b:127.0.0.3 {QUICK} --into L")).expect_code(3);
    ran.expect_stdout("unsupported, on a and b");
    lab.weighbridge(&format!("run steady {QUICK} --into S")).expect_code(0);
    let summary = lab.weighbridge("summary S").out;
    let alone = summary.lines().find(|line| line.contains(" 97 /s ")).unwrap();
    assert!(!alone.contains(", on ") && !alone.contains(" of "), "{summary}");
}

#[test]
fn values_of_each_worker_are_recorded() {
    let Some(lab) = Lab::with_hosts() else { return };
    lab.define_script("own", OWN);
    let ran = lab.weighbridge(&format!("run own --hosts a:127.0.0.2,b:127.0.0.3,c:127.0.0.4 {QUICK} --into R --json"));
    let study = ran.json();
    for sample in study["cells"][0]["attempts"].as_array().unwrap() {
        let value = |name: &str| sample["values"][name].as_f64().unwrap();
        let sum: f64 = ["a", "b", "c"].map(|worker| value(&format!("throughput/figure@{worker}"))).iter().sum();
        assert_eq!(value("throughput/figure"), sum);
    }
    lab.weighbridge("report R --csv R").expect_code(0);
    let rows = lab.read("R.csv");
    assert_eq!(
        rows.lines().filter(|row| row.contains("throughput/figure,") && row.contains(",b,")).count(),
        1,
        "{rows}"
    );
    lab.weighbridge("compare R R2").expect_code(1);
}

#[test]
fn parameters_select_the_workers_of_a_test() {
    let Some(lab) = Lab::with_hosts() else { return };
    let workers = |words: &str| {
        let plan = lab.weighbridge(&format!("plan {words} --hosts a:127.0.0.2,b:127.0.0.3,c:127.0.0.4 --json")).json();
        let roles = plan["cells"][0]["roles"].as_array().unwrap().clone();
        let names = |assignment: &serde_json::Value| {
            let servers: Vec<String> = assignment["servers"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|name| name.as_str().unwrap().to_owned())
                .collect();
            format!("{}<{}", assignment["worker"].as_str().unwrap(), servers.join("+"))
        };
        roles.iter().map(names).collect::<Vec<_>>()
    };
    assert_eq!(workers("steady"), ["a<", "b<", "c<"]);
    assert_eq!(workers("steady:on=b"), ["b<"]);
    assert_eq!(workers("steady:on=[c,a]"), ["c<", "a<"]);
    let uperf = "uperf:test-types=rr,message-sizes=64,protocols=tcp,instances=1";
    assert_eq!(workers(uperf), ["b<a", "c<a"]);
    assert_eq!(workers(&format!("{uperf},server=c,clients=a")), ["a<c"]);
    let ran = lab.weighbridge("plan steady:on=d --hosts a:127.0.0.2,b:127.0.0.3");
    assert_eq!((ran.code, ran.err.contains("unknown worker `d`")), (1, true), "{}", ran.transcript());
    let ran = lab.weighbridge("plan steady:server=a --hosts a:127.0.0.2,b:127.0.0.3");
    ran.expect_stderr("test `steady` takes no `server`");
    lab.weighbridge("plan steady --hosts a:local,a:local").expect_code(1).expect_stderr("duplicate host name `a`");
}

#[test]
fn network_test_uses_the_named_workers_as_its_sides() {
    let Some(lab) = Lab::with_hosts() else { return };
    let test = "uperf:test-types=rr,message-sizes=64,protocols=tcp,instances=1,runtime=300ms,samples=2,server=c";
    let ran = lab.weighbridge(&format!("run {test} --hosts a:127.0.0.2,b:127.0.0.3,c:127.0.0.4 --into R --json"));
    assert!([0, 3].contains(&ran.code), "{}", ran.transcript());
    let study = ran.json();
    let cell = &study["cells"][0];
    assert_eq!((&cell["params"]["sides"], &cell["params"]["workers"]), (&"apart".into(), &2.into()), "{cell}");
    let counted = cell["attempts"].as_array().unwrap().iter().find(|sample| sample["counted"] == true);
    let sample = counted.unwrap_or_else(|| panic!("no sample counts: {}", ran.transcript()));
    let values = sample["values"].as_object().unwrap();
    let primary = cell["metrics"][0]["metric"]["name"].as_str().unwrap();
    let key = values.keys().find(|key| key.ends_with(primary)).unwrap();
    let of = |worker: &str| values[&format!("{key}@{worker}")].as_f64().unwrap();
    assert_eq!(values[key].as_f64().unwrap(), of("a") + of("b"));
    let folder = lab.path("R").join(sample["folder"].as_str().unwrap());
    assert!(folder.join("a/telemetry@c.json").is_file(), "{}", folder.display());
    assert_eq!(lab.wait_for_processes(), [""; 0]);
}

#[test]
fn lost_worker_ends_the_cells_that_need_it_and_the_others_continue() {
    let Some(lab) = Lab::with_hosts() else { return };
    // On b the command kills its agent, which is its parent process.
    lab.define_script("deadly", "kill -9 $PPID; sleep 5");
    let line = format!(
        "run deadly:on=b steady:on=a steady:on=b steady --hosts a:127.0.0.2,b:127.0.0.3 {QUICK} --into R --json"
    );
    let study = lab.weighbridge(&line).expect_code(3).json();
    let outcomes: Vec<&str> =
        study["cells"].as_array().unwrap().iter().map(|cell| cell["outcome"]["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes[0], "failed", "{study}");
    assert_eq!(outcomes[1], "measured");
    let ended: Vec<&str> =
        study["cells"].as_array().unwrap().iter().filter_map(|cell| cell["ended_by"].as_str()).collect();
    assert!(ended.iter().any(|by| by.contains("its worker `b` is lost")), "{ended:?}");
    assert_eq!(lab.wait_for_processes(), [""; 0]);
}

#[test]
fn empty_inventory_is_an_error() {
    let lab = Lab::new();
    lab.write("hosts.toml", "");
    let ran = lab.weighbridge("run steady --inventory hosts.toml --into R").expect_code(1);
    ran.expect_stderr("the inventory hosts.toml has no hosts");
}

#[test]
fn the_address_local_in_an_inventory_is_this_machine() {
    let lab = Lab::new();
    let inventory =
        "[hosts.here]\naddress = \"local\"\n[hosts.here.extra]\nrack = \"B7\"\n[groups]\nall = [\"here\"]\n";
    lab.write("hosts.toml", inventory);
    for hosts in ["", "--hosts here", "--hosts all"] {
        let line = format!("run steady --inventory hosts.toml {hosts} {QUICK} --json");
        let mut command = lab.command(&line);
        let study = lab.run_command(command.args(["--into", &format!("R{hosts}")])).expect_code(0).json();
        let worker = &study["cells"][0]["workers"][0];
        assert_eq!(worker, "here", "{hosts}: {study}");
    }
    let recorded = lab.read("R/run.json");
    assert!(recorded.contains("\"rack\": \"B7\""), "{recorded}");
    lab.write(
        "hosts.toml",
        &inventory.replace("[hosts.here.extra]", "[hosts.there]\naddress = \"local\"\n[hosts.there.extra]"),
    );
    let ran = lab.weighbridge(&format!("run steady --inventory hosts.toml {QUICK} --into S")).expect_code(1);
    ran.expect_stderr("`here` and `there` are both this machine");
}

#[test]
fn this_machine_under_two_names_is_refused() {
    let lab = Lab::new();
    let ran = lab.weighbridge(&format!("run steady --hosts a:local,b:local {QUICK} --into R"));
    assert_snapshot!(ran.transcript(), @r"
    exit 1
    error: `a` and `b` are both this machine
    help: name each machine once; `NAME:ADDRESS` names another machine
    ");
    let ran = lab.weighbridge("run-perf --plan --hosts a:127.0.0.1 b:localhost -- linpack").expect_code(1);
    ran.expect_stderr("`a` and `b` are both this machine");
    assert!(!lab.path("R").exists());
}

/// Lets each host know the address that it was connected to, in a file.
fn tell_addresses(lab: &Lab) {
    let stub = lab.read("bin/ssh");
    let stub = stub.replace("\nexec ", "\nexport LAB_ARGUMENTS=\"$*\"\nexec ");
    let stub = stub.replace(
        "mkdir -m 1777 /var/lib/locks",
        "mkdir -m 1777 /var/lib/locks && echo $LAB_ARGUMENTS >/var/lib/arguments",
    );
    lab.program("ssh", &stub);
}

#[test]
fn workers_of_one_run_are_compared_with_each_other() {
    let Some(lab) = Lab::with_hosts() else { return };
    tell_addresses(&lab);
    let by_host = "case $(cat /var/lib/arguments) in *127.0.0.3*) echo figure: 80;; *) echo figure: 100;; esac";
    lab.define_script("own", by_host);
    lab.weighbridge(&format!("run own steady --hosts a:127.0.0.2,b:127.0.0.3 {QUICK} --retakes 0 --into R"));
    let ran = lab.weighbridge("compare R --by worker").expect_code(2);
    let text = words(&ran.out);
    assert!(text.starts_with("within one run, `b` is 20.0 % slower by the mean (20.0 %) in own"), "{text}");
    assert!(text.contains("(figure@b) than `a`; other checks: 1 equivalent"), "{text}");
    ran.expect_stdout("slower       Localhost/own/0000:-/throughput/figure@b#mean");
    ran.expect_stdout("a → b: mean 100 /s → 80 /s");
    let json = lab.weighbridge("compare R --by worker --reference b --json").expect_code(0).json();
    assert_eq!(
        json["within_run"],
        serde_json::json!({"run": "R", "by": "worker", "reference": "b", "judged": ["a"], "unmatched": []})
    );
    let check = &json["checks"][0];
    assert_eq!((&check["final_verdict"], &check["paired"]), (&"faster".into(), &true.into()), "{check}");
    let unknown = lab.weighbridge("compare R --by worker --reference c").expect_code(1);
    unknown.expect_stderr("unknown worker `c` in `R`").expect_stderr("expected one of a, b");
    // Equal workers are not reported.
    lab.weighbridge("compare R --by worker --select steady").expect_code(0).expect_stdout("one check, equivalent");
}
