//! Robustness against arbitrary content: a file is imported, or its error is reported, without panics or endless loops.

use proptest::prelude::*;
use wb_import::{Format, ReadError, ReadOptions, read};

use crate::lab::{ImportEnv, text};

const EXAMPLES: [(&str, &str); 9] = [
    ("pbench.json", "pbench"),
    ("fio.json", "fio"),
    ("fio-normal-json+.txt", "fio"),
    ("iperf3-udp.json", "iperf3"),
    ("hyperfine.json", "hyperfine"),
    ("google-benchmark.json", "google-benchmark"),
    ("phoronix.xml", "phoronix"),
    ("libp2p-results.yaml", "libp2p"),
    ("libp2p-results.md", "libp2p"),
];

/// Parses a text as each format, and formats the errors.
fn check_all_formats(text: &str) {
    for format in Format::all().map(Some).chain([None]) {
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
        assert_eq!(read(&text(name), ReadOptions::default()).unwrap().0.name(), format, "{name}");
    }
}

#[test]
fn a_truncated_file_is_malformed_in_its_format() {
    for (name, format) in EXAMPLES {
        let whole = text(name);
        let truncated = &whole[..whole.len() * 2 / 3];
        let error = read(truncated, ReadOptions::default()).unwrap_err();
        let is_named = matches!(&error, ReadError::Malformed { format: named, .. } if named.name() == format);
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
        for (position, length, replacement) in edits {
            let position = position.index(text.len());
            let end = (position + length).min(text.len());
            text.splice(position..end, replacement.chars());
            if text.is_empty() {
                break;
            }
        }
        check_all_formats(&text.into_iter().collect::<String>());
    }

    #[test]
    fn no_value_of_another_kind_panics(
        index in 0..EXAMPLES.len(), position: prop::sample::Index,
        value in prop_oneof![Just("null"), Just("[]"), Just("{}"), Just("\"x\""), Just("-7"), Just("1e300"), Just("true")],
    ) {
        // Every value of every field is replaced in some case.
        let text = text(EXAMPLES[index].0);
        let fields: Vec<usize> = text.match_indices(':').map(|(position, _)| position + 1).collect();
        prop_assume!(!fields.is_empty());
        let from = fields[position.index(fields.len())];
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
        for (position, byte) in edits {
            // Changed digits keep the file valid in its format.
            let places: Vec<usize> = (0..bytes.len()).filter(|position| !digits || bytes[*position].is_ascii_digit()).collect();
            let position = places[position.index(places.len())];
            bytes[position] = if digits { b'0' + byte % 10 } else { byte };
        }
        let lab = ImportEnv::new();
        let report = lab.try_import("R", &[lab.write("damaged", bytes)]).unwrap();
        if report.samples() > 0 {
            prop_assert!(!lab.study("R").cells.is_empty());
        }
    }
}
