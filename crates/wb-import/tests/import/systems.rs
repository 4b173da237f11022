//! Results of several systems: a cell has samples of one.

use std::path::PathBuf;

use wb_model::ProfileName;

use crate::lab::ImportEnv;

/// A `composite.xml` with one run on each of these systems; their names and processors.
fn composite(systems: &[(&str, &str)]) -> String {
    let system = |(name, processor): &(&str, &str)| {
        format!("<System><Identifier>{name}</Identifier><Hardware>Processor: {processor}</Hardware></System>")
    };
    let entry = |(name, _): &(&str, &str)| {
        format!("<Entry><Identifier>{name}</Identifier><Value>5</Value><RawString>5.1:4.9</RawString></Entry>")
    };
    let (described, entries): (String, String) =
        (systems.iter().map(system).collect(), systems.iter().map(entry).collect());
    format!(
        "<PhoronixTestSuite>{described}<Result><Identifier>pts/x-1.0.0</Identifier><Scale>Seconds</Scale>\
         <Proportion>LIB</Proportion><DisplayFormat>BAR_GRAPH</DisplayFormat><Data>{entries}</Data></Result>\
         </PhoronixTestSuite>"
    )
}

fn benchmark(host: &str) -> String {
    format!(
        r#"{{"context": {{"host_name": "{host}", "executable": "b"}}, "benchmarks": [
            {{"name": "BM", "run_name": "BM", "run_type": "iteration", "real_time": 2.0, "time_unit": "ns"}}]}}"#
    )
}

/// The profile of each cell of a run, with its number of samples and its system.
fn profiles(lab: &ImportEnv, run: &str) -> Vec<String> {
    let describe = |cell: &wb_results::CellResult| {
        let system = cell.provenance.get("system").or(cell.provenance.get("host")).map_or("", String::as_str);
        format!("{} {} {system}", cell.id.profile, cell.attempts.len())
    };
    let mut all: Vec<String> = lab.study(run).cells.iter().map(describe).collect();
    all.sort();
    all
}

fn import(lab: &ImportEnv, run: &str, texts: &[String]) -> String {
    let write = |(index, text): (usize, &String)| lab.write(&format!("{run}-files/{index}"), text);
    let paths: Vec<PathBuf> = texts.iter().enumerate().map(write).collect();
    let report = lab.try_import(run, &paths).unwrap();
    report.failed_files().map(|(_, reason)| reason.to_string()).collect()
}

#[test]
fn no_cell_has_samples_of_two_systems() {
    let lab = ImportEnv::new();
    let (one, other) = (composite(&[("A/1", "X")]), composite(&[("A 1", "X")]));
    let cases = [
        ("two", vec![one.clone(), other.clone()], vec!["A-1 2 A 1", "Localhost 2 A/1"]),
        ("again", vec![one.clone(), other.clone(), one.clone()], vec!["A-1 2 A 1", "Localhost 2 A/1"]),
        ("both", vec![composite(&[("A/1", "X"), ("A 1", "X")])], vec!["A-1 2 A/1", "A-1-2 2 A 1"]),
        ("more", vec![one.clone(), composite(&[("A/1", "X"), ("B", "X")])], vec!["B 2 B", "Localhost 4 A/1"]),
        ("hardware", vec![composite(&[("A", "X")]), composite(&[("A", "Y")])], vec!["A 2 A", "Localhost 2 A"]),
        ("hosts", vec![benchmark("h1"), benchmark("h2")], vec!["Localhost 1 h1", "h2 1 h2"]),
        ("formats", vec![benchmark("h1"), one], vec!["Localhost 1 h1", "Localhost 2 A/1"]),
    ];
    for (run, texts, expected) in cases {
        assert_eq!(import(&lab, run, &texts), "", "{run}");
        assert_eq!(profiles(&lab, run), expected, "{run}");
    }
}

#[test]
fn a_system_keeps_its_profile_in_later_imports() {
    let lab = ImportEnv::new();
    for host in ["h1", "h2", "h1", "h2"] {
        // Another file each time.
        let text = benchmark(host) + &" ".repeat(samples(&lab, "R"));
        assert_eq!(import(&lab, "R", &[text]), "");
    }
    assert_eq!(profiles(&lab, "R"), ["Localhost 2 h1", "h2 2 h2"]);
}

fn samples(lab: &ImportEnv, run: &str) -> usize {
    if lab.path(run).exists() { lab.study(run).cells.iter().map(|cell| cell.attempts.len()).sum() } else { 0 }
}

#[test]
fn one_profile_is_refused_for_two_systems() {
    let mut lab = ImportEnv::new();
    lab.names.profile = Some(ProfileName::new("mine").unwrap());
    let message = import(&lab, "R", &[benchmark("h1"), benchmark("h2")]);
    assert!(
        message.starts_with("several systems, but one profile requested") && message.ends_with("h1, h2"),
        "{message}"
    );
    assert_eq!(profiles(&lab, "R"), ["mine 1 h1"]);
}

#[test]
fn machines_have_the_names_that_files_have_for_their_systems() {
    let lab = ImportEnv::new();
    let one = composite(&[("old kernel", "X"), ("new", "Y")]);
    assert_eq!(import(&lab, "R", &[one, composite(&[("third", "Z")]), benchmark("h1")]), "");
    let run = wb_record::RunFolder::open(&lab.path("R")).unwrap().run_file().unwrap();
    let names: Vec<(&str, &str)> =
        run.invocations[0].facts.iter().map(|(name, facts)| (name.as_str(), facts.cpu_model.as_str())).collect();
    assert_eq!(names, [("h1", ""), ("new", "Y"), ("old-kernel", "X"), ("third", "Z")]);
    let properties = lab.study("R").run.properties;
    assert!(properties.contains(&("new".to_owned(), "CPU Y".to_owned())), "{properties:?}");
}
