//! Processes on a worker: start, effective placement, output and termination.

use std::path::PathBuf;

use crate::common::{alive, eventually, finish, sh, text, with_worker};
use wb_agent::clock::monotonic_ns;
use wb_agent::{Capture, Command, ExitReason, Fault, OutputDigest, OutputStream};
use wb_model::{Aslr, Bytes, HugePages, Nanos, Placement};
use wb_sys::process::HugePagesMethod;

const SECOND: Nanos = Nanos(1_000_000_000);

#[test]
fn a_process_has_a_clean_environment_its_input_and_its_folder() {
    with_worker(|worker| async move {
        let group = worker.new_group().await.unwrap();
        let command = sh("cat; pwd; env | sort; echo oops >&2; exit 7").stdin("typed\n").env("LANG", "de");
        let finished = group.spawn(command).await.unwrap().wait(None).await.unwrap();
        assert_eq!(finished.exit_reason, ExitReason::Exited { status: 7 });
        assert_eq!(text(&finished.stderr), "oops");
        let out = text(&finished.stdout);
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines[..2], ["typed", group.folder()]);
        let names: Vec<&str> = lines[2..].iter().map(|line| line.split('=').next().unwrap()).collect();
        assert_eq!(names, ["HOME", "LANG", "LC_ALL", "PATH", "PWD", "TMPDIR", "WEIGHBRIDGE_GROUP"]);
        assert!(lines.contains(&"LANG=de") && lines.contains(&"LC_ALL=C"), "{out}");
        assert!(finished.elapsed().0 > 0 && finished.usage.max_rss > 0);
        assert!(!finished.placement.effective.cpus.unwrap().is_empty());
    });
}

#[test]
fn a_process_inherits_the_listed_variables_and_explicit_ones_win() {
    with_worker(|worker| async move {
        let inherits = |command: Command| command.inherit(["CARGO_MANIFEST_DIR", "WEIGHBRIDGE_NOSUCH", "PATH"]);
        let show = || inherits(sh("env"));
        let out = text(&finish(&worker, show()).await.stdout);
        let expected = format!("CARGO_MANIFEST_DIR={}", env!("CARGO_MANIFEST_DIR"));
        assert!(out.lines().any(|line| line == expected) && !out.contains("WEIGHBRIDGE_NOSUCH"), "{out}");
        let out = text(&finish(&worker, show().env("CARGO_MANIFEST_DIR", "other")).await.stdout);
        assert!(out.lines().any(|line| line == "CARGO_MANIFEST_DIR=other"), "{out}");
    });
}

#[test]
fn every_sample_has_an_environment_of_the_same_length() {
    with_worker(|worker| async move {
        let mut lengths = Vec::new();
        for _ in 0..12 {
            lengths.push(text(&finish(&worker, sh("env | wc -c")).await.stdout));
        }
        lengths.dedup();
        assert_eq!(lengths.len(), 1, "{lengths:?}");
    });
}

#[test]
fn a_failed_start_is_explained() {
    with_worker(|worker| async move {
        let group = worker.new_group().await.unwrap();
        let fault = |error: wb_agent::WorkerError| error.fault().cloned().unwrap();
        let missing = fault(group.spawn(Command::new(["no-such-program"])).await.unwrap_err());
        assert!(matches!(missing, Fault::ProgramNotFound { .. }), "{missing}");
        let folder = fault(group.spawn(sh("true").cwd("/nosuch")).await.unwrap_err());
        assert_eq!(
            folder.to_string(),
            "cannot start `sh`: entering its folder: No such file or directory (os error 2)"
        );
        let cpus = Placement { cpus: vec![4000], ..Placement::default() };
        let cpus = fault(group.spawn(sh("true").placement(cpus)).await.unwrap_err());
        assert_eq!(cpus.to_string(), "cannot start `sh`: binding to CPUs: Invalid argument (os error 22)");
        let nothing = fault(group.spawn(Command::new(Vec::<String>::new())).await.unwrap_err());
        assert!(matches!(nothing, Fault::ProgramNotFound { .. }), "{nothing}");
    });
}

#[test]
fn a_process_that_ignores_sigterm_is_killed_at_its_limit() {
    with_worker(|worker| async move {
        let group = worker.new_group().await.unwrap();
        let stubborn = group.spawn(sh("trap '' TERM; echo on; while :; do sleep 0.1; done")).await.unwrap();
        let line =
            stubborn.wait_for_line(OutputStream::Stdout, Nanos(30 * SECOND.0), |line| line == "on").await.unwrap();
        assert_eq!(line.as_deref(), Some("on"));
        let limit = Nanos(SECOND.0 / 10);
        let finished = stubborn.wait(Some(limit)).await.unwrap();
        assert_eq!(finished.exit_reason, ExitReason::TimedOut { limit });
        assert!(finished.elapsed() > Nanos(2 * SECOND.0));
        assert!(!alive(stubborn.pid()));
    });
}

