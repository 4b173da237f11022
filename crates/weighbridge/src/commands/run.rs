//! `weighbridge run`.

use wb_model::{Unit, counted};
use wb_plan::Duration;
use wb_run::RunEnd;

use super::measure::{Measuring, folder};
use super::publish::State;
use super::what::asked;
use super::{print_json, print_text};
use crate::cli::RunArgs;
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;

/// Measures, records, studies, and shows the summary.
pub(crate) fn run(args: &RunArgs, console: &Console) -> Result<Exit, Error> {
    let asked = asked(&args.what)?;
    let folder = folder(&args.into, "weighbridge");
    let measuring = Measuring::new(&folder, &args.into, &asked, &args.what.hosts, &args.ready)?;
    let measured = measuring.carry_out(console, |workers, named| asked.plan(Some(workers), named))?;
    if args.json {
        print_json(&measured.study)?;
    } else {
        print_text(&wb_report::text::summary(&measured.study, console.out))?;
        print_text(&format!("\nrun folder: {}\n", folder.display()))?;
    }
    match (measured.end, measured.short()) {
        (RunEnd::Complete, 0) if matches!(measured.published, State::NotAsked | State::UpToDate) => {
            crate::console::tell!("nothing to do: every cell of {} is complete", folder.display());
            return Ok(Exit::Nothing);
        }
        (RunEnd::Complete, short) if short > 0 => {
            crate::console::tell!("nothing more can be done: {} fell short, as told above", counted(short, "cell"));
        }
        _ => {}
    }
    Ok(measured.exit().unwrap_or(Exit::Fine))
}

/// How long measuring takes, from its least to its most; none where no cell has an estimate.
pub(crate) fn estimate(Duration { least, most }: Duration) -> Option<String> {
    match (lasting(least.seconds()), lasting(most.seconds())) {
        _ if least.0 == 0 => None,
        (least, most) if least == most => Some(format!("about {least}")),
        (least, most) => Some(format!("about {least} with the fewest samples, {most} with the most")),
    }
}

/// A time for people.
pub(crate) fn lasting(seconds: f64) -> String {
    match seconds {
        s if s < 100.0 => Unit::new("s").figure(s).to_string(),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// A line for each reason with the cells that it holds for, `CELL and 3 others: REASON`, in the order of the first ones.
pub(crate) fn group_by_reason(cells: impl Iterator<Item = (String, String)>) -> Vec<String> {
    let mut reasons: Vec<(String, String, usize)> = Vec::new();
    for (cell, reason) in cells {
        match reasons.iter_mut().find(|(_, known, _)| *known == reason) {
            Some((_, _, others)) => *others += 1,
            None => reasons.push((cell, reason, 0)),
        }
    }
    let line = |(cell, reason, others): (String, String, usize)| match others {
        0 => format!("{cell}: {reason}"),
        others => format!("{cell} and {}: {reason}", counted(others, "other")),
    };
    reasons.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use wb_model::Nanos;

    use super::*;

    #[test]
    fn a_duration_has_its_least_and_its_most() {
        let of = |least: u64, most: u64| {
            estimate(Duration { least: Nanos(least * 1_000_000_000), most: Nanos(most * 1_000_000_000) })
        };
        assert_eq!(of(0, 0), None);
        assert_eq!(of(7, 7).unwrap(), "about 7 s");
        assert_eq!(of(7, 600).unwrap(), "about 7 s with the fewest samples, 10 min with the most");
    }

    #[test]
    fn cells_of_one_reason_share_a_line() {
        let cells = [("a", "no root"), ("b", "no disk"), ("c", "no root"), ("d", "no root")];
        let cells = cells.into_iter().map(|(cell, reason)| (cell.to_owned(), reason.to_owned()));
        assert_eq!(group_by_reason(cells), ["a and 2 others: no root", "b: no disk"]);
    }
}
