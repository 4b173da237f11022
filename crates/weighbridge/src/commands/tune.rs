//! `weighbridge tune`.

use std::path::{Path, PathBuf};

use serde::Serialize;
use wb_knobs::knob::Nature;
use wb_knobs::target::together;
use wb_knobs::tune::{Ambiguous, Outcome, Tuned, Wanted, apply_all, find, plan_all, require_target};
use wb_knobs::{KnobSet, knobs};
use wb_model::counted;
use wb_plan::nearest::nearest;
use wb_report::text::{Align, Cell, Style, Table, Tone};
use wb_sys::undo::{Change, Conflict, Reset, RevertError, Step, UndoError, Undone};
use wb_sys::{SysRoot, UndoLog};

use super::crew::local;
use super::remote::{Output, Word, on_hosts};
use super::{print_json, print_text, runtime};
use crate::cli::tune::{ApplyArgs, RevertArgs, StatusArgs, TuneCommand};
use crate::console::{Console, tell};
use crate::error::Error;
use crate::exit::Exit;

/// Carries out what was asked of it.
pub(crate) fn tune(command: &TuneCommand, console: &Console) -> Result<Exit, Error> {
    let (name, what, machines, json) = match command {
        TuneCommand::Status(args) => (&["status"][..], &args.what[..], &args.machines, args.json),
        TuneCommand::Apply(args) => (&["apply"][..], &args.what[..], &args.machines, args.json),
        TuneCommand::Revert(args) if args.force => (&["revert", "--force"][..], &[][..], &args.machines, args.json),
        TuneCommand::Revert(args) => (&["revert"][..], &[][..], &args.machines, args.json),
    };
    if machines.are_given() {
        // A mistake is reported once, before anything is done.
        meant(what)?;
        let words = ["tune"].iter().chain(name).copied().chain(json.then_some("--json")).map(Word::plain);
        let words: Vec<Word> = words.chain(what.iter().map(|what| word(what))).collect();
        let output = if json { Output::Json } else { Output::Text };
        return on_hosts(machines, &words, output, console);
    }
    match command {
        TuneCommand::Status(args) => status(args, console),
        TuneCommand::Apply(args) => set(args, console),
        TuneCommand::Revert(args) => revert(args, console),
    }
}

/// What is changed on a machine, and what would be.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct Status {
    /// What is changed, in order.
    changed: Vec<Change>,
    /// What the sets that were asked about would change.
    would: Vec<Tuned>,
}

/// Something that was put back, or left.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct Reverted {
    /// What was changed.
    #[serde(flatten)]
    change: Change,
    /// What became of it.
    #[serde(flatten)]
    undone: Undone,
}

fn status(args: &StatusArgs, console: &Console) -> Result<Exit, Error> {
    let sys = SysRoot::real();
    let sets = meant(&args.what)?;
    let would = plan_all(&sys, &sets);
    let exit = exit(&sets, &would);
    let status = Status { changed: UndoLog::changes(&sys)?, would: would.concat() };
    if args.json {
        print_json(&status)?;
        return Ok(exit);
    }
    let mut text = match status.changed.len() {
        0 => "nothing is changed on this machine\n".to_owned(),
        changes => format!("{} on this machine; `weighbridge tune revert` puts all back\n", counted(changes, "change")),
    };
    for change in &status.changed {
        let what = change.step.what();
        text += &console.out.indented(2, &format!("{what} was {} (by {})", before(change), change.by));
    }
    text += &match args.what.is_empty() {
        true => sets_there_are()?,
        false => format!("\n{}", drawn(&status.would, console.out)),
    };
    print_text(&text)?;
    Ok(exit)
}

/// How a command ends by what came of its sets.
fn exit(sets: &[KnobSet], tuned: &[Vec<Tuned>]) -> Exit {
    let falls_short = |(set, of_set): (&KnobSet, &Vec<Tuned>)| {
        of_set.iter().any(|it| match it.outcome {
            // What a set has for other machines too is no failure here; what was named is.
            Outcome::Unsupported { .. } => set.name.contains('='),
            // What was done in part only is a failure whoever wanted it.
            Outcome::Partial { .. } => true,
            _ => false,
        })
    };
    if sets.iter().zip(tuned).any(falls_short) { Exit::FellShort } else { Exit::Fine }
}

fn set(args: &ApplyArgs, console: &Console) -> Result<Exit, Error> {
    let sys = SysRoot::real();
    let sets = meant(&args.what)?;
    let mut log = open(&sys, &format!("tune apply {}", args.what.join(" ")))?;
    warn_of_runs();
    let tuned = apply_all(&sys, &sets, &mut log)?;
    let exit = exit(&sets, &tuned);
    let tuned = tuned.concat();
    match args.json {
        true => print_json(&tuned)?,
        false => print_text(&drawn(&tuned, console.out))?,
    }
    Ok(exit)
}

