//! `weighbridge clean`.

use std::io::{BufRead, IsTerminal};

use jiff::Timestamp;
use wb_agent::Worker;
use wb_fleet::cache::{self as programs, CachedProgram};
use wb_model::{Bytes, Quantity, WorkerName, pluralize};
use wb_profile::image::cache::{self as images, CachedImage};
use wb_profile::{GuestLog, GuestLogs, guest_logs, remove_guest_logs};
use wb_report::text::{Align, Table};
use wb_run::PooledWorker;

use super::hosts::{close, connect_hosts};
use super::{print_text, runtime};
use crate::cli::clean::CleanArgs;
use crate::console::{Console, tell};
use crate::error::Error;
use crate::exit::Exit;

/// By this variable of the environment the logs of guests are elsewhere than libvirt keeps them by itself.
const GUEST_LOGS_VARIABLE: &str = "WEIGHBRIDGE_GUEST_LOGS";

/// How many digits of a program's hash are shown.
const SHORT_HASH_LEN: usize = 12;

/// Something of ours on a machine.
struct LocatedItem {
    worker: Worker,
    item: CleanupItem,
}

enum CleanupItem {
    Image(CachedImage),
    Program(CachedProgram),
    Log(GuestLog),
}

/// Shows what is there, asks, and removes it.
pub(crate) fn clean(args: &CleanArgs, console: &Console) -> Result<Exit, Error> {
    runtime()?.block_on(async {
        let hosts = connect_hosts(&args.hosts.clone().into(), console).await?;
        let done = clean_all(args, console, &hosts.pool.workers).await;
        let absent = !hosts.pool.unreachable.is_empty();
        close(hosts).await?;
        let done = done?;
        // What lies on a host to which there is no way is left.
        Ok(if absent && matches!(done, Exit::Success | Exit::NothingToDo) { Exit::Incomplete } else { done })
    })
}

async fn clean_all(args: &CleanArgs, console: &Console, members: &[PooledWorker]) -> Result<Exit, Error> {
    let mut things = Vec::new();
    for PooledWorker { worker, .. } in members {
        things.extend(find_items(worker, args, console).await?);
    }
    if things.is_empty() {
        print_text("nothing is there\n")?;
        return Ok(Exit::NothingToDo);
    }
    print_text(&render_items(&things, console))?;
    if args.dry_run {
        return Ok(Exit::Success);
    }
    if !args.yes && !confirm_removal()? {
        return Ok(Exit::Incomplete);
    }
    let (count, size) = (things.len(), total_size(&things));
    let left = remove_items(things).await?;
    for (worker, name, why) in &left {
        tell!("left on `{worker}`: {name}: {why}");
    }
    if !left.is_empty() {
        return Ok(Exit::Incomplete);
    }
    print_text(&format!("removed {}, {}\n", pluralize(count, "thing"), format_size(size)))?;
    Ok(Exit::Success)
}

/// What is asked for of what lies on a machine.
async fn find_items(worker: &Worker, args: &CleanArgs, console: &Console) -> Result<Vec<LocatedItem>, Error> {
    let all = !(args.images || args.programs || args.logs);
    let mut things = Vec::new();
    if all || args.programs {
        things.extend(programs::list(worker).await?.into_iter().map(CleanupItem::Program));
    }
    if all || args.images {
        things.extend(images::list(worker, None).await?.into_iter().map(CleanupItem::Image));
    }
    if all || args.logs {
        let GuestLogs { logs, unreadable } =
            guest_logs(worker, std::env::var(GUEST_LOGS_VARIABLE).ok().as_deref()).await?;
        if let Some(folder) = unreadable.filter(|_| !console.quiet) {
            let name = worker.name();
            tell!(
                "note: `{name}`: {folder} cannot be read without root: logs of guests that may be there are not shown"
            );
        }
        things.extend(logs.into_iter().map(CleanupItem::Log));
    }
    if let Some(age) = args.older_than {
        let age = i64::try_from(age.seconds() as u64).unwrap_or(i64::MAX);
        let latest = Timestamp::now().as_second().saturating_sub(age);
        things.retain(|thing| thing.last_used().is_some_and(|used| used.as_second() < latest));
    }
    Ok(things.into_iter().map(|what| LocatedItem { worker: worker.clone(), item: what }).collect())
}

impl CleanupItem {
    fn size(&self) -> Bytes {
        match self {
            Self::Image(image) => image.size,
            Self::Program(program) => program.size,
            Self::Log(log) => log.size,
        }
    }

