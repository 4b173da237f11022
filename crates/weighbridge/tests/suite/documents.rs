//! README, CONTRIBUTING and `docs`: their commands are accepted and run, their links lead somewhere, and what they name exists.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::lab::Lab;

/// Commands that are shown and only parsed here, by their beginning, with the reason.
const NOT_RUN: [(&str, &str); 40] = [
    ("compare RUN --by", "needs several workers, ids and endpoints; compare_within_run.rs runs it"),
    ("run himeno fio:rw=[read,randwrite],bs=4k,runtime=5s", "measures for minutes"),
    ("net serve", "serves until it is ended; first_use.rs runs it"),
    ("net run", "needs a server on another machine"),
    ("net sweep HOST", "needs a server on another machine"),
    ("net rr", "needs a server on another machine"),
    ("net iperf3", "needs a server on another machine"),
    ("net uperf", "needs a server on another machine"),
    ("import", "imports files of other programs, which are not part of the documents"),
    ("strip B1", "needs results in run-perf's layout"),
    ("compare OLD NEW --allow-different", "names parameters of another test"),
    ("compare RUN RUN --map", "needs results of guests"),
    ("compare old new", "compares what the command before it imports"),
    ("ab", "measures for minutes; variants.rs runs it"),
    ("calibrate", "measures for minutes; variants.rs runs it"),
    ("bisect", "needs a repository with revisions; bisect.rs runs it"),
    ("run fio:rw=read himeno --hosts", "needs other machines"),
    ("run uperf:server=a", "needs other machines"),
    ("run fio:rw=read --profiles", "boots a guest"),
    ("run himeno --hosts", "needs other machines"),
    ("run --plan quick --inventory", "needs other machines"),
    ("run fio:on=a", "needs other machines"),
    ("run net:profile=two-hosts.xml", "needs other machines"),
    ("run --profiles", "changes this machine"),
    ("run --plan nightly", "needs other machines"),
    ("run …", "is no complete command"),
    ("run fio-libblkio", "measures for minutes"),
    ("run fio:knobs", "changes this machine"),
    ("tune apply", "changes this machine; the tests of `tune` run it"),
    ("tune revert", "changes this machine; the tests of `tune` run it"),
    ("tune status", "reads the undo log of this machine"),
    ("hashd", "loads this machine until it is ended; hashd.rs runs it"),
    ("-r", "contention benches load a device; contention.rs runs them"),
    ("clean", "shows what this machine has; clean.rs runs it"),
    ("peers run", "needs endpoints; peers_run.rs runs it"),
    ("peers list peers.toml", "the file is the reader's"),
    ("peers list impls.yaml", "the file is the reader's"),
    ("peers list images.yaml", "the file is the reader's"),
    ("profile image", "builds an image of an operating system"),
    ("compare-perf", "compares folders of run-perf; run_perf.rs runs it"),
];

/// Test specifications that are not planned, with the reason.
const NOT_PLANNED: [(&str, &str); 6] = [
    ("uperf:server=a", "names hosts of an inventory"),
    ("fio:on=a", "names hosts of an inventory"),
    ("redis:on=clients", "names hosts of an inventory"),
    ("net:profile=two-hosts.xml", "names hosts of an inventory"),
    ("fio:knobs.", "names disks of the reader's machine"),
    ("fio:blok-sizes=4k", "shows how a mistake is reported"),
];

/// A command that is shown with its error.
const MISTAKE: &str = "plan fio:blok-sizes=4k";

/// Programs that are shown beside this one.
const OTHER_PROGRAMS: [&str; 11] =
    ["cd", "echo", "./rerun", "for", "ln", "done", "export", "cargo", ".ci/run", "compare-perf", "run-perf"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The documents: path below the repository, and text.
fn documents() -> Vec<(String, String)> {
    let root = root();
    let docs =
        fs::read_dir(root.join("docs")).unwrap().flatten().map(|entry| format!("docs/{}", entry.file_name().display()));
    let mut names: Vec<String> = docs.filter(|name| name.ends_with(".md")).collect();
    names.extend(
        ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "endpoints/README.md"].map(str::to_owned),
    );
    names.sort();
    names.into_iter().map(|name| (name.clone(), fs::read_to_string(root.join(&name)).unwrap())).collect()
}

/// A command line of a document.
#[derive(Debug)]
struct Shown {
    place: String,
    words: Vec<String>,
}

