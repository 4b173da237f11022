//! `weighbridge plan`: shows what a run would do.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use wb_model::{Bytes, Nanos, ProfileName, Quantity, WorkerName, pluralize};
use wb_plan::{Cell, Plan, TimeEstimate};
use wb_profile::profile::VirtType;
use wb_profile::{NamedProfile, PlannedGuest as Guest, Preflight};
use wb_report::text::{Align, Table};
use wb_session::PreparationOptions;
use wb_session::hosts::{HostPreparation, connect_hosts, requested_profiles};
use wb_session::preview::{plan_on_hosts, plan_without_workers};
use wb_session::program::runtime;
use wb_session::publishing::require_program;

use super::contention;
use super::deciding_metrics::{DecidingMetrics, warn_of_undecisive_thresholds};
use super::selection::resolve_request;
use crate::cli::PlanArgs;
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;
use crate::format::{format_duration, format_estimate, group_by_reason, with_unestimated};
use crate::output::{print_json, print_text};
use crate::progress::cell_name;

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
    /// Time limit for their start, which is part of the maximum time of the plan.
    #[schemars(with = "String")]
    start_limit: Nanos,
    /// Why the guests would be emulated in software although that was not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    emulation_reason: Option<String>,
}

impl HostGuests {
    fn new(preflights: Vec<Preflight>, profiles: &[NamedProfile]) -> Vec<Self> {
        let start_limit = |name: &ProfileName| {
            let named = profiles.iter().find(|named| named.name == *name);
            named.and_then(|named| named.profile.guests.as_ref()).map_or(Nanos(0), |guests| guests.limit)
        };
        let guests = |Preflight { profile, host, guests, software, .. }| Self {
            start_limit: start_limit(&profile),
            profile,
            host,
            guests,
            emulation_reason: software,
        };
        preflights.into_iter().filter(|one| !one.guests.is_empty()).map(guests).collect()
    }
}

pub(crate) fn plan(mut args: PlanArgs, folder: Option<&Path>, console: &Console) -> Result<Exit, Error> {
    args.measurement.tests = contention::with_files(&args.contention.file, args.measurement.tests)?;
    if contention::is_sequence(&args.measurement.tests)? {
        return contention::plan_sequence(&args, folder);
    }
    contention::refuse_sequence_flags(&args.contention)?;
    let events = console.events();
    contention::refuse_misspelled(&args.measurement, &events)?;
    let request = resolve_request(&args.measurement, &events)?;
    let publish = args.publish.as_deref().or(request.publish.as_deref());
    if let Some(words) = publish.and_then(wb_plan::tools::split_words) {
        require_program(&words)?;
    }
    // Check that programs and scripts exist, as a run does, without running any.
    let preparation = HostPreparation::new(&args.preparation)?;
    let host_options = &args.measurement.cells.hosts;
    let profiles = requested_profiles(host_options)?;
    if !args.no_worker {
        preparation.refuse_local_reboot(host_options)?;
    }
    let planned = if args.no_worker {
        PlanPreview { plan: plan_without_workers(&request, &profiles, &events)?, guests: Vec::new() }
    } else {
        runtime()?.block_on(async {
            let mut hosts = connect_hosts(host_options, &events).await?;
            hosts.exclude_changed().await?;
            let planned = plan_on_hosts(&request, &profiles, &hosts, &events).await;
            hosts.close().await?;
            let (plan, preflights) = planned?;
            Ok::<_, Error>(PlanPreview { plan, guests: HostGuests::new(preflights, &profiles) })
        })?
    };
    let deciding = DecidingMetrics::of_plan(&planned.plan, &request.registry);
    warn_of_undecisive_thresholds(&deciding);
    if args.json {
        print_json(&planned)?
    } else {
        let more = unplanned_time(&profiles, &planned.plan, &args.preparation);
        let text = render_plan(&planned, &deciding, &more, console);
        print_text(&text)?
    }
    let falls_short = planned.plan.cells.iter().any(|cell| cell.unsupported.is_some());
    Ok(if falls_short { Exit::Incomplete } else { Exit::Success })
}

/// The time of a run besides its samples.
struct UnplannedTime {
    /// The longest time that starting the guests of all profiles may take.
    guests: Nanos,
    /// Whether provisioners or setup scripts run, whose time is unknown.
    has_scripts: bool,
}

