//! `weighbridge plan`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use wb_model::roles::all_workers;
use wb_model::{Bytes, ProfileName, Quantity, WorkerName, pluralize};
use wb_plan::{Cell, Plan, TimeEstimate};
use wb_profile::profile::VirtType;
use wb_profile::{NamedProfile, PlannedGuest as Guest, Preflight, ProfileErrorKind};
use wb_report::text::{Align, Table};
use wb_run::WorkerPool;

use super::hosts::{
    ConnectedHosts, HostPreparation, close, connect_hosts, exclude_changed_hosts, preflight_hosts, requested_profiles,
};
use super::selection::{MeasureRequest, resolve_request};
use super::{format_duration, format_estimate, group_by_reason, print_json, print_text, publishing, runtime};
use crate::cli::{HostFlags, PlanArgs};
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;

/// What a run would do, and on which guests.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PlanPreview {
    #[serde(flatten)]
    plan: Plan,
    /// The guests that would be made, by profile and host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    guests: Vec<HostGuests>,
}

/// The guests that a profile makes on a host.
#[derive(Debug, Serialize, JsonSchema)]
struct HostGuests {
    profile: ProfileName,
    host: WorkerName,
    guests: Vec<Guest>,
    /// Why software would run them, although that was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    emulation_reason: Option<String>,
}

/// Shows what a run would do, and finds out what of it cannot be done.
pub(crate) fn plan(args: &PlanArgs, console: &Console) -> Result<Exit, Error> {
    let asked = resolve_request(&args.measurement)?;
    let publish = args.publish.as_deref().or(asked.publish.as_deref());
    if let Some(words) = publish.and_then(wb_plan::tools::split_words) {
        publishing::require_program(&words)?;
    }
    // Programs and scripts are looked for as a run does; nothing of it is run.
    HostPreparation::from_flags(&args.preparation)?;
    let profiles = requested_profiles(&args.measurement.hosts)?;
    let planned = match args.no_worker {
        true => {
            let plans = profiles.iter().map(|named| asked.plan(None, named)).collect::<Result<_, _>>()?;
            PlanPreview { plan: merge_plans(plans), guests: Vec::new() }
        }
        false => runtime()?.block_on(async {
            let mut hosts = connect_hosts(&args.measurement.hosts, console).await?;
            exclude_changed_hosts(&mut hosts).await?;
            let planned = plan_on_hosts(&asked, &profiles, &args.measurement.hosts, &mut hosts).await;
            close(hosts).await?;
            planned
        })?,
    };
    if args.json {
        print_json(&planned)?
    } else {
        print_text(&render_plan(&planned, console))?
    }
    let falls_short = planned.plan.cells.iter().any(|cell| cell.unsupported.is_some());
    Ok(if falls_short { Exit::Incomplete } else { Exit::Success })
}

/// The plan for hosts in each profile, which is tried as far as that changes nothing.
async fn plan_on_hosts(
    asked: &MeasureRequest,
    profiles: &[NamedProfile],
    flags: &HostFlags,
    hosts: &mut ConnectedHosts,
) -> Result<PlanPreview, Error> {
    let (mut plans, mut guests) = (Vec::new(), Vec::new());
    for named in profiles {
        let preflights = preflight_hosts(named, hosts, flags).await?;
        let crew = exclude_unfit_hosts(&hosts.pool, &preflights);
        plans.push(match named.profile.guests {
            Some(_) => plan_guests(asked, named, &crew, &preflights)?,
            None => {
                let mut plan = asked.plan(Some(&crew.plan_workers()), named)?;
                wb_run::provenance::check_requirements(&mut plan, &asked.registry, &crew).await?;
                plan
            }
        });
        guests.extend(preflights.into_iter().filter(|one| !one.guests.is_empty()).map(|one| HostGuests {
            profile: one.profile,
            host: one.host,
            guests: one.guests,
            emulation_reason: one.software,
        }));
    }
    Ok(PlanPreview { plan: merge_plans(plans), guests })
}