#[test]
fn a_signal_reaches_the_process() {
    with_worker(|worker| async move {
        let group = worker.new_group().await.unwrap();
        let process = group.spawn(Command::new(["sleep", "1000"])).await.unwrap();
        process.signal(15).await.unwrap();
        assert_eq!(process.wait(None).await.unwrap().exit_reason, ExitReason::Signalled { signal: 15 });
        assert!(process.signal(999).await.is_err());
    });
}

#[test]
fn a_daemon_ends_with_its_group() {
    with_worker(|worker| async move {
        let group = worker.new_group().await.unwrap();
        let daemon = "(setsid sh -c 'trap \"\" TERM HUP; echo $$; touch up; exec sleep 1000' &); \
                      while [ ! -e up ]; do sleep 0.01; done";
        let finished = group.spawn(sh(daemon)).await.unwrap().wait(None).await.unwrap();
        let pid: u32 = text(&finished.stdout).parse().unwrap();
        assert!(alive(pid));
        let report = group.teardown().await.unwrap();
        assert!(report.killed.contains(&pid) && report.unkillable.is_empty(), "{report:?}");
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    });
}

#[test]
fn a_dropped_group_is_cleaned_up() {
    with_worker(|worker| async move {
        let group = worker.new_group().await.unwrap();
        let process = group.spawn(Command::new(["sleep", "1000"])).await.unwrap();
        drop(group);
        assert_eq!(process.wait(None).await.unwrap().exit_reason, ExitReason::Signalled { signal: 9 });
        eventually("the end", || !alive(process.pid()));
    });
}

#[test]
fn held_processes_start_when_they_are_released() {
    with_worker(|worker| async move {
        let group = worker.new_group().await.unwrap();
        let ready =
            [group.spawn_suspended(sh("echo a")).await.unwrap(), group.spawn_suspended(sh("echo b")).await.unwrap()];
        let never = group.spawn_suspended(sh("echo c")).await.unwrap();
        assert!(ready[0].read_output(OutputStream::Stdout).await.unwrap().is_empty());
        for process in &ready {
            process.release().await.unwrap();
        }
        for (process, letter) in ready.iter().zip(["a", "b"]) {
            assert_eq!(text(&process.wait(None).await.unwrap().stdout), letter);
        }
        group.close().await.unwrap();
        assert!(never.wait(None).await.unwrap().stdout.is_empty());
    });
}

#[test]
fn output_is_complete_up_to_its_limit() {
    with_worker(|worker| async move {
        let group = worker.new_group().await.unwrap();
        let large = group.spawn(sh("head -c 20000000 /dev/zero; echo end >&2")).await.unwrap();
        let finished = large.wait(None).await.unwrap();
        assert_eq!((finished.stdout.len(), text(&finished.stderr).as_str()), (20_000_000, "end"));
        let endless = group.spawn(sh("yes").output_limit(Bytes(100_000))).await.unwrap();
        let finished = endless.wait(None).await.unwrap();
        assert_eq!(
            finished.exit_reason,
            ExitReason::TooMuchOutput { stream: OutputStream::Stdout, limit: Bytes(100_000) }
        );
        assert_eq!(finished.stdout.len(), 100_000);
        let exact = group.spawn(sh("head -c 100000 /dev/zero").output_limit(Bytes(100_000))).await.unwrap();
        assert!(exact.wait(None).await.unwrap().exit_reason.is_success());
    });
}

#[test]
fn lines_do_not_wake_up_the_agent_one_by_one() {
    with_worker(|worker| async move {
        let agent = worker.agent_pid().unwrap();
        let switches = || {
            let status = std::fs::read_to_string(format!("/proc/{agent}/status")).unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            line.unwrap().trim().parse::<u64>().unwrap()
        };
        let before = switches();
        // Some 10,000 lines a second, as of requests whose times are printed.
        let pause = "j=0; while [ $j -lt 200 ]; do j=$((j+1)); done";
        let lines = sh(&format!("i=0; while [ $i -lt 2000 ]; do echo $i; i=$((i+1)); {pause}; done"));
        let finished = finish(&worker, lines).await;
        let (woken, tens) = (switches() - before, finished.elapsed().0 / 10_000_000);
        assert_eq!(text(&finished.stdout).lines().count(), 2000);
        assert!(woken < 100 + 4 * tens, "{woken} times in {}", finished.elapsed());
    });
}

