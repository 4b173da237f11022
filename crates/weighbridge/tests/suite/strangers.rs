//! Run folders that somebody else may have written: whatever is in the place of one of their files, no reader opens
//! anything outside of the folder, waits, or fills the memory.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::lab::{CommandResult, Lab, copy_folder, without_checksums};

const QUICK: &str = "--min-time 1ms --warm-up 0 --samples 6 --retakes 0 --precision 100";

/// Every command that reads run folders; `R` is the one in question.
const READERS: [&str; 9] = [
    "summary R",
    "format R",
    "study R",
    "solve R",
    "report R --html page.html",
    "compare R GOOD",
    "pack R -o archive.tar.gz",
    "snapshot R -o snapshot.tar.gz",
    "peers report R --into report",
];

/// A lab with the run `GOOD`, which has every kind of file that does not need other hosts: a test's definition with a
/// file, artefacts, environments, results, and imported samples.
fn lab() -> Lab {
    let lab = Lab::new();
    lab.write("config/weighbridge/tests.d/script.sh", "echo figure: 97");
    let definition = "name = \"named\"\nsummary = \"a script in a file\"\nversion = 1\n\
                      command = [\"sh\", \"{definition-folder}/script.sh\"]\n";
    lab.define_figure("named", definition);
    lab.weighbridge(&format!("run steady named {QUICK} --into GOOD")).expect_code(0);
    let times = [0.101, 0.102, 0.103, 0.104, 0.105, 0.106];
    let export = serde_json::json!({ "results": [{ "command": "x", "mean": 0.1, "times": times }] });
    lab.write("hyperfine.json", &export.to_string());
    lab.weighbridge("import hyperfine.json --into GOOD").expect_code(0);
    lab.write("GOOD/inputs.json", "{}");
    lab
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            files.extend(files_below(&entry.path()))
        } else {
            files.push(entry.path())
        }
    }
    files
}

/// Runs a command, which has to end, within 2 GiB of memory, and without a panic.
#[track_caller]
fn read(lab: &Lab, line: &str, context: &str) -> CommandResult {
    for output in ["archive.tar.gz", "snapshot.tar.gz"].map(|name| lab.path(name)).iter().filter(|path| path.exists()) {
        fs::remove_file(output).unwrap();
    }
    let own = lab.command(line);
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 2500000 && exec timeout --signal=KILL 60 \"$@\"", "sh"]);
    command.arg(own.get_program()).args(own.get_args()).current_dir(own.get_current_dir().unwrap());
    command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let result = lab.run_command(&mut command);
    assert!(!result.err.contains("unexpected argument"), "{line}\n{}", result.transcript());
    assert!(
        (0..=4).contains(&result.code) && !result.err.contains("panicked"),
        "{line}, {context}\n{}",
        result.transcript()
    );
    result
}

/// Which commands read a run with something planted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Readers {
    All,
    /// A third of them, others for the next kind of file: all read files of one kind by the same code.
    Some,
}

/// Puts something in the place of a file.
type Plant = fn(&Path);

/// Puts something in the place of each kind of file of a run, one after the other. Every command that reads runs has to end,
/// and to open nothing outside of the folder.
fn plant_everywhere(kind: &str, plant: Plant, readers: Readers) {
    let lab = lab();
    let run = lab.path("R");
    // Files of one kind are read by the same code, so one of each is enough.
    let mut kinds = BTreeSet::new();
    let mut files: Vec<PathBuf> = files_below(&lab.path("GOOD"));
    files.push(lab.path("GOOD/experiment.json"));
    let files = files.iter().filter(|file| kinds.insert((file.file_name(), file.extension().is_none())));
    for (index, file) in files.enumerate() {
        let file = file.strip_prefix(lab.path("GOOD")).unwrap();
        copy_folder(&lab.path("GOOD"), &run);
        if run.join(file).exists() {
            fs::remove_file(run.join(file)).unwrap();
        }
        plant(&run.join(file));
        let (first, step) = if readers == Readers::All { (0, 1) } else { (index % 3, 3) };
        for line in READERS.iter().skip(first).step_by(step) {
            // Packing reads what it is told to pack, however large it is.
            if kind == SPARSE && (line.starts_with("pack") || line.starts_with("snapshot")) {
                continue;
            }
            let result = read(&lab, line, &format!("{} is {kind}", file.display()));
            assert!(!result.transcript().contains("root:x:0"), "{line}\n{}", result.transcript());
        }
        fs::remove_dir_all(&run).unwrap();
    }
}

