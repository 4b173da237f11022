//! Robustness against arbitrary content: a file is imported, or its error is reported, without panics or endless loops.

use proptest::prelude::*;
use wb_import::{Format, ReadError, ReadOptions, read};

use crate::lab::{ImportEnv, text};

const EXAMPLES: [(&str, Format); 9] = [
    ("pbench.json", Format::Pbench),
    ("fio.json", Format::Fio),
    ("fio-normal-json+.txt", Format::Fio),
    ("iperf3-udp.json", Format::Iperf3),
    ("hyperfine.json", Format::Hyperfine),
    ("google-benchmark.json", Format::GoogleBenchmark),
    ("phoronix.xml", Format::Phoronix),
    ("libp2p-results.yaml", Format::Libp2p),
    ("libp2p-results.md", Format::Libp2p),
];

/// Parses a text as each format, and formats the errors.
fn check_all_formats(text: &str) {
    for format in Format::ALL.map(Some).into_iter().chain([None]) {
        match read(text, ReadOptions { format, system: None, include_incorrect: true }) {
            Ok((_, foreign)) => {
                assert!(!foreign.cells.is_empty() || !foreign.notes.is_empty());
                let mut readings = foreign.cells.iter().flat_map(|cell| cell.rows()).flat_map(|sample| sample.readings);
                assert!(readings.all(|reading| reading.value.is_finite()));
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

#[test]
fn the_format_of_each_example_is_detected() {
    for (name, format) in EXAMPLES {
        assert_eq!(read(&text(name), ReadOptions::default()).unwrap().0, format, "{name}");
    }
}

#[test]
fn a_truncated_file_is_malformed_in_its_format() {
    for (name, format) in EXAMPLES {
        let whole = text(name);
        let truncated = &whole[..whole.len() * 2 / 3];
        let error = read(truncated, ReadOptions::default()).unwrap_err();
        let is_named = matches!(&error, ReadError::Malformed { format: named, .. } if *named == format);
        assert!(is_named, "{name}: {error}");
    }
}

#[test]
fn deep_nesting_and_many_documents_terminate() {
    for open in ["[", "{\"a\":", "{\"jobs\":[", "<a>", "\n{", "{}\n", "{\"fio version\":\"\",\"jobs\":["] {
        check_all_formats(&open.repeat(20_000));
    }
    check_all_formats(&format!("<PhoronixTestSuite><Result>{}", "<Data>".repeat(20_000)));
}

#[test]
fn invalid_figures_are_ignored() {
    let odd = ["null", "\"NaN\"", "\"\"", "[]", "{}", "true", "-1", "1e308"];
    for (name, _) in EXAMPLES {
        let whole = text(name);
        for odd in odd {
            check_all_formats(
                &whole.replace("0.4111", odd).replace("9.61e+01", odd).replace("71012", odd).replace("100000.25", odd),
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_text_panics(text: String) {
        check_all_formats(&text);
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        check_all_formats(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn no_damaged_example_panics(
        index in 0..EXAMPLES.len(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), 0usize..60, "[\\x00-\\x7f]{0,6}"), 1..6),
    ) {
        let mut text: Vec<char> = text(EXAMPLES[index].0).chars().collect();
        for (at, length, replacement) in edits {
            let at = at.index(text.len());
            let end = (at + length).min(text.len());
            text.splice(at..end, replacement.chars());
            if text.is_empty() {
                break;
            }
        }
        check_all_formats(&text.into_iter().collect::<String>());
    }

    #[test]
    fn no_value_of_another_kind_panics(
        index in 0..EXAMPLES.len(), at: prop::sample::Index,
        value in prop_oneof![Just("null"), Just("[]"), Just("{}"), Just("\"x\""), Just("-7"), Just("1e300"), Just("true")],
    ) {
        // Every value of every field is replaced in some case.
        let text = text(EXAMPLES[index].0);
        let fields: Vec<usize> = text.match_indices(':').map(|(at, _)| at + 1).collect();
        let from = fields[at.index(fields.len())];
        let length = text[from..].find([',', '\n', '}', ']']).unwrap_or(0);
        check_all_formats(&format!("{} {value}{}", &text[..from], &text[from + length..]));
    }
}

proptest! {
    // Each case creates runs, which are flushed to the device.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn results_imported_from_damaged_bytes_can_be_evaluated(
        index in 0..EXAMPLES.len(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        digits: bool,
    ) {
        let mut bytes = text(EXAMPLES[index].0).into_bytes();
        for (at, byte) in edits {
            // Changed digits keep the file valid in its format.
            let places: Vec<usize> = (0..bytes.len()).filter(|at| !digits || bytes[*at].is_ascii_digit()).collect();
            let at = places[at.index(places.len())];
            bytes[at] = if digits { b'0' + byte % 10 } else { byte };
        }
        let lab = ImportEnv::new();
        let report = lab.try_import("R", &[lab.write("damaged", bytes)]).unwrap();
        if report.samples() > 0 {
            prop_assert!(!lab.study("R").cells.is_empty());
        }
    }
}
