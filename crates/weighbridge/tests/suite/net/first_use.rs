//! First use: tokens that are created for a server, and the command that it prints for the other machine.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use super::place::{NetLab, TOKEN};
use crate::lab::{KillOnDrop, Lab};

#[test]
fn a_server_prints_the_command_for_the_other_machine() {
    let lab = Lab::new();
    let mut command = lab.command("net serve --pair --once --port 0");
    let mut server = KillOnDrop(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    let [assignment, "weighbridge", "net", "rr", address] = words[..] else { panic!("{line}") };
    let (name, token) = assignment.split_once('=').unwrap();
    assert_eq!(name, TOKEN);
    // A server with a token for pairing listens on every address.
    let port = address.rsplit_once(':').unwrap().1;
    let run = |token: &str| {
        let mut command = lab.command(&format!("net rr 127.0.0.1:{port} -t 200ms --json"));
        lab.run_command(command.env(TOKEN, token))
    };
    let other = lab.weighbridge("net token").out;
    let refused = run(other.trim());
    assert_eq!(refused.code, 1, "{}", refused.transcript());
    let ran = run(token);
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    assert!(ran.json()[0]["totals"]["rounds"].as_u64().unwrap() > 0);
    assert!(server.0.wait().unwrap().success());
}

#[test]
fn a_token_file_is_readable_by_its_owner_only_and_is_never_replaced() {
    let lab = Lab::new();
    let created = lab.weighbridge("net token secret");
    assert_eq!(created.code, 0, "{}", created.transcript());
    let path = lab.path("secret");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let token = std::fs::read_to_string(&path).unwrap();
    let again = lab.weighbridge("net token secret");
    assert_eq!(again.code, 1, "{}", again.transcript());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), token);
    let place = NetLab::with_token(lab, token.trim().to_owned());
    let server = place.serve("--token-file secret");
    let ran = place.lab.weighbridge(&format!("net rr 127.0.0.1:{} --token-file secret -t 200ms -q", server.port));
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    // What a shell creates with `>` is readable by others.
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    let open = place.lab.weighbridge(&format!("net rr 127.0.0.1:{} --token-file secret -t 200ms -q", server.port));
    assert_eq!(open.code, 1, "{}", open.transcript());
    assert!(open.err.contains("chmod 600"), "{}", open.err);
}
