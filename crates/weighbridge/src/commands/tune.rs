//! `weighbridge tune`: applies, shows and reverts system settings that affect measurements.

use std::path::{Path, PathBuf};

use serde::Serialize;
use wb_agent::Worker;
use wb_diagnostics::{help_with_suggestion, suggest};
use wb_knobs::knob::KnobKind;
use wb_knobs::target::join_names;
use wb_knobs::tune::{
    AmbiguousTarget, KnobOutcome, KnobResult, KnobSetting, apply_all, find, plan_all, require_target,
};
use wb_knobs::{KnobSet, knobs};
use wb_model::pluralize;
use wb_report::text::{Align, Style, Table, TableCell, Tone};
use wb_session::SessionError;
use wb_session::knob_sets::{all_sets, read_set, user_set_file};
use wb_session::program::{current_program, runtime};
use wb_session::remote::RemoteArgument;
use wb_session::worker_program::worker_program;
use wb_sys::undo::{Change, ConflictPolicy, ManagedResource, ResetSetting, RevertError, RevertOutcome, UndoError};
use wb_sys::{SysRoot, UndoLog};

use super::remote::{OutputMode, run_on_hosts};
use crate::cli::OnHosts;
use crate::cli::tune::{TuneCommand, TuneHere};
use crate::console::{Console, message};
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{print_json, print_text};

pub(crate) fn tune(command: &TuneCommand, console: &Console) -> Result<Exit, Error> {
    let (name, arguments, machines, json) = match command {
        TuneCommand::Status(OnHosts { args, hosts }) => (&["status"][..], &args.what[..], hosts, args.json),
        TuneCommand::Apply(OnHosts { args, hosts }) => (&["apply"][..], &args.what[..], hosts, args.json),
        TuneCommand::Revert(OnHosts { args, hosts }) if args.force => {
            (&["revert", "--force"][..], &[][..], hosts, args.json)
        }
        TuneCommand::Revert(OnHosts { args, hosts }) => (&["revert"][..], &[][..], hosts, args.json),
    };
    if machines.is_given() {
        // Report a mistake once, before anything is done.
        parse_sets(arguments)?;
        let words = ["tune"].iter().chain(name).copied().chain(json.then_some("--json")).map(RemoteArgument::plain);
        let words: Vec<RemoteArgument> =
            words.chain(arguments.iter().map(|argument| remote_argument(argument))).collect();
        let output = if json { OutputMode::Json } else { OutputMode::Text };
        return run_on_hosts(machines, &words, output, console);
    }
    match command {
        TuneCommand::Status(OnHosts { args, .. }) => status(&args.what, args.json, console),
        TuneCommand::Apply(OnHosts { args, .. }) => apply(&args.what, args.json, console),
        TuneCommand::Revert(OnHosts { args, .. }) => revert(args.force, args.json, worker_program, console),
    }
}

/// Runs a subcommand of `tune` on this machine, with this program as its agent.
pub(super) fn tune_here(command: &TuneHere, console: &Console) -> Result<Exit, Error> {
    match command {
        TuneHere::Status(args) => status(&args.what, args.json, console),
        TuneHere::Apply(args) => apply(&args.what, args.json, console),
        TuneHere::Revert(args) => revert(args.force, args.json, current_program, console),
    }
}

/// Changed settings of a machine, and the changes that sets would make.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct TuneStatus {
    /// The changed settings, in order of change.
    changed: Vec<Change>,
    /// The changes that the requested sets would make.
    planned: Vec<KnobResult>,
}

/// A change that was reverted or left.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct RevertedChange {
    /// The change.
    #[serde(flatten)]
    change: Change,
    /// The result of reverting it.
    #[serde(flatten)]
    undone: RevertOutcome,
}

