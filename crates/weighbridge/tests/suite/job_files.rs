//! fio with a job file of the user: its cells are labelled with what the job does.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::lab::{CommandResult, Lab};

/// A job without files that unifies the report of its reads and writes.
const UNIFIED: &str = "[global]\nioengine=null\nsize=1G\nrate_iops=1000,1000\nunified_rw_reporting=mixed\n\
                       group_reporting=1\ntime_based\nruntime=1\nbs=4k\nrw=randrw\n[job1]\n";

fn lab() -> Option<Lab> {
    let lab = Lab::new();
    lab.write("job-unified-mixed.fio", UNIFIED);
    let has_fio = std::process::Command::new("fio").arg("--version").output().is_ok();
    if !has_fio {
        wb_test_skip::skip!("no such program: `fio`");
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

/// A name of a run folder that no other run has.
fn new_folder() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("run-{}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// Runs a job file on an existing file of 8 MiB, and returns what was printed, after checking that nothing of it changed.
fn run_on_existing_file(lab: &Lab, job: &str, params: &str) -> CommandResult {
    let content: Vec<u8> = (0..8u32 << 20).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for name in ["file", "other", "file "] {
        std::fs::write(lab.path(name), &content).unwrap();
    }
    lab.write("job.fio", &job.replace("LAB", lab.path("").to_str().unwrap().trim_end_matches('/')));
    let job_file = if job.is_empty() { "" } else { "job-file=job.fio," };
    let specification = format!("fio:{job_file}{params},sysinfo=none").replace("LAB", lab.path("").to_str().unwrap());
    let mut command = lab.command("run --warm-up 0 --retakes 0 --samples 1 --json");
    let ran = lab.run_command(command.arg(specification).args(["--into", &new_folder()]));
    for name in ["file", "other", "file "] {
        let found = std::fs::read(lab.path(name)).unwrap_or_else(|error| panic!("{name}: {error}: {job}{params}"));
        assert!(found == content, "{job}{params} changed `{name}`: {}", ran.transcript());
    }
    ran
}

#[test]
fn nothing_that_exists_is_changed_without_permission() {
    let Some(lab) = lab() else { return };
    const READ: &str = "[global]\nrw=read\nbs=64k\nruntime=100ms\ntime_based\nioengine=psync\n";
    let on_target = |options: &str| format!("{READ}[job-$target]\nfilename=$target\n{options}\n");
    let target = "targets=LAB/file,direct=false,file-size=4m";
    // What is refused, with the reason.
    for (job, params, reason) in [
        (on_target("size=4m\nunlink=1"), target, "`unlink`"),
        (on_target("size=4m\nunlink_each_loop"), target, "`unlink_each_loop`"),
        (on_target("size=4m\nioengine=filedelete"), target, "`ioengine=filedelete`"),
        (on_target("size=4m\nrw=write"), target, "allow-destroy=true"),
        ("rw=write\nsize=4m\n[job-$target]\nfilename=$target:LAB/other\n".to_owned(), target, "LAB/other`"),
        ("rw=write\nsize=4m\n[LAB/other]\n".to_owned(), "direct=false", "without `filename`"),
        ("rw=write\nsize=4m\n[x]\nfilename=LAB/other\n".to_owned(), "direct=false", "filename=LAB/other"),
        (
            String::new(),
            "rw=read,bs=4k,ioengine=filedelete,targets=LAB/file,direct=false,file-size=4m",
            "`ioengine=filedelete`",
        ),
        (
            String::new(),
            "rw=write,bs=4k,allow-destroy=true,targets=\"LAB/file \",direct=false,file-size=4m,runtime=100ms",
            "drops white space",
        ),
    ] {
        let ran = run_on_existing_file(&lab, &job, params);
        let reason = reason.replace("LAB", lab.path("").to_str().unwrap().trim_end_matches('/'));
        assert_eq!(ran.code, 3, "{job}{params}: {}", ran.transcript());
        ran.expect_stdout(&reason);
        if job.contains("LAB/other") {
            lab.weighbridge("plan fio:job-file=job.fio").expect_code(3).expect_stdout(&reason);
        }
    }
    // What fio itself refuses, or reads as it is.
    for options in ["offset=4m\nsize=8m", "filesize=16m\nsize=8m", "size=4m", "size=8m\nfile_append=1"] {
        run_on_existing_file(&lab, &on_target(options), target);
    }
}

#[test]
fn a_target_that_a_link_without_end_names_is_refused() {
    let Some(lab) = lab() else { return };
    std::os::unix::fs::symlink("/nowhere/at/all", lab.path("link")).unwrap();
    let line = format!("run fio:rw=read,bs=4k,targets={},{SHORT} --into R", lab.path("link").display());
    lab.weighbridge(&line).expect_code(3).expect_stdout("is a symbolic link to nothing");
}

#[test]
fn an_existing_file_with_holes_is_not_read() {
    let Some(lab) = lab() else { return };
    let file = std::fs::File::create(lab.path("sparse")).unwrap();
    file.set_len(8 << 20).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &vec![7; 4 << 20], 4 << 20).unwrap();
    drop(file);
    let path = lab.path("sparse");
    let line = format!("run fio:rw=read,bs=4k,targets={},file-size=4m,direct=false,{SHORT} --into R", path.display());
    lab.weighbridge(&line).expect_code(3).expect_stdout("without holes are required");
}

#[test]
fn a_file_of_any_size_is_laid_out_in_large_blocks() {
    let Some(lab) = lab() else { return };
    // The smallest, one without a whole block, with both, and one that was laid out byte by byte.
    for size in [4096u32, 1_000_001, 2 << 20, 1_000_000_000 / 30, 33_554_433] {
        let line = format!("run fio:rw=randread,bs=512,file-size={size},direct=false,runtime=50ms,ramptime=0,{SHORT}");
        let mut command = lab.command(&line);
        lab.run_command(command.args(["--into", &new_folder()])).expect_code(0);
    }
}

/// The only cell of a job without files that is measured.
fn measured_cell(lab: &Lab, job: &str) -> serde_json::Value {
    measured_cell_and_operations(lab, job).0
}

/// The same, and the operations that fio itself counted.
fn measured_cell_and_operations(lab: &Lab, job: &str) -> (serde_json::Value, f64) {
    lab.write("job.fio", job);
    let into = new_folder();
    let ran = lab.weighbridge(&format!("run fio:job-file=job.fio,{SHORT} --into {into}"));
    let cell = ran.expect_code(0).json()["cells"][0].clone();
    let cells = std::fs::read_dir(lab.path(&format!("{into}/Localhost/fio/0000"))).unwrap();
    let reports = cells.map(|entry| entry.unwrap().path().join("0000.0/fio.stdout")).filter(|path| path.is_file());
    let reports: Vec<_> = reports.collect();
    assert_eq!(reports.len(), 1, "{reports:?}");
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&reports[0]).unwrap()).unwrap();
    let jobs = report["jobs"].as_array().unwrap();
    (cell, jobs.iter().map(|job| job["read"]["total_ios"].as_f64().unwrap()).sum())
}

