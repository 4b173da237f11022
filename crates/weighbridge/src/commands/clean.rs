//! `weighbridge clean`: removes images, agent binaries, guest logs and committed parameters from machines.

use std::io::{BufRead, IsTerminal};

use jiff::Timestamp;
use wb_agent::Worker;
use wb_fleet::cache::{self as programs, CachedProgram};
use wb_model::{Bytes, Quantity, WorkerName, pluralize};
use wb_profile::image::cache::{self as images, CachedImage};
use wb_profile::{GuestLog, GuestLogs, guest_logs, remove_guest_logs};
use wb_report::text::{Align, Table};
use wb_run::PooledWorker;
use wb_session::hosts::connect_hosts;
use wb_session::program::runtime;

use crate::cli::clean::CleanArgs;
use crate::commands::contention::{CommittedParameters, ParametersSearch};
use crate::console::{Console, message};
use crate::error::Error;
use crate::exit::Exit;
use crate::output::print_text;

/// Environment variable with the folder of guest logs, if not libvirt's default.
const GUEST_LOGS_VARIABLE: &str = "WEIGHBRIDGE_GUEST_LOGS";

const SHORT_HASH_LEN: usize = 12;

/// An item that Weighbridge left on a machine.
struct LocatedItem {
    worker: Worker,
    item: CleanupItem,
}

enum CleanupItem {
    Image(CachedImage),
    Program(CachedProgram),
    Log(GuestLog),
    Parameters(CommittedParameters),
}

pub(crate) fn clean(args: &CleanArgs, console: &Console) -> Result<Exit, Error> {
    runtime()?.block_on(async {
        let hosts = connect_hosts(&args.hosts.clone().into(), &console.events()).await?;
        let done = clean_all(args, console, &hosts.pool.workers).await;
        let absent = !hosts.pool.unreachable.is_empty();
        hosts.close().await?;
        let done = done?;
        // Items on an unreachable host are not removed.
        Ok(if absent && matches!(done, Exit::Success | Exit::NothingToDo) { Exit::Incomplete } else { done })
    })
}

async fn clean_all(args: &CleanArgs, console: &Console, members: &[PooledWorker]) -> Result<Exit, Error> {
    let mut items = Vec::new();
    for PooledWorker { worker, .. } in members {
        items.extend(find_items(worker, args, console).await?);
    }
    if items.is_empty() {
        print_text("nothing to remove\n")?;
        return Ok(Exit::NothingToDo);
    }
    print_text(&render_items(&items, console))?;
    if args.dry_run {
        return Ok(Exit::Success);
    }
    if !args.yes && !confirm_removal()? {
        return Ok(Exit::Incomplete);
    }
    let (count, size) = (items.len(), total_size(&items));
    let remaining = remove_items(items).await?;
    for (worker, name, reason) in &remaining {
        message!("not removed from `{worker}`: {name}: {reason}");
    }
    if !remaining.is_empty() {
        return Ok(Exit::Incomplete);
    }
    print_text(&format!("removed {}, {}\n", pluralize(count, "item"), format_size(size)))?;
    Ok(Exit::Success)
}

async fn find_items(worker: &Worker, args: &CleanArgs, console: &Console) -> Result<Vec<LocatedItem>, Error> {
    let all = !(args.images || args.programs || args.logs || args.parameters);
    let mut items = Vec::new();
    if all || args.programs {
        items.extend(programs::list(worker).await?.into_iter().map(CleanupItem::Program));
    }
    if all || args.images {
        items.extend(images::list(worker, None).await?.into_iter().map(CleanupItem::Image));
    }
    if all || args.logs {
        let GuestLogs { logs, unreadable } =
            guest_logs(worker, std::env::var(GUEST_LOGS_VARIABLE).ok().as_deref()).await?;
        if let Some(folder) = unreadable {
            note_unreadable(console, worker, &folder, "guest logs");
        }
        items.extend(logs.into_iter().map(CleanupItem::Log));
    }
    if all || args.parameters {
        let folder = args.dir.as_ref().map(std::path::absolute).transpose();
        let folder = folder.map_err(|source| Error::File { operation: "find", subject: "--dir".to_owned(), source })?;
        match CommittedParameters::find(worker, folder.as_deref()).await? {
            ParametersSearch::Found(parameters) => items.push(CleanupItem::Parameters(parameters)),
            ParametersSearch::Unreadable(folder) => note_unreadable(console, worker, &folder, "committed parameters"),
            ParametersSearch::Absent => {}
        }
    }
    if let Some(age) = args.older_than {
        let age = i64::try_from(age.seconds() as u64).unwrap_or(i64::MAX);
        let latest = Timestamp::now().as_second().saturating_sub(age);
        items.retain(|item| item.last_used().is_some_and(|used| used.as_second() < latest));
    }
    Ok(items.into_iter().map(|what| LocatedItem { worker: worker.clone(), item: what }).collect())
}

fn note_unreadable(console: &Console, worker: &Worker, folder: &str, items: &str) {
    if !console.quiet {
        message!("note: `{}`: {folder} cannot be read without root: {items} in it are not shown", worker.name());
    }
}