/// Takes the undo log of this machine, which is root's.
fn open(sys: &SysRoot, by: &str) -> Result<UndoLog, Error> {
    UndoLog::open(sys, by).map_err(|error| match error {
        UndoError::Io { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => Error::FellShort {
            what: "only root may change the settings of this machine".to_owned(),
            help: format!("`sudo weighbridge {by}`"),
        },
        other => other.into(),
    })
}

/// Names the runs that are measuring on this machine, whose samples a change of its settings divides.
fn warn_of_runs() {
    for run in wb_agent::announced_runs() {
        tell!(
            "warning: a run of {run} is measuring here: samples before and after this change are of different settings"
        );
    }
}

fn revert(args: &RevertArgs, console: &Console) -> Result<Exit, Error> {
    let sys = SysRoot::real();
    let conflict = if args.force { Conflict::Overwrite } else { Conflict::Keep };
    let (undone, failed) = match UndoLog::is_there(&sys)? {
        true => {
            let mut log = open(&sys, "tune revert")?;
            if log.open_changes().next().is_some() {
                warn_of_runs();
            }
            match log.revert_with(conflict) {
                Ok(undone) => (undone, None),
                Err(mut error) => (std::mem::take(&mut error.undone), Some(error)),
            }
        }
        false => (Vec::new(), None),
    };
    if undone.is_empty() && failed.is_none() {
        match args.json {
            true => print_json(&Vec::<Reverted>::new())?,
            false => print_text("nothing is changed on this machine\n")?,
        }
        return Ok(Exit::Nothing);
    }
    let reverted: Vec<Reverted> = undone.into_iter().map(|(change, undone)| Reverted { change, undone }).collect();
    if reverted.iter().any(|one| one.change.by == wb_agent::RUN) {
        remove_leftovers()?;
    }
    let is_left = reverted.iter().any(|one| matches!(one.undone, Undone::Left { .. }));
    if args.json {
        print_json(&reverted)?;
        return Ok(ended(is_left, failed, console));
    }
    let line = |one: &Reverted| {
        let (what, before) = (one.change.step.what(), before(&one.change));
        match &one.undone {
            Undone::Restored => format!("{what}: {before} again\n"),
            Undone::Left { found } => {
                format!("{what}: left at `{found}`, since somebody else changed it; it was {before}\n")
            }
            how @ Undone::Superseded { .. } => format!("{what}: {how}\n"),
            Undone::Gone => format!("{what}: gone, or put back by a reboot\n"),
        }
    };
    let mut text: String = reverted.iter().map(line).collect();
    if is_left {
        text += "note: what is left stays in the undo log; `weighbridge tune revert --force` puts it back too\n";
    }
    print_text(&text)?;
    Ok(ended(is_left, failed, console))
}

/// Removes the files, keys and control groups of runs that were killed, as each agent does at its start.
fn remove_leftovers() -> Result<(), Error> {
    runtime()?.block_on(async { local().await?.close().await.map_err(Error::from) })
}

/// How a revert ends that may have put back a part only, once that part was printed.
fn ended(is_left: bool, failed: Option<RevertError>, console: &Console) -> Exit {
    if let Some(error) = failed {
        Error::from(UndoError::from(error)).tell(console);
        return Exit::FellShort;
    }
    if is_left { Exit::FellShort } else { Exit::Fine }
}

/// What was there before a change, in a line.
fn before(change: &Change) -> String {
    match &change.before {
        Some(bytes) => format!("`{}`", String::from_utf8_lossy(bytes).trim().replace('\n', ", ")),
        None if matches!(change.step, Step::Moved { .. }) => "where they were".to_owned(),
        None => "not there".to_owned(),
    }
}

fn drawn(tuned: &[Tuned], style: Style) -> String {
    let mut table = Table::new(&[
        ("knob", Align::Left),
        ("where", Align::Left),
        ("was", Align::Left),
        ("wanted", Align::Left),
        ("", Align::Left),
    ]);
    for alike in tuned.chunk_by(is_alike) {
        let one = &alike[0];
        let targets: Vec<&str> = alike.iter().map(|one| one.target.as_str()).collect();
        let (word, tone) = match &one.outcome {
            Outcome::Already => ("is so already".to_owned(), Tone::Quiet),
            Outcome::Differs if is_action(&one.knob) => ("would be done".to_owned(), Tone::Plain),
            Outcome::Differs => ("would be changed".to_owned(), Tone::Plain),
            Outcome::Set { now } if *now == one.wanted => ("set".to_owned(), Tone::Good),
            Outcome::Set { now } => (format!("set: {now}"), Tone::Good),
            Outcome::Partial { now, reason } => (format!("set: {now}, not {} ({reason})", one.wanted), Tone::Bad),
            Outcome::Done => ("done, and not to be put back".to_owned(), Tone::Good),
            Outcome::Left { reason } => (format!("left: {reason}"), Tone::Quiet),
            Outcome::Unsupported { reason } => (format!("unsupported: {reason}"), Tone::Doubtful),
        };
        let was = one.was.as_deref().unwrap_or("");
        let target = together(&targets);
        let cells = [one.knob.as_str(), &target, was, &one.wanted];
        table.row(cells.into_iter().map(Cell::from).chain([Cell::toned(word, tone)]).collect());
    }
    table.draw(style) + &tuned.iter().map(reset).collect::<String>()
}

/// What setting a knob has reset: a line for each setting, and one for each folder of those that are gone.
fn reset(tuned: &Tuned) -> String {
    if tuned.resets.is_empty() {
        return String::new();
    }
    let (gone, changed): (Vec<&Reset>, Vec<&Reset>) = tuned.resets.iter().partition(|reset| reset.now.is_none());
    let mut text = format!("note: {} of {} has reset, until `tune revert`:\n", tuned.knob, tuned.target);
    text += &changed.into_iter().map(|reset| format!("  {reset}\n")).collect::<String>();
    let parts: Vec<(&str, &str)> = gone.into_iter().filter_map(|reset| reset.path.rsplit_once('/')).collect();
    for of_folder in parts.chunk_by(|one, next| one.0 == next.0) {
        let names: Vec<&str> = of_folder.iter().map(|(_, name)| *name).collect();
        text += &format!("  {}: gone are {}\n", of_folder[0].0, names.join(", "));
    }
    text
}

fn is_action(knob: &str) -> bool {
    find(knob).is_some_and(|knob| knob.nature() == Nature::Action)
}

/// Whether two targets of a knob can be told in one line.
fn is_alike(one: &Tuned, next: &Tuned) -> bool {
    (&one.knob, &one.was, &one.wanted, &one.outcome) == (&next.knob, &next.was, &next.wanted, &next.outcome)
}

/// A set as other machines take it: those of the user's are files of this one.
fn word(what: &str) -> Word {
    let own = sets_folder().map(|folder| folder.join(format!("{what}.toml"))).filter(|file| file.is_file());
    let is_file = !what.contains('=') && (what.contains('/') || what.ends_with(".toml"));
    let file = if is_file { Some(PathBuf::from(what)) } else { own };
    file.map_or_else(|| Word::plain(what), Word::File)
}

/// The folder with the user's sets.
fn sets_folder() -> Option<PathBuf> {
    std::env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config")))
        .map(|config| config.join("weighbridge/knobs.d"))
}

/// Every set there is, shipped and the user's.
pub(crate) fn all_sets() -> Result<Vec<KnobSet>, Error> {
    let mut sets = KnobSet::shipped();
    for path in sets_folder().map_or(Ok(Vec::new()), |folder| files_of_sets(&folder))? {
        let set = read(&path)?;
        sets.retain(|known| known.name != set.name);
        sets.push(set);
    }
    Ok(sets)
}

/// The files of sets in a folder, in the order of their names; none where there is no such folder.
fn files_of_sets(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let unreadable = |source| Error::File { path: folder.display().to_string(), source };
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(unreadable)?,
    };
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    Ok(files)
}