fn status(what: &[String], json: bool, console: &Console) -> Result<Exit, Error> {
    let sys = SysRoot::real();
    let sets = parse_sets(what)?;
    let would = plan_all(&sys, &sets);
    let exit = tune_exit(&sets, &would);
    let status = TuneStatus { changed: UndoLog::changes(&sys)?, planned: would.concat() };
    if json {
        print_json(&status)?;
        return Ok(exit);
    }
    let mut text = match status.changed.len() {
        0 => "nothing is changed on this machine\n".to_owned(),
        changes => {
            format!("{} on this machine; `weighbridge tune revert` reverts all\n", pluralize(changes, "change"))
        }
    };
    for change in &status.changed {
        let what = change.resource.description();
        text += &console.stdout_style.indent(2, &format!("{what} was {} (by {})", format_before(change), change.owner));
    }
    text += &if what.is_empty() {
        render_set_list()?
    } else {
        format!("\n{}", render_tuned(&status.planned, console.stdout_style))
    };
    print_text(&text)?;
    Ok(exit)
}

fn tune_exit(sets: &[KnobSet], tuned: &[Vec<KnobResult>]) -> Exit {
    let falls_short = |(set, of_set): (&KnobSet, &Vec<KnobResult>)| {
        of_set.iter().any(|it| match it.outcome {
            // Sets may contain knobs for other machines, so only knobs named by the user count as failures.
            KnobOutcome::Unsupported { .. } => set.name.contains('='),
            // A partial change is always a failure.
            KnobOutcome::PartiallySet { .. } => true,
            _ => false,
        })
    };
    if sets.iter().zip(tuned).any(falls_short) { Exit::Incomplete } else { Exit::Success }
}

fn apply(what: &[String], json: bool, console: &Console) -> Result<Exit, Error> {
    let sys = SysRoot::real();
    let sets = parse_sets(what)?;
    let mut log = open_undo_log(&sys, &format!("tune apply {}", what.join(" ")))?;
    warn_running();
    let tuned = apply_all(&sys, &sets, &mut log)?;
    let exit = tune_exit(&sets, &tuned);
    let tuned = tuned.concat();
    if json {
        print_json(&tuned)?
    } else {
        print_text(&render_tuned(&tuned, console.stdout_style))?
    }
    Ok(exit)
}