/// The command lines in blocks of shell, and those with a prompt in other blocks. Comments and `sudo` are removed, and lists
/// of commands are separated.
fn commands() -> Vec<Shown> {
    let mut found = Vec::new();
    for (name, text) in documents() {
        let mut block: Option<&str> = None;
        let mut continued = String::new();
        for (number, line) in text.lines().enumerate() {
            if let Some(kind) = line.trim_start().strip_prefix("```") {
                block = if block.is_some() { None } else { Some(kind) };
                continue;
            }
            let line = match block {
                Some("sh") => line,
                Some("text") if line.starts_with("$ ") => &line[2..],
                _ => continue,
            };
            let line = line.split(" #").next().unwrap_or_default().trim();
            if let Some(begin) = line.strip_suffix('\\') {
                continued.push_str(begin);
                continue;
            }
            let line = std::mem::take(&mut continued) + line;
            for command in line.split(" && ").filter(|command| !command.is_empty() && !command.starts_with('#')) {
                let words = shell_words::split(command).unwrap_or_else(|error| panic!("{name}: {command}: {error}"));
                let is_prefix = |word: &String| {
                    word == "sudo"
                        || word
                            .split_once('=')
                            .is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
                };
                let words: Vec<String> = words.into_iter().skip_while(is_prefix).collect();
                found.push(Shown { place: format!("{name}:{}", number + 1), words });
            }
        }
    }
    assert!(found.len() > 100, "{}", found.len());
    found
}

/// Those of this program, without its name.
fn own_commands() -> Vec<Shown> {
    let own = commands().into_iter().filter(|shown| shown.words.first().is_some_and(|word| word == "weighbridge"));
    own.map(|shown| Shown { words: shown.words[1..].to_vec(), ..shown }).collect()
}

#[test]
fn every_other_program_that_is_shown_is_known() {
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    for Shown { place, words } in commands() {
        match &words[..] {
            [program, target, ..] if program == "make" => {
                assert!(makefile.contains(&format!("\n{target}: ")), "{place}: make {target}");
            }
            [program, ..] => assert!(
                program == "weighbridge" || OTHER_PROGRAMS.contains(&program.as_str()),
                "{place}: unknown program `{program}`"
            ),
            [] => {}
        }
    }
    assert!(root().join(".ci/run").exists());
}

#[test]
fn every_command_that_is_shown_is_accepted() {
    let lab = Lab::new();
    for Shown { place, words } in own_commands() {
        // `…` stands for arguments of the reader's. The help is printed if everything before its option is accepted.
        let fill = |word: &String| if word == "ADDRESS" { "127.0.0.1".to_owned() } else { word.clone() };
        let given: Vec<String> = words.iter().filter(|word| *word != "…").map(fill).collect();
        let end = given.iter().position(|word| *word == "--").unwrap_or(given.len());
        let mut command = lab.command("");
        command.args(&given[..end]).arg("--help");
        let ran = lab.run_command(&mut command);
        assert_eq!(ran.code, 0, "{place}: weighbridge {}\n{}", words.join(" "), ran.transcript());
    }
}

#[test]
fn every_test_that_is_shown_has_the_parameters_that_are_shown() {
    let lab = Lab::new();
    let tests = lab.weighbridge("list --json").json();
    let names: BTreeSet<String> =
        tests.as_array().unwrap().iter().map(|test| test["name"].as_str().unwrap().to_owned()).collect();
    let mut planned = 0;
    for Shown { place, words } in own_commands() {
        if !["run", "plan", "ab", "calibrate"].contains(&words[0].as_str()) {
            continue;
        }
        let spec = words[1..].iter().find(|word| names.contains(word.split(':').next().unwrap_or_default()));
        let Some(spec) = spec.filter(|spec| !NOT_PLANNED.iter().any(|(begin, _)| spec.starts_with(begin))) else {
            continue;
        };
        // Variants of parameters are parameters of the test.
        let variants = words.iter().filter_map(|word| Some(word.split_once("param:")?.1));
        let join = |spec: &str, param: &str| format!("{spec}{}{param}", if spec.contains(':') { "," } else { ":" });
        let specs = std::iter::once(spec.clone()).chain(variants.map(|param| join(spec, param)));
        for spec in specs {
            let mut command = lab.command("plan --no-worker");
            let ran = lab.run_command(command.arg(&spec));
            assert!([0, 3].contains(&ran.code), "{place}: {spec}: {}", ran.transcript());
            planned += 1;
        }
    }
    assert!(planned > 10, "{planned}");
}

#[test]
fn cells_are_named_by_parameters_that_exist() {
    let lab = Lab::new();
    let mut parameters: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for test in lab.weighbridge("list --json").json().as_array().unwrap() {
        let params = test["params"].as_array().unwrap().iter().map(|param| param["name"].as_str().unwrap().to_owned());
        parameters.insert(test["name"].as_str().unwrap().to_owned(), params.collect());
    }
    let mut checked = 0;
    for (name, text) in documents() {
        // `TEST/0000:PARAM=VALUE,…`
        for (position, _) in text.match_indices("/0000:") {
            let test = text[..position].rsplit(|c: char| !c.is_alphanumeric() && c != '-').next().unwrap_or_default();
            let case = text[position + "/0000:".len()..].split(['/', '`', ' ', '\n']).next().unwrap_or_default();
            // The axes of `peers` are those of a matrix.
            let is_checked = case.contains('=') && test != "peers";
            let Some(known) = parameters.get(test).filter(|_| is_checked) else { continue };
            for part in case.split(',') {
                let param = part.split('=').next().unwrap_or_default();
                assert!(known.contains(param), "{name}: `{test}/0000:{case}`: {test} has no parameter `{param}`");
                checked += 1;
            }
        }
    }
    assert!(checked > 0);
}