fn read(path: &Path) -> Result<KnobSet, Error> {
    let text =
        std::fs::read_to_string(path).map_err(|source| Error::File { path: path.display().to_string(), source })?;
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    KnobSet::parse(&name, &text).map_err(|bad| Error::Usage {
        what: format!("{}: {}", path.display(), bad.what),
        help: "a set has `summary` and, under [knobs], values by the names of knobs; docs/tune.md lists them"
            .to_owned(),
    })
}

fn sets_there_are() -> Result<String, Error> {
    let line = |set: &KnobSet| format!("  {}: {}\n", set.name, set.summary);
    Ok(format!("\nsets\n{}", all_sets()?.iter().map(line).collect::<String>()))
}

/// What was typed, as sets.
fn meant(what: &[String]) -> Result<Vec<KnobSet>, Error> {
    let sets = all_sets()?;
    let one = |text: &String| {
        if let Some((key, value)) = text.split_once('=') {
            let wanted = Wanted::new(key, value.to_owned()).map_err(|what| unknown_knob(key, what))?;
            require_target(&SysRoot::real(), &wanted).map_err(|Ambiguous { what, forms }| Error::Usage {
                what,
                help: format!("write {}", forms.join(" or ")),
            })?;
            return Ok(KnobSet { name: text.clone(), summary: String::new(), knobs: vec![wanted] });
        }
        if let Some(set) = sets.iter().find(|set| set.name == *text) {
            return Ok(set.clone());
        }
        if text.contains('/') || text.ends_with(".toml") {
            return read(Path::new(text));
        }
        let names: Vec<&str> = sets.iter().map(|set| set.name.as_str()).collect();
        let near = nearest(text, names.iter().copied());
        let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
        Err(Error::Usage {
            what: format!("there is no set `{text}`"),
            help: format!("{near}there are {}; a file ends in .toml, a knob is KNOB=VALUE", names.join(", ")),
        })
    };
    what.iter().map(one).collect()
}

fn unknown_knob(key: &str, what: String) -> Error {
    let name = key.split('@').next().unwrap_or(key);
    let near = nearest(name, knobs::all().iter().map(|knob| knob.name()));
    let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    Error::Usage { what, help: format!("{near}`weighbridge doctor --all` shows each knob and its state here") }
}