#[test]
fn output_that_is_hashed_has_no_limit_and_is_not_kept() {
    with_worker(|worker| async move {
        let write = |bytes: u64| sh(&format!("head -c {bytes} /dev/zero; echo end")).output_limit(Bytes(1000));
        let finished = finish(&worker, write(20_000_000).stdout(Capture::Hash)).await;
        assert_eq!(finished.exit_reason, ExitReason::Exited { status: 0 });
        let expected = [vec![0; 20_000_000], b"end\n".to_vec()].concat();
        assert_eq!(finished.stdout_digest, Some(OutputDigest::digest(&expected)));
        assert_eq!(finished.stdout.len(), 16 << 10);
        assert!(finished.stdout.ends_with(b"\0end\n"));
        let short = finish(&worker, sh("echo short").stdout(Capture::Hash)).await;
        assert_eq!((short.stdout, short.stdout_digest), (b"short\n".to_vec(), Some(OutputDigest::digest(b"short\n"))));
        // Descendants that are still running may write for ever; nobody waits for them.
        let endless = finish(&worker, sh("yes & exit 3").stdout(Capture::Hash)).await;
        assert_eq!(endless.exit_reason, ExitReason::Exited { status: 3 });
        let complete = finish(&worker, sh("echo kept")).await;
        assert_eq!(complete.stdout_digest, Some(OutputDigest::digest(b"kept\n")));
    });
}

#[test]
fn output_that_is_discarded_goes_to_dev_null() {
    with_worker(|worker| async move {
        let show = sh("exec 3>&1; readlink /proc/self/fd/3 >&2; head -c 20000000 /dev/zero").stdout(Capture::Discard);
        let finished = finish(&worker, show).await;
        assert_eq!(finished.exit_reason, ExitReason::Exited { status: 0 });
        assert_eq!((text(&finished.stderr).as_str(), finished.stdout_digest), ("/dev/null", None));
    });
}

#[test]
fn the_time_to_join_the_cgroup_does_not_count() {
    with_worker(|worker| async move {
        let group = worker.new_group().await.unwrap();
        let Some(cgroup) = group.cgroup().map(PathBuf::from) else {
            return wb_test_skip::skip!("no cgroup can be made here");
        };
        // A process that joins a frozen cgroup waits in the kernel until it is thawed.
        let (file, frozen, thawed) = match cgroup.join("cgroup.freeze") {
            v2 if v2.exists() => (v2, "1", "0"),
            _ => (cgroup.join("freezer.state"), "FROZEN", "THAWED"),
        };
        std::fs::write(&file, frozen).unwrap();
        let thaw = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(50));
            let thawed_ns = monotonic_ns();
            std::fs::write(file, thawed).unwrap();
            thawed_ns
        });
        let finished = group.spawn(Command::new(["true"])).await.unwrap().wait(None).await.unwrap();
        let thawed_ns = thaw.join().unwrap();
        let (started_ns, ended_ns) = (finished.started_ns, finished.ended_ns);
        assert!(thawed_ns <= started_ns && started_ns < ended_ns, "{thawed_ns} {started_ns} {ended_ns}");
        group.close().await.unwrap();
    });
}

#[test]
fn the_effective_placement_is_the_requested_one() {
    with_worker(|worker| async move {
        let facts = worker.facts().await.unwrap();
        let (cpu, node) = (facts.cpus[facts.cpus.len() - 1].id, facts.nodes[0].id);
        let placement =
            Placement { cpus: vec![cpu], memory_nodes: vec![node], huge_pages: HugePages::Never, aslr: Aslr::Off };
        let script =
            "grep -E 'Cpus_allowed_list|THP_enabled' /proc/self/status; head -1 /proc/self/numa_maps; sleep 0.2";
        let finished = finish(&worker, sh(script).placement(placement.clone())).await;
        let (effective, out) = (&finished.placement.effective, text(&finished.stdout));
        assert_eq!(effective.differences(&placement), Vec::<String>::new());
        assert_eq!(effective.cpus, Some(vec![cpu]));
        assert_eq!(effective.aslr, Some(false));
        assert!(out.contains(&format!("Cpus_allowed_list:\t{cpu}\n")), "{out}");
        if effective.huge_pages.is_none() {
            wb_test_skip::skip!("this kernel does not show huge pages in /proc/PID/status");
        } else {
            assert_eq!(effective.huge_pages, Some(false));
            assert!(out.contains("THP_enabled:\t0"), "{out}");
        }
        match &effective.memory_policy {
            None => wb_test_skip::skip!("this kernel shows no memory policies"),
            Some(policy) => {
                assert_eq!(*policy, format!("bind:{node}"));
                assert!(out.contains(policy), "{out}");
            }
        }
    });
}