/// The workers but for those that cannot be put into a profile, which are absent, with the reason.
fn exclude_unfit_hosts(crew: &WorkerPool, preflights: &[Preflight]) -> WorkerPool {
    let mut crew = crew.clone();
    for one in preflights.iter().filter(|one| !one.obstacles.is_empty()) {
        let reason = |why: &ProfileErrorKind| match why.help() {
            Some(help) => format!("{why} ({help})"),
            None => why.to_string(),
        };
        let reasons: Vec<String> = one.obstacles.iter().map(reason).collect();
        crew.workers.retain(|member| *member.worker.name() != one.host);
        crew.unreachable
            .insert(one.host.clone(), format!("`{}` on `{}`: {}", one.profile, one.host, reasons.join("; ")));
    }
    crew
}

/// The plan of guests that are not there yet, whose values are open. A cell of theirs cannot be measured where one of the
/// hosts cannot be put into the profile on which the same test would be measured without guests.
fn plan_guests(
    asked: &MeasureRequest,
    named: &NamedProfile,
    crew: &WorkerPool,
    preflights: &[Preflight],
) -> Result<Plan, Error> {
    let mut plan = asked.plan(None, named)?;
    let mut workers = crew.plan_workers();
    for one in preflights {
        let on_host = |guest: &Guest| (guest.name.to_string(), vec![one.host.clone()]);
        workers.groups.extend(one.guests.iter().map(on_host));
    }
    // What follows from hosts need not from guests: where hosts have no plan, each cell is taken to need all of them.
    let below = asked.expand(Some(&workers), named).ok();
    for cell in &mut plan.cells {
        let of_test = |other: &&Cell| (&other.id.test, &other.id.serial) == (&cell.id.test, &cell.id.serial);
        cell.unsupported = match &below {
            None => crew.unreachable.values().next().cloned(),
            Some(below) => {
                let mut teams = below.cells.iter().filter(of_test).flat_map(|other| all_workers(&other.teams));
                teams.find_map(|worker| crew.unreachable.get(worker).cloned())
            }
        };
    }
    Ok(plan)
}

/// Several plans as one, their blocks one after the other.
fn merge_plans(plans: Vec<Plan>) -> Plan {
    let mut plans = plans.into_iter();
    let mut all = plans.next().unwrap_or_else(|| unreachable!("there is a profile"));
    for mut plan in plans {
        let blocks = all.cells.iter().map(|cell| cell.block + 1).max().unwrap_or(0);
        plan.cells.iter_mut().for_each(|cell| cell.block += blocks);
        all.cells.extend(plan.cells);
        all.skipped.extend(plan.skipped);
    }
    all
}

fn render_plan(planned: &PlanPreview, console: &Console) -> String {
    let plan = &planned.plan;
    let mut table = Table::new(&[
        ("cell", Align::Left),
        ("key", Align::Left),
        ("samples", Align::Right),
        ("each", Align::Right),
        ("time", Align::Right),
    ]);
    let blocks = plan.cells.iter().map(|cell| cell.block).max().unwrap_or(0) + 1;
    let mut block = None;
    for cell in &plan.cells {
        if blocks > 1 && block != Some(cell.block) {
            table.heading(&format!("block {} of {blocks}", cell.block + 1));
            block = Some(cell.block);
        }
        let key = cell.key.as_ref().map_or("open".to_owned(), ToString::to_string);
        let [each, time] = match &cell.unsupported {
            Some(_) => ["–"; 2].map(str::to_owned),
            None if !cell.is_estimated => ["?"; 2].map(str::to_owned),
            None => [format_duration(cell.estimate.seconds()), format_duration_range(plan.cell_duration(cell))],
        };
        table.row(vec![
            cell.id.to_string().into(),
            key.into(),
            format_samples(cell, plan).into(),
            each.into(),
            time.into(),
        ]);
    }
    let mut text = table.draw(console.stdout_style);
    let unsupported = plan.cells.iter().filter_map(|cell| Some((cell.id.to_string(), cell.unsupported.clone()?)));
    text += &render_section("cannot be measured here", group_by_reason(unsupported).into_iter());
    text += &render_section("guests", planned.guests.iter().flat_map(describe_guests));
    text += &render_section("left out", left_out_lines(plan));
    text += &render_section("the machine decides", open_value_lines(plan));
    let measured = plan.cells.iter().filter(|cell| cell.unsupported.is_none()).count();
    let of_all = match plan.cells.len() {
        all if all == measured => pluralize(all, "cell"),
        all => format!("{measured} of {}", pluralize(all, "cell")),
    };
    if measured == 0 {
        return text + &format!("\n{of_all} can be measured here\n");
    }
    let order = format!("{:?}", plan.sampling.order).to_lowercase();
    text + &format!("\n{of_all}, {}; {order} order\n", format_total(plan))
}

