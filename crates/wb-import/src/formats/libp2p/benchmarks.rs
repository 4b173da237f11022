//! Parser of `benchmark-results.json`, which the suite in test-plans wrote until 2025: each implementation is measured
//! with itself, in a benchmark for each scenario.

use serde::Deserialize;
use wb_model::lenient_number::LenientNumber;

use super::{Figures, Pair, Row, Scenario, SuiteResults};
use crate::ReadError;
use crate::json;

#[derive(Deserialize)]
struct ResultsFile {
    benchmarks: Vec<Benchmark>,
    /// Round trips of `ping`.
    pings: Option<Baseline>,
    /// Rates of iperf, from client to server.
    iperf: Option<Baseline>,
}

#[derive(Deserialize)]
struct Benchmark {
    name: String,
    unit: String,
    results: Vec<Measurement>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Measurement {
    #[serde(default)]
    result: Vec<Sample>,
    implementation: String,
    version: String,
    transport_stack: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Sample {
    Transfer(Transfer),
    /// In the unit of the benchmark; the first version of the suite.
    Figure(LenientNumber),
}

/// What an iteration, or an interval of one, transferred.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Transfer {
    /// `final`, or `intermediary` (`intermediate`) for an interval.
    r#type: String,
    time_seconds: f64,
    upload_bytes: f64,
    download_bytes: f64,
}

#[derive(Deserialize)]
struct Baseline {
    unit: String,
    results: Vec<LenientNumber>,
}

pub(super) fn is_benchmarks(text: &str) -> bool {
    text.contains("\"benchmarks\"") && text.contains("\"transportStack\"")
}

pub(super) fn parse(text: &str) -> Result<SuiteResults, ReadError> {
    let file: ResultsFile = json::parse_document(super::FORMAT, text)?;
    let mut results = SuiteResults { is_partial: true, ..SuiteResults::default() };
    for Benchmark { name, unit, results: measurements } in file.benchmarks {
        let factor = |scenario: Scenario| Some((scenario, scenario.factor(&unit)?));
        let Some((scenario, factor)) = scenario(&name).and_then(factor) else {
            results.notes.push(format!("benchmark `{name}`: unknown name or unit `{unit}`"));
            continue;
        };
        for measurement in measurements {
            let Measurement { result, implementation, version, transport_stack } = measurement;
            let endpoint = format!("{implementation}-{version}");
            let row = find_row(&mut results.tests, &endpoint, &transport_stack);
            if let Err(reason) = set_figures(row, scenario, &values(&result, scenario, factor), factor) {
                results.notes.push(format!("`{}`, benchmark `{name}`: {reason}", row.name));
            }
        }
    }
    let baselines = [("ping", "icmp", Scenario::RoundTrip, file.pings), ("iperf", "tcp", Scenario::Upload, file.iperf)];
    for (program, transport, scenario, baseline) in baselines {
        let Some(Baseline { unit, results: values }) = baseline else { continue };
        let set_all = |factor| {
            let row = find_row(&mut results.baselines, program, transport);
            set_figures(row, scenario, &values, factor)
        };
        let result = scenario.factor(&unit).ok_or_else(|| format!("unknown unit `{unit}`")).and_then(set_all);
        results.notes.extend(result.err().map(|reason| format!("baseline `{program}`: {reason}")));
    }
    let has_figures = |row: &Row| row.figures.iter().any(Option::is_some);
    results.baselines.retain(has_figures);
    results.tests.retain(has_figures);
    Ok(results)
}

fn scenario(name: &str) -> Option<Scenario> {
    let name = name.to_ascii_lowercase();
    let scenarios =
        [("upload", Scenario::Upload), ("download", Scenario::Download), ("round trip", Scenario::RoundTrip)];
    scenarios.into_iter().find(|(word, _)| name.contains(word)).map(|(_, scenario)| scenario)
}

/// Figures in a unit with this factor to the base unit. An iteration without an end has its intervals.
fn values(samples: &[Sample], scenario: Scenario, factor: f64) -> Vec<LenientNumber> {
    let is_final = |sample: &Sample| matches!(sample, Sample::Transfer(Transfer { r#type, .. }) if r#type == "final");
    let has_final = samples.iter().any(is_final);
    let value = |sample: &Sample| match sample {
        Sample::Figure(figure) => *figure,
        Sample::Transfer(Transfer { time_seconds, upload_bytes, download_bytes, .. }) => {
            let base =
                if scenario.is_rate() { (upload_bytes + download_bytes) / time_seconds } else { time_seconds * 1e9 };
            LenientNumber(Some(base / factor).filter(|value| value.is_finite()))
        }
    };
    samples.iter().filter(|sample| !has_final || is_final(sample)).map(value).collect()
}

/// Row of an endpoint with itself, which is added if there is none.
fn find_row<'a>(rows: &'a mut Vec<Row>, endpoint: &str, transport: &str) -> &'a mut Row {
    let name = format!("{endpoint} x {endpoint} ({transport})");
    let index = rows.iter().position(|row| row.name == name).unwrap_or_else(|| {
        let axes = vec![("transport".to_owned(), transport.to_owned())];
        rows.push(Row {
            location: name.clone(),
            name,
            pair: Pair { dialer: endpoint.to_owned(), listener: endpoint.to_owned(), axes },
            status: None,
            cause: None,
            gate: None,
            further: Vec::new(),
            figures: Default::default(),
            has_figures: true,
        });
        rows.len() - 1
    });
    &mut rows[index]
}

/// Sets the figures of a scenario, unless there are none, or the row has some already.
fn set_figures(row: &mut Row, scenario: Scenario, values: &[LenientNumber], factor: f64) -> Result<(), String> {
    let samples = values.iter().enumerate().filter_map(|(index, value)| Some((index, value.0?))).collect();
    let figures = Figures { iterations: Some(values.len() as f64), samples, ..Figures::default() }.scaled(factor);
    match &mut row.figures[scenario as usize] {
        Some(_) => Err("a second time".to_owned()),
        None if figures.is_empty() => Err("no figures".to_owned()),
        none => {
            *none = Some(figures);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use crate::Format;

    const FILE: &str = r#"{"benchmarks": [
        {"name": "throughput/upload", "unit": "bit/s", "results": [
            {"result": [8e8, null, 1.6e9], "implementation": "red", "version": "v1", "transportStack": "tcp"},
            {"result": [], "implementation": "blue", "version": "v2", "transportStack": "quic-v1"}]},
        {"name": "Single Connection throughput – Download 100 MiB", "unit": "bit/s", "results": [
            {"result": [8e8], "implementation": "red", "version": "v1", "transportStack": "tcp"}]},
        {"name": "Connection establishment + 1 byte round trip latencies", "unit": "s", "results": [
            {"result": [0.25], "implementation": "red", "version": "v1", "transportStack": "tcp"},
            {"result": [0.5], "implementation": "red", "version": "v1", "transportStack": "quic-v1"}]}],
        "pings": {"unit": "s", "results": [0.06]}, "iperf": {"unit": "bit/s", "results": [4e9]}}"#;

    #[test]
    fn an_implementation_and_transport_is_a_cell_with_the_samples_of_all_benchmarks() {
        assert_eq!(Format::detect(FILE), Some(crate::formats::libp2p::FORMAT));
        let foreign = read(FILE).unwrap();
        let values: Vec<(String, Vec<(String, f64)>)> = foreign
            .cells
            .iter()
            .map(|cell| {
                let readings = cell.rows().flat_map(|sample| sample.readings);
                let values = readings.map(|reading| (reading.metric.key().to_string(), reading.value)).collect();
                (cell.case().to_string(), values)
            })
            .collect();
        let named = |name: &str, value: f64| (name.to_owned(), value);
        let case = |id: &str, transport: &str| format!("dialer={id},listener={id},transport={transport}");
        let (upload, round_trip) = ("throughput/upload", "latency/round-trip");
        let all = [named(upload, 1e8), named(upload, 2e8), named("throughput/download", 1e8), named(round_trip, 2.5e8)];
        assert_eq!(
            values,
            [
                (case("ping", "icmp"), vec![named(round_trip, 6e7)]),
                (case("iperf", "tcp"), vec![named(upload, 5e8)]),
                (case("red-v1", "tcp"), all.to_vec()),
                (case("red-v1", "quic-v1"), vec![named(round_trip, 5e8)]),
            ]
        );
        assert_eq!(foreign.notes, ["`blue-v2 x blue-v2 (quic-v1)`, benchmark `throughput/upload`: no figures"]);
    }

    #[test]
    fn transfers_are_figures_of_their_time() {
        let transfer = |kind: &str, seconds: f64, bytes: u64| {
            format!(r#"{{"type": "{kind}", "timeSeconds": {seconds}, "uploadBytes": {bytes}, "downloadBytes": 0}}"#)
        };
        let uploads = |transfers: &[String]| -> Vec<f64> {
            let text = FILE.replacen("8e8, null, 1.6e9", &transfers.join(","), 1);
            let cells = read(&text).unwrap().cells;
            let all =
                cells.iter().filter(|cell| cell.params["dialer"].to_string() == "red-v1").flat_map(|cell| cell.rows());
            let readings = all.flat_map(|sample| sample.readings);
            readings.filter(|reading| reading.metric.name == "upload").map(|reading| reading.value).collect()
        };
        let intervals = [transfer("intermediary", 2.0, 400), transfer("intermediate", 0.5, 50), transfer("x", 0.0, 9)];
        assert_eq!(uploads(&intervals), [200.0, 100.0], "nothing takes no time");
        assert_eq!(uploads(&[intervals.to_vec(), vec![transfer("final", 4.0, 600)]].concat()), [150.0]);
    }

    #[test]
    fn unknown_benchmarks_and_units_are_skipped_with_a_note() {
        let notes = |from: &str, to: &str| read(&FILE.replacen(from, to, 1)).unwrap().notes.join("\n");
        assert!(notes("throughput/upload", "jumps").contains("benchmark `jumps`: unknown name or unit `bit/s`"));
        assert!(notes("\"s\", \"results\": [\n", "\"h\", \"results\": [\n").contains("unknown name or unit `h`"));
        assert!(notes("Download", "Upload").contains("a second time"));
        assert!(notes("[0.06]", "[null]").contains("baseline `ping`: no figures"));
    }

    #[test]
    fn rates_above_those_of_iperf_are_invalid() {
        let foreign = read(&FILE.replace("4e9", "1e9")).unwrap();
        let rejected = foreign.cells.iter().flat_map(|cell| cell.rows()).filter(|sample| sample.rejection.is_some());
        let values: Vec<f64> = rejected.map(|sample| sample.readings[0].value).collect();
        assert_eq!(values, [2e8]);
    }
}