#[test]
fn a_process_that_moves_itself_is_detected() {
    with_worker(|worker| async move {
        let facts = worker.facts().await.unwrap();
        if facts.cpus.len() < 2 {
            return wb_test_skip::skip!("there is one CPU here, and nowhere to move");
        }
        let (here, there) = (facts.cpus[0].id, facts.cpus[1].id);
        let placed_on = |cpus: &[u32]| Placement { cpus: cpus.to_vec(), ..Placement::default() };
        let moves = [
            // The process itself, detected after its exit, although it runs for less time than any reading interval.
            (format!("exec taskset -c {there} true"), placed_on(&[here])),
            // A child, detected while it runs.
            (format!("taskset -c {there} sleep 1; true"), placed_on(&[here])),
        ];
        for (script, placement) in moves {
            let ran = finish(&worker, sh(&script).placement(placement)).await.placement;
            let violations: Vec<&String> = ran.escapes.iter().collect();
            assert!(
                violations.len() == 1
                    && violations[0].ends_with(&format!("moved itself: CPUs [{there}] instead of [{here}]"))
            );
        }
        let part =
            finish(&worker, sh(&format!("exec taskset -c {there} true")).placement(placed_on(&[here, there]))).await;
        assert!(part.placement.escapes.is_empty(), "{:?}", part.placement);
        let randomised = Placement { aslr: Aslr::Off, ..Placement::default() };
        assert!(finish(&worker, sh("exec sleep 0.1").placement(randomised)).await.placement.escapes.is_empty());
        let server = worker.new_group().await.unwrap();
        let process =
            server.spawn(sh("sleep 9; exec taskset -c 1 sleep 9").placement(placed_on(&[here]))).await.unwrap();
        assert!(process.inspect().await.unwrap().escapes.is_empty());
        server.close().await.unwrap();
    });
}

#[test]
fn addresses_are_the_same_in_every_run_without_randomisation() {
    with_worker(|worker| async move {
        let off = Placement { aslr: Aslr::Off, ..Placement::default() };
        let maps = |placement: &Placement| {
            finish(&worker, Command::new(["cat", "/proc/self/maps"]).placement(placement.clone()))
        };
        let (one, other) = (maps(&off).await, maps(&off).await);
        assert_eq!(text(&one.stdout), text(&other.stdout));
        let (one, other) = (maps(&Placement::default()).await, maps(&Placement::default()).await);
        assert_ne!(text(&one.stdout), text(&other.stdout));
    });
}

#[test]
fn huge_pages_are_requested_by_the_available_method() {
    with_worker(|worker| async move {
        let always = Placement { huge_pages: HugePages::Always, ..Placement::default() };
        let finished = finish(&worker, sh("echo $GLIBC_TUNABLES; sleep 0.1").placement(always)).await;
        let uses_tunable = text(&finished.stdout) == "glibc.malloc.hugetlb=1";
        assert_eq!(uses_tunable, finished.placement.effective.huge_pages_method == Some(HugePagesMethod::GlibcTunable));
        assert!(finished.placement.effective.huge_pages_method.is_some());
    });
}

#[test]
fn the_cpu_time_of_descendants_that_nobody_waited_for_counts() {
    with_worker(|worker| async move {
        let group = worker.new_group().await.unwrap();
        let Some(_) = group.cgroup() else {
            wb_test_skip::skip!("cannot create a cgroup");
            return;
        };
        // The subshell ends at once, and leaves an orphan, which reports its own CPU time.
        let orphan = "i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done; times > times.part; mv times.part times";
        let script = format!("(setsid sh -c '{orphan}' &); while [ ! -e times ]; do sleep 0.01; done; cat times");
        let finished = group.spawn(sh(&script)).await.unwrap().wait(None).await.unwrap();
        let times = text(&finished.stdout);
        let seconds = |word: &str| {
            let (minutes, seconds) = word.trim_end_matches('s').split_once('m').unwrap();
            minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
        };
        let own: f64 = times.lines().next().unwrap().split_whitespace().map(seconds).sum();
        let counted = Nanos(finished.usage.cpu_ns()).seconds();
        assert!(own > 0.0 && counted >= own, "the orphan used {own} s, counted {counted} s");
    });
}

