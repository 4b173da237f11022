//! The matrices of libp2p's suites, beside the names that their own generators write.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use wb_peers::selection::SelectIgnore;
use wb_peers::{Decision, Matrix, SelectionFlags, read_matrix, select};

/// The folder with the suites' files, if it is beside the repository.
fn data() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/libp2p");
    let found = folder.join("impls.yaml").exists();
    if !found {
        wb_test_skip::skip!("libp2p's matrices are not beside the repository (../shared/data/libp2p)");
    }
    found.then_some(folder)
}

fn matrix(folder: &Path, file: &str) -> Matrix {
    read_matrix(&folder.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Parses flags as a user writes them: `test-select=~rust baseline-ignore=!~go full`.
fn flags(text: &str) -> SelectionFlags {
    let mut flags = SelectionFlags::default();
    for word in text.split(';').filter(|word| !word.is_empty()) {
        if word == "full" {
            flags.full_matrix = true;
            continue;
        }
        let (name, pattern) = word.split_once('=').expect("NAME=FILTER");
        let (subject, action) = name.rsplit_once('-').expect("SUBJECT-ACTION");
        let filter = match subject {
            "test" => &mut flags.test,
            "baseline" => &mut flags.baseline,
            "impl" => &mut flags.implementation,
            axis => {
                flags.axes.push((axis.to_owned(), SelectIgnore::default()));
                &mut flags.axes.last_mut().expect("just added").1
            }
        };
        let target = if action == "select" { &mut filter.select } else { &mut filter.ignore };
        *target = Some(pattern.to_owned());
    }
    flags
}

fn names(matrix: &Matrix, text: &str) -> Vec<String> {
    let decisions = select(matrix, &flags(text)).unwrap_or_else(|error| panic!("{text}: {error}"));
    decisions.iter().filter(|decision| matches!(decision, Decision::In(_))).map(Decision::name).collect()
}

fn counts(matrix: &Matrix, text: &str) -> (usize, usize) {
    let decisions = select(matrix, &flags(text)).unwrap_or_else(|error| panic!("{text}: {error}"));
    let selected: Vec<_> = decisions.iter().filter(|decision| matches!(decision, Decision::In(_))).collect();
    let baselines = selected.iter().filter(|decision| decision.is_baseline()).count();
    (baselines, selected.len() - baselines)
}

fn lines(folder: &Path, file: &str) -> Vec<String> {
    std::fs::read_to_string(folder.join(file)).expect(file).lines().map(str::to_owned).collect()
}

#[test]
fn names_of_test_plans_are_in_its_order() {
    let Some(folder) = data() else { return };
    let matrix = matrix(&folder, "impls.yaml");
    for (file, flags) in [
        ("names-all.txt", ""),
        ("names.txt", "test-ignore=~failing"),
        ("names-select-rust-ignore-not-rust.txt", "test-select=~rust;test-ignore=!~rust"),
        ("names-rust.txt", "test-select=~rust"),
        ("names-go.txt", "test-select=~go"),
    ] {
        assert_eq!(names(&matrix, flags), lines(&folder, file), "{file}");
    }
}

#[test]
fn filters_of_test_plans_select_as_many() {
    let Some(folder) = data() else { return };
    let matrix = matrix(&folder, "impls.yaml");
    for (flags, expected) in [
        ("", (3, 77)),
        ("test-select=rust", (3, 33)),
        ("test-select=rust-v0.56", (3, 33)),
        ("test-select=~dotnet", (3, 33)),
        ("test-select=~js", (3, 31)),
        ("test-select=rust-v0.56;test-ignore=!rust-v0.56", (3, 5)),
        ("test-select=~impls;test-ignore=~failing", (3, 20)),
        ("test-select=!~rust", (3, 72)),
        ("test-select=!rust", (3, 72)),
        ("test-select=tcp", (3, 0)),
        ("test-select=quic-v1", (3, 0)),
        ("test-select=RUST", (3, 0)),
        ("test-select=rust-v0.56 x go", (3, 0)),
        ("test-select=tcp|rust", (3, 33)),
        ("test-select=~rust|~go;test-ignore=!~rust|!~go", (3, 0)),
        ("test-ignore=~rust", (3, 44)),
        ("test-ignore=!~go", (3, 6)),
        ("test-ignore=quic-v1", (3, 68)),
        ("test-ignore=mplex|tls", (3, 29)),
        ("test-ignore=rust-v0.56 x", (3, 58)),
        ("test-select=~go;test-ignore=!~go;baseline-select=iperf", (1, 6)),
        ("test-select=rust-v0.56;baseline-select=go-v0.45", (0, 33)),
        ("test-select=~rust;test-ignore=!~rust;baseline-select=~go;baseline-ignore=!~go", (0, 5)),
        ("test-select=~rust;baseline-ignore=.*", (3, 33)),
        ("baseline-select=iperf|https", (2, 77)),
        ("baseline-ignore=quic-go", (2, 77)),
        ("baseline-select=quic", (1, 77)),
        ("baseline-ignore=~failing", (3, 77)),
        ("baseline-select=~baselines", (3, 77)),
        ("baseline-ignore=~baselines", (0, 77)),
        // As in the later of the two commits.
        ("baseline-select=!iperf", (2, 77)),
        ("baseline-ignore=!~go", (0, 77)),
        // The suites select everything where a filter expands to nothing.
        ("baseline-select=!~baselines", (0, 77)),
    ] {
        assert_eq!(counts(&matrix, flags), expected, "{flags}");
    }
}

#[test]
fn names_of_unified_testing_are_the_same() {
    let Some(folder) = data() else { return };
    let matrix = matrix(&folder, "images.yaml");
    for (file, flags) in [("names-images.txt", ""), ("names-images-full.txt", "full")] {
        let (own, expected) = (names(&matrix, flags), lines(&folder, file));
        assert_eq!(own.len(), expected.len(), "{file}");
        assert_eq!(own.iter().collect::<BTreeSet<_>>(), expected.iter().collect::<BTreeSet<_>>(), "{file}");
    }
}

#[test]
fn filters_of_unified_testing_select_as_many() {
    let Some(folder) = data() else { return };
    let matrix = matrix(&folder, "images.yaml");
    for (flags, own, full) in [
        ("", Some((8, 38)), Some((38, 170))),
        ("test-ignore=~failing", Some((8, 36)), Some((38, 156))),
        ("test-ignore=~failing;baseline-select=~default_baselines", Some((4, 36)), Some((6, 156))),
        ("impl-select=~rust", Some((8, 9)), Some((38, 9))),
        ("impl-select=~rust|~go", None, Some((38, 25))),
        ("impl-ignore=~rust", None, Some((38, 107))),
        ("test-select=~rust", None, Some((0, 63))),
        ("transport-select=tcp;security-select=tls", None, Some((38, 41))),
        ("transport-select=tcp;security-select=noise;muxer-select=yamux", Some((8, 7)), None),
        ("security-select=noise", None, Some((38, 121))),
        ("baseline-ignore=~baselines", Some((0, 38)), None),
        ("baseline-select=quiche;impl-ignore=~images", None, Some((4, 0))),
        // The suite selects everything where a filter expands to nothing.
        ("impl-select=~none", Some((8, 0)), None),
    ] {
        if let Some(own) = own {
            assert_eq!(counts(&matrix, flags), own, "{flags}");
        }
        if let Some(full) = full {
            assert_eq!(counts(&matrix, &format!("{flags};full")), full, "{flags} full");
        }
    }
}
