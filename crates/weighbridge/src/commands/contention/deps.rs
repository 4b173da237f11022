//! `weighbridge deps`: what contention benches require of this machine.

use std::path::PathBuf;

use wb_contention::{BenchSpec, machine};
use wb_report::text::{Align, Style, Table};
use wb_results::contention::Bench;
use wb_session::contention::{Dependency, DependencyState, dependencies};
use wb_session::program::runtime;
use wb_sys::SysRoot;

use super::request::{DIR, parse_specs};
use crate::cli::contention::DepsArgs;
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{print_json, print_text};

pub(crate) fn deps(args: &DepsArgs, console: &Console) -> Result<Exit, Error> {
    let specs =
        if args.benches.is_empty() { Bench::ALL.map(BenchSpec::new).to_vec() } else { parse_specs(&args.benches)? };
    let dir = args.dir.clone().unwrap_or_else(|| PathBuf::from(DIR));
    let system = machine::read(&SysRoot::real(), &dir, args.dev.as_deref())?;
    let found = runtime()?.block_on(dependencies(&specs, &dir, &system.device.name))?;
    if args.json {
        print_json(&found)?;
    } else {
        print_text(&text(&found, console.stdout_style))?;
    }
    let is_refused =
        |dependency: &Dependency| matches!(dependency.state, DependencyState::Missed | DependencyState::Indispensable);
    Ok(if found.iter().any(is_refused) { Exit::Incomplete } else { Exit::Success })
}

fn text(found: &[Dependency], style: Style) -> String {
    let mut table = Table::new(&[("requirement", Align::Left), ("state", Align::Left), ("found", Align::Left)]);
    for dependency in found {
        let state = match dependency.state {
            DependencyState::Met => "met",
            DependencyState::SetByBenches => "set by benches",
            DependencyState::Missed => "missed",
            DependencyState::Indispensable => "missed, indispensable",
        };
        table.row(vec![dependency.requirement.to_string().into(), state.into(), dependency.found.join("; ").into()]);
    }
    let missed: Vec<&Dependency> = found.iter().filter(|dependency| dependency.state != DependencyState::Met).collect();
    let mut text = table.draw(style) + "\n";
    for bench in Bench::ALL {
        let of_bench = |state: DependencyState| {
            let names =
                missed.iter().filter(|dependency| dependency.state == state && dependency.benches.contains(&bench));
            names.map(|dependency| dependency.requirement.to_string()).collect::<Vec<_>>()
        };
        let (missed, indispensable) = (of_bench(DependencyState::Missed), of_bench(DependencyState::Indispensable));
        if !found.iter().any(|dependency| dependency.benches.contains(&bench)) {
            continue;
        }
        text += &match () {
            () if !indispensable.is_empty() => {
                format!("{bench}: cannot run: {}\n", [indispensable, missed].concat().join(", "))
            }
            () if !missed.is_empty() => format!("{bench}: runs with --force alone: {}\n", missed.join(", ")),
            () => format!("{bench}: can run\n"),
        };
    }
    text
}
