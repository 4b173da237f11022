//! `weighbridge tune`.

use std::path::{Path, PathBuf};

use serde::Serialize;
use wb_knobs::knob::KnobKind;
use wb_knobs::target::join_names;
use wb_knobs::tune::{
    AmbiguousTarget, KnobOutcome, KnobResult, KnobSetting, apply_all, find, plan_all, require_target,
};
use wb_knobs::{KnobSet, knobs};
use wb_model::pluralize;
use wb_plan::suggestion::suggest;
use wb_report::text::{Align, Style, Table, TableCell, Tone};
use wb_sys::undo::{Change, ConflictPolicy, ResetSetting, RevertError, RevertOutcome, Step, UndoError};
use wb_sys::{SysRoot, UndoLog};

use super::hosts::local_worker;
use super::remote::{OutputMode, RemoteArgument, run_on_hosts};
use super::{print_json, print_text, runtime};
use crate::cli::tune::{TuneApplyArgs, TuneCommand, TuneRevertArgs, TuneStatusArgs};
use crate::console::{Console, tell};
use crate::error::Error;
use crate::exit::Exit;

/// Carries out what was asked of it.
pub(crate) fn tune(command: &TuneCommand, console: &Console) -> Result<Exit, Error> {
    let (name, what, machines, json) = match command {
        TuneCommand::Status(args) => (&["status"][..], &args.what[..], &args.hosts, args.json),
        TuneCommand::Apply(args) => (&["apply"][..], &args.what[..], &args.hosts, args.json),
        TuneCommand::Revert(args) if args.force => (&["revert", "--force"][..], &[][..], &args.hosts, args.json),
        TuneCommand::Revert(args) => (&["revert"][..], &[][..], &args.hosts, args.json),
    };
    if machines.is_given() {
        // A mistake is reported once, before anything is done.
        parse_sets(what)?;
        let words = ["tune"].iter().chain(name).copied().chain(json.then_some("--json")).map(RemoteArgument::plain);
        let words: Vec<RemoteArgument> = words.chain(what.iter().map(|what| remote_argument(what))).collect();
        let output = if json { OutputMode::Json } else { OutputMode::Text };
        return run_on_hosts(machines, &words, output, console);
    }
    match command {
        TuneCommand::Status(args) => status(args, console),
        TuneCommand::Apply(args) => apply(args, console),
        TuneCommand::Revert(args) => revert(args, console),
    }
}

/// What is changed on a machine, and what would be.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct TuneStatus {
    /// What is changed, in order.
    changed: Vec<Change>,
    /// What the sets that were asked about would change.
    planned: Vec<KnobResult>,
}

/// Something that was put back, or left.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct RevertedChange {
    /// What was changed.
    #[serde(flatten)]
    change: Change,
    /// What became of it.
    #[serde(flatten)]
    undone: RevertOutcome,
}

fn status(args: &TuneStatusArgs, console: &Console) -> Result<Exit, Error> {
    let sys = SysRoot::real();
    let sets = parse_sets(&args.what)?;
    let would = plan_all(&sys, &sets);
    let exit = tune_exit(&sets, &would);
    let status = TuneStatus { changed: UndoLog::changes(&sys)?, planned: would.concat() };
    if args.json {
        print_json(&status)?;
        return Ok(exit);
    }
    let mut text = match status.changed.len() {
        0 => "nothing is changed on this machine\n".to_owned(),
        changes => {
            format!("{} on this machine; `weighbridge tune revert` puts all back\n", pluralize(changes, "change"))
        }
    };
    for change in &status.changed {
        let what = change.step.description();
        text += &console.stdout_style.indent(2, &format!("{what} was {} (by {})", format_before(change), change.owner));
    }
    text += &match args.what.is_empty() {
        true => render_set_list()?,
        false => format!("\n{}", render_tuned(&status.planned, console.stdout_style)),
    };
    print_text(&text)?;
    Ok(exit)
}

/// How a command ends by what came of its sets.
fn tune_exit(sets: &[KnobSet], tuned: &[Vec<KnobResult>]) -> Exit {
    let falls_short = |(set, of_set): (&KnobSet, &Vec<KnobResult>)| {
        of_set.iter().any(|it| match it.outcome {
            // What a set has for other machines too is no failure here; what was named is.
            KnobOutcome::Unsupported { .. } => set.name.contains('='),
            // What was done in part only is a failure whoever wanted it.
            KnobOutcome::Partial { .. } => true,
            _ => false,
        })
    };
    if sets.iter().zip(tuned).any(falls_short) { Exit::Incomplete } else { Exit::Success }
}