/// Opens the undo log of this machine, which requires root.
fn open_undo_log(sys: &SysRoot, by: &str) -> Result<UndoLog, Error> {
    UndoLog::open(sys, by).map_err(|error| match error {
        UndoError::Io { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => Error::Incomplete {
            what: "changing system settings requires root".to_owned(),
            help: format!("`sudo weighbridge {by}`"),
        },
        other => other.into(),
    })
}

/// Warns about runs that are measuring on this machine, because a change of settings affects their samples.
fn warn_running() {
    for run in wb_agent::announced_runs() {
        message!(
            "warning: a run of {run} is measuring here: its samples before and after this change have different settings"
        );
    }
}

fn revert(
    force: bool,
    json: bool,
    agent: impl Fn() -> Result<PathBuf, SessionError>,
    console: &Console,
) -> Result<Exit, Error> {
    let sys = SysRoot::real();
    let conflict = if force { ConflictPolicy::Overwrite } else { ConflictPolicy::Keep };
    let (undone, failed) = if UndoLog::exists(&sys)? {
        let mut log = open_undo_log(&sys, "tune revert")?;
        if log.open_changes().next().is_some() {
            warn_running();
        }
        match log.revert_with(conflict) {
            Ok(undone) => (undone, None),
            Err(mut error) => (std::mem::take(&mut error.undone), Some(error)),
        }
    } else {
        (Vec::new(), None)
    };
    if undone.is_empty() && failed.is_none() {
        if json {
            print_json(&Vec::<RevertedChange>::new())?
        } else {
            print_text("nothing is changed on this machine\n")?
        }
        return Ok(Exit::NothingToDo);
    }
    let reverted: Vec<RevertedChange> =
        undone.into_iter().map(|(change, undone)| RevertedChange { change, undone }).collect();
    if reverted.iter().any(|reverted| reverted.change.owner == wb_agent::RUN) {
        // The settings are restored: without an agent the next one removes the rest.
        if let Err(error) = agent().map_err(Error::from).and_then(|agent| remove_leftovers(&agent)) {
            error.warn();
        }
    }
    let is_left = reverted.iter().any(|reverted| matches!(reverted.undone, RevertOutcome::Conflict { .. }));
    if json {
        print_json(&reverted)?;
        return Ok(revert_exit(is_left, failed, console));
    }
    let line = |reverted_change: &RevertedChange| {
        let (what, before) = (reverted_change.change.resource.description(), format_before(&reverted_change.change));
        match &reverted_change.undone {
            RevertOutcome::Restored => format!("{what}: restored ({before})\n"),
            RevertOutcome::Conflict { found } => {
                format!("{what}: left at `{found}`, since something else changed it; it was {before}\n")
            }
            superseded @ RevertOutcome::Superseded { .. } => format!("{what}: {superseded}\n"),
            RevertOutcome::Gone => format!("{what}: gone, or restored by a reboot\n"),
        }
    };
    let mut text: String = reverted.iter().map(line).collect();
    if is_left {
        text += "note: values left stay in the undo log; `weighbridge tune revert --force` restores them too\n";
    }
    print_text(&text)?;
    Ok(revert_exit(is_left, failed, console))
}

/// Removes the files, keys and control groups of killed runs, as each agent does when it starts.
fn remove_leftovers(agent: &Path) -> Result<(), Error> {
    runtime()?.block_on(async { Worker::local(agent).await?.close().await.map_err(Error::from) })
}

/// The exit status of a revert that may be partial, after its results were printed.
fn revert_exit(is_left: bool, failed: Option<RevertError>, console: &Console) -> Exit {
    if let Some(error) = failed {
        Error::from(UndoError::from(error)).report(console);
        return Exit::Incomplete;
    }
    if is_left { Exit::Incomplete } else { Exit::Success }
}

fn format_before(change: &Change) -> String {
    match &change.before {
        Some(bytes) => format!("`{}`", String::from_utf8_lossy(bytes).trim().replace('\n', ", ")),
        None if matches!(change.resource, ManagedResource::MoveThreads { .. }) => "where they were".to_owned(),
        None => "absent".to_owned(),
    }
}

fn render_tuned(tuned: &[KnobResult], style: Style) -> String {
    let mut table = Table::new(&[
        ("knob", Align::Left),
        ("target", Align::Left),
        ("was", Align::Left),
        ("value", Align::Left),
        ("", Align::Left),
    ]);
    for group in tuned.chunk_by(has_same_outcome) {
        let first = &group[0];
        let targets: Vec<&str> = group.iter().map(|knob| knob.target.as_str()).collect();
        let (word, tone) = match &first.outcome {
            KnobOutcome::Unchanged => ("already set".to_owned(), Tone::Quiet),
            KnobOutcome::Pending if is_action(&first.knob) => ("would be done".to_owned(), Tone::Plain),
            KnobOutcome::Pending => ("would be changed".to_owned(), Tone::Plain),
            KnobOutcome::Set { now } if *now == first.requested => ("set".to_owned(), Tone::Good),
            KnobOutcome::Set { now } => (format!("set: {now}"), Tone::Good),
            KnobOutcome::PartiallySet { now, reason } => {
                (format!("set: {now}, not {} ({reason})", first.requested), Tone::Bad)
            }
            KnobOutcome::Done => ("done, cannot be reverted".to_owned(), Tone::Good),
            KnobOutcome::Skipped { reason } => (format!("left: {reason}"), Tone::Quiet),
            KnobOutcome::Unsupported { reason } => (format!("unsupported: {reason}"), Tone::Doubtful),
        };
        let was = first.before.as_deref().unwrap_or("");
        let target = join_names(&targets);
        let cells = [first.knob.as_str(), &target, was, &first.requested];
        table.row(cells.into_iter().map(TableCell::from).chain([TableCell::with_tone(word, tone)]).collect());
    }
    table.draw(style) + &tuned.iter().map(render_resets).collect::<String>()
}

/// Lists what setting a knob has reset: one line per setting, and one per folder for settings that are gone.
fn render_resets(tuned: &KnobResult) -> String {
    if tuned.resets.is_empty() {
        return String::new();
    }
    let (gone, changed): (Vec<&ResetSetting>, Vec<&ResetSetting>) =
        tuned.resets.iter().partition(|reset| reset.after.is_none());
    let mut text =
        format!("note: setting {} of {} has reset other settings, until `tune revert`:\n", tuned.knob, tuned.target);
    text += &changed.into_iter().map(|reset| format!("  {reset}\n")).collect::<String>();
    let parts: Vec<(&str, &str)> = gone.into_iter().filter_map(|reset| reset.path.rsplit_once('/')).collect();
    for folder in parts.chunk_by(|part, next| part.0 == next.0) {
        let names: Vec<&str> = folder.iter().map(|(_, name)| *name).collect();
        text += &format!("  {}: gone: {}\n", folder[0].0, names.join(", "));
    }
    text
}

fn is_action(knob: &str) -> bool {
    find(knob).is_some_and(|knob| knob.nature() == KnobKind::Action)
}

/// Whether two targets of a knob can share a line.
fn has_same_outcome(knob: &KnobResult, next: &KnobResult) -> bool {
    (&knob.knob, &knob.before, &knob.requested, &knob.outcome)
        == (&next.knob, &next.before, &next.requested, &next.outcome)
}

/// An argument for other machines; the user's sets are uploaded as files.
fn remote_argument(argument: &str) -> RemoteArgument {
    let is_file = !argument.contains('=') && (argument.contains('/') || argument.ends_with(".toml"));
    let file = if is_file { Some(PathBuf::from(argument)) } else { user_set_file(argument) };
    file.map_or_else(|| RemoteArgument::plain(argument), RemoteArgument::File)
}

fn render_set_list() -> Result<String, Error> {
    let line = |set: &KnobSet| format!("  {}: {}\n", set.name, set.summary);
    Ok(format!("\navailable sets\n{}", all_sets()?.iter().map(line).collect::<String>()))
}

fn parse_sets(arguments: &[String]) -> Result<Vec<KnobSet>, Error> {
    let sets = all_sets()?;
    let resolve = |text: &String| {
        if let Some((key, value)) = text.split_once('=') {
            let setting = KnobSetting::new(key, value.to_owned()).map_err(|what| unknown_knob_error(key, what))?;
            require_target(&SysRoot::real(), &setting).map_err(|AmbiguousTarget { problem: what, forms }| {
                Error::Usage { what, help: format!("write {}", forms.join(" or ")) }
            })?;
            return Ok(KnobSet { name: text.clone(), summary: String::new(), knobs: vec![setting] });
        }
        if let Some(set) = sets.iter().find(|set| set.name == *text) {
            return Ok(set.clone());
        }
        if text.contains('/') || text.ends_with(".toml") {
            return Ok(read_set(Path::new(text))?);
        }
        if knobs::all().iter().any(|knob| Some(knob.name()) == text.split('@').next()) {
            return Err(Error::Usage {
                what: format!("missing value of knob `{text}`"),
                help: format!("write `{text}=VALUE`"),
            });
        }
        let names: Vec<&str> = sets.iter().map(|set| set.name.as_str()).collect();
        let known = format!("expected one of {}; a file *.toml, or KNOB=VALUE", names.join(", "));
        Err(Error::Usage {
            what: format!("unknown knob set `{text}`"),
            help: help_with_suggestion(suggest(text, &names).as_ref(), &known),
        })
    };
    arguments.iter().map(resolve).collect()
}

fn unknown_knob_error(key: &str, what: String) -> Error {
    let name = key.split('@').next().unwrap_or(key);
    let suggestion = suggest(name, knobs::all().iter().map(|knob| knob.name()));
    let help = "`weighbridge doctor --all` shows each knob and its state here";
    Error::Usage { what, help: help_with_suggestion(suggestion.as_ref(), help) }
}
