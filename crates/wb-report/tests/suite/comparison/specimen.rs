//! Writes three example builds in run-perf's layout that cover every element of the page: losses and gains, differing
//! parameters, names with markup or links, missing checks, an error, and differing environments.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// A name that would end the page's script, and one in other scripts.
pub(crate) const HOSTILE: &str = "</script><img src=x onerror=alert(1)>\"'&-4KiB";
pub(crate) const FOREIGN: &str = "größe-日本語-\u{202e}4KiB";

/// Writes the builds; returns their folders, named `old`, `between` and `new`.
pub(crate) fn write(into: &Path) -> Vec<PathBuf> {
    ["old", "between", "new"].into_iter().enumerate().map(|(index, name)| build(into, index, name)).collect()
}

/// Like the first and the last of [`write`], but the standard deviations of the last are 11.46 points more.
pub(crate) fn write_deviating(into: &Path) -> Vec<PathBuf> {
    let folders = [build(into, 0, "old"), build(into, 2, "new")];
    let file = folders[1].join("Localhost/fio/0000/result.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("\"stddevpct\":0.3", "\"stddevpct\":11.76")).unwrap();
    folders.to_vec()
}

fn build(into: &Path, index: usize, name: &str) -> PathBuf {
    let folder = into.join(name);
    let last = index == 2;
    let mut fio = vec![
        iteration("read-4KiB", "4k", [1000.0, 1003.0, 800.0][index], [10.0, 10.1, 12.5][index]),
        iteration("read-64KiB", if index == 1 { "32k" } else { "64k" }, [500.0, 560.0, 620.0][index], 20.0),
        iteration(HOSTILE, "4k", [300.0, 250.0, 301.0][index], 30.0),
        iteration(FOREIGN, "4k", 200.0, 40.0),
    ];
    if !last {
        fio.push(iteration("write-4KiB", "4k", 700.0, 15.0));
    }
    result(&folder, "Localhost/fio/0000", &fio);
    result(&folder, "Tuned/od<d>\"test/0000", &[iteration("run-1", "1", 50.0, [1.0, 1.0, 1.01][index])]);
    if last {
        let test_folder = folder.join("Tuned/uperf/__error0__");
        fs::create_dir_all(&test_folder).unwrap();
        fs::write(test_folder.join("exception"), "<b>no server</b>").unwrap();
    }
    fs::write(folder.join("RUNPERF_METADATA"), metadata(index)).unwrap();
    folder
}

fn result(folder: &Path, path: &str, iterations: &[Value]) {
    let path = folder.join(path);
    fs::create_dir_all(&path).unwrap();
    fs::write(path.join("result.json"), Value::from(iterations).to_string()).unwrap();
}

/// An iteration with ten samples of each metric, spread by one percent.
fn iteration(name: &str, block: &str, iops: f64, latency: f64) -> Value {
    let metric = |mean: f64| {
        let samples: Vec<Value> =
            (0..10).map(|index| json!({ "value": mean * (0.9955 + 0.001 * f64::from(index)) })).collect();
        json!([{ "client_hostname": "all", "mean": mean, "stddevpct": 0.3, "samples": samples }])
    };
    json!({ "iteration_name": name, "iteration_data": {
        "parameters": { "benchmark": [{ "primary_metric": "iops_sec", "bs": block }] },
        "throughput": { "iops_sec": metric(iops) },
        "latency": { "lat": metric(latency) },
    } })
}

fn metadata(index: usize) -> String {
    let kernel = if index == 2 { "6.2 </code><script>alert(2)</script>" } else { "6.1" };
    let environment = json!([{ "kernel": format!("{kernel}\nsmt on\nmitigations auto") }]);
    let url =
        ["https://ci.example/1", "javascript:alert(3)//https://", "https://ci.example/\"><script>alert(4)</script>"];
    format!(
        "build:{index}\nurl:{}\nmachine:anvil,sledge\nmachine_url_base:https://machines.example/%(machine)s\n\
         distro:Debian 12\nproject:<i>nightly {index}</i>\n\
         runperf_cmd:run-perf --default-password hunter2 --hosts anvil -- fio\nenvironment_world:{environment}\n",
        url[index]
    )
}
