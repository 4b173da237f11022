//! Agents without privileges: no cgroup can be created, and group membership is by descent.

use std::path::Path;
use std::process::Command as Program;

use crate::common::{AGENT, alive, eventually, nothing_is_left_of, run, sh, text};
use wb_agent::{Command, OutputStream, Worker};
use wb_model::Nanos;

/// Starts an agent as `nobody`; none if this user cannot.
async fn unprivileged(folder: &Path) -> Option<Worker> {
    let setpriv = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    if !Program::new("setpriv").args(setpriv).arg("true").status().is_ok_and(|status| status.success()) {
        wb_test_skip::skip!("only root, with `setpriv`, can run an agent as nobody");
        return None;
    }
    // Written by another process: a child of this one forked meanwhile would keep the files open for writing, and they
    // could not be executed.
    let install =
        r#"chmod 755 "$2" && install -m 755 "$1" "$2/binary" && echo "$3" > "$2/agent" && chmod 755 "$2/agent""#;
    let script = format!("#!/bin/sh\nexec setpriv {} {} \"$@\"", setpriv.join(" "), folder.join("binary").display());
    let folder = folder.display().to_string();
    assert!(Program::new("sh").args(["-c", install, "sh", AGENT, &folder, &script]).status().unwrap().success());
    let agent = format!("{folder}/agent");
    Some(Worker::local(Path::new(&agent)).await.unwrap())
}

#[test]
fn groups_without_cgroups_are_distinguished_and_killed_completely() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let Some(worker) = unprivileged(folder.path()).await else { return };
        let agent = worker.agent_pid().unwrap();
        let (one, other) = (worker.new_group().await.unwrap(), worker.new_group().await.unwrap());
        assert_eq!(one.cgroup(), None);
        let daemons = "(setsid sh -c 'echo $$; touch one; exec sleep 1000' &); \
                       (env -i setsid sh -c 'echo $$; touch other; exec sleep 1000' &); \
                       while [ ! -e one ] || [ ! -e other ]; do sleep 0.01; done";
        let recording = one.record(Nanos(50_000_000)).await.unwrap();
        let finished = one.spawn(sh(daemons)).await.unwrap().wait(None).await.unwrap();
        let pids: Vec<u32> = text(&finished.stdout).lines().map(|line| line.parse().unwrap()).collect();
        let bystander = other.spawn(Command::new(["sleep", "1000"])).await.unwrap();
        let telemetry = recording.finish().await.unwrap().telemetry;
        assert!(telemetry.end.workload.unwrap().processes >= 2, "{:?}", telemetry.end.workload);
        let report = one.teardown().await.unwrap();
        assert!(pids.len() == 2 && pids.iter().all(|pid| !alive(*pid)), "{pids:?} {report:?}");
        assert!(alive(bystander.pid()));
        other.close().await.unwrap();
        worker.close().await.unwrap();
        nothing_is_left_of(agent);
    });
}

#[test]
fn orphans_of_a_killed_agent_are_killed_by_the_next() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let Some(worker) = unprivileged(folder.path()).await else { return };
        let agent = worker.agent_pid().unwrap();
        let group = worker.new_group().await.unwrap();
        let process = group.spawn(sh("(setsid sh -c 'echo $$; exec sleep 1000' &); sleep 1000")).await.unwrap();
        let ten_seconds = Nanos(10_000_000_000);
        let line = process.wait_for_line(OutputStream::Stdout, ten_seconds, |_| true).await.unwrap().unwrap();
        let orphan: u32 = line.parse().unwrap();
        assert!(Program::new("kill").args(["-9", &agent.to_string()]).status().unwrap().success());
        // Agents of other tests that begin now kill the orphan as well.
        eventually("the agent's end", || !alive(agent));
        let next = unprivileged(folder.path()).await.unwrap();
        nothing_is_left_of(agent);
        eventually("the orphan's end", || !alive(orphan));
        next.close().await.unwrap();
    });
}
