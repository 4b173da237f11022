//! Parser of iperf3's reports: each is one sample; its intervals are ignored.

mod figures;
mod report;

use std::collections::BTreeMap;

use serde_json::Value;
use wb_model::Bytes;

use crate::foreign::{ForeignCell, ForeignResults};
use crate::json::to_plain_text;
use crate::naming::valid_name;
use crate::{Format, ReadError, json};
use report::{Iperf3Report, ReportStart, parse_stream};

const TEST: &str = "iperf3-json";
const SUMMARY: &str = "a network, as iperf3 measured it";

/// Parameters in a test's start, in addition to its axes. A value of 0 is unset; later versions have more parameters.
const PARAMS: [&str; 8] = ["omit", "duration", "bytes", "blocks", "tos", "target_bitrate", "fqrate", "gso"];

/// Parses reports, or the lines of one.
pub(crate) fn read(text: &str) -> Result<ForeignResults, ReadError> {
    let reports = match parse_stream(text)? {
        Some(report) => vec![report],
        None => json::parse_documents::<Iperf3Report>(Format::Iperf3, text)?,
    };
    let mut foreign = ForeignResults::default();
    let message = |report: &Iperf3Report| report.error.clone().unwrap_or_else(|| "no test".to_owned());
    for (at, report) in reports.iter().enumerate() {
        let Some(test) = &report.start.test_start else {
            if reports.len() == 1 {
                return Err(ReadError::Failed { program: "iperf3", message: message(report) });
            }
            foreign.notes.push(format!("report {at}: no result, iperf3 reports: {}", message(report)));
            continue;
        };
        describe_machine(&mut foreign, &report.start);
        let mut cell = ForeignCell::new(valid_name(TEST), SUMMARY);
        describe(&mut cell, test, report);
        cell.samples.extend([figures::sample(format!("report/{at}"), report)]);
        foreign.add(cell);
    }
    Ok(foreign)
}

fn describe(cell: &mut ForeignCell, test: &BTreeMap<String, Value>, report: &Iperf3Report) {
    let number = |name: &str| test.get(name).and_then(Value::as_f64).filter(|number| *number != 0.0);
    cell.axis("protocol", test.get("protocol").map_or_else(String::new, to_plain_text).to_ascii_lowercase());
    cell.axis("streams", number("num_streams").unwrap_or(1.0));
    let direction = match (report.is_bidirectional(), number("reverse")) {
        (true, _) => "bidirectional",
        (false, Some(_)) => "reverse",
        (false, None) => "forward",
    };
    cell.axis("direction", direction);
    if let Some(length) = number("blksize") {
        cell.axis("length", Bytes(length as u64));
    }
    for name in PARAMS {
        if let Some(value) = number(name) {
            cell.param(name, value);
        }
    }
}

