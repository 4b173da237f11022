//! `weighbridge plan`.

use std::collections::BTreeMap;

use wb_model::counted;
use wb_plan::{Cell, Plan};
use wb_report::text::{Align, Table};

use super::crew::{close, hosts, profiles};
use super::what::asked;
use super::{lasting, print_json, print_text, runtime};
use crate::cli::PlanArgs;
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;

/// Shows what a run would do.
pub(crate) fn plan(args: &PlanArgs, console: &Console) -> Result<Exit, Error> {
    let asked = asked(&args.what)?;
    let profiles = profiles(&args.what.hosts)?;
    let (known, open): (Vec<_>, Vec<_>) =
        profiles.iter().partition(|named| !args.no_worker && named.profile.guests.is_none());
    let mut plans = Vec::new();
    if !known.is_empty() {
        plans = runtime()?.block_on(async {
            let hosts = hosts(&args.what.hosts, console).await?;
            let mut plans = Vec::new();
            for named in known {
                let mut plan = asked.plan(Some(&hosts.crew.workers()), named)?;
                wb_run::provenance::require(&mut plan, &asked.registry, &hosts.crew).await?;
                plans.push(plan);
            }
            close(hosts).await?;
            Ok::<Vec<Plan>, Error>(plans)
        })?;
    }
    // Guests are not there yet: what depends on them is open.
    for named in open {
        plans.push(asked.plan(None, named)?);
    }
    let plan = together(plans);
    if args.json {
        print_json(&plan)?
    } else {
        print_text(&drawn(&plan, console))?
    }
    let falls_short = plan.cells.iter().any(|cell| cell.unsupported.is_some());
    Ok(if falls_short { Exit::FellShort } else { Exit::Fine })
}

/// Several plans as one, their blocks one after the other.
fn together(plans: Vec<Plan>) -> Plan {
    let mut plans = plans.into_iter();
    let mut all = plans.next().unwrap_or_else(|| unreachable!("there is a profile"));
    for mut plan in plans {
        let blocks = all.cells.iter().map(|cell| cell.block + 1).max().unwrap_or(0);
        plan.cells.iter_mut().for_each(|cell| cell.block += blocks);
        all.cells.extend(plan.cells);
        all.left_out.extend(plan.left_out);
    }
    all
}

fn drawn(plan: &Plan, console: &Console) -> String {
    let mut table =
        Table::new(&[("cell", Align::Left), ("key", Align::Left), ("samples", Align::Right), ("time", Align::Right)]);
    let blocks = plan.cells.iter().map(|cell| cell.block).max().unwrap_or(0) + 1;
    let mut block = None;
    for cell in &plan.cells {
        if blocks > 1 && block != Some(cell.block) {
            table.heading(&format!("block {} of {blocks}", cell.block + 1));
            block = Some(cell.block);
        }
        let key = cell.key.as_ref().map_or("open".to_owned(), ToString::to_string);
        let time = match &cell.unsupported {
            Some(_) => "–".to_owned(),
            None => lasting(plan.cell_estimate(cell).seconds()),
        };
        table.row(vec![cell.id.to_string().into(), key.into(), samples(cell, plan).into(), time.into()]);
    }
    let mut text = table.draw(console.out);
    let unsupported = plan.cells.iter().filter_map(|cell| Some((cell, cell.unsupported.as_ref()?)));
    text += &section("cannot be measured here", unsupported.map(|(cell, why)| format!("{}: {why}", cell.id)));
    text += &section("left out", left_out(plan));
    text += &section("the machine decides", open(plan));
    let measured = plan.cells.iter().filter(|cell| cell.unsupported.is_none()).count();
    let of_all = match plan.cells.len() {
        all if all == measured => counted(all, "cell"),
        all => format!("{measured} of {}", counted(all, "cell")),
    };
    if measured == 0 {
        return text + &format!("\n{of_all} can be measured here\n");
    }
    text + &format!(
        "\n{of_all}, about {} with the fewest samples; {} order\n",
        lasting(plan.estimate().seconds()),
        format!("{:?}", plan.sampling.order).to_lowercase()
    )
}

/// How many cells are left out, by why.
fn left_out(plan: &Plan) -> impl Iterator<Item = String> {
    let mut counts = BTreeMap::new();
    for left in &plan.left_out {
        *counts.entry(left.why.as_str()).or_insert(0) += 1;
    }
    counts.into_iter().map(|(why, cells)| format!("{} {why}", counted(cells, "cell")))
}

fn samples(cell: &Cell, plan: &Plan) -> String {
    let (fewest, most) = (cell.rule.fewest(), cell.rule.most());
    let range = if fewest == most { String::new() } else { format!("–{most}") };
    format!("{}+{fewest}{range}", plan.sampling.warm_up)
}

/// Which values are open, each once.
fn open(plan: &Plan) -> impl Iterator<Item = String> {
    let all = plan
        .cells
        .iter()
        .flat_map(|cell| cell.open.iter().map(|(name, how)| format!("{}: {name}: {how}", cell.id.test)));
    all.collect::<std::collections::BTreeSet<_>>().into_iter()
}

fn section(title: &str, lines: impl Iterator<Item = String>) -> String {
    let lines: String = lines.map(|line| format!("  {line}\n")).collect();
    if lines.is_empty() { lines } else { format!("\n{title}\n{lines}") }
}