#[test]
fn a_call_that_is_too_long_fails_and_the_worker_stays() {
    with_worker(|worker| async move {
        let group = worker.new_group().await.unwrap();
        let argument = "x".repeat(17 << 20);
        let error = group.spawn(Command::new(["true", &argument])).await.unwrap_err();
        assert!(!error.is_lost() && error.to_string().contains("too long"), "{error}");
        assert_eq!(text(&finish(&worker, sh("echo alive")).await.stdout), "alive");
    });
}

#[test]
fn the_largest_resident_set_is_not_that_of_the_agent() {
    with_worker(|worker| async move {
        let agent = std::fs::read_to_string(format!("/proc/{}/status", worker.agent_pid().unwrap())).unwrap();
        let kib = |status: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
            line.split_whitespace().next().unwrap().parse::<u64>().unwrap()
        };
        let script = "cat /proc/self/status; exec true";
        let finished = finish(&worker, sh(script)).await;
        let (own, counted) = (kib(&text(&finished.stdout)), finished.usage.max_rss >> 10);
        // The shell itself, which `cat` is about as large as.
        assert!(counted < 2 * own && counted < kib(&agent), "{counted} KiB, of `cat` {own} KiB, agent {}", kib(&agent));
    });
}

/// A shell that holds 40 MB in a variable, says so with a file, and then does the rest.
fn large(rest: &str) -> String {
    format!("x=$(head -c 40000000 /dev/zero | tr -c x x); touch large; {rest}; : $x")
}

#[test]
fn the_largest_resident_set_includes_descendants_that_nobody_waits_for() {
    with_worker(|worker| async move {
        let ended = "while [ ! -e pid ]; do sleep 0.01; done; \
                     while grep -qs '^State:.[^Z]' /proc/$(cat pid)/status; do sleep 0.01; done";
        let cases = [
            // Still running at the end, in a session of its own or not.
            (format!("sh -c '{}' & while [ ! -e large ]; do sleep 0.01; done", large("sleep 100")), true),
            (format!("setsid sh -c '{}' & while [ ! -e large ]; do sleep 0.01; done", large("sleep 100")), true),
            // Ended before.
            (format!("(sh -c 'echo $$ > pid.new; mv pid.new pid; {}' &); {ended}", large("true")), false),
            ("true".to_owned(), false),
        ];
        for (script, outlives) in cases {
            let group = worker.new_group().await.unwrap();
            let finished = group.spawn(sh(&script)).await.unwrap().wait(None).await.unwrap();
            let names = finished.outlived_by;
            // A process that it is starting may still have its name.
            assert!(names.iter().any(|name| name == "sh") == outlives, "{script}: {names:?}");
            assert!((finished.usage.max_rss > 40_000_000) == (script != "true"), "{script}: {:?}", finished.usage);
        }
    });
}

#[test]
fn the_largest_resident_set_includes_descendants_that_the_agent_reaps_together_with_their_leader() {
    with_worker(|worker| async move {
        let group = worker.new_group().await.unwrap();
        let agent = worker.agent_pid().unwrap();
        // The orphan stops the agent before it ends, so that its own exit and that of the leader wait to be reaped.
        let orphan = large(&format!("kill -STOP {agent}"));
        let script = format!(
            "echo $$ > leader; (sh -c 'echo $$ > pid.new; mv pid.new pid; {orphan}' &); \
             while [ ! -e pid ]; do sleep 0.01; done; \
             while grep -qs '^State:.[^Z]' /proc/$(cat pid)/status; do sleep 0.01; done"
        );
        let process = group.spawn(sh(&script)).await.unwrap();
        let folder = PathBuf::from(group.folder());
        let continued = tokio::task::spawn_blocking(move || {
            let state = |pid: &str| {
                let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
                status.lines().find_map(|line| line.strip_prefix("State:\t")?.chars().next())
            };
            eventually("the agent is stopped", || state(&agent.to_string()) == Some('T'));
            let leader = std::fs::read_to_string(folder.join("leader")).unwrap();
            eventually("the leader ends", || state(leader.trim()) == Some('Z'));
            rustix::process::kill_process(
                rustix::process::Pid::from_raw(agent.cast_signed()).unwrap(),
                rustix::process::Signal::CONT,
            )
            .unwrap();
        });
        let finished = process.wait(None).await.unwrap();
        continued.await.unwrap();
        assert!(finished.usage.max_rss > 40_000_000 && finished.outlived_by.is_empty(), "{finished:?}");
    });
}
