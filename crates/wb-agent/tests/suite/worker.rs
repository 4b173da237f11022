//! The worker itself: files, shutdown, recovery after kills, telemetry.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command as Program, Stdio};

use crate::common::{AGENT, alive, eventually, marked, nothing_is_left_of, run, text, with_worker};
use wb_agent::{AgentSession, Command, Controller, EntryKind, Fault, SessionConfig, Worker, WorkerError};
use wb_model::{Bytes, Nanos, WorkerName};

#[test]
fn facts_come_from_the_agent() {
    with_worker(|worker| async move {
        let facts = worker.facts().await.unwrap();
        assert!(!facts.cpus.is_empty() && facts.memory.0 > 0);
        assert_eq!(worker.program(), fs::canonicalize(AGENT).unwrap().to_str().unwrap());
    });
}

#[test]
fn a_large_file_survives_a_round_trip() {
    with_worker(|worker| async move {
        let scratch = worker.new_scratch(None).await.unwrap();
        let bytes: Vec<u8> =
            (0..40_000_000u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let path = scratch.join("long");
        worker.put(&path, &bytes, 0o640).await.unwrap();
        assert!(worker.get(&path, Bytes(40_000_000)).await.unwrap() == bytes);
        assert!(matches!(worker.get(&path, Bytes(39_999_999)).await, Err(WorkerError::FileTooLarge { .. })));
        worker.put(&path, b"short", 0o640).await.unwrap();
        assert_eq!(worker.get(&path, Bytes(5)).await.unwrap(), b"short");
        let entries = worker.list(scratch.path()).await.unwrap();
        assert_eq!((entries[0].name.as_str(), entries[0].kind, entries[0].size), ("long", EntryKind::File, 5));
        worker.remove(&path).await.unwrap();
        assert!(matches!(
            worker.get(&path, Bytes(5)).await.unwrap_err().fault(),
            Some(Fault::File { missing: true, .. })
        ));
    });
}

#[test]
fn only_private_folders_are_removed_recursively() {
    with_worker(|worker| async move {
        let parent = tempfile::tempdir().unwrap();
        fs::create_dir(parent.path().join("sub")).unwrap();
        let scratch = worker.new_scratch(Some(parent.path().to_str().unwrap())).await.unwrap();
        fs::create_dir_all(scratch.join("a/b")).unwrap();
        worker.remove(&scratch.join("a")).await.unwrap();
        let error = worker.remove(parent.path().join("sub").to_str().unwrap()).await.unwrap_err();
        assert!(matches!(error.fault(), Some(Fault::Refused { .. })), "{error}");
        scratch.close().await.unwrap();
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1);
    });
}

#[test]
fn a_tool_is_found_with_its_hash_and_version() {
    with_worker(|worker| async move {
        let tool = worker.which("bash", &["--version"]).await.unwrap().unwrap();
        assert!(tool.version.unwrap().starts_with("GNU bash"));
        let bytes = fs::read(&tool.path).unwrap();
        assert_eq!(tool.sha256, wb_model::Sha256::digest(&bytes).as_str());
        assert_eq!(worker.which("bash", &[]).await.unwrap().unwrap().version, None);
        assert_eq!(worker.which("no-such-program", &["--version"]).await.unwrap(), None);
    });
}

#[test]
fn dropping_the_last_handle_ends_the_agent_and_its_processes() {
    let agent = run(async {
        let worker = Worker::local(Path::new(AGENT)).await.unwrap();
        let group = worker.new_group().await.unwrap();
        group.spawn(Command::new(["sleep", "1000"])).await.unwrap();
        let _scratch = worker.new_scratch(None).await.unwrap();
        worker.agent_pid().unwrap()
    });
    nothing_is_left_of(agent);
}