#[test]
fn commands_that_are_shown_run() {
    let lab = Lab::new();
    // The folders that the documents name.
    for run in ["OLD", "NEW", "B1", "B2", "B3", "B4", "B9", "BUILD", "RUN"] {
        lab.weighbridge(&format!("run steady --samples 6 --warm-up 0 -q --into {run}")).expect_code_of(&[0, 3]);
    }
    for run in 1..=8 {
        lab.weighbridge(&format!("run steady --samples 6 --warm-up 0 -q --into R{run}")).expect_code_of(&[0, 3]);
    }
    lab.weighbridge("run himeno:grid=XS,threads=1 --samples 1 --warm-up 0 --min-time 10ms -q --into my-run")
        .expect_code_of(&[0, 3]);
    std::os::unix::fs::symlink(root().join("examples"), lab.path("examples")).unwrap();
    let (mut ran, mut failed) = (BTreeSet::new(), Vec::new());
    for Shown { place, words } in own_commands() {
        let line = words.join(" ");
        let ends_word = |rest: &str| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '-');
        let is_excluded = |(begin, _): &(&str, &str)| line.strip_prefix(begin).is_some_and(ends_word);
        if NOT_RUN.iter().any(is_excluded) || line.contains('…') || !ran.insert(line.clone()) {
            continue;
        }
        if line == MISTAKE {
            // The output is shown too.
            let ran = lab.run_command(lab.command("").args(&words)).expect_code(1);
            assert!(documents().iter().any(|(_, text)| text.contains(&ran.err)), "{place}: {}", ran.transcript());
            continue;
        }
        println!("{place}: {line}");
        let folder = if line.contains("my-run-snapshot.tar.gz") { "." } else { "" };
        let mut command = lab.command("");
        let result = lab.run_command(command.args(&words).current_dir(lab.path(folder)));
        // Regressions, incomplete cells and nothing selected are answers: `--select '*fio*'` matches none of this run.
        if ![0, 2, 3, 4].contains(&result.code) {
            failed.push(format!("{place}: weighbridge {line}\n{}", result.transcript()));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(ran.len() > 30, "{ran:#?}");
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let documents: BTreeMap<String, String> = documents().into_iter().collect();
    let anchors = |text: &str| -> BTreeSet<String> {
        let headings =
            text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
        let anchor = |heading: &str| {
            let kept = heading
                .to_lowercase()
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
                .collect::<String>();
            kept.replace(' ', "-")
        };
        headings.map(anchor).collect()
    };
    let mut dead = Vec::new();
    for (name, text) in &documents {
        for (position, _) in text.match_indices("](") {
            let target = text[position + 2..].split(')').next().unwrap_or_default();
            if target.contains("://") || target.is_empty() {
                continue;
            }
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = match path {
                "" => root().join(name),
                path => root().join(name).parent().unwrap().join(path),
            };
            let Ok(file) = file.canonicalize() else {
                dead.push(format!("{name}: {target}"));
                continue;
            };
            let key = file.strip_prefix(root()).unwrap().display().to_string();
            let has_anchor = documents.get(&key).is_none_or(|text| anchors(text).contains(anchor));
            if !anchor.is_empty() && !has_anchor {
                dead.push(format!("{name}: {target}"));
            }
        }
    }
    assert!(dead.is_empty(), "{dead:#?}");
}

/// Names that CONTRIBUTING uses for what its reader adds.
const PLACEHOLDERS: [&str; 4] = ["NAME", "FORMAT", "SUBJECT", "*"];

#[test]
fn everything_that_contributing_names_exists() {
    let text = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let sources = sources(&root().join("crates"));
    for name in text.split('`').skip(1).step_by(2) {
        let is_placeholder = PLACEHOLDERS.iter().any(|placeholder| name.contains(placeholder));
        let is_path = ["crates/", "docs/", "scripts/", "tests.d/"].iter().any(|folder| name.starts_with(folder));
        if is_path && !is_placeholder {
            assert!(root().join(name).exists(), "CONTRIBUTING.md: {name}");
        }
        // Constants, types and functions.
        let is_identifier = name.len() > 3 && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        let is_of_code = name.contains('_') || name.starts_with(char::is_uppercase);
        if is_identifier && is_of_code && !is_placeholder {
            let is_defined = sources.iter().any(|text| has_word(text, name));
            assert!(is_defined, "CONTRIBUTING.md: `{name}` does not exist");
        }
    }
}

fn has_word(text: &str, word: &str) -> bool {
    let is_end = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
    let mut found = text.match_indices(word);
    found.any(|(position, _)| {
        is_end(text[..position].chars().next_back()) && is_end(text[position + word.len()..].chars().next())
    })
}

/// The texts of all sources, this file aside.
fn sources(folder: &Path) -> Vec<String> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            texts.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("suite/documents.rs") {
            texts.push(fs::read_to_string(path).unwrap());
        }
    }
    texts
}
