//! Reports of the installed fio.

use std::process::Command;

use wb_import::{ReadOptions, read};

use crate::lab::ImportEnv;

const JOBS: &str = "[global]
size=1m
ioengine=psync
runtime=1
time_based
group_reporting
[a]
rw=read
[b]
rw=write
iodepth=16
";

/// Runs fio; returns the case and the findings of the only cell, none if fio is not installed.
fn run_fio(arguments: &str) -> Option<(String, String)> {
    let lab = ImportEnv::new();
    lab.write("jobs.fio", JOBS);
    let mut command = Command::new("fio");
    command.current_dir(lab.path(".")).arg("--output-format=json").args(arguments.split_whitespace());
    let output = command.output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (_, foreign) = read(&String::from_utf8_lossy(&output.stdout), ReadOptions::default()).unwrap();
    let [cell] = &foreign.cells[..] else { panic!("{foreign:?}") };
    Some((cell.case().to_string(), cell.rows().flat_map(|sample| sample.findings).collect::<Vec<_>>().join("\n")))
}

#[test]
fn groups_of_different_jobs_and_verifications_are_recognized() {
    const GROUP: &str = "a group of different jobs";
    let timed = "--size=1m --ioengine=psync --runtime=1 --time_based --group_reporting --name=a --rw=read";
    for (arguments, case, finding) in [
        (format!("{timed} --iodepth=1 --name=b --iodepth=16 --numjobs=3 --rw=write"), "job=a", GROUP),
        ("jobs.fio".to_owned(), "job=a", GROUP),
        (format!("{timed} --numjobs=3"), "bs=4k,iodepth=1,job=a,numjobs=3,rw=read", ""),
        (
            "--size=1m --ioengine=psync --verify=crc32c --name=a --rw=write:4k".to_owned(),
            "bs=4k,iodepth=1,job=a,numjobs=1,rw=write%3A4k",
            "reads of the verification",
        ),
    ] {
        let Some((actual, findings)) = run_fio(&arguments) else {
            return wb_test_skip::skip!("no fio is installed");
        };
        assert_eq!(actual, case, "{arguments}");
        assert!(findings.contains(finding), "{arguments}: {findings}");
        assert_eq!(findings.contains(GROUP), finding == GROUP, "{arguments}: {findings}");
    }
}