fn unplanned_time(profiles: &[NamedProfile], plan: &Plan, preparation: &PreparationOptions) -> UnplannedTime {
    // Profiles are applied one after the other, and the guests of one profile start together.
    let is_measured = |named: &&NamedProfile| {
        plan.cells.iter().any(|cell| cell.unsupported.is_none() && cell.id.profile == named.name)
    };
    let guests = profiles.iter().filter(is_measured).filter_map(|named| Some(named.profile.guests.as_ref()?.limit.0));
    let PreparationOptions {
        provisioners, host_setup_script, host_packages, worker_setup_script, worker_packages, ..
    } = preparation;
    let lists = [provisioners, host_packages, worker_packages];
    let has_scripts =
        host_setup_script.is_some() || worker_setup_script.is_some() || lists.iter().any(|list| !list.is_empty());
    UnplannedTime { guests: Nanos(guests.fold(0, u64::saturating_add)), has_scripts }
}

fn render_plan(
    planned: &PlanPreview,
    deciding: &BTreeSet<DecidingMetrics>,
    more: &UnplannedTime,
    console: &Console,
) -> String {
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
            cell_name(&cell.id).into(),
            key.into(),
            format_samples(cell, plan).into(),
            each.into(),
            time.into(),
        ]);
    }
    let mut text = table.draw(console.stdout_style);
    let unsupported = plan.cells.iter().filter_map(|cell| Some((cell_name(&cell.id), cell.unsupported.clone()?)));
    text += &render_section("cannot be measured here", group_by_reason(unsupported).into_iter());
    text += &render_section("guests", planned.guests.iter().flat_map(describe_guests));
    text += &render_section("excluded", left_out_lines(plan));
    text += &render_section("depends on the machine", open_value_lines(plan));
    text += &render_section("decided by", deciding.iter().map(ToString::to_string));
    let measured = plan.cells.iter().filter(|cell| cell.unsupported.is_none()).count();
    let measured_cells = match plan.cells.len() {
        all if all == measured => pluralize(all, "cell"),
        all => format!("{measured} of {}", pluralize(all, "cell")),
    };
    if measured == 0 {
        return text + &format!("\n{measured_cells} can be measured here\n");
    }
    let order = format!("{:?}", plan.sampling.order).to_lowercase();
    text + &format!("\n{measured_cells}, {}; {order} order\n", format_total(plan, more))
}

fn format_total(plan: &Plan, more: &UnplannedTime) -> String {
    let TimeEstimate { min, max } = plan.duration();
    let max = Nanos(max.0.saturating_add(more.guests.0));
    let estimated = format_estimate(TimeEstimate { min, max });
    let guests = match more.guests {
        Nanos(0) => String::new(),
        limit => format!(", of which up to {} to start guests", format_duration(limit.seconds())),
    };
    let scripts = if more.has_scripts { "; provisioners and setup scripts take time besides" } else { "" };
    let estimated = estimated.map(|estimated| format!("{estimated}{guests}{scripts}"));
    let open = plan.cells.iter().filter(|cell| cell.unsupported.is_none() && !cell.is_estimated).count();
    with_unestimated(estimated, open).unwrap_or_else(|| "no time".to_owned())
}

fn format_duration_range(duration: TimeEstimate) -> String {
    let (least, most) = (format_duration(duration.min.seconds()), format_duration(duration.max.seconds()));
    if least == most { least } else { format!("{least}–{most}") }
}

/// Describes the guests of a host, one per line, and why they are emulated.
fn describe_guests(host_guests: &HostGuests) -> Vec<String> {
    let HostGuests { profile, host, guests, emulation_reason: software, start_limit: _ } = host_guests;
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

fn left_out_lines(plan: &Plan) -> impl Iterator<Item = String> {
    let mut counts = BTreeMap::new();
    for excluded in &plan.skipped {
        *counts.entry(excluded.reason.as_str()).or_insert(0) += 1;
    }
    counts.into_iter().map(|(reason, cells)| format!("{} {reason}", pluralize(cells, "cell")))
}

fn format_samples(cell: &Cell, plan: &Plan) -> String {
    let (fewest, most) = plan.sample_range(cell).into_inner();
    let range = if fewest == most { String::new() } else { format!("–{most}") };
    format!("{}+{fewest}{range}", plan.sampling.warm_up)
}

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