fn median(cell: &serde_json::Value, name: &str) -> f64 {
    let metrics = cell["metrics"].as_array().unwrap();
    let metric = metrics.iter().find(|metric| metric["metric"]["name"] == name).unwrap();
    metric["summary"]["median"].as_f64().unwrap_or_else(|| panic!("{metric}"))
}

#[test]
fn the_rate_of_several_jobs_is_that_of_their_operations_in_their_time() {
    let Some(lab) = lab() else { return };
    const RATED: &str = "[global]\nioengine=null\nsize=1g\nbs=4k\nrw=read\ntime_based\n";
    for (jobs, requested, seconds) in [
        // At the same time, in groups of their own in the report.
        ("rate_iops=1000\nruntime=1\n[x]\n[y]\nnew_group\n", 2000.0, 1.0),
        ("rate_iops=1000\nruntime=1\n[x]\n[y]\nstonewall\n", 2000.0, 2.0),
        // Of different lengths.
        ("rate_iops=100\n[x]\nruntime=4\n[y]\nstartdelay=3\nruntime=1\n", 500.0, 4.0),
        // The second when the first has ended.
        ("rate_iops=100\nruntime=1\n[x]\n[y]\nstartdelay=1\n", 200.0, 2.0),
        // One after the other.
        ("[x]\nrate_iops=100\nruntime=2\n[y]\nstonewall\nrate_iops=500\nruntime=1\n", 700.0, 3.0),
        ("rate_iops=1000\nruntime=1\nnumjobs=4\ngroup_reporting\n[x]\n", 4000.0, 1.0),
    ] {
        let (cell, operations) = measured_cell_and_operations(&lab, &format!("{RATED}{jobs}"));
        let (iops, rate) = (median(&cell, "iops"), operations / seconds);
        // Beside other tests fio falls behind the requested rate, so that its own count is what ours has to agree with.
        assert!((iops / rate - 1.0).abs() < 0.03, "{jobs}: {iops}, expected {rate}");
        assert!(operations <= 1.03 * requested, "{jobs}: {operations} operations");
    }
}

#[test]
fn clones_that_are_reported_together_are_measured_like_others() {
    let Some(lab) = lab() else { return };
    let job = "[global]\nioengine=null\nsize=1g\nbs=4k\nrw=read\ntime_based\nruntime=1\nrate_iops=1000\nnumjobs=4\niodepth=4\n";
    let together = measured_cell(&lab, &format!("{job}group_reporting\n[x]\n"));
    let apart = measured_cell(&lab, &format!("{job}[x]\n"));
    for cell in [&together, &apart] {
        assert!((median(cell, "iops") / 4000.0 - 1.0).abs() < 0.03);
    }
}

#[test]
fn histograms_over_time_have_every_operation() {
    let Some(lab) = lab() else { return };
    let line =
        format!("run fio:rw=randrw,bs=4k,file-size=4m,direct=false,numjobs=2,runtime=1s,ramptime=0,{SHORT} --into R");
    let study = lab.weighbridge(&line).expect_code(0).json();
    let sample = &study["cells"][0]["attempts"][0];
    let folder = sample["folder"].as_str().unwrap();
    let output = lab.read(format!("R/{folder}/fio.stdout"));
    let report: serde_json::Value = serde_json::from_str(&output[output.find('{').unwrap()..]).unwrap();
    for series in study["cells"][0]["latency"].as_array().unwrap() {
        let operation = series["title"].as_str().unwrap().split(',').next().unwrap();
        let shown = series["rows"].as_array().unwrap().last().unwrap()["cumulative_ns"].as_f64().unwrap();
        let bins =
            report["jobs"].as_array().unwrap().iter().map(|job| job[operation]["clat_ns"]["bins"].as_object().unwrap());
        let longest = bins.flat_map(|bins| bins.keys()).map(|latency| latency.parse::<u64>().unwrap()).max().unwrap();
        assert_eq!(shown, longest as f64, "{operation}");
    }
}

#[test]
fn the_reason_of_fio_is_shown() {
    let Some(lab) = lab() else { return };
    lab.write("job.fio", "[x]\nioengine=psync\nrw=read\nsize=1m\nbs=4k\nfilename=a/b\nallow_file_create=0\n");
    let line = format!("run fio:job-file=job.fio,allow-destroy=true,{SHORT} --into R");
    lab.weighbridge(&line).expect_stdout("fio: file creation disallowed by allow_file_create=0");
}
