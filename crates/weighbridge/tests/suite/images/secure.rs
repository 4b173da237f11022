//! Downloads over TLS: only certificates that the system trusts are accepted.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use wb_model::Sha256;

use super::lab::{Lab, has};
use crate::lab::KillOnDrop;

/// OpenSSL configuration of a self-signed server certificate.
const CONFIGURATION: &str = "[req]
distinguished_name = name
x509_extensions = extensions
prompt = no
[name]
CN = localhost
[extensions]
basicConstraints = critical, CA:FALSE
subjectAltName = DNS:localhost
";

/// Serves the lab's folder with OpenSSL's file server and a self-signed certificate, `cert`.
fn serve(lab: &Lab, port: u16) -> KillOnDrop {
    fs::write(lab.path("conf"), CONFIGURATION).unwrap();
    let make = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
    let files = ["-config", &lab.path("conf"), "-keyout", &lab.path("key"), "-out", &lab.path("cert")];
    let status = Command::new("openssl").args(make).args(files).stderr(Stdio::null()).status();
    assert!(status.unwrap().success());
    let server = Command::new("openssl")
        .args(["s_server", "-quiet", "-WWW", "-accept", &port.to_string(), "-cert", "cert", "-key", "key"])
        .current_dir(lab.path("."))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let server = KillOnDrop(server.unwrap());
    while TcpStream::connect(("localhost", port)).is_err() {
        std::thread::sleep(Duration::from_millis(20));
    }
    server
}

#[test]
fn only_trusted_server_certificates_are_accepted() {
    // OpenSSL has no `--version` and fails, but that it runs is enough.
    if !has("openssl") {
        return;
    }
    let Some(lab) = Lab::new() else { return };
    let content = "the content of an image\n".repeat(40);
    fs::write(lab.path("disk.img"), &content).unwrap();
    let port = TcpListener::bind("localhost:0").unwrap().local_addr().unwrap().port();
    let _server = serve(&lab, port);
    let image = format!("https://localhost:{port}/disk.img#sha256={}", Sha256::digest(content.as_bytes()));
    let order = format!(r#"{{"prepare":{{"image":"{image}","stall":"60s"}}}}"#);
    let fetch = |trusted: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weighbridge-agent"));
        command.args(["images", &order]).env("WEIGHBRIDGE_CACHE", lab.path("cache")).env("SSL_CERT_FILE", trusted);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let output = fetch("/etc/ssl/certs/ca-certificates.crt");
    assert!(output.contains(r#""failure":"unreachable""#) && output.contains("certificate"), "{output}");
    let output = fetch(&lab.path("cert"));
    assert!(output.lines().last().unwrap().starts_with(r#"{"done":"#), "{output}");
}