impl CleanupItem {
    fn size(&self) -> Bytes {
        match self {
            Self::Image(image) => image.size,
            Self::Program(program) => program.size,
            Self::Log(log) => log.size,
            Self::Parameters(file) => file.size,
        }
    }

    /// `None` if it is unknown.
    fn last_used(&self) -> Option<Timestamp> {
        match self {
            Self::Image(image) => image.last_used.parse().ok(),
            Self::Program(program) => to_timestamp(program.last_used_s?),
            Self::Log(log) => to_timestamp(log.written_s),
            Self::Parameters(file) => to_timestamp(file.written_s),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Image(image) => match &image.base {
                Some(base) => base.name.clone(),
                None => format!("{}, incomplete", image.name),
            },
            Self::Program(program) => program.sha256[..SHORT_HASH_LEN].to_owned(),
            Self::Log(log) => file_name(&log.path).to_owned(),
            Self::Parameters(file) => file_name(&file.path).to_owned(),
        }
    }

    fn kind_name(&self) -> &'static str {
        match self {
            Self::Image(_) => "image",
            Self::Program(_) => "program",
            Self::Log(_) => "log",
            Self::Parameters(_) => "parameters",
        }
    }

    /// Why it may not be removable, or what still uses it.
    fn note(&self) -> String {
        match self {
            Self::Image(image) => image.in_use.as_ref().map_or(String::new(), |user| format!("in use by {user}")),
            // It may be removed all the same: a running process is not affected.
            Self::Program(program) => if program.in_use { "in use by this command" } else { "" }.to_owned(),
            Self::Log(log) => if log.is_running { "guest is running" } else { "" }.to_owned(),
            Self::Parameters(file) => format!("in {}", file.path.trim_end_matches(&self.name()).trim_end_matches('/')),
        }
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn to_timestamp(seconds: u64) -> Option<Timestamp> {
    Timestamp::from_second(i64::try_from(seconds).ok()?).ok()
}

fn render_items(items: &[LocatedItem], console: &Console) -> String {
    let mut table = Table::new(&[
        ("host", Align::Left),
        ("", Align::Left),
        ("name", Align::Left),
        ("size", Align::Right),
        ("last used, UTC", Align::Left),
        ("", Align::Left),
    ]);
    for LocatedItem { worker, item: what } in items {
        let used = what.last_used().map_or("?".to_owned(), |used| used.strftime("%Y-%m-%d %H:%M").to_string());
        let (name, size, note) = (what.name(), format_size(what.size()).to_string(), what.note());
        let cells = [worker.name().as_str(), what.kind_name(), &name, &size, &used, &note];
        table.row(cells.map(Into::into).into());
    }
    let total = format!("{}, {}\n", pluralize(items.len(), "item"), format_size(total_size(items)));
    table.draw(console.stdout_style) + &total
}

fn total_size(items: &[LocatedItem]) -> Bytes {
    Bytes(items.iter().map(|item| item.item.size().0).sum())
}

fn format_size(size: Bytes) -> Quantity<'static> {
    Quantity { value: size.0 as f64, unit: "B" }
}

fn confirm_removal() -> Result<bool, Error> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        message!("cannot ask for confirmation: not a terminal; --yes removes without asking");
        return Ok(false);
    }
    crate::console::write_part!("remove these? [y/N] ");
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    read.map_err(|source| Error::File { operation: "read", subject: "standard input".to_owned(), source })?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Returns the items that remain: machine, name and reason.
async fn remove_items(items: Vec<LocatedItem>) -> Result<Vec<(WorkerName, String, String)>, Error> {
    let mut remaining = Vec::new();
    for on_worker in items.chunk_by(|one, next| one.worker.name() == next.worker.name()) {
        let worker = &on_worker[0].worker;
        let (mut image_names, mut logs, mut binaries) = (Vec::new(), Vec::new(), Vec::new());
        for LocatedItem { item, .. } in on_worker {
            match item {
                CleanupItem::Image(image) => image_names.push(image.name.clone()),
                CleanupItem::Log(log) => logs.push(log.clone()),
                CleanupItem::Program(program) => binaries.push(program.clone()),
                CleanupItem::Parameters(file) => {
                    let reason = file.remove(worker).await?;
                    remaining.extend(reason.map(|reason| (worker.name().clone(), file.path.clone(), reason)));
                }
            }
        }
        if !image_names.is_empty() {
            let in_use = images::remove(worker, image_names, None).await?;
            remaining.extend(in_use.into_iter().map(|image| (worker.name().clone(), image.name, image.why)));
        }
        if !logs.is_empty() {
            remove_guest_logs(worker, &logs).await?;
            let running = logs.into_iter().filter(|log| log.is_running);
            remaining.extend(running.map(|log| (worker.name().clone(), log.path, "guest is running".to_owned())));
        }
        // Programs go last, because the agent's program removes the images.
        if !binaries.is_empty() {
            programs::remove(worker, &binaries).await?;
        }
    }
    Ok(remaining)
}
