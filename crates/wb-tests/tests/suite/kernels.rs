//! Short samples of the tests that run kernels, and of external linpack programs.

use wb_model::outcome::Gate;
use wb_model::{Class, MetricKey, ParamValue, Validity};
use wb_test::Failure;

use crate::common::{has, text, with_cell};

#[test]
fn ramspeed_measures_every_mode_and_kind() {
    for mode in ["copy", "scale", "add", "triad"] {
        for (kind, non_temporal) in [("integer", false), ("floating", true)] {
            let given = [
                ("mode", text(mode)),
                ("kind", text(kind)),
                ("non-temporal", ParamValue::Bool(non_temporal)),
                ("array-size", text("1m")),
            ];
            with_cell("ramspeed", &given, async |cell| {
                let sample = cell.sample_with_work(Some(50)).await.unwrap();
                assert!(sample.assert_valid().value("throughput/bandwidth") > 0.0);
                assert_eq!(sample.work, Some(50));
                assert!(
                    sample.findings[0].contains("smaller than 4 times the last-level caches"),
                    "{:?}",
                    sample.findings
                );
            });
        }
    }
}

#[test]
fn ramspeed_fills_its_time_and_repeats_the_work() {
    with_cell("ramspeed", &[("array-size", text("1m")), ("threads", ParamValue::Integer(2))], async |cell| {
        let first = cell.sample().await.unwrap();
        let again = cell.sample_with_work(first.assert_valid().work).await.unwrap();
        assert_eq!(again.assert_valid().work, first.work);
    });
}

#[test]
fn the_sweep_is_a_curve_of_reads_and_writes() {
    with_cell("ramspeed-sweep", &[("array-size", text("256k"))], async |cell| {
        let sample = cell.sample().await.unwrap();
        let curve = &sample.assert_valid().measurement.curves[0];
        assert_eq!(curve.lines.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["read", "write"]);
        for (_, points) in &curve.lines {
            assert_eq!((points.len(), points[0].0, points[points.len() - 1].0), (17, 1024.0, 262_144.0));
        }
        let (all, peak) = (sample.value("throughput/bandwidth"), sample.value("throughput/read-peak"));
        assert!(0.0 < all && all <= peak.max(sample.value("throughput/write-peak")));
    });
}

#[test]
fn linpack_solves_with_the_built_in_kernel() {
    let given = [("problem-sizes", ParamValue::Integer(200)), ("leading-dimensions", ParamValue::Integer(208))];
    with_cell("linpack", &given, async |mut cell| {
        let sample = cell.sample().await.unwrap();
        assert!(sample.assert_valid().value("throughput/gflops") > 0.0);
        assert!(sample.value("check/residual") < 16.0 && sample.work.unwrap() >= 1);
        cell.set("run-trials", text("3"));
        cell.set("threads", ParamValue::Integer(2));
        assert_eq!(cell.sample().await.unwrap().assert_valid().work, Some(3));
        cell.set("leading-dimensions", ParamValue::Integer(100));
        assert!(cell.why_unsupported().unwrap().contains("less than the number of equations, 200"));
    });
}

#[test]
fn linpack_runs_hpcc_and_records_its_blas() {
    if !has("hpcc") {
        return;
    }
    let given = [("linpack-binary", text("hpcc")), ("problem-sizes", ParamValue::Integer(300))];
    with_cell("linpack", &given, async |cell| {
        assert_eq!(cell.why_unsupported(), None);
        let sample = cell.sample().await.unwrap();
        assert!(sample.assert_valid().value("throughput/gflops") > 0.0);
        assert!(sample.value("check/residual") < 16.0);
        let blas = &sample.measurement.provenance["blas"];
        assert!(blas.contains("blas"), "{blas}");
        assert!(sample.text("linpack.hpccinf.txt").starts_with("HPLinpack benchmark input file\n"));
        assert!(sample.text("linpack.process.json").contains("OMP_NUM_THREADS"));
        // Every run has its own folder, as hpcc appends to existing files.
        assert_eq!(sample.text("hpccoutf.txt").matches("Begin of Summary section.").count(), 1);
    });
}

