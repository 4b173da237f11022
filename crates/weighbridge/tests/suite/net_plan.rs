//! Network tests in plans: each sample starts and stops its own server.

use crate::lab::Lab;

/// A profile of requests and responses for a given time.
const RR: &str = r#"<profile name="rr"><group nthreads="1">
    <transaction iterations="1"><flowop type="connect" options="remotehost=$h protocol=tcp tcp_nodelay"/></transaction>
    <transaction duration="$time"><flowop type="write" options="size=90"/>
        <flowop type="read" options="size=90"/></transaction>
    <transaction iterations="1"><flowop type="disconnect"/></transaction>
</group></profile>"#;

#[test]
fn requests_and_responses_are_measured_without_leftover_processes() {
    let lab = Lab::new();
    let cell = "uperf:test-types=rr,message-sizes=64,protocols=tcp,instances=1,runtime=0.3s,sysinfo=none";
    let ran = lab.weighbridge(&format!("run {cell} --samples 2 --warm-up 0 --precision 1000 --into R"));
    assert!([0, 3].contains(&ran.code), "{}", ran.transcript());
    ran.expect_stdout("rounds, higher is better");
    let study = lab.weighbridge("summary R --json").json();
    let samples = study["cells"][0]["attempts"].as_array().unwrap();
    assert_eq!(samples.len(), 2);
    for sample in samples {
        assert_eq!(sample["validity"]["validity"], "valid", "{sample}");
        let value = |name: &str| sample["values"][name].as_f64().unwrap();
        assert!(value("throughput/rounds") > 10.0 && value("latency/p50") > 100.0, "{sample}");
        assert!(value("throughput/received") > 0.0 && value("resource/server-cpu") > 0.0, "{sample}");
        assert_eq!((value("check/errors"), value("check/lost-datagrams")), (0.0, 0.0));
    }
    assert!(!study["cells"][0]["latency"].as_array().unwrap().is_empty());
    assert_eq!(lab.wait_for_processes(), [""; 0]);
}

#[test]
fn both_sides_are_recorded_without_the_token() {
    let lab = Lab::new();
    let cell =
        "uperf:test-types=stream,message-sizes=16k,protocols=tcp,instances=1,runtime=0.1s,log-response-times=true";
    lab.weighbridge(&format!("run {cell} --samples 1 --warm-up 0 --into R")).expect_code_of(&[0, 3]);
    let case = std::fs::read_dir(lab.path("R/Localhost/uperf/0000")).unwrap().flatten();
    let case = case.map(|entry| entry.path()).find(|path| path.is_dir()).unwrap().join("0000.0");
    for side in ["client", "server-0"] {
        let text = std::fs::read_to_string(case.join(format!("{side}.process.json"))).unwrap();
        let process: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(process["env"], serde_json::json!([["WEIGHBRIDGE_NET_TOKEN", "***"]]), "{side}");
    }
    let log = std::fs::read_to_string(case.join("server-0.stderr")).unwrap();
    assert!(log.starts_with("serving at 127.0.0.1:") && log.trim_end().ends_with("done"), "{log}");
    assert!(std::fs::read_to_string(case.join("response-times.txt")).unwrap().lines().count() > 100);
    assert!(case.join("sysinfo-block.txt").is_file());
    assert_eq!(lab.wait_for_processes(), [""; 0]);
}

#[test]
fn profile_beside_its_plan_is_part_of_the_definition() {
    let lab = Lab::new();
    lab.write("plans/rr.xml", RR);
    let plan = "[[test]]\nname = \"net\"\nprofile = \"rr.xml\"\nvars = [\"time=200ms\"]\ninterval = \"50ms\"\n";
    lab.write("plans/net.toml", plan);
    let run = "run --plan plans/net.toml --samples 1 --warm-up 0 --into R";
    lab.weighbridge(run).expect_code_of(&[0, 3]).expect_stdout("received, higher is better");
    lab.write("plans/rr.xml", &RR.replace("size=90", "size=91"));
    lab.weighbridge(run).expect_code(1).expect_stderr("profile-text");
    assert_eq!(lab.wait_for_processes(), [""; 0]);
}

#[test]
fn unsupported_requests_are_refused_with_a_reason() {
    let lab = Lab::new();
    lab.write("rr.xml", RR);
    let reports = |cell: &str, reason: &str| {
        let ran = lab.weighbridge(&format!("plan {cell}"));
        assert!(ran.out.contains(reason) || ran.err.contains(reason), "{}", ran.transcript());
    };
    reports("uperf:test-types=rr,server-node=999", "no such NUMA node on this worker: 999");
    reports("uperf:test-types=udp-rr,protocols=tcp", "udp-rr requires `protocols=udp`, got tcp");
    reports("net", "missing `profile`");
    reports("net:profile=nosuch.xml", "cannot read profile `nosuch.xml`");
    reports("net:profile=rr.xml", "invalid profile `rr.xml`: ");
}

#[test]
fn run_stopped_by_max_duration_is_valid() {
    let lab = Lab::new();
    lab.write("rr.xml", RR);
    let run = "net:profile=rr.xml,vars=[time=60s],max-duration=0.2s";
    let ran = lab.weighbridge(&format!("run {run} --samples 1 --warm-up 0 --into R --json"));
    assert_eq!(ran.json()["cells"][0]["attempts"][0]["validity"]["validity"], "valid", "{}", ran.transcript());
    assert_eq!(lab.wait_for_processes(), [""; 0]);
}

#[test]
fn example_can_be_planned() {
    let lab = Lab::new();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/network.toml");
    let ran = lab.weighbridge(&format!("plan --plan {example} --json")).expect_code(0);
    let cells = ran.json()["cells"].as_array().unwrap().clone();
    let unsupported: Vec<_> = cells.iter().filter(|cell| !cell["unsupported"].is_null()).collect();
    assert!(unsupported.is_empty(), "{unsupported:?}");
    assert!(cells.iter().any(|cell| cell["id"].to_string().contains("vars=")), "{cells:?}");
}
