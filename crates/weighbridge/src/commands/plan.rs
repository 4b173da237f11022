//! `weighbridge plan`: shows what a run would do.

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

/// Preview of a run: its plan, and the guests that it would create.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PlanPreview {
    #[serde(flatten)]
    plan: Plan,
    /// The guests that would be created, by profile and host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    guests: Vec<HostGuests>,
}

/// The guests that a profile would create on a host.
#[derive(Debug, Serialize, JsonSchema)]
struct HostGuests {
    profile: ProfileName,
    host: WorkerName,
    guests: Vec<Guest>,
    /// Why the guests would be emulated in software although that was not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    emulation_reason: Option<String>,
}

/// Shows what a run would do, and what of it cannot be measured.
pub(crate) fn plan(args: &PlanArgs, console: &Console) -> Result<Exit, Error> {
    let request = resolve_request(&args.measurement)?;
    let publish = args.publish.as_deref().or(request.publish.as_deref());
    if let Some(words) = publish.and_then(wb_plan::tools::split_words) {
        publishing::require_program(&words)?;
    }
    // Check that programs and scripts exist, as a run does, without running any.
    HostPreparation::from_flags(&args.preparation)?;
    let profiles = requested_profiles(&args.measurement.hosts)?;
    let planned = match args.no_worker {
        true => {
            let plans = profiles.iter().map(|named| request.plan(None, named)).collect::<Result<_, _>>()?;
            PlanPreview { plan: merge_plans(plans), guests: Vec::new() }
        }
        false => runtime()?.block_on(async {
            let mut hosts = connect_hosts(&args.measurement.hosts, console).await?;
            exclude_changed_hosts(&mut hosts).await?;
            let planned = plan_on_hosts(&request, &profiles, &args.measurement.hosts, &mut hosts).await;
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

/// Plans for the hosts in each profile, after checking the profile without changing anything.
async fn plan_on_hosts(
    request: &MeasureRequest,
    profiles: &[NamedProfile],
    flags: &HostFlags,
    hosts: &mut ConnectedHosts,
) -> Result<PlanPreview, Error> {
    let (mut plans, mut guests) = (Vec::new(), Vec::new());
    for named in profiles {
        let preflights = preflight_hosts(named, hosts, flags).await?;
        let pool = exclude_unfit_hosts(&hosts.pool, &preflights);
        plans.push(match named.profile.guests {
            Some(_) => plan_guests(request, named, &pool, &preflights)?,
            None => {
                let mut plan = request.plan(Some(&pool.plan_workers()), named)?;
                let test_cells = wb_run::active_cell::decode_cells(&plan, &request.registry)?;
                wb_run::provenance::check_requirements(&mut plan, &test_cells, &pool).await?;
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

/// The workers, with those to which a profile cannot be applied marked as absent with the reason.
fn exclude_unfit_hosts(pool: &WorkerPool, preflights: &[Preflight]) -> WorkerPool {
    let mut pool = pool.clone();
    for one in preflights.iter().filter(|one| !one.obstacles.is_empty()) {
        let reason = |obstacle: &ProfileErrorKind| match (obstacle.message_on(&one.host), obstacle.help()) {
            (message, Some(help)) => format!("{message} ({help})"),
            (message, None) => message,
        };
        let reasons: Vec<String> = one.obstacles.iter().map(reason).collect();
        pool.workers.retain(|member| *member.worker.name() != one.host);
        pool.unreachable
            .insert(one.host.clone(), format!("`{}` on `{}`: {}", one.profile, one.host, reasons.join("; ")));
    }
    pool
}

/// Plans for guests that do not exist yet, so values that depend on them stay unresolved. A cell cannot be measured if
/// the profile cannot be applied to one of the hosts that the same test would use without guests.
fn plan_guests(
    request: &MeasureRequest,
    named: &NamedProfile,
    pool: &WorkerPool,
    preflights: &[Preflight],
) -> Result<Plan, Error> {
    let mut plan = request.plan(None, named)?;
    let mut workers = pool.plan_workers();
    for one in preflights {
        let on_host = |guest: &Guest| (guest.name.to_string(), vec![one.host.clone()]);
        workers.groups.extend(one.guests.iter().map(on_host));
    }
    // If there is no plan for the hosts themselves, assume that each cell needs all of them.
    let below = request.expand(Some(&workers), named).ok();
    for cell in &mut plan.cells {
        let same_test = |other: &&Cell| (&other.id.test, &other.id.serial) == (&cell.id.test, &cell.id.serial);
        cell.unsupported = match &below {
            None => pool.unreachable.values().next().cloned(),
            Some(below) => {
                let mut teams = below.cells.iter().filter(same_test).flat_map(|other| all_workers(&other.teams));
                teams.find_map(|worker| pool.unreachable.get(worker).cloned())
            }
        };
    }
    Ok(plan)
}

/// Merges plans, numbering their blocks consecutively.
fn merge_plans(plans: Vec<Plan>) -> Plan {
    let mut plans = plans.into_iter();
    let mut all = plans.next().unwrap_or_else(|| unreachable!("at least one profile"));
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
        let key = cell.key.as_ref().map_or("unresolved".to_owned(), ToString::to_string);
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
    text += &render_section("excluded", left_out_lines(plan));
    text += &render_section("depends on the machine", open_value_lines(plan));
    let measured = plan.cells.iter().filter(|cell| cell.unsupported.is_none()).count();
    let measured_cells = match plan.cells.len() {
        all if all == measured => pluralize(all, "cell"),
        all => format!("{measured} of {}", pluralize(all, "cell")),
    };
    if measured == 0 {
        return text + &format!("\n{measured_cells} can be measured here\n");
    }
    let order = format!("{:?}", plan.sampling.order).to_lowercase();
    text + &format!("\n{measured_cells}, {}; {order} order\n", format_total(plan))
}

/// Formats the total duration of all cells, as far as it can be estimated.
fn format_total(plan: &Plan) -> String {
    let estimated = format_estimate(plan.duration());
    let open = plan.cells.iter().filter(|cell| cell.unsupported.is_none() && !cell.is_estimated).count();
    const UNKNOWN_DURATION: &str = "of unknown duration (no `estimate` in the definition)";
    match (open, estimated) {
        (0, estimated) => estimated.unwrap_or_else(|| "no time".to_owned()),
        (_, None) => UNKNOWN_DURATION.to_owned(),
        (open, Some(estimated)) => format!("{estimated}, and {} {UNKNOWN_DURATION}", pluralize(open, "cell")),
    }
}

/// Formats a duration as a range from its minimum to its maximum.
fn format_duration_range(duration: TimeEstimate) -> String {
    let (least, most) = (format_duration(duration.min.seconds()), format_duration(duration.max.seconds()));
    if least == most { least } else { format!("{least}–{most}") }
}

/// Describes the guests of a host, one per line, and why they are emulated.
fn describe_guests(host_guests: &HostGuests) -> Vec<String> {
    let HostGuests { profile, host, guests, emulation_reason: software } = host_guests;
    let line = |guest: &Guest| {
        let virtualisation = match guest.virt_type {
            Some(VirtType::Kvm) => ", virtualised by KVM",
            Some(_) => ", emulated in software",
            None => "",
        };
        let (cpus, size) =
            (pluralize(guest.cpus as usize, "CPU"), |bytes: Bytes| Quantity { value: bytes.0 as f64, unit: "B" });
        let (memory, disk) = (size(guest.memory), size(guest.disk));
        let image = if guest.image.is_empty() { String::new() } else { format!(" of {}", guest.image) };
        format!(
            "{profile} on `{host}`: `{}` with {cpus}, {memory} of memory and a disk of {disk}{image}{virtualisation}",
            guest.name
        )
    };
    let emulation = software.iter().map(|reason| {
        format!("{profile} on `{host}`: guests are emulated, so their results do not reflect the hardware: {reason}")
    });
    guests.iter().map(line).chain(emulation).collect()
}

/// Counts the excluded cells by reason.
fn left_out_lines(plan: &Plan) -> impl Iterator<Item = String> {
    let mut counts = BTreeMap::new();
    for excluded in &plan.skipped {
        *counts.entry(excluded.reason.as_str()).or_insert(0) += 1;
    }
    counts.into_iter().map(|(reason, cells)| format!("{} {reason}", pluralize(cells, "cell")))
}

fn format_samples(cell: &Cell, plan: &Plan) -> String {
    let (fewest, most) = (cell.rule.min_samples(), cell.rule.max_samples());
    let range = if fewest == most { String::new() } else { format!("–{most}") };
    format!("{}+{fewest}{range}", plan.sampling.warm_up)
}

/// The unresolved values, each once.
fn open_value_lines(plan: &Plan) -> impl Iterator<Item = String> {
    let all = plan
        .cells
        .iter()
        .flat_map(|cell| cell.unresolved.iter().map(|(name, rule)| format!("{}: {name}: {rule}", cell.id.test)));
    all.collect::<std::collections::BTreeSet<_>>().into_iter()
}

fn render_section(title: &str, lines: impl Iterator<Item = String>) -> String {
    let lines: String = lines.map(|line| format!("  {line}\n")).collect();
    if lines.is_empty() { lines } else { format!("\n{title}\n{lines}") }
}