/// Imitates the output of Intel's xlinpack for its input file.
const XLINPACK: &str = r#"#!/bin/sh
set -e
{ read header; read subheader; read tests _; read size _; read lda _; read trials _; read align _; } < "$1"
echo "$subheader"
echo "Number of threads: $OMP_NUM_THREADS"
echo "Number of equations to solve (problem size) : $size"
echo "Size   LDA    Align. Time(s)    GFlops   Residual     Residual(norm) Check"
for trial in $(seq $trials); do
    echo "$size $lda $align 0.001 0.6690 9.298812e-13 RESIDUAL pass"
    sleep 0.002
done
"#;

/// Creates an imitation of xlinpack with a residual in its table.
fn xlinpack(residual: &str) -> (tempfile::TempDir, String) {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("xlinpack_xeon64");
    std::fs::write(&path, XLINPACK.replace("RESIDUAL", residual)).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = path.to_string_lossy().into_owned();
    (folder, path)
}

#[test]
fn linpack_runs_enough_trials_of_xlinpack_to_fill_its_time() {
    let (_folder, path) = xlinpack("3.1e-02");
    let given = [
        ("linpack-binary", text(&path)),
        ("problem-sizes", ParamValue::Integer(100)),
        ("threads", ParamValue::Integer(3)),
        ("lininput-subheader", text("mine")),
    ];
    with_cell("linpack", &given, async |cell| {
        let sample = cell.sample().await.unwrap();
        assert_eq!(sample.assert_valid().work, Some(100));
        assert!((sample.value("throughput/gflops") - 0.669).abs() < 1e-9);
        assert_eq!(sample.measurement.provenance["blas"], "built in");
        assert!(sample.text("linpack.stdout").starts_with("mine\nNumber of threads: 3\n"));
        assert!(sample.text("linpack.process.json").contains("granularity=fine"));
    });
}

#[test]
fn a_wrong_solution_of_an_external_program_is_invalid() {
    let (_folder, path) = xlinpack("3.1e+02");
    let given =
        [("linpack-binary", text(&path)), ("problem-sizes", ParamValue::Integer(100)), ("run-trials", text("1"))];
    with_cell("linpack", &given, async |cell| {
        let sample = cell.sample().await.unwrap();
        let Validity::Invalid { gate: Gate::Answer, figures } = &sample.measurement.validity else { panic!() };
        assert!(figures.contains("3.1e2"), "{figures}");
        assert!(sample.measurement.values.contains_key(&MetricKey::new(Class::Throughput, "gflops")));
    });
}

#[test]
fn arguments_that_numactl_rejects_are_refused_with_its_error() {
    if !has("numactl") {
        return;
    }
    let (_folder, path) = xlinpack("3.1e-02");
    let given = [
        ("linpack-binary", text(&path)),
        ("problem-sizes", ParamValue::Integer(100)),
        ("numactl-args", text("--nosuch")),
    ];
    with_cell("linpack", &given, async |mut cell| {
        assert_eq!(cell.why_unsupported(), None);
        let Err(Failure::Refused { reason }) = cell.sample().await else { panic!() };
        assert!(reason.starts_with("`numactl-args`: numactl rejects them: ") && reason.contains("nosuch"), "{reason}");
        cell.set("numactl-args", text("-C 0"));
        cell.set("cpus", ParamValue::List(vec![ParamValue::Integer(0)]));
        let reason = "`numactl-args`: `-C` and `cpus` are mutually exclusive: give one of them";
        assert_eq!(cell.why_unsupported().unwrap(), reason);
    });
}

#[test]
fn the_record_shows_that_kernels_request_huge_pages_themselves() {
    with_cell("himeno", &[("grid", text("XS")), ("huge-pages", text("always"))], async |cell| {
        let sample = cell.sample().await.unwrap();
        let record: serde_json::Value = serde_json::from_str(&sample.text("report.process.json")).unwrap();
        assert_eq!(record["placement"]["huge-pages"], "always");
        assert_eq!(record["effective"]["huge-pages-method"], "program");
    });
}

#[test]
fn a_program_other_than_linpack_fails_with_its_output() {
    let given = [("linpack-binary", text("true")), ("problem-sizes", ParamValue::Integer(100))];
    with_cell("linpack", &given, async |mut cell| {
        let Err(Failure::Crashed { status }) = cell.sample().await else { panic!() };
        assert!(status.contains("no table of trials"), "{status}");
        cell.set("linpack-binary", text("no-such-linpack"));
        let Err(Failure::Refused { reason }) = cell.sample().await else { panic!() };
        assert!(reason.contains("no such program: `no-such-linpack`"), "{reason}");
    });
}
