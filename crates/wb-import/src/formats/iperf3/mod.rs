//! Parser of iperf3's reports: each is one sample; its intervals are ignored.

mod figures;
mod report;

use std::collections::BTreeMap;

use serde_json::Value;
use wb_model::Bytes;

use crate::foreign::{ForeignCell, ForeignResults};
use crate::format::{Format, FormatDefinition};
use crate::json::to_plain_text;
use crate::naming::valid_name;
use crate::{ReadError, json};
use report::{Iperf3Report, ReportStart, error_message, parse_stream};

const TEST: &str = "iperf3-json";
const SUMMARY: &str = "a network, as iperf3 measured it";

/// Parameters in addition to the axes. A value of 0 is unset; later versions have more parameters.
const PARAMS: [&str; 8] = ["omit", "duration", "bytes", "blocks", "tos", "target_bitrate", "fqrate", "gso"];

pub(crate) const FORMAT: Format = Format::new(&FormatDefinition {
    other_forms: &[(&["[ ID] Interval", "bits/sec"], "iperf3 --json")],
    ..FormatDefinition::json(
        "iperf3",
        2,
        |text| text.contains("\"test_start\"") || (text.contains("\"version\"") && text.contains("iperf 3")),
        |text, _| read(text),
    )
});

fn read(text: &str) -> Result<ForeignResults, ReadError> {
    let reports = match parse_stream(text)? {
        Some(report) => vec![report],
        None => parse_reports(text)?,
    };
    let mut foreign = ForeignResults::default();
    let message = |report: &Iperf3Report| report.error.clone().unwrap_or_else(|| "no test".to_owned());
    for (index, report) in reports.iter().enumerate() {
        let Some(test) = &report.start.test_start else {
            if reports.len() == 1 {
                return Err(ReadError::Failed { program: "iperf3", message: message(report) });
            }
            foreign.notes.push(format!("report {index}: no result, iperf3 reports: {}", message(report)));
            continue;
        };
        describe_machine(&mut foreign, &report.start);
        let mut cell = ForeignCell::new(valid_name(TEST), SUMMARY);
        describe(&mut cell, test, report);
        cell.samples.extend([figures::sample(format!("report/{index}"), report)]);
        foreign.add(cell);
    }
    Ok(foreign)
}

