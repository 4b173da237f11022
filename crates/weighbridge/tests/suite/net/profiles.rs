//! Network profiles: checked and run, both the shipped ones and uperf's own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use insta::assert_snapshot;

use super::place::{NetLab, Server};

const VARIABLES: &str = "--var h=127.0.0.1 --var h1=127.0.0.1 --var h2=127.0.0.2 --var h3=127.0.0.3 --var h4=127.0.0.4 \
    --var proto=tcp --var nthr=2 --var iter=10 --var conn=2 --var dur=300ms --var nth=2 --var msg_r=64 --var msg_w=64 \
    --var host1=127.0.0.1 --var hostlo1=127.0.0.1 --var host=127.0.0.1 --var threads=2 --var time=300ms \
    --var largest=4k --var from=127.0.0.1 --var to=127.0.0.2";

fn profiles(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).map(|entries| entries.flatten().map(|entry| entry.path()).collect());
    let mut files: Vec<PathBuf> = entries.unwrap_or_default();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "xml"));
    files.sort();
    files
}

fn example_profiles() -> Vec<PathBuf> {
    profiles(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/net"))
}

/// The profiles of uperf, if they are available beside the repository.
fn uperf_profiles() -> Vec<PathBuf> {
    let found = profiles(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/uperf-workloads"));
    if found.is_empty() {
        wb_test_skip::skip!("uperf's own profiles are not beside the repository (../shared/data/uperf-workloads)");
    }
    found
}

/// Checks a profile and runs it briefly; both exit statuses must agree.
fn check_and_run(place: &NetLab, server: &Server, file: &Path) -> i32 {
    let file = file.display();
    let checked = place.net(&format!("check {file} {VARIABLES}"));
    let servers: Vec<String> =
        (1..=4).map(|host| format!("--server 127.0.0.{host}=127.0.0.1:{}", server.port)).collect();
    let run = place.net(&format!("run {file} {VARIABLES} {} -q --max-duration 150ms", servers.join(" ")));
    // Whether vsock has a peer shows only at run time, even if the address family is supported.
    let is_vsock_without_peer = checked.code == 0 && run.code == 3 && file.to_string().ends_with("vsock.xml");
    assert!(
        run.code == checked.code || is_vsock_without_peer,
        "{file}: {}\n{}",
        checked.transcript(),
        run.transcript()
    );
    match run.code {
        0 => {
            assert!(run.out.contains("\ntotal\n"), "{file}: {}", run.transcript());
            assert!(!run.out.contains("NaN"), "{file}: {}", run.out);
        }
        _ => assert!(run.err.starts_with("error: ") && run.err.contains("\nhelp: "), "{file}: {}", run.transcript()),
    }
    run.code
}

#[test]
fn shipped_profiles_run() {
    let (place, server) = NetLab::with_server();
    assert!(example_profiles().len() >= 6);
    for file in example_profiles() {
        assert_eq!(check_and_run(&place, &server, &file), 0, "{}", file.display());
    }
}

/// uperf's own test profiles: connections that stay open by the thousand, streams that end by time, TLS.
#[test]
fn uperf_test_profiles_run() {
    let (place, server) = NetLab::with_server();
    let files = profiles(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/uperf-tests"));
    if files.is_empty() {
        wb_test_skip::skip!("uperf's test profiles are not beside the repository (../shared/data/uperf-tests)");
    }
    for file in &files {
        for limit in ["", "--max-duration 150ms"] {
            let line =
                format!("run {} --var h=127.0.0.1 --var duration=150ms -P {} -q {limit}", file.display(), server.port);
            place.net(&line).expect_code(0);
        }
    }
}

#[test]
fn uperf_profiles_run_or_are_refused_with_a_reason() {
    let (place, server) = NetLab::with_server();
    let files = uperf_profiles();
    let codes: Vec<i32> = files.iter().map(|file| check_and_run(&place, &server, file)).collect();
    if !files.is_empty() {
        assert_eq!(files.len(), 24);
        let refused: Vec<_> = files.iter().zip(&codes).filter(|(_, code)| **code == 1).collect();
        assert!(refused.len() <= 1, "all but one are understood: {refused:?}");
        assert!(codes.iter().filter(|code| **code == 0).count() >= 14, "{codes:?}");
    }
}

#[test]
fn every_fault_of_a_profile_is_reported_with_its_position() {
    let place = NetLab::new();
    place.lab.write("bad.xml", "<profile>\n  <group nthreads=\"1\">\n    <transaction>\n      <flowop type=\"wirte\" options=\"size=1\"/>\n      <flowop type=\"write\"/>\n    </transaction>\n  </group>\n</profile>\n");
    assert_snapshot!(place.net("check bad.xml").transcript(), @r#"
    exit 1
    error: unknown flowop `wirte`
       ╭─[bad.xml:4:21]
     3 │     <transaction>
     4 │       <flowop type="wirte" options="size=1"/>
       ·                     ──┬──
       ·                       ╰── did you mean `write`?
     5 │       <flowop type="write"/>
       ╰────
    help: expected one of connect, accept, disconnect, read, write, recv, send, recvfrom, sendto, readv, writev, sendfile, sendfilev, think, nop
    error: missing option `size` of `write`
       ╭─[bad.xml:5:7]
     4 │       <flowop type="wirte" options="size=1"/>
     5 │       <flowop type="write"/>
       ·       ───────────┬──────────
       ·                  ╰── `size` is missing
     6 │     </transaction>
       ╰────
    help: write `size=64`, `size=8k` or `size=rand(1,8k)`
    "#);
}

#[test]
fn text_without_a_profile_is_refused() {
    let place = NetLab::new();
    place.lab.write("notes.txt", &"a < b && c > d\n".repeat(500));
    assert_snapshot!(place.net("check notes.txt").transcript(), @r#"
    exit 1
    error: no profile found
         ╭─[notes.txt:501:1]
     500 │ a < b && c > d
         ╰────
    help: a profile starts with `<profile name="…">`
    "#);
}

#[test]
fn only_the_first_faults_are_printed() {
    let place = NetLab::new();
    let flowops = "<flowop type=\"nop\" options=\"nosuch=1\"/>\n".repeat(300);
    let text = format!("<profile><group nthreads=\"1\"><transaction>{flowops}</transaction></group></profile>");
    place.lab.write("many.xml", &text);
    let ran = place.net("check many.xml");
    assert!(ran.err.starts_with("error: `many.xml` has 300 errors; these are the first 20\n"), "{}", ran.err);
    assert_eq!(ran.err.matches("unknown option").count(), 20, "{}", ran.err);
}

#[test]
fn unused_variables_are_noted() {
    let place = NetLab::new();
    let text = "<profile><group nthreads=\"1\"><transaction><flowop type=\"connect\" options=\"remotehost=$h protocol=tcp\"/></transaction></group></profile>";
    place.lab.write("one.xml", text);
    place.lab.write("two.xml", &text.replace("$h", "$other"));
    assert_snapshot!(place.net("check one.xml two.xml --var h=x --var other=y").out, @r"
    one.xml: valid
      note: the profile has no variable `other`; it uses h
    two.xml: valid
      note: the profile has no variable `h`; it uses other
    ");
}

#[test]
fn profile_with_notes_is_valid() {
    let place = NetLab::new();
    let text = "<profile>\n  <group nthreads=\"1\">\n    <transaction>\n      <flowop type=\"connect\" options=\"remotehost=h protocol=tcp size=1\"/>\n    </transaction>\n  </group>\n</profile>\n";
    place.lab.write("good.xml", text);
    assert_snapshot!(place.net("check good.xml").transcript(), @r"
    exit 0
    good.xml: valid
      note: line 4: `size` has no effect on `connect`
    ");
}

#[test]
fn unsupported_features_are_reported_without_contacting_a_server() {
    let place = NetLab::new();
    let text = "<profile>\n  <group nthreads=\"1\">\n    <transaction>\n      <flowop type=\"connect\" options=\"remotehost=h protocol=tcp cc=nosuch\"/>\n    </transaction>\n  </group>\n</profile>\n";
    place.lab.write("lacks.xml", text);
    let (checked, run) = (place.net("check lacks.xml"), place.net("run lacks.xml -q"));
    assert_eq!((checked.code, run.code), (3, 3), "{}{}", checked.transcript(), run.transcript());
    assert!(run.err.starts_with("error: `lacks.xml`: ") && run.err.contains("nosuch"), "{}", run.err);
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn soak_uperf_profiles_run_twenty_times() {
    let (place, server) = NetLab::with_server();
    let files = uperf_profiles();
    let codes = || files.iter().map(|file| check_and_run(&place, &server, file)).collect::<Vec<_>>();
    let first = codes();
    for _ in 1..20 {
        assert_eq!(codes(), first);
    }
}

/// Ten processes on each side, since the limit of descriptors is that of a process.
#[test]
#[ignore = "opens 100,000 connections: make test-long"]
fn soak_a_hundred_thousand_connections_are_held_at_once() {
    let (place, server) = NetLab::with_server();
    let profile = r#"<profile name="held"><group nprocs="10">
        <transaction iterations="10000"><flowop type="connect" options="remotehost=127.0.0.1 protocol=tcp"/></transaction>
        <transaction iterations="10000"><flowop type="disconnect"/></transaction></group></profile>"#;
    place.lab.write("held.xml", profile);
    let run = place.net(&format!("run held.xml -P {} --json", server.port));
    assert_eq!(run.code, 0, "{}", run.transcript());
    let transactions = run.json()["groups"][0]["transactions"].clone();
    assert_eq!((&transactions[0]["operations"], &transactions[1]["operations"]), (&100_000.into(), &100_000.into()));
}

/// Keeps every CPU busy with two threads until it is dropped.
struct BusyMachine(Arc<AtomicBool>);

impl BusyMachine {
    fn new() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        for _ in 0..2 * std::thread::available_parallelism().map_or(1, usize::from) {
            let stop = stop.clone();
            std::thread::spawn(move || while !stop.load(Ordering::Relaxed) {});
        }
        Self(stop)
    }
}

impl Drop for BusyMachine {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Every strand has a listener of its own; idle ones must leave the machine to those that still prepare.
#[test]
#[ignore = "keeps the machine busy: make test-long"]
fn soak_many_listeners_are_reached_on_a_busy_machine() {
    let (place, server) = NetLab::with_server();
    let group = r#"<group nthreads="75">
        <transaction><flowop type="connect" options="remotehost=127.0.0.1 protocol=tcp"/></transaction>
        <transaction duration="100ms"><flowop type="write" options="size=64k"/></transaction>
        <transaction><flowop type="disconnect"/></transaction></group>"#;
    let hosts = (1..=4).map(|host| group.replace("127.0.0.1", &format!("127.0.0.{host}")));
    let profile: String = hosts.collect();
    place.lab.write("many.xml", &format!(r#"<profile name="many">{profile}</profile>"#));
    let servers: Vec<String> =
        (1..=4).map(|host| format!("--server 127.0.0.{host}=127.0.0.1:{}", server.port)).collect();
    let _busy = BusyMachine::new();
    for _ in 0..20 {
        let run = place.net(&format!("run many.xml -q {}", servers.join(" ")));
        assert_eq!(run.code, 0, "{}", run.transcript());
    }
}