const SPARSE: &str = "a sparse file of 1 TiB";

/// What is planted.
const PLANTS: [(&str, Plant); 5] = [
    ("an endless device", |path| symlink("/dev/zero", path).unwrap()),
    ("a FIFO", |path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success())),
    ("a link to a file outside", |path| symlink("/etc/passwd", path).unwrap()),
    (SPARSE, |path| File::create(path).unwrap().set_len(1 << 40).unwrap()),
    ("a folder", |path| fs::create_dir(path).unwrap()),
];

#[test]
#[ignore = "takes minutes: make test-long"]
fn soak_whatever_is_in_the_place_of_a_file_ends_every_reader() {
    for (kind, plant) in PLANTS {
        plant_everywhere(kind, plant, Readers::All);
    }
}

fn plant_everywhere_in_short(kind: &str) {
    let (kind, plant) = PLANTS.into_iter().find(|(name, _)| *name == kind).unwrap();
    plant_everywhere(kind, plant, Readers::Some);
}

#[test]
fn an_endless_device_in_the_place_of_a_file_ends() {
    plant_everywhere_in_short("an endless device");
}

#[test]
fn a_fifo_in_the_place_of_a_file_is_not_waited_for() {
    plant_everywhere_in_short("a FIFO");
}

#[test]
fn a_link_in_the_place_of_a_file_is_not_followed_outside() {
    plant_everywhere_in_short("a link to a file outside");
}

#[test]
fn a_sparse_file_in_the_place_of_a_file_takes_no_memory() {
    plant_everywhere_in_short(SPARSE);
}

#[test]
fn a_folder_in_the_place_of_a_file_is_an_error() {
    plant_everywhere_in_short("a folder");
}

#[test]
fn a_folder_that_is_a_link_to_elsewhere_is_not_read() {
    let lab = lab();
    for folder in ["Localhost", "Localhost/steady", "tests.d", "environment", "Localhost/steady/0000"] {
        let run = lab.path("R");
        copy_folder(&lab.path("GOOD"), &run);
        fs::rename(run.join(folder), lab.path("elsewhere")).unwrap();
        symlink(lab.path("elsewhere"), run.join(folder)).unwrap();
        for line in READERS {
            read(&lab, line, folder);
        }
        fs::remove_dir_all(&run).unwrap();
        fs::remove_dir_all(lab.path("elsewhere")).unwrap();
    }
}

#[test]
fn a_path_in_the_journal_that_leads_out_of_the_run_is_named_with_its_line() {
    let lab = lab();
    for path in ["/dev/zero", "../../../../../../../etc/passwd"] {
        let journal = lab.read("GOOD/journal.jsonl");
        // Without checksums, as somebody would write it by hand.
        let forged = without_checksums(&journal).replacen("\"path\":\"", &format!("\"path\":\"{path}\",\"old\":\""), 1);
        copy_folder(&lab.path("GOOD"), &lab.path("R"));
        lab.write("R/journal.jsonl", &forged);
        let line = 1 + forged[..forged.find(path).unwrap()].matches('\n').count();
        for reader in ["summary R", "report R --html page.html", "compare R GOOD", "study R"] {
            let result = read(&lab, reader, path).expect_code_of(&[1, 3]);
            result.expect_stderr(&format!("journal.jsonl:{line}: invalid path"));
        }
        // An archive of it is no better.
        read(&lab, "pack R -o archive.tar.gz", path);
        if lab.path("archive.tar.gz").exists() {
            fs::remove_dir_all(lab.path("R")).unwrap();
            read(&lab, "unpack archive.tar.gz -C R", path).expect_code(0);
            read(&lab, "summary R", path).expect_code(1).expect_stderr("invalid path");
        }
        fs::remove_dir_all(lab.path("R")).unwrap();
    }
}

