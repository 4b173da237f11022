//! The schemas in `schemas/` match the types, and the files and outputs of the program match the schemas.

use std::path::PathBuf;

use crate::json_schema::validate;
use crate::lab::Lab;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../schemas")
}

#[test]
fn the_program_prints_the_schemas_of_the_folder() {
    let lab = Lab::new();
    let names = lab.weighbridge("schema").out;
    assert_eq!(names.lines().count(), std::fs::read_dir(folder()).unwrap().count());
    for name in names.lines() {
        let committed = std::fs::read_to_string(folder().join(format!("{name}.json"))).unwrap();
        assert_eq!(lab.weighbridge(&format!("schema {name}")).out, committed);
    }
}

#[test]
fn files_and_outputs_match_the_schemas() {
    let lab = Lab::new();
    lab.weighbridge("run steady --min-time 1ms --samples 6 --retakes 0 --into R").expect_code_of(&[0, 3]);
    let json = |text: String| serde_json::from_str::<serde_json::Value>(&text).unwrap();
    let file = |path: &str| json(lab.read(format!("R/{path}")));
    let valid = |name: &str, value: &serde_json::Value| {
        let schema = json(std::fs::read_to_string(folder().join(format!("{name}.json"))).unwrap());
        validate(&schema, value).unwrap_or_else(|error| panic!("{name}: {error}"));
    };
    valid("run", &file("run.json"));
    valid("definition", &file("Localhost/steady/0000/definition.json"));
    valid("result", &file("Localhost/steady/0000/result.json"));
    valid("environment", &file("environment/world-0-before.json"));
    valid("telemetry", &file("Localhost/steady/0000/kind=a/0000.0/telemetry.json"));
    for line in lab.journal("R") {
        valid("journal-line", &line);
    }
    lab.weighbridge("pack R -o archive.tar.gz").expect_code(0);
    lab.weighbridge("unpack archive.tar.gz").expect_code(0);
    valid("archive-manifest", &json(lab.read("archive/manifest.json")));
    let program = serde_json::json!({ "path": "/opt/x", "sha256": "00", "as": "programs/x" });
    valid("run-inputs", &serde_json::json!({ "programs": [program], "peers-files": ["x.toml"], "rebuild": ["make"] }));
    let export = r#"{"results": [{"command": "true", "times": [1.5]}]}"#;
    lab.write("hyperfine.json", export);
    lab.weighbridge("import --into R hyperfine.json").expect_code(0);
    // Earlier versions recorded each sample in a file.
    let metric = serde_json::json!({
        "name": "time", "class": "latency", "unit": "s", "direction": "lower", "primary": true, "aggregate": "merge",
        "value": 1.5
    });
    let origin = serde_json::json!({ "sha256": "00", "location": "results/0/times/0" });
    valid("imported-sample", &serde_json::json!({ "origin": origin, "values": [metric], "seconds": 1.5 }));
    for line in lab.journal("R") {
        valid("journal-line", &line);
    }
    valid("run", &file("run.json"));
    valid("study", &lab.weighbridge("summary R --json").json());
    valid("comparison", &lab.weighbridge("compare R R --json").json());
    lab.weighbridge("model fit --noise -o noise.json a=R b=R").expect_code(3);
    valid("noise-model", &json(lab.read("noise.json")));
    valid("plan", &lab.weighbridge("plan steady himeno --json").json());
    valid("doctor", &lab.weighbridge("doctor --json").json());
    for declaration in lab.weighbridge("list --json").json().as_array().unwrap() {
        valid("declaration", declaration);
    }
    let hashd = lab.weighbridge("hashd --memory 16m --dir hashd --duration 2s --json").expect_code(0);
    valid("hashd-report", &json(hashd.out.lines().next().unwrap().to_owned()));
    let params = serde_json::json!({ "rps-target": 20, "lat-target": "50ms", "open-loop": { "rate": 5 } });
    valid("hashd-params", &params);
    valid("hashd-config", &serde_json::json!({ "params": params, "memory": "1g", "seed": 7, "compressibility": 0.5 }));
    let params = serde_json::json!({ "control-period": "100ms", "file-size-mean": "64k", "fake-cpu-load": true });
    let config =
        serde_json::json!({ "params": params, "rps-max": 20, "memory": "16m", "dir": "d", "window-scale": 0.1 });
    let request = serde_json::json!({ "config": config });
    valid("hashd-sizing", &request);
    for line in lab.weighbridge(&format!("exec hashd-params {request}")).expect_code(0).out.lines() {
        valid("hashd-sizing-line", &json(line.to_owned()));
    }
}
