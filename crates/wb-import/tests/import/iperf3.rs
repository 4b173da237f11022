//! Reports of the installed iperf3.

use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use wb_import::{ForeignResults, ReadOptions, read};

/// Runs iperf3 against a server of its own; none if it is not installed.
fn run_iperf3(arguments: &str) -> Option<String> {
    const TRIES: usize = 50;
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let mut server = Command::new("iperf3");
    server.args(["-s", "-1", "-B", "127.0.0.1", "-p", &port]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = server.spawn().ok()?;
    let mut client = Command::new("iperf3");
    client.args(["-c", "127.0.0.1", "-p", &port, "-t", "1", "-J"]).args(arguments.split_whitespace());
    // The server does not tell when it listens.
    let report = (0..TRIES).find_map(|_| {
        sleep(Duration::from_millis(100));
        let output = client.output().unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    });
    server.kill().unwrap();
    server.wait().unwrap();
    Some(report.expect("no report of iperf3"))
}

fn parse(text: &str) -> ForeignResults {
    read(text, ReadOptions::default()).unwrap().1
}

#[test]
fn reports_are_read_as_iperf3_wrote_them() {
    for (arguments, direction) in
        [("", "forward"), ("-R", "reverse"), ("--bidir", "bidirectional"), ("--bidir -u -b 10m", "bidirectional")]
    {
        let Some(report) = run_iperf3(arguments) else {
            return wb_test_skip::skip!("no iperf3 is installed");
        };
        let foreign = parse(&report);
        let [cell] = &foreign.cells[..] else { panic!("{foreign:?}") };
        assert_eq!(cell.params["direction"].to_string(), direction, "{arguments}");
        let sample = cell.rows().next().unwrap();
        assert_eq!((&sample.failure, &sample.rejection), (&None, &None), "{arguments}");
        assert!(sample.readings.iter().any(|own| own.metric.name == "received" && own.value > 0.0), "{arguments}");
        // From 3.7 to 3.10 the keys of both directions were the same.
        assert_eq!(parse(&report.replace("_bidir_reverse", "")), foreign, "{arguments}");
        let failure = |text: &str| parse(text).cells[0].rows().next().unwrap().failure;
        let text =
            format!("warning: a line before\n{report}\niperf3: error - control socket has closed unexpectedly\n");
        assert_eq!(failure(&text).as_deref(), Some("iperf3: control socket has closed unexpectedly"), "{arguments}");
    }
}