fn apply(args: &TuneApplyArgs, console: &Console) -> Result<Exit, Error> {
    let sys = SysRoot::real();
    let sets = parse_sets(&args.what)?;
    let mut log = open_undo_log(&sys, &format!("tune apply {}", args.what.join(" ")))?;
    warn_running();
    let tuned = apply_all(&sys, &sets, &mut log)?;
    let exit = tune_exit(&sets, &tuned);
    let tuned = tuned.concat();
    match args.json {
        true => print_json(&tuned)?,
        false => print_text(&render_tuned(&tuned, console.stdout_style))?,
    }
    Ok(exit)
}

/// Takes the undo log of this machine, which is root's.
fn open_undo_log(sys: &SysRoot, by: &str) -> Result<UndoLog, Error> {
    UndoLog::open(sys, by).map_err(|error| match error {
        UndoError::Io { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => Error::Incomplete {
            what: "only root may change the settings of this machine".to_owned(),
            help: format!("`sudo weighbridge {by}`"),
        },
        other => other.into(),
    })
}

/// Names the runs that are measuring on this machine, whose samples a change of its settings divides.
fn warn_running() {
    for run in wb_agent::announced_runs() {
        tell!(
            "warning: a run of {run} is measuring here: samples before and after this change are of different settings"
        );
    }
}

fn revert(args: &TuneRevertArgs, console: &Console) -> Result<Exit, Error> {
    let sys = SysRoot::real();
    let conflict = if args.force { ConflictPolicy::Overwrite } else { ConflictPolicy::Keep };
    let (undone, failed) = match UndoLog::exists(&sys)? {
        true => {
            let mut log = open_undo_log(&sys, "tune revert")?;
            if log.open_changes().next().is_some() {
                warn_running();
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
            true => print_json(&Vec::<RevertedChange>::new())?,
            false => print_text("nothing is changed on this machine\n")?,
        }
        return Ok(Exit::NothingToDo);
    }
    let reverted: Vec<RevertedChange> =
        undone.into_iter().map(|(change, undone)| RevertedChange { change, undone }).collect();
    if reverted.iter().any(|one| one.change.owner == wb_agent::RUN) {
        remove_leftovers()?;
    }
    let is_left = reverted.iter().any(|one| matches!(one.undone, RevertOutcome::Conflict { .. }));
    if args.json {
        print_json(&reverted)?;
        return Ok(revert_exit(is_left, failed, console));
    }
    let line = |one: &RevertedChange| {
        let (what, before) = (one.change.step.description(), format_before(&one.change));
        match &one.undone {
            RevertOutcome::Restored => format!("{what}: {before} again\n"),
            RevertOutcome::Conflict { found } => {
                format!("{what}: left at `{found}`, since somebody else changed it; it was {before}\n")
            }
            how @ RevertOutcome::Superseded { .. } => format!("{what}: {how}\n"),
            RevertOutcome::Gone => format!("{what}: gone, or put back by a reboot\n"),
        }
    };
    let mut text: String = reverted.iter().map(line).collect();
    if is_left {
        text += "note: what is left stays in the undo log; `weighbridge tune revert --force` puts it back too\n";
    }
    print_text(&text)?;
    Ok(revert_exit(is_left, failed, console))
}

/// Removes the files, keys and control groups of runs that were killed, as each agent does at its start.
fn remove_leftovers() -> Result<(), Error> {
    runtime()?.block_on(async { local_worker().await?.close().await.map_err(Error::from) })
}

/// How a revert ends that may have put back a part only, once that part was printed.
fn revert_exit(is_left: bool, failed: Option<RevertError>, console: &Console) -> Exit {
    if let Some(error) = failed {
        Error::from(UndoError::from(error)).report(console);
        return Exit::Incomplete;
    }
    if is_left { Exit::Incomplete } else { Exit::Success }
}

/// What was there before a change, in a line.
fn format_before(change: &Change) -> String {
    match &change.before {
        Some(bytes) => format!("`{}`", String::from_utf8_lossy(bytes).trim().replace('\n', ", ")),
        None if matches!(change.step, Step::MoveThreads { .. }) => "where they were".to_owned(),
        None => "not there".to_owned(),
    }
}

fn render_tuned(tuned: &[KnobResult], style: Style) -> String {
    let mut table = Table::new(&[
        ("knob", Align::Left),
        ("where", Align::Left),
        ("was", Align::Left),
        ("wanted", Align::Left),
        ("", Align::Left),
    ]);
    for alike in tuned.chunk_by(has_same_outcome) {
        let one = &alike[0];
        let targets: Vec<&str> = alike.iter().map(|one| one.target.as_str()).collect();
        let (word, tone) = match &one.outcome {
            KnobOutcome::Unchanged => ("is so already".to_owned(), Tone::Quiet),
            KnobOutcome::Differs if is_action(&one.knob) => ("would be done".to_owned(), Tone::Plain),
            KnobOutcome::Differs => ("would be changed".to_owned(), Tone::Plain),
            KnobOutcome::Set { now } if *now == one.requested => ("set".to_owned(), Tone::Good),
            KnobOutcome::Set { now } => (format!("set: {now}"), Tone::Good),
            KnobOutcome::Partial { now, reason } => {
                (format!("set: {now}, not {} ({reason})", one.requested), Tone::Bad)
            }
            KnobOutcome::Done => ("done, and not to be put back".to_owned(), Tone::Good),
            KnobOutcome::Skipped { reason } => (format!("left: {reason}"), Tone::Quiet),
            KnobOutcome::Unsupported { reason } => (format!("unsupported: {reason}"), Tone::Doubtful),
        };
        let was = one.before.as_deref().unwrap_or("");
        let target = join_names(&targets);
        let cells = [one.knob.as_str(), &target, was, &one.requested];
        table.row(cells.into_iter().map(TableCell::from).chain([TableCell::toned(word, tone)]).collect());
    }
    table.draw(style) + &tuned.iter().map(render_resets).collect::<String>()
}

/// What setting a knob has reset: a line for each setting, and one for each folder of those that are gone.
fn render_resets(tuned: &KnobResult) -> String {
    if tuned.resets.is_empty() {
        return String::new();
    }
    let (gone, changed): (Vec<&ResetSetting>, Vec<&ResetSetting>) =
        tuned.resets.iter().partition(|reset| reset.after.is_none());
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
    find(knob).is_some_and(|knob| knob.nature() == KnobKind::Action)
}

/// Whether two targets of a knob can be told in one line.
fn has_same_outcome(one: &KnobResult, next: &KnobResult) -> bool {
    (&one.knob, &one.before, &one.requested, &one.outcome) == (&next.knob, &next.before, &next.requested, &next.outcome)
}

/// A set as other machines take it: those of the user's are files of this one.
fn remote_argument(what: &str) -> RemoteArgument {
    let own = sets_folder().map(|folder| folder.join(format!("{what}.toml"))).filter(|file| file.is_file());
    let is_file = !what.contains('=') && (what.contains('/') || what.ends_with(".toml"));
    let file = if is_file { Some(PathBuf::from(what)) } else { own };
    file.map_or_else(|| RemoteArgument::plain(what), RemoteArgument::File)
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
    let mut sets = KnobSet::builtin();
    for path in sets_folder().map_or(Ok(Vec::new()), |folder| set_files(&folder))? {
        let set = read_set(&path)?;
        sets.retain(|known| known.name != set.name);
        sets.push(set);
    }
    Ok(sets)
}

/// The files of sets in a folder, in the order of their names; none where there is no such folder.
fn set_files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
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

fn read_set(path: &Path) -> Result<KnobSet, Error> {
    let text =
        std::fs::read_to_string(path).map_err(|source| Error::File { path: path.display().to_string(), source })?;
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    KnobSet::parse(&name, &text).map_err(|bad| Error::Usage {
        what: format!("{}: {}", path.display(), bad.what),
        help: "a set has `summary` and, under [knobs], values by the names of knobs; docs/tune.md lists them"
            .to_owned(),
    })
}

fn render_set_list() -> Result<String, Error> {
    let line = |set: &KnobSet| format!("  {}: {}\n", set.name, set.summary);
    Ok(format!("\nsets\n{}", all_sets()?.iter().map(line).collect::<String>()))
}

/// What was typed, as sets.
fn parse_sets(what: &[String]) -> Result<Vec<KnobSet>, Error> {
    let sets = all_sets()?;
    let one = |text: &String| {
        if let Some((key, value)) = text.split_once('=') {
            let wanted = KnobSetting::new(key, value.to_owned()).map_err(|what| unknown_knob_error(key, what))?;
            require_target(&SysRoot::real(), &wanted).map_err(|AmbiguousTarget { what, forms }| Error::Usage {
                what,
                help: format!("write {}", forms.join(" or ")),
            })?;
            return Ok(KnobSet { name: text.clone(), summary: String::new(), knobs: vec![wanted] });
        }
        if let Some(set) = sets.iter().find(|set| set.name == *text) {
            return Ok(set.clone());
        }
        if text.contains('/') || text.ends_with(".toml") {
            return read_set(Path::new(text));
        }
        let names: Vec<&str> = sets.iter().map(|set| set.name.as_str()).collect();
        let near = suggest(text, names.iter().copied());
        let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
        Err(Error::Usage {
            what: format!("there is no set `{text}`"),
            help: format!("{near}there are {}; a file ends in .toml, a knob is KNOB=VALUE", names.join(", ")),
        })
    };
    what.iter().map(one).collect()
}

fn unknown_knob_error(key: &str, what: String) -> Error {
    let name = key.split('@').next().unwrap_or(key);
    let near = suggest(name, knobs::all().iter().map(|knob| knob.name()));
    let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    Error::Usage { what, help: format!("{near}`weighbridge doctor --all` shows each knob and its state here") }
}
