//! What goes wrong between two machines, and how it is told.

use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

use insta::assert_snapshot;

use super::place::{Place, TOKEN, ran};

const ENDLESS: &str = r#"<profile name="endless">
  <group nthreads="1">
    <transaction><flowop type="connect" options="remotehost=127.0.0.1 protocol=tcp"/></transaction>
    <transaction duration="60min"><flowop type="write" options="size=64k"/></transaction>
  </group>
</profile>"#;

#[test]
fn a_server_that_is_not_there() {
    let place = Place::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let ran = place.net(&format!("stream 127.0.0.1 -P {free} -q"));
    assert_snapshot!(ran.seen().replace(&free.to_string(), "PORT"), @r"
    exit 1
    error: host `127.0.0.1`: nothing listens at 127.0.0.1:PORT: start `weighbridge net serve` there
    help: `weighbridge net serve` must run there, with the same token; --port or --server 127.0.0.1=ADDRESS:PORT says where else it listens
    ");
}

#[test]
fn a_host_that_has_no_address() {
    let place = Place::new();
    let ran = place.net("stream no-such-host.invalid -q");
    assert_eq!(ran.code, 1);
    assert!(ran.err.starts_with("error: host `no-such-host.invalid` has no address: "), "{}", ran.err);
    assert!(ran.err.contains("help: say where it is: --server no-such-host.invalid=ADDRESS"), "{}", ran.err);
}

#[test]
fn another_token() {
    let place = Place::new();
    let server = place.serve("");
    let other = Place::new();
    let ran = other.net(&format!("stream 127.0.0.1 -P {} -q", server.port));
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("127.0.0.1") && ran.err.contains("token"), "{}", ran.err);
    assert!(ran.err.contains("help: "), "{}", ran.err);
}

#[test]
fn nobody_is_trusted() {
    let place = Place::new();
    let mut command = place.command("net stream 127.0.0.1 -q");
    command.env_remove(TOKEN);
    let ran = ran(command);
    assert_eq!(ran.code, 1);
    assert!(ran.err.starts_with("error: nobody is trusted: "), "{}", ran.err);
    assert!(ran.err.contains("--token-file FILE"), "{}", ran.err);
}

#[test]
fn more_than_the_server_allows() {
    let place = Place::new();
    let server = place.serve("--max-strands 3");
    let ran = place.net(&format!("stream 127.0.0.1 -P {} -q -t 100ms -n 4", server.port));
    assert_eq!(ran.code, 3, "{}", ran.seen());
    assert_snapshot!(ran.err, @r"
    error: 127.0.0.1: the server refuses: 4 strands; at most 3 (`net serve --max-strands`)
    help: ask for less, or start `weighbridge net serve` there with the limit raised
    ");
}

#[test]
fn a_server_that_dies_in_the_middle() {
    let place = Place::new();
    let mut server = place.serve("");
    place.lab.write("endless.xml", ENDLESS);
    let (child, lines) = place.start(&format!("run endless.xml -P {} -i 100ms", server.port));
    let tick = |line: &String| line.contains(" received ");
    assert!(lines.iter().any(|line| tick(&line)), "it measures");
    server.kill();
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{err}");
    assert!(err.starts_with("error: 127.0.0.1"), "{err}");
    assert!(err.contains("\nhelp: "), "{err}");
    let rest: Vec<String> = lines.iter().collect();
    assert!(rest.iter().any(|line| line == "total"), "what was measured until then is told: {rest:?}");
}

#[test]
fn an_interruption_keeps_what_was_measured() {
    let place = Place::new();
    let server = place.serve("");
    place.lab.write("endless.xml", ENDLESS);
    let (child, lines) = place.start(&format!("run endless.xml -P {} -i 100ms", server.port));
    assert!(lines.iter().any(|line| line.contains(" received ")), "it measures");
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(output.stderr, b"interrupted: the figures are of what was done until then\n");
    let rest: Vec<String> = std::iter::from_fn(|| lines.recv_timeout(Duration::from_secs(5)).ok()).collect();
    assert!(rest.iter().any(|line| line.contains("bit/s received,")), "{rest:?}");
    let server = rest.iter().find(|line| line.starts_with("  127.0.0.1 ")).expect("a line of the server");
    assert!(server.contains("a thread each"), "it has reported: {server}");
}