/// How long all cells take, as far as that can be estimated.
fn format_total(plan: &Plan) -> String {
    let estimated = format_estimate(plan.duration());
    let open = plan.cells.iter().filter(|cell| cell.unsupported.is_none() && !cell.is_estimated).count();
    const UNKNOWN_DURATION: &str = "of unknown duration (no `estimate` in the definition)";
    match (open, estimated) {
        (0, estimated) => estimated.unwrap_or_else(|| "about no time".to_owned()),
        (_, None) => UNKNOWN_DURATION.to_owned(),
        (open, Some(estimated)) => format!("{estimated}, and {} {UNKNOWN_DURATION}", pluralize(open, "cell")),
    }
}

/// A duration from its least to its most.
fn format_duration_range(duration: TimeEstimate) -> String {
    let (least, most) = (format_duration(duration.min.seconds()), format_duration(duration.max.seconds()));
    if least == most { least } else { format!("{least}–{most}") }
}

/// The guests of a host, a line each, and why they are run by software.
fn describe_guests(of: &HostGuests) -> Vec<String> {
    let HostGuests { profile, host, guests, emulation_reason: software } = of;
    let line = |guest: &Guest| {
        let runs = match guest.virt_type {
            Some(VirtType::Kvm) => ", run by the processor",
            Some(_) => ", run by software",
            None => "",
        };
        let (cpus, size) =
            (pluralize(guest.cpus as usize, "CPU"), |bytes: Bytes| Quantity { value: bytes.0 as f64, unit: "B" });
        let (memory, disk) = (size(guest.memory), size(guest.disk));
        let image = if guest.image.is_empty() { String::new() } else { format!(" of {}", guest.image) };
        format!(
            "{profile} on `{host}`: `{}` with {cpus}, {memory} of memory and a disk of {disk}{image}{runs}",
            guest.name
        )
    };
    let why = software.iter().map(|why| {
        format!("{profile} on `{host}`: guests run in software, whose figures say nothing of hardware: {why}")
    });
    guests.iter().map(line).chain(why).collect()
}

/// How many cells are left out, by why.
fn left_out_lines(plan: &Plan) -> impl Iterator<Item = String> {
    let mut counts = BTreeMap::new();
    for left in &plan.skipped {
        *counts.entry(left.reason.as_str()).or_insert(0) += 1;
    }
    counts.into_iter().map(|(why, cells)| format!("{} {why}", pluralize(cells, "cell")))
}

fn format_samples(cell: &Cell, plan: &Plan) -> String {
    let (fewest, most) = (cell.rule.min_samples(), cell.rule.max_samples());
    let range = if fewest == most { String::new() } else { format!("–{most}") };
    format!("{}+{fewest}{range}", plan.sampling.warm_up)
}

/// Which values are open, each once.
fn open_value_lines(plan: &Plan) -> impl Iterator<Item = String> {
    let all = plan
        .cells
        .iter()
        .flat_map(|cell| cell.unresolved.iter().map(|(name, how)| format!("{}: {name}: {how}", cell.id.test)));
    all.collect::<std::collections::BTreeSet<_>>().into_iter()
}

fn render_section(title: &str, lines: impl Iterator<Item = String>) -> String {
    let lines: String = lines.map(|line| format!("  {line}\n")).collect();
    if lines.is_empty() { lines } else { format!("\n{title}\n{lines}") }
}
