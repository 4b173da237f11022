//! `net uperf` with uperf's options, and what uperf sends.

use std::io::{Read, Write};
use std::net::TcpListener;

use insta::assert_snapshot;

use super::serve;
use crate::net_faults::lab::{CLIENT, Lab, SERVER};
use crate::net_faults::program::Program;
use crate::net_faults::result::ProgramResult;

const WEIGHBRIDGE: &str = env!("CARGO_BIN_EXE_weighbridge");
const PROFILE: &str = r#"<profile name="demo"><group nthreads="2">
    <transaction><flowop type="connect" options="remotehost=$h protocol=$proto"/></transaction>
    <transaction duration="200ms"><flowop type="write" options="size=8k"/><flowop type="read" options="size=64"/></transaction>
    <transaction><flowop type="disconnect"/></transaction></group></profile>"#;

/// Runs the profile with these options.
fn measure(lab: &Lab, flags: &str) -> ProgramResult {
    measure_profile(lab, PROFILE, flags)
}

fn measure_profile(lab: &Lab, profile: &str, flags: &str) -> ProgramResult {
    lab.write("profile.xml", profile);
    let slave = serve(lab, WEIGHBRIDGE, "net uperf -s", 20000);
    let mut command = lab.command(CLIENT, WEIGHBRIDGE);
    command.args(format!("net uperf -m profile.xml {flags}").split_whitespace());
    command.env("h", SERVER.v4().to_string()).env("proto", "tcp");
    let ran = Program::start(command, &lab.path("master")).finish();
    drop(slave);
    ran
}

/// Figures replaced by `#`, and blanks in a row by one.
fn mask_figures(text: &str) -> String {
    let mask = |word: &str| {
        let is_figure = word.starts_with(|one: char| one.is_ascii_digit() || one == '-') && !word.contains("--");
        let is_address = word.parse::<std::net::IpAddr>().is_ok();
        if is_address {
            "HOST".to_owned()
        } else if is_figure {
            "#".to_owned()
        } else {
            word.to_owned()
        }
    };
    text.lines().map(|line| line.split_whitespace().map(mask).collect::<Vec<_>>().join(" ") + "\n").collect()
}

#[test]
fn a_rate_that_is_not_reached_is_in_the_first_line_of_the_result() {
    let Some(lab) = Lab::new(2) else { return };
    for (rate, unit) in [
        (("duration=\"200ms\"", "duration=\"200ms\" rate=\"100m\""), "rounds"),
        (("size=8k", "size=8k rate=100m"), "executions"),
    ] {
        let ran = measure_profile(&lab, &PROFILE.replace(rate.0, rate.1), "");
        let result = ran.out.split_once('\n').unwrap().1;
        assert!(
            result.starts_with("the rate was not reached: ") && result.lines().next().unwrap().contains(unit),
            "{ran:?}"
        );
    }
}

