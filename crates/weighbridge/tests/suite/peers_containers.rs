//! Endpoints that are images: their containers are created for a sample and removed with it, whatever happens.

use std::process::{Command, Stdio};

use crate::lab::Lab;
use crate::peers_run::median;

/// Flags for one small sample, whose sides and probes are seven containers.
const QUICK: &str = "--samples 1 --warm-up 0 --attempts 1 --iterations 3 --upload-bytes 4m --download-bytes 4m \
    --latency-iterations 20";

/// The image of the tests, which is empty: programs are mounted into it.
const IMAGE: &str = "localhost/weighbridge-test";

/// A lab whose podman has its own storage with one image; `None`, with a message, where podman runs nothing.
fn lab() -> Option<Lab> {
    let lab = Lab::with_own_state()?;
    // A sandbox may forbid to raise limits, which podman does by default.
    lab.write("containers.conf", "[containers]\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=1024:1024\"]\n");
    let folder = lab.path("").display().to_string();
    lab.program(
        "podman",
        &format!(
            "#!/bin/sh\nexport CONTAINERS_CONF={folder}/containers.conf\nexec /usr/bin/podman --root {folder}/storage \
             --runroot {folder}/running --tmpdir {folder}/libpod --storage-driver vfs --runtime runc \
             --cgroup-manager cgroupfs \"$@\"\n"
        ),
    );
    lab.write("image/Dockerfile", "FROM scratch\nCOPY Dockerfile /\n");
    lab.write("image/marker", "");
    let mounts = MOUNTS.join(" ");
    for arguments in
        [format!("build -t {IMAGE} image"), format!("run --rm --network host {mounts} {IMAGE} /usr/bin/true")]
    {
        let built = podman(&lab, &arguments).output();
        match built {
            Ok(output) if output.status.success() => {}
            Ok(output) => {
                wb_test_skip::skip!("containers: podman runs none here: {}", String::from_utf8_lossy(&output.stderr));
                return None;
            }
            Err(error) => {
                wb_test_skip::skip!("containers: podman cannot be started: {error}");
                return None;
            }
        }
    }
    Some(lab)
}

/// What the programs of the tests need, from the host.
const MOUNTS: [&str; 4] =
    ["--volume=/usr:/usr:ro", "--volume=/lib:/lib:ro", "--volume=/lib64:/lib64:ro", "--volume=FIXTURES:/fixtures:ro"];

fn with_fixtures(text: &str) -> String {
    text.replace("FIXTURES", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures"))
}

fn podman(lab: &Lab, arguments: &str) -> Command {
    let mut command = Command::new(lab.path("bin/podman"));
    command.args(with_fixtures(arguments).split_whitespace()).current_dir(lab.path("")).stdin(Stdio::null());
    command
}

/// The names of all containers.
fn containers(lab: &Lab) -> Vec<String> {
    let output = podman(lab, "ps --all --format {{.Names}}").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// A matrix of one endpoint, which is an image.
fn matrix(fault: &str) -> String {
    let options = serde_json::to_string(&MOUNTS.map(with_fixtures)).unwrap();
    let axes = r#"["--transport", "{transport}"]"#;
    let program = r#""/usr/bin/python3", "/fixtures/endpoint.py""#;
    format!(
        r#"
axes = ["transport"]
[[endpoints]]
id = "image"
supports = {{ transport = ["tcp"] }}
container = {{ image = "{IMAGE}", options = {options} }}
listener = {{ command = [{program}, "listen", {axes}, {fault} "--host", "{{host}}"] }}
dialer = {{ command = [{program}, "dial", {axes}, "--address", "{{address}}", "--send", "{{send}}", "--receive",
    "{{receive}}", "--iterations", "{{iterations}}"] }}
"#
    )
}

#[test]
fn both_sides_run_in_containers_that_are_removed() {
    let Some(lab) = lab() else { return };
    lab.write("peers.toml", &matrix(""));
    lab.weighbridge(&format!("peers run peers.toml --into R {QUICK}")).expect_code(0);
    let cell = lab.weighbridge("summary R --json").json()["cells"][0].clone();
    assert!(median(&cell, "upload") > 1e6 && median(&cell, "download") > 1e6, "{cell:#}");
    let folder = cell["attempts"][0]["folder"].as_str().unwrap();
    let listener = lab.read_json(format!("R/{folder}/listener.container.json"));
    assert_eq!((listener["engine"].as_str(), listener["image"].as_str()), (Some("podman"), Some(IMAGE)));
    assert!(listener["image-id"].as_str().unwrap().len() >= 12, "{listener:#}");
    assert!(listener["arguments"].to_string().contains("--cpuset-cpus="), "{listener:#}");
    assert_eq!(containers(&lab), [""; 0]);
}

#[test]
fn images_of_the_suites_are_measured_in_containers() {
    let Some(lab) = lab() else { return };
    let options = serde_json::to_string(&MOUNTS.map(with_fixtures)).unwrap();
    let program = r#"["/usr/bin/python3", "/fixtures/suite_endpoint.py", "good"]"#;
    let text = format!(
        r#"
axes = ["transport"]
[[endpoints]]
id = "image"
dialect = "test-plans"
supports = {{ transport = ["tcp"] }}
container = {{ image = "{IMAGE}", options = {options} }}
listener = {{ command = {program} }}
dialer = {{ command = {program} }}
"#
    );
    lab.write("peers.toml", &text);
    lab.weighbridge(&format!("peers run peers.toml --into R {QUICK}")).expect_code(0);
    // A cell whose image nobody has built fails, and names the image as the scripts of the suite do.
    let suite = "implementations:\n  - {id: go-v1, transports: [tcp], secureChannels: [noise], muxers: [yamux]}\n";
    lab.write("images.yaml", suite);
    let ran = lab.weighbridge(&format!("peers run images.yaml --into S {QUICK}")).expect_code(3);
    ran.expect_stdout("podman has no image `perf-implementations-go-v1`");
    assert_eq!(containers(&lab), [""; 0]);
}

#[test]
fn containers_of_killed_runs_are_removed() {
    let Some(lab) = lab() else { return };
    lab.write("peers.toml", &matrix(r#""--fault", "never-ready","#));
    let wait_for = |count: usize| {
        let is_there = || containers(&lab).len() == count;
        wb_test_net::wait_until("containers", is_there);
    };
    // The controller alone: its agent removes what it has made.
    let mut run = lab.start(&format!("peers run peers.toml --into R {QUICK}"));
    wait_for(1);
    run.kill().unwrap();
    run.wait().unwrap();
    wait_for(0);
    // Both: the next run does.
    let mut run = lab.start(&format!("peers run peers.toml --into S {QUICK}"));
    wait_for(1);
    let agents = Command::new("pgrep").args(["-P", &run.id().to_string()]).output().unwrap();
    run.kill().unwrap();
    for pid in String::from_utf8(agents.stdout).unwrap().lines() {
        Command::new("kill").args(["-KILL", pid]).status().unwrap();
    }
    run.wait().unwrap();
    assert_eq!(containers(&lab).len(), 1);
    lab.write("peers.toml", &matrix(""));
    lab.weighbridge(&format!("peers run peers.toml --into T {QUICK}")).expect_code(0);
    assert_eq!(containers(&lab), [""; 0]);
}
