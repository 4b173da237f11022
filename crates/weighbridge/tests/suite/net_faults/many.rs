//! Many strands on few CPUs.

use rustix::process::{Resource, getrlimit};

use super::{
    lab::Lab,
    profiles::{connected, flowop, rr, transaction},
    result::{RunResult, number},
};

#[test]
fn thousand_strands_are_executed_by_event_loops() {
    let Some(lab) = Lab::new(2) else { return };
    let server = lab.serve("");
    let flowops =
        flowop("write", "size=64 count=2") + &flowop("read", "size=128 count=3") + &flowop("think", "duration=1ms");
    let result =
        lab.run_profile(&connected(1000, "protocol=tcp", &transaction("iterations=10", &flowops)), "").completed();
    assert_eq!(result.rounds(), 10_000);
    assert!(result.executor(0).starts_with("event loop"), "{}", result.executor(0));
    assert!(result.executor(1).starts_with("event loop"), "{}", result.executor(1));
    server.assert_unchanged();
    lab.wait_for_client_exit();
}

/// The processes with this parent whose command line contains this word.
fn children(parent: u32, word: &str) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let processes = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let matches = |process: &u32| {
        let read = |file: &str| std::fs::read_to_string(format!("/proc/{process}/{file}")).ok();
        let status = read("status")?;
        let found = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse::<u32>().ok()?;
        (found == parent && read("cmdline")?.contains(word)).then_some(())
    };
    processes.filter(|process| matches(process).is_some()).collect()
}

/// Starting the program for each strand takes so long that a thousand would not be ready in time.
#[test]
fn processes_of_strands_are_forked_from_one() {
    let Some(lab) = Lab::new(2) else { return };
    let server = lab.serve("");
    let threads = connected(40, "protocol=tcp", &rr("duration=1500ms", "64", "64"));
    let client = lab.start_profile(&threads.replace("nthreads", "nprocs"), "");
    crate::net_faults::program::eventually("strands have processes", || {
        let servers = children(client.pid(), "strand-process");
        let [one] = servers[..] else { return Err(format!("{servers:?}")) };
        let strands = children(one, "strand-process").len();
        if strands == 40 { Ok(()) } else { Err(format!("{strands} processes")) }
    });
    client.finish().completed();
    server.assert_unchanged();
    lab.wait_for_client_exit();
}

#[test]
fn ten_thousand_idle_connections_stay_open() {
    let Some(lab) = Lab::new(2) else { return };
    let descriptors = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    let strands = 10_000.min(descriptors - 200);
    if strands < 10_000 {
        wb_test_skip::skip!(
            "{} of ten thousand idle connections: the limit is {descriptors} descriptors",
            10_000 - strands
        );
    }
    let server = lab.serve("");
    let middle = transaction("duration=2s", &(flowop("think", "duration=1s") + &flowop("write", "size=64")));
    let result = lab.run_profile(&connected(strands as u32, "protocol=tcp", &middle), "").completed();
    assert!(result.executor(0).starts_with("event loop"), "{}", result.executor(0));
    let rounds = |transaction| number(&result.transaction(0, transaction)["rounds"]);
    assert_eq!((rounds(0), rounds(2)), (strands, strands));
    server.assert_unchanged();
}

/// A run of 20 strands with this maximum number of threads.
fn twenty(threads: u32) -> Option<RunResult> {
    let lab = Lab::new(2)?;
    let _server = lab.serve("");
    let profile = connected(20, "protocol=tcp", &rr("iterations=100", "rand(1,4k)", "1k"));
    Some(lab.run_profile(&profile, &format!("--max-threads {threads} --seed 7")).completed())
}

#[test]
fn both_executors_have_the_same_counts() {
    let (Some(threads), Some(events)) = (twenty(1000), twenty(1)) else { return };
    assert_eq!((threads.executor(0), threads.executor(1)), ("thread per strand", "thread per strand"));
    assert!(events.executor(0).starts_with("event loop") && events.executor(1).starts_with("event loop"));
    let counts = |result: &RunResult| (result.rounds(), result.bytes(), number(&result.0["totals"]["operations"]));
    assert_eq!(counts(&threads), counts(&events));
}