#[test]
fn a_test_definition_of_a_run_includes_no_file_of_the_reader() {
    let lab = lab();
    for path in ["/etc/passwd", "/dev/zero", "../../../../../etc/passwd"] {
        copy_folder(&lab.path("GOOD"), &lab.path("R"));
        let definition = lab.read("R/tests.d/named.toml");
        lab.write("R/tests.d/named.toml", &format!("{definition}\n[[file]]\nname = \"x\"\npath = \"{path}\"\n"));
        let result = read(&lab, "format R", path);
        assert!(!result.transcript().contains("root:x:0"), "{}", result.transcript());
        fs::remove_dir_all(lab.path("R")).unwrap();
    }
}

#[test]
fn a_flipped_bit_in_the_journal_is_named_with_its_line() {
    let lab = lab();
    let mut journal = fs::read(lab.path("GOOD/journal.jsonl")).unwrap();
    let index = String::from_utf8_lossy(&journal).find("\"attempt\":0").unwrap() + 10;
    let line = 1 + journal[..index].iter().filter(|byte| **byte == b'\n').count();
    journal[index] ^= 1;
    fs::write(lab.path("GOOD/journal.jsonl"), journal).unwrap();
    let result = lab.weighbridge("summary GOOD").expect_code(1);
    result.expect_stderr(&format!("journal.jsonl:{line}: the line does not match its checksum"));
}

#[test]
fn a_journal_without_checksums_is_read_with_a_note() {
    let lab = lab();
    let journal = lab.read("GOOD/journal.jsonl");
    lab.write("GOOD/journal.jsonl", &without_checksums(&journal));
    let result = lab.weighbridge("summary GOOD").expect_code(0);
    result.expect_stdout("of the journal without a checksum, from an earlier version");
}

/// The numbers in a value, by their paths, in which every index of a list is `*`.
fn number_paths(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Number(_) => drop(found.insert(path.to_owned())),
        Value::Array(items) => items.iter().for_each(|item| number_paths(item, &format!("{path}/*"), found)),
        Value::Object(fields) => {
            fields.iter().for_each(|(name, field)| number_paths(field, &format!("{path}/{name}"), found));
        }
        _ => {}
    }
}

/// Replaces the numbers at a path.
fn replace_numbers(value: &mut Value, location: &str, path: &str, number: &Value) {
    match value {
        Value::Number(_) if location == path => *value = number.clone(),
        Value::Array(items) => {
            items.iter_mut().for_each(|item| replace_numbers(item, &format!("{location}/*"), path, number));
        }
        Value::Object(fields) => {
            fields
                .iter_mut()
                .for_each(|(name, field)| replace_numbers(field, &format!("{location}/{name}"), path, number));
        }
        _ => {}
    }
}

#[test]
fn no_number_in_the_journal_ends_a_reader() {
    let lab = lab();
    copy_folder(&lab.path("GOOD"), &lab.path("R"));
    let journal = without_checksums(&lab.read("GOOD/journal.jsonl"));
    let lines: Vec<Value> = journal.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let event = |line: &Value| line["event"].as_str().unwrap().to_owned();
    let mut paths: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in &lines {
        number_paths(line, "", paths.entry(event(line)).or_default());
    }
    assert!(paths["attempt-ended"].contains("/artefacts/*/bytes"), "{paths:?}");
    let (largest, large) = (json!(u64::MAX), json!(u32::MAX));
    for (name, path) in paths.iter().flat_map(|(name, paths)| paths.iter().map(move |path| (name, path))) {
        for number in [&largest, &large, &json!(-1), &json!(1e308)] {
            let mut changed = lines.clone();
            let concerned = changed.iter_mut().filter(|line| event(line) == *name);
            concerned.for_each(|line| replace_numbers(line, "", path, number));
            let text: String = changed.iter().map(|line| format!("{line}\n")).collect();
            lab.write("R/journal.jsonl", &text);
            read(&lab, "report R --html page.html", &format!("{name}{path} = {number}"));
        }
    }
}