/// Adds the description of the machine: the output of `uname -a` with system, host, release, version, machine.
fn describe_machine(foreign: &mut ForeignResults, start: &ReportStart) {
    let words: Vec<&str> = start.system_info.split_whitespace().collect();
    if let [_, host, kernel, .., arch] = words[..] {
        foreign.machine.hostname = host.to_owned();
        foreign.machine.kernel = kernel.to_owned();
        foreign.machine.arch = arch.to_owned();
        foreign.add_provenance("host", Some(host));
        foreign.add_provenance("kernel", Some(kernel));
    }
    foreign.add_provenance("iperf3 version", Some(&start.version));
    foreign.add_provenance("measured at", start.timestamp.as_ref().map(|timestamp| &timestamp.time));
    foreign.add_provenance("peer", start.connecting_to.as_ref().map(|peer| &peer.host));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::row;

    const REPORT: &str = r#"{"start": {"version": "iperf 3.12", "system_info": "Linux vm 6.1.0-9 #1 SMP x86_64",
        "test_start": {"protocol": "TCP", "num_streams": 2, "blksize": 131072, "omit": 0, "duration": 10, "reverse": 0}},
        "intervals": [{"sum": {"bits_per_second": 7}}],
        "end": {"sum_sent": {"seconds": 10.0, "bytes": 1250, "bits_per_second": 1000, "retransmits": 3},
                "sum_received": {"seconds": 10.0, "bytes": 1125, "bits_per_second": 900},
                "cpu_utilization_percent": {"host_total": 30.5, "remote_total": 60.5}}}"#;

    #[test]
    fn a_report_is_one_sample_and_the_received_rate_is_primary() {
        let foreign = read(REPORT).unwrap();
        let [cell] = &foreign.cells[..] else { panic!("{foreign:?}") };
        assert_eq!(cell.axes, ["protocol", "streams", "direction", "length"]);
        assert_eq!(
            (cell.params["length"].to_string(), cell.params["duration"].to_string()),
            ("128k".into(), "10".into())
        );
        let [sample] = &cell.rows().collect::<Vec<_>>()[..] else { panic!("{cell:?}") };
        let primary: Vec<_> = sample.readings.iter().filter(|reading| reading.metric.primary).collect();
        assert_eq!((primary[0].metric.name.as_str(), primary[0].value, primary.len()), ("received", 900.0, 1));
        assert_eq!((foreign.machine.hostname.as_str(), foreign.machine.kernel.as_str()), ("vm", "6.1.0-9"));
    }

    #[test]
    fn several_reports_in_a_file_are_several_samples() {
        let foreign = read(&format!("{REPORT}\n{REPORT}")).unwrap();
        assert_eq!((foreign.cells.len(), foreign.cells[0].samples.count), (1, 2));
    }

    #[test]
    fn a_stream_of_lines_is_one_report() {
        let Value::Object(report) = serde_json::from_str(REPORT).unwrap() else { panic!("no object") };
        let line = |event: &str| format!("{{\"event\":\"{event}\",\"data\":{}}}\n", report[event]);
        let text = line("start") + "{\"event\":\"interval\",\"data\":{}}\n" + &line("end");
        assert_eq!(read(&text).unwrap(), read(REPORT).unwrap());
        let among_other_output = format!("iperf3: warning\n{text}interrupted\n{{\"event\":\"er");
        assert_eq!(read(&among_other_output).unwrap(), read(REPORT).unwrap(), "the last event is truncated");
    }

    #[test]
    fn a_malformed_event_within_a_stream_is_an_error() {
        let (start, end) = ("{\"event\":\"start\",\"data\":{}}\n", "{\"event\":\"end\",\"data\":{}}\n");
        let error = |text: String| read(&text).unwrap_err().to_string();
        let truncated = error(format!("{start}{{\"event\":\"int\n{end}"));
        assert!(truncated.contains("line 2, column"), "{truncated}");
        let unexpected = error(format!("{start}{{\"event\":\"end\",\"data\":[7, 7]}}\n"));
        assert!(unexpected.contains("line 2: "), "{unexpected}");
    }

    #[test]
    fn datagrams_in_both_directions_are_bidirectional_without_separate_sums() {
        let sums = r#""sum": {"bits_per_second": 7}, "sum_bidir_reverse": {"bits_per_second": 7}"#;
        let text = format!(r#"{{"start": {{"test_start": {{"protocol": "UDP"}}}}, "end": {{{sums}}}}}"#);
        assert_eq!(read(&text).unwrap().cells[0].params["direction"].to_string(), "bidirectional");
    }

    #[test]
    fn a_failed_test_has_the_error_of_iperf3() {
        let text = r#"{"start": {"connected": [], "version": "iperf 3.12"}, "end": {}, "error": "unable to connect"}"#;
        assert_eq!(read(text).unwrap_err().to_string(), "no result: iperf3 reports: unable to connect");
        let late = REPORT.replacen("\"end\"", "\"error\": \"interrupted\", \"end\"", 1);
        assert_eq!(row(&read(&late).unwrap().cells[0], 0).failure.as_deref(), Some("iperf3: interrupted"));
    }
}