/// Parses complete reports. An error that iperf3 had after its report follows it as text.
fn parse_reports(text: &str) -> Result<Vec<Iperf3Report>, ReadError> {
    let documents = json::parse_documents::<Iperf3Report>(FORMAT, text)?.complete;
    let with_error = |json::Document { mut content, trailer }: json::Document<Iperf3Report>| {
        content.error = content.error.or_else(|| error_message(&trailer));
        content
    };
    Ok(documents.into_iter().map(with_error).collect())
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

/// Adds the machine from the output of `uname -a`: system, host, release, version, machine.
fn describe_machine(foreign: &mut ForeignResults, start: &ReportStart) {
    let words: Vec<&str> = start.system_info.split_whitespace().collect();
    if let [_, host, kernel, .., arch] = words[..] {
        foreign.machine.facts.hostname = host.to_owned();
        foreign.machine.facts.kernel = kernel.to_owned();
        foreign.machine.facts.arch = arch.to_owned();
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
        assert_eq!((foreign.machine.facts.hostname.as_str(), foreign.machine.facts.kernel.as_str()), ("vm", "6.1.0-9"));
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

    // A malformed event dropped the rest of the stream.
    #[test]
    fn a_malformed_event_within_a_stream_is_an_error() {
        let (start, end) = ("{\"event\":\"start\",\"data\":{}}\n", "{\"event\":\"end\",\"data\":{}}\n");
        let error = |text: String| read(&text).unwrap_err().to_string();
        let truncated = error(format!("{start}{{\"event\":\"int\n{end}"));
        assert!(truncated.contains("line 2, column"), "{truncated}");
        for (data, expected) in [
            ("[7, 7]", "a list"),
            (r#"{"sum": 5}"#, "an object"),
            (r#"{"streams": {}}"#, "a list"),
            (r#"{"streams": [{"sender": 5}]}"#, "an object"),
        ] {
            let unexpected = error(format!("{start}{{\"event\":\"end\",\"data\":{data}}}\n"));
            assert!(unexpected.contains("line 2: "), "{unexpected}");
            assert!(unexpected.ends_with(&format!("expected {expected}")), "{unexpected}");
        }
    }

    #[test]
    fn datagrams_in_both_directions_are_bidirectional_without_separate_sums() {
        let sums = r#""sum": {"bits_per_second": 7}, "sum_bidir_reverse": {"bits_per_second": 7}"#;
        let text = format!(r#"{{"start": {{"test_start": {{"protocol": "UDP"}}}}, "end": {{{sums}}}}}"#);
        assert_eq!(read(&text).unwrap().cells[0].params["direction"].to_string(), "bidirectional");
    }

    // A server's report has 0 for what the client received, and with `--bidir` the total was of one direction.
    #[test]
    fn what_a_server_does_not_know_is_no_figure() {
        let sum = |name: &str, rate: u32| format!(r#""{name}": {{"bits_per_second": {rate}}}"#);
        let read = |peer: &str, sums: &[String]| {
            let cpu = r#""cpu_utilization_percent": {"host_total": 5, "remote_total": 0}"#;
            let text = format!(
                r#"{{"start": {{"version": "iperf 3.12", "{peer}": {{"host": "h", "port": 1}}, "test_start": {{"protocol": "TCP"}}}},
                   "end": {{{}, {cpu}}}}}"#,
                sums.join(",")
            );
            let sample = row(&read(&text).unwrap().cells[0], 0);
            let readings = sample.readings.into_iter();
            let values: Vec<_> = readings.map(|reading| (reading.metric.name, reading.value)).collect();
            (values, sample.rejection.map(|rejection| rejection.figures).unwrap_or_default())
        };
        let has = |values: &[(String, f64)], name: &str| values.iter().any(|(own, _)| own == name);
        let known = [sum("sum_sent", 0), sum("sum_received", 3)];
        let reverse = [sum("sum_sent", 4), sum("sum_received", 0)];
        let both = [
            known.clone(),
            ["sum_sent_bidir_reverse", "sum_received_bidir_reverse"]
                .map(|name| sum(name, if name.contains("sent") { 4 } else { 0 })),
        ]
        .concat();
        let (values, rejection) = read("accepted_connection", &known);
        assert_eq!((values[0].clone(), rejection.as_str()), (("received".to_owned(), 3.0), ""));
        assert!(!has(&values, "cpu-remote") && has(&values, "cpu-host"));
        for sums in [&reverse[..], &both] {
            let (values, rejection) = read("accepted_connection", sums);
            assert!(!has(&values, "received") && !has(&values, "reverse-received"), "{values:?}");
            assert!(rejection.starts_with("the report of a server has not what its client received"), "{rejection}");
            let (values, rejection) = read("connecting_to", sums);
            assert!(has(&values, "received") && has(&values, "cpu-remote") && rejection.is_empty(), "{values:?}");
        }
    }

    #[test]
    fn repeated_sums_are_those_of_the_reverse_direction() {
        let sum = |name: &str, rate: u32| format!(r#""{name}": {{"bits_per_second": {rate}}}"#);
        let values = |sums: [String; 4]| {
            let text =
                format!(r#"{{"start": {{"test_start": {{"protocol": "TCP"}}}}, "end": {{{}}}}}"#, sums.join(","));
            let foreign = read(&text).unwrap();
            let readings = row(&foreign.cells[0], 0).readings.into_iter();
            let values: Vec<_> = readings.map(|reading| (reading.metric.name, reading.value)).collect();
            (foreign.cells[0].params["direction"].to_string(), values)
        };
        let repeated =
            values([sum("sum_sent", 4), sum("sum_received", 3), sum("sum_sent", 20), sum("sum_received", 10)]);
        assert_eq!((repeated.0.as_str(), repeated.1[0].clone()), ("bidirectional", ("received".to_owned(), 13.0)));
        let named = ["sum_sent_bidir_reverse", "sum_received_bidir_reverse"];
        let named = values([sum("sum_sent", 4), sum("sum_received", 3), sum(named[0], 20), sum(named[1], 10)]);
        assert_eq!(repeated, named);
    }

    #[test]
    fn more_than_all_datagrams_lost_is_invalid() {
        let rejection = |lost: &str, other: &str| {
            let sum = |lost: &str| format!(r#"{{"bits_per_second": 9, "lost_percent": {lost}}}"#);
            let text = format!(
                r#"{{"start": {{"test_start": {{"protocol": "UDP"}}}}, "end": {{"sum": {}, "sum_bidir_reverse": {}}}}}"#,
                sum(lost),
                sum(other)
            );
            row(&read(&text).unwrap().cells[0], 0).rejection.map(|rejection| rejection.figures)
        };
        assert_eq!(rejection("100", "0"), None);
        assert_eq!(rejection("179.649", "0").unwrap(), "forward-lost is 179.649 %: expected at most 100 %");
        assert_eq!(rejection("0", "100.5").unwrap(), "reverse-lost is 100.5 %: expected at most 100 %");
    }

    #[test]
    fn a_failed_test_has_the_error_of_iperf3() {
        let text = r#"{"start": {"connected": [], "version": "iperf 3.12"}, "end": {}, "error": "unable to connect"}"#;
        assert_eq!(read(text).unwrap_err().to_string(), "no result: iperf3 reports: unable to connect");
        let failure = |text: &str| row(&read(text).unwrap().cells[0], 0).failure;
        let late = REPORT.replacen("\"end\"", "\"error\": \"interrupted\", \"end\"", 1);
        assert_eq!(failure(&late).as_deref(), Some("iperf3: interrupted"));
        let error = "iperf3: error - unable to send control message: Broken pipe";
        for text in [format!("{REPORT}\n{error}\n"), format!("warning: x\n{REPORT}\nnote\n  {error}\n{REPORT}")] {
            let expected = "iperf3: unable to send control message: Broken pipe";
            assert_eq!(failure(&text).as_deref(), Some(expected), "{text}");
        }
        for text in [format!("{error}\n{REPORT}"), format!("{REPORT}\nno {error}")] {
            assert_eq!(failure(&text), None, "the error is not that of the report: {text}");
        }
    }
}