/// Starts a controller that starts processes; returns the words of the line that it prints about them.
fn controller(base: &Path) -> (Child, Vec<String>) {
    let mut controller = Program::new(AGENT).arg("controller").arg(base).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(controller.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (controller, line.split_whitespace().map(str::to_owned).collect())
}

#[test]
fn a_killed_controller_leaves_no_process_no_folder_and_no_cgroup() {
    let base = tempfile::tempdir().unwrap();
    let (mut controller, words) = controller(base.path());
    let agent: u32 = words[0].parse().unwrap();
    assert!(words[2..].iter().all(|folder| Path::new(folder).is_dir()), "{words:?}");
    // A shell that was just started has yet to start its commands.
    eventually("processes to be started", || marked(&format!("weighbridge-{agent:08}-")).len() >= 3);
    controller.kill().unwrap();
    controller.wait().unwrap();
    nothing_is_left_of(agent);
    assert!(words[1] == "-" || !Path::new(&words[1]).exists());
    assert!(words[2..].iter().all(|folder| !Path::new(folder).exists()), "{words:?}");
}

#[test]
fn leftovers_of_a_killed_agent_are_removed_by_the_next() {
    let base = tempfile::tempdir().unwrap();
    let (mut controller, words) = controller(base.path());
    let agent: u32 = words[0].parse().unwrap();
    assert!(Program::new("kill").args(["-9", &words[0]]).status().unwrap().success());
    eventually("the agent's end", || !alive(agent));
    controller.kill().unwrap();
    controller.wait().unwrap();
    with_worker(|_| async {});
    nothing_is_left_of(agent);
    assert!(words[2..].iter().all(|folder| !Path::new(folder).exists()), "{words:?}");
}

#[test]
fn a_killed_agent_is_a_lost_worker() {
    let agent = run(async {
        let worker = Worker::local(Path::new(AGENT)).await.unwrap();
        let group = worker.new_group().await.unwrap();
        let process = group.spawn(Command::new(["sleep", "1000"])).await.unwrap();
        let agent = worker.agent_pid().unwrap();
        assert!(Program::new("kill").args(["-9", &agent.to_string()]).status().unwrap().success());
        let error = process.wait(None).await.unwrap_err();
        assert!(error.is_lost(), "{error}");
        assert!(worker.facts().await.unwrap_err().is_lost());
        eventually("the child's end", || !alive(process.pid()));
        agent
    });
    with_worker(|_| async {});
    nothing_is_left_of(agent);
}

#[test]
fn garbage_on_the_pipe_ends_the_agent_with_an_error() {
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 64], b"\x02\0\0\0\0\0\0\0{}"] {
        let mut agent = Program::new(AGENT)
            .arg("agent")
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        agent.stdin.take().unwrap().write_all(garbage).unwrap();
        let pid = agent.id();
        let output = agent.wait_with_output().unwrap();
        let message = text(&output.stderr);
        assert!(!output.status.success() && !message.contains("panicked"), "{message}");
        nothing_is_left_of(pid);
    }
}

#[test]
fn another_protocol_version_is_refused() {
    run(async {
        let hello = br#"{"protocol":99,"release":"9.9","program":"/x"}"#;
        let frame = [&u32::try_from(hello.len()).unwrap().to_le_bytes()[..], &[0; 4], hello].concat();
        let (near, mut far) = tokio::io::duplex(1024);
        tokio::io::AsyncWriteExt::write_all(&mut far, &frame).await.unwrap();
        let (input, output) = tokio::io::split(near);
        let error = Worker::from_streams(
            WorkerName::local(),
            input,
            output,
            SessionConfig::default(),
            std::future::ready(None),
        )
        .await
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "the agent on `local` (weighbridge 9.9) has protocol version 99, this program has {}: use the same \
                 weighbridge release on both",
                wb_agent::protocol::VERSION
            )
        );
    });
}

#[test]
fn a_program_that_is_not_an_agent_is_refused() {
    run(async {
        let error = Worker::local(Path::new("/bin/echo")).await.unwrap_err();
        assert!(
            error.to_string().starts_with("invalid response from `local`, expected a weighbridge agent"),
            "{error}"
        );
        let error = Worker::local(Path::new("/bin/true")).await.unwrap_err();
        assert!(error.is_lost() || error.to_string().contains("pipe"), "{error}");
        assert!(matches!(Worker::local(Path::new("/nosuch")).await, Err(WorkerError::StartFailed { .. })));
    });
}

