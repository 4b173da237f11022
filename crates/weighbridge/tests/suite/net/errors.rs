//! Failures between two machines, and their messages.

use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

use insta::assert_snapshot;

use super::place::{NetLab, TOKEN};
use crate::lab::CommandResult;

const ENDLESS: &str = r#"<profile name="endless">
  <group nthreads="1">
    <transaction><flowop type="connect" options="remotehost=127.0.0.1 protocol=tcp"/></transaction>
    <transaction duration="60min"><flowop type="write" options="size=64k"/></transaction>
  </group>
</profile>"#;

#[test]
fn missing_server_is_reported() {
    let place = NetLab::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let ran = place.net(&format!("stream 127.0.0.1 -P {free} -q"));
    assert_snapshot!(ran.transcript().replace(&free.to_string(), "PORT"), @r"
    exit 1
    error: host `127.0.0.1`: cannot connect to 127.0.0.1:PORT: connection refused
    help: `weighbridge net serve` must run there, with the same token and, for other machines, --listen; --port or --server 127.0.0.1=ADDRESS:PORT selects another port
    ");
}

#[test]
fn unresolvable_host_is_reported() {
    let place = NetLab::new();
    let ran = place.net("stream no-such-host.invalid -q").expect_code(1);
    assert!(ran.err.starts_with("error: cannot resolve host `no-such-host.invalid`: "), "{}", ran.err);
    ran.expect_stderr("help: give its address with --server no-such-host.invalid=ADDRESS");
}

#[test]
fn wrong_token_is_refused() {
    let (_place, server) = NetLab::with_server();
    let other = NetLab::new();
    let ran = other.net(&format!("stream 127.0.0.1 -P {} -q", server.port)).expect_code(1);
    ran.expect_stderr("127.0.0.1").expect_stderr("token").expect_stderr("help: ");
}

#[test]
fn missing_credentials_are_reported() {
    let place = NetLab::new();
    let mut command = place.command("net stream 127.0.0.1 -q");
    command.env_remove(TOKEN);
    let ran = place.lab.run_command(&mut command).expect_code(1);
    assert!(ran.err.starts_with("error: no credentials: "), "{}", ran.err);
    ran.expect_stderr("--token-file FILE");
}

#[test]
fn request_above_the_server_limits_is_refused() {
    let place = NetLab::new();
    let server = place.serve("--max-strands 3");
    let ran = place.net(&format!("stream 127.0.0.1 -P {} -q -t 100ms -n 4", server.port)).expect_code(3);
    assert_snapshot!(ran.err, @r"
    error: 127.0.0.1: the server refuses: 4 strands; at most 3 (`net serve --max-strands`)
    help: reduce the request, or raise the limit of `weighbridge net serve` there
    ");
}

#[test]
fn killed_server_ends_the_run_with_partial_results() {
    let place = NetLab::new();
    let mut server = place.serve("");
    place.lab.write("endless.xml", ENDLESS);
    let (child, lines) = place.start(&format!("run endless.xml -P {} -i 100ms", server.port));
    let tick = |line: &String| line.contains(" received ");
    assert!(lines.iter().any(|line| tick(&line)), "the run measures");
    server.kill();
    let err = CommandResult::wait_for(child).expect_code(3).err;
    assert!(err.starts_with("error: lost the connection to 127.0.0.1"), "{err}");
    assert!(err.contains("\nhelp: "), "{err}");
    let rest: Vec<String> = lines.iter().collect();
    assert!(rest.iter().any(|line| line == "total"), "partial results are printed: {rest:?}");
}

#[test]
fn interrupted_run_prints_partial_results() {
    let (place, server) = NetLab::with_server();
    place.lab.write("endless.xml", ENDLESS);
    let (child, lines) = place.start(&format!("run endless.xml -P {} -i 100ms", server.port));
    assert!(lines.iter().any(|line| line.contains(" received ")), "the run measures");
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(output.stderr, b"interrupted: figures cover the run until then\n");
    let rest: Vec<String> = std::iter::from_fn(|| lines.recv_timeout(Duration::from_secs(5)).ok()).collect();
    assert!(rest.iter().any(|line| line.contains("bit/s received,")), "{rest:?}");
    let server = rest.iter().find(|line| line.starts_with("  127.0.0.1 ")).expect("a line of the server");
    assert!(server.contains("thread per strand"), "the server has reported: {server}");
}