#[test]
fn everything_is_printed_in_uperfs_layout() {
    let Some(lab) = Lab::new(2) else { return };
    let ran = measure(&lab, "-a");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_snapshot!(mask_figures(&ran.out), @"
    Starting # threads running profile:demo ... # seconds
    Txn1 # / # = # #
    Txn2 # / # = # #
    Txn3 # / # = # #
    -------------------------------------------------------------------------------
    Total # / # = # #

    Group Details
    -------------------------------------------------------------------------------
    Group0 # / # = # #


    Strand Details
    -------------------------------------------------------------------------------
    Thr0 # / # = # #
    Thr1 # / # = # #


    Txn Count avg cpu max min
    -------------------------------------------------------------------------------
    Txn0 # # # # #
    Txn1 # # # # #
    Txn2 # # # # #


    Flowop Count avg cpu max min
    -------------------------------------------------------------------------------
    connect # # # # #
    write # # # # #
    read # # # # #
    disconnect # # # # #


    Netstat statistics for this run
    -------------------------------------------------------------------------------
    Nic opkts/s ipkts/s obits/s ibits/s
    eth0 # # # #
    -------------------------------------------------------------------------------

    Run Statistics
    Hostname Time Data Throughput Operations Errors
    -------------------------------------------------------------------------------
    HOST # # # # #
    master # # # # #
    -------------------------------------------------------------------------------
    Difference(%) # # # # #
    ");
}

#[test]
fn lines_for_scripts_are_those_of_uperf() {
    let Some(lab) = Lab::new(2) else { return };
    let ran = measure(&lab, "-R -i 0.05");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let fields = |line: &str| {
        let words: Vec<(String, String)> = line
            .split(' ')
            .filter_map(|word| word.split_once(':'))
            .map(|(key, value)| (key.into(), value.into()))
            .collect();
        let keys: Vec<&str> = words.iter().map(|(key, _)| key.as_str()).collect();
        (keys == ["timestamp_ms", "name", "nr_bytes", "nr_ops"]).then_some(words)
    };
    let lines: Vec<_> = ran.out.lines().filter_map(fields).collect();
    let names: Vec<&str> = lines.iter().map(|line| line[1].1.as_str()).collect();
    // A script takes everything behind the last colon for a number.
    assert!(lines.iter().all(|line| line[3].1.parse::<u64>().is_ok()), "{}", ran.out);
    assert!(names.starts_with(&["Txn1"]) && names.ends_with(&["Txn3", "Total"]), "{}", ran.out);
    assert!(names.iter().filter(|name| **name == "Txn2").count() >= 4, "{}", ran.out);
    // The transaction that connects is shorter than an interval.
    let connected = lines.iter().rfind(|line| line[1].1 == "Txn1").unwrap();
    assert_ne!(connected[3].1, "0", "{}", ran.out);
    let total: u64 = lines.last().unwrap()[2].1.parse().unwrap();
    assert!(total > 1_000_000, "{}", ran.out);
    assert!(!ran.out.contains("\nTxn2 "), "{}", ran.out);
}

/// uperf's master and slaves count each group.
#[test]
fn statistics_have_a_row_for_each_group_and_a_total() {
    let Some(lab) = Lab::new(2) else { return };
    let group = &PROFILE[PROFILE.find("<group").unwrap()..PROFILE.find("</profile>").unwrap()];
    let two = PROFILE.replace("</profile>", &format!("{group}</profile>"));
    let ran = measure_profile(&lab, &two, "-a");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let statistics = mask_figures(&ran.out[ran.out.find("Run Statistics").unwrap()..]);
    assert_snapshot!(statistics, @"
    Run Statistics
    Hostname Time Data Throughput Operations Errors
    -------------------------------------------------------------------------------
    HOST # # # # #
    HOST # # # # #
    Total # # # # #
    master # # # # #
    -------------------------------------------------------------------------------
    Difference(%) # # # # #
    ");
    let threads: Vec<&str> = ran.out.lines().filter(|line| line.starts_with("Thr")).map(|line| &line[..4]).collect();
    assert_eq!(threads, ["Thr0", "Thr1", "Thr0", "Thr1"]);
}

#[test]
fn response_times_have_uperfs_columns_and_time_of_day() {
    let Some(lab) = Lab::new(2) else { return };
    let ran = measure(&lab, "-X times.txt");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let text = std::fs::read_to_string(lab.path("times.txt")).unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    let mut threads = std::collections::BTreeSet::new();
    for line in text.lines() {
        let words: Vec<u64> = line.split_whitespace().map(|word| word.parse().unwrap()).collect();
        let [_process, thread, kind, ended, duration] = words[..] else { panic!("{line}") };
        threads.insert(thread);
        let formatted = format!("{:6} {thread:6} {kind:2} {ended:15} {duration:15}", words[0]);
        assert_eq!((kind, line), (0, formatted.as_str()));
        assert!((now - 60_000_000_000..now).contains(&ended) && duration < 60_000_000_000, "{line}");
    }
    assert_eq!(threads.len(), 2, "{threads:?}");
}

#[test]
fn options_are_those_of_uperf() {
    let Some(lab) = Lab::new(2) else { return };
    let ran = measure(&lab, "-f -p -X times.txt -v");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("\nFlowop ") && !ran.out.contains("Group Details"), "{}", ran.out);
    assert!(ran.err.contains("note: seed "), "{}", ran.err);
    assert!(std::fs::read_to_string(lab.path("times.txt")).unwrap().lines().count() > 100);
    for (line, message) in [
        ("", "-m <PROFILE>"),
        ("-m a -s", "mutually exclusive"),
        ("-m profile.xml -S sctp", "expected tcp"),
        ("-m none.xml", "none.xml"),
    ] {
        let ran = lab.run(&format!("net uperf {line}"));
        assert!(ran.code == Some(1) && ran.err.contains(message), "{line}: {ran:?}");
    }
    assert!(lab.run("net uperf -V").out.contains("uperf 1.0.8"));
}

/// The first bytes of both sides of uperf 1.0.8: a master begins with a text, a slave answers to what is not that text
/// once it has received a whole message.
#[test]
fn a_real_uperf_is_recognised() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let slave = std::thread::spawn(move || {
        let (mut master, _) = listener.accept().unwrap();
        master.read_exact(&mut [0; 400]).unwrap();
        let mut answer = [0; 192];
        answer[..6].copy_from_slice(b"Not OK");
        master.write_all(&answer).unwrap();
        // It waits for the master to close.
        let _: Result<usize, _> = master.read(&mut [0; 1000]);
    });
    let lab = crate::net::place::NetLab::new();
    let ran = lab.net(&format!("rr 127.0.0.1:{port} -t 1"));
    assert_eq!(ran.code, 1, "{}", ran.transcript());
    assert!(ran.err.contains("is uperf, not `weighbridge net uperf`"), "{}", ran.transcript());
    slave.join().unwrap();

    let Some(lab) = Lab::new(2) else { return };
    let server = lab.serve("");
    let hello = format!("printf '0xbadcafedeadbeef\\0%382s' '' > /dev/tcp/{}/20000; sleep 1", SERVER.v4());
    let mut master = lab.command(CLIENT, "bash");
    master.args(["-c", &hello]);
    let master = Program::start(master, &lab.path("their-master"));
    server.wait_for_stderr("is uperf, not `weighbridge net uperf`");
    drop(master);
}
