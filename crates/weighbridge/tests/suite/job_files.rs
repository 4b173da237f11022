//! fio with a job file of the user: its cells are labelled with what the job does.

use crate::lab::Lab;

/// A job without files that unifies the report of its reads and writes.
const UNIFIED: &str = "[global]\nioengine=null\nsize=1G\nrate_iops=1000,1000\nunified_rw_reporting=mixed\n\
                       group_reporting=1\ntime_based\nruntime=1\nbs=4k\nrw=randrw\n[job1]\n";

fn lab() -> Option<Lab> {
    let lab = Lab::new();
    lab.write("job-unified-mixed.fio", UNIFIED);
    let has_fio = std::process::Command::new("fio").arg("--version").output().is_ok();
    if !has_fio {
        println!("SKIPPED: no such program: `fio`");
    }
    has_fio.then_some(lab)
}

const SHORT: &str = "samples=1,sysinfo=none --warm-up 0 --retakes 0 --json";

#[test]
fn a_job_that_unifies_reads_and_writes_is_measured() {
    let Some(lab) = lab() else { return };
    let line = format!("run fio:job-file=job-unified-mixed.fio,rw=randrw,bs=4k,{SHORT} --into R");
    let study = lab.weighbridge(&line).expect_code(0).json();
    let [cell] = study["cells"].as_array().unwrap().as_slice() else { panic!("{study}") };
    let metrics: Vec<&str> =
        cell["metrics"].as_array().unwrap().iter().filter_map(|m| m["metric"]["name"].as_str()).collect();
    assert!(["iops", "read-iops", "write-iops"].iter().all(|name| metrics.contains(name)), "{metrics:?}");
}

#[test]
fn the_axes_of_a_cell_are_those_of_its_job_file() {
    let Some(lab) = lab() else { return };
    let study =
        lab.weighbridge(&format!("run fio:job-file=job-unified-mixed.fio,{SHORT} --into R")).expect_code(0).json();
    let ids: Vec<&str> = study["cells"].as_array().unwrap().iter().filter_map(|cell| cell["id"].as_str()).collect();
    assert_eq!(ids, ["Localhost/fio/0000:block-sizes=4k,test-types=randrw"]);
    let params = &study["cells"][0]["params"];
    for (name, value) in [("iodepth", "1"), ("rate-iops", "1000"), ("runtime", "\"1s\""), ("direct", "false")] {
        assert_eq!(params[name].to_string(), value, "{name}");
    }
}

#[test]
fn parameters_that_contradict_the_job_file_are_an_error() {
    let Some(lab) = lab() else { return };
    let plan = lab.weighbridge("plan fio:job-file=job-unified-mixed.fio,rw=read,bs=[4k,1m]");
    plan.expect_stdout("`test-types` is read, but job file `job-unified-mixed.fio` runs with randrw");
    let plan = lab.weighbridge("plan fio:job-file=job-unified-mixed.fio,bs=1m");
    plan.expect_stdout("`block-sizes` is 1m, but job file");
    let plan = lab.weighbridge("plan fio:job-file=job-unified-mixed.fio,iodepth=[1,16]");
    plan.expect_stdout("`iodepth` is 16, but job file");
}