    /// When it was last used, where that is known.
    fn last_used(&self) -> Option<Timestamp> {
        match self {
            Self::Image(image) => image.last_used.parse().ok(),
            Self::Program(program) => to_timestamp(program.last_used_s?),
            Self::Log(log) => to_timestamp(log.written_s),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Image(image) => match &image.base {
                Some(base) => base.name.clone(),
                None => format!("{}, not whole", image.name),
            },
            Self::Program(program) => program.sha256[..SHORT_HASH_LEN].to_owned(),
            Self::Log(log) => log.path.rsplit('/').next().unwrap_or(&log.path).to_owned(),
        }
    }

    fn kind_name(&self) -> &'static str {
        match self {
            Self::Image(_) => "image",
            Self::Program(_) => "program",
            Self::Log(_) => "log",
        }
    }

    /// What is to be known of it before it goes.
    fn note(&self) -> String {
        match self {
            Self::Image(image) => image.in_use.as_ref().map_or(String::new(), |user| format!("in use by {user}")),
            // It may go all the same: what runs goes on to its end.
            Self::Program(program) => if program.in_use { "runs now, for this" } else { "" }.to_owned(),
            Self::Log(log) => if log.is_running { "its guest runs" } else { "" }.to_owned(),
        }
    }
}

fn to_timestamp(seconds: u64) -> Option<Timestamp> {
    Timestamp::from_second(i64::try_from(seconds).ok()?).ok()
}

fn render_items(things: &[LocatedItem], console: &Console) -> String {
    let mut table = Table::new(&[
        ("on", Align::Left),
        ("", Align::Left),
        ("what", Align::Left),
        ("size", Align::Right),
        ("last used, UTC", Align::Left),
        ("", Align::Left),
    ]);
    for LocatedItem { worker, item: what } in things {
        let used = what.last_used().map_or("?".to_owned(), |used| used.strftime("%Y-%m-%d %H:%M").to_string());
        let (name, size, note) = (what.name(), format_size(what.size()).to_string(), what.note());
        let cells = [worker.name().as_str(), what.kind_name(), &name, &size, &used, &note];
        table.row(cells.map(Into::into).into());
    }
    let total = format!("{}, {}\n", pluralize(things.len(), "thing"), format_size(total_size(things)));
    table.draw(console.stdout_style) + &total
}

fn total_size(things: &[LocatedItem]) -> Bytes {
    Bytes(things.iter().map(|thing| thing.item.size().0).sum())
}

fn format_size(size: Bytes) -> Quantity<'static> {
    Quantity { value: size.0 as f64, unit: "B" }
}

/// Asks, where there is somebody to answer.
fn confirm_removal() -> Result<bool, Error> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        tell!("nothing is removed, for there is nobody to ask: --yes removes it");
        return Ok(false);
    }
    crate::console::tell_part!("remove it? [y/N] ");
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    read.map_err(|source| Error::File { path: "standard input".to_owned(), source })?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Removes all of it; what is left, where, and why.
async fn remove_items(things: Vec<LocatedItem>) -> Result<Vec<(WorkerName, String, String)>, Error> {
    let mut left = Vec::new();
    for of_one in things.chunk_by(|one, next| one.worker.name() == next.worker.name()) {
        let worker = &of_one[0].worker;
        let entries = || {
            of_one.iter().filter_map(|thing| match &thing.item {
                CleanupItem::Image(entry) => Some(entry),
                CleanupItem::Program(_) | CleanupItem::Log(_) => None,
            })
        };
        if entries().next().is_some() {
            let names = entries().map(|entry| entry.name.clone()).collect();
            let kept = images::remove(worker, names, None).await?;
            left.extend(kept.into_iter().map(|kept| (worker.name().clone(), kept.name, kept.why)));
        }
        let logs: Vec<GuestLog> = of_one
            .iter()
            .filter_map(|thing| match &thing.item {
                CleanupItem::Log(log) => Some(log.clone()),
                _ => None,
            })
            .collect();
        if !logs.is_empty() {
            remove_guest_logs(worker, &logs).await?;
            let running = logs.into_iter().filter(|log| log.is_running);
            left.extend(running.map(|log| (worker.name().clone(), log.path, "its guest runs".to_owned())));
        }
        let gone = of_one.iter().filter_map(|thing| match &thing.item {
            CleanupItem::Program(program) => Some(program.clone()),
            _ => None,
        });
        // Last: images are removed by the program.
        let gone: Vec<CachedProgram> = gone.collect();
        if !gone.is_empty() {
            programs::remove(worker, &gone).await?;
        }
    }
    Ok(left)
}