#[test]
fn telemetry_separates_the_workload_from_the_rest() {
    with_worker(|worker| async move {
        let group = worker.new_group().await.unwrap();
        let recording = group.record(Nanos(100_000_000)).await.unwrap();
        let spin = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; sleep 0.3";
        let finished = group.spawn(Command::new(["sh", "-c", spin])).await.unwrap().wait(None).await.unwrap();
        let telemetry = recording.finish().await.unwrap().telemetry;
        group.close().await.unwrap();
        assert!(telemetry.series.len() >= 2);
        assert!(telemetry.readings().is_sorted_by_key(|reading| reading.at_ns));
        assert!(telemetry.start.at_ns < finished.started_ns && telemetry.end.at_ns > finished.ended_ns);
        let used = telemetry.end.workload.unwrap().cpu_ns - telemetry.start.workload.unwrap().cpu_ns;
        assert!(used > 0 && used < 2 * finished.usage.cpu_ns() + 50_000_000, "{used} {:?}", finished.usage);
        let disturbance = telemetry.disturbance(&wb_sys::telemetry::Thresholds::default());
        assert!(disturbance.outside_cpu_percent.is_some() && disturbance.elapsed_ns > 0);
        let cost: u64 =
            telemetry.series.iter().map(|reading| reading.cost_ns).sum::<u64>() / telemetry.series.len() as u64;
        eprintln!(
            "a reading took {} µs of CPU time; others used {:.1} % of the CPUs, agent and controller {:.2} % of one",
            cost / 1000,
            disturbance.outside_cpu_percent.unwrap(),
            disturbance.own_cpu_percent
        );
    });
}

#[test]
fn processes_of_other_groups_are_counted_separately() {
    with_worker(|worker| async move {
        let (tools, group) = (worker.new_group().await.unwrap(), worker.new_group().await.unwrap());
        let spin = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let recording = group.record(Nanos(1_000_000_000)).await.unwrap();
        let used = tools.spawn(Command::new(["sh", "-c", spin])).await.unwrap().wait(None).await.unwrap().usage;
        let telemetry = recording.finish().await.unwrap().telemetry;
        let concurrent = telemetry.end.concurrent.cpu_ns - telemetry.start.concurrent.cpu_ns;
        assert!(concurrent > used.cpu_ns() / 2 && telemetry.end.workload.unwrap().cpu_ns < concurrent / 2);
    });
}

#[test]
fn the_environment_and_its_noise_are_reported() {
    with_worker(|worker| async move {
        let environment = worker.environment([("bash".to_owned(), vec!["--version".to_owned()])].into()).await.unwrap();
        assert!(environment.kernel.release.is_some() && environment.tools.contains_key("bash"));
        assert!(!worker.doctor().await.unwrap().findings.is_empty());
    });
}

#[test]
fn runs_of_two_controllers_on_one_machine_see_each_other_until_they_end() {
    with_worker(|first| async move {
        let controller = |user: &str| Controller { user: format!("{user}-{}@desk", std::process::id()), pid: 4711 };
        let (anna, bert) = (controller("anna"), controller("bert"));
        // Other runs may be active on this machine during this test.
        let sees =
            |holders: Vec<AgentSession>, second: &Controller| holders.iter().any(|holder| holder.controller == *second);
        let announced = first.announce(anna.clone()).await.unwrap();
        assert_eq!(announced.own.controller, anna);
        assert!(!sees(announced.others.clone(), &anna) && !sees(announced.others, &bert));
        let group = first.new_group().await.unwrap();
        let solo_recording = group.record(Nanos(1_000_000_000)).await.unwrap();
        assert!(!sees(solo_recording.finish().await.unwrap().other_runs, &bert));

        let second = Worker::local(Path::new(AGENT)).await.unwrap();
        let shared_recording = group.record(Nanos(1_000_000_000)).await.unwrap();
        assert!(sees(second.announce(bert.clone()).await.unwrap().others, &anna));
        assert!(sees(shared_recording.finish().await.unwrap().other_runs, &bert));
        let shared_recording = group.record(Nanos(1_000_000_000)).await.unwrap();
        second.close().await.unwrap();
        assert!(sees(shared_recording.finish().await.unwrap().other_runs, &bert));
        let repeated = first.announce(anna.clone()).await.unwrap();
        assert!(!sees(repeated.others, &bert));
        // Another agent of one controller is on the same machine.
        let same_controller = Worker::local(Path::new(AGENT)).await.unwrap();
        assert!(same_controller.announce(anna).await.unwrap().others.contains(&repeated.own));
        same_controller.close().await.unwrap();
    });
}
