//! The preparation of machines, from the journal: its duration, and how far it came.

use wb_record::journal::InvocationEnd;
use wb_record::{JournalEvent, JournalLine, RunFile};

/// The total of all preparations in seconds; `times` are those of the lines. A killed step has no end, and is left out.
pub(crate) fn duration(lines: &[JournalLine], times: &[jiff::Timestamp]) -> f64 {
    let mut seconds = 0.0;
    // The start of the current step, and the last of its ends: it ends on each machine by itself.
    let mut step: Option<(jiff::Timestamp, jiff::Timestamp)> = None;
    for (line, time) in lines.iter().zip(times) {
        if let (JournalEvent::PreparationAborted { .. }, Some((_, end))) = (&line.event, &mut step) {
            *end = *time;
        }
        match &line.event {
            JournalEvent::PreparationStarted(_) | JournalEvent::RebootStarted { .. } => {
                seconds += step.replace((*time, *time)).map_or(0.0, elapsed);
            }
            event if event.is_preparation() => {
                if let Some((_, end)) = &mut step {
                    *end = *time;
                }
            }
            _ => seconds += step.take().map_or(0.0, elapsed),
        }
    }
    seconds + step.map_or(0.0, elapsed)
}

fn elapsed((start, end): (jiff::Timestamp, jiff::Timestamp)) -> f64 {
    end.duration_since(start).as_secs_f64()
}

/// Why nothing is measured in a run without invocations: how far the preparation of its machines came.
pub(crate) fn unmeasured(run_file: &RunFile, lines: &[JournalLine]) -> Option<String> {
    if !run_file.invocations.is_empty() || run_file.preparation.is_none() {
        return None;
    }
    let step = lines.iter().rev().find_map(|line| match &line.event {
        JournalEvent::PreparationStarted(start) => Some(start.to_string()),
        JournalEvent::RebootStarted { worker, .. } => Some(format!("rebooting `{worker}`")),
        _ => None,
    });
    let step = step.unwrap_or_else(|| "the machines were prepared".to_owned());
    Some(match lines.last().map(|line| &line.event) {
        Some(JournalEvent::PreparationAborted { outcome: InvocationEnd::Interrupted, .. }) => {
            format!("interrupted while {step}")
        }
        Some(JournalEvent::PreparationAborted { reason: Some(reason), .. }) => format!("failed while {step}: {reason}"),
        _ => format!("killed, or not finished yet, while {step}"),
    })
}

#[cfg(test)]
mod tests {
    use wb_model::WorkerName;
    use wb_record::Preparation;
    use wb_record::steps::{PreparationEnd, PreparationKind, PreparationStart, StepOutcome};

    use super::*;

    fn started(step: PreparationKind) -> JournalEvent {
        let machines = vec![WorkerName::local()];
        JournalEvent::PreparationStarted(PreparationStart { step, machines, name: Some("P".to_owned()) })
    }

    fn ended(step: PreparationKind) -> JournalEvent {
        let machine = WorkerName::local();
        JournalEvent::PreparationEnded(PreparationEnd { step, machine, outcome: StepOutcome::Done, seconds: 1.0 })
    }

    fn aborted(outcome: InvocationEnd, reason: Option<&str>) -> JournalEvent {
        JournalEvent::PreparationAborted { outcome, reason: reason.map(str::to_owned) }
    }

    /// Lines at these seconds.
    fn lines(events: &[(i64, JournalEvent)]) -> (Vec<JournalLine>, Vec<jiff::Timestamp>) {
        let time = |second: &i64| jiff::Timestamp::from_second(*second).unwrap();
        let line = |(second, event): &(i64, JournalEvent)| JournalLine {
            time: time(second).to_string(),
            event: event.clone(),
        };
        (events.iter().map(line).collect(), events.iter().map(|(second, _)| time(second)).collect())
    }

    #[test]
    fn the_duration_is_that_of_all_steps_that_ended() {
        use PreparationKind::{Connecting, Guests, HostSetup};
        let start = JournalEvent::InvocationStarted { invocation: 0, boot_id: String::new() };
        let end = JournalEvent::InvocationEnded { invocation: 0, outcome: InvocationEnd::Finished };
        let (lines, times) = lines(&[
            (0, started(Connecting)),
            (2, ended(Connecting)),
            // Killed, and continued after an hour.
            (2, started(HostSetup)),
            (3600, started(Connecting)),
            (3601, ended(Connecting)),
            (3601, started(Guests)),
            (3640, ended(Guests)),
            (3641, ended(Guests)),
            (3650, start),
            (3700, end),
            (3700, started(Guests)),
            (3710, aborted(InvocationEnd::Interrupted, None)),
        ]);
        assert_eq!(duration(&lines, &times), 2.0 + 1.0 + 40.0 + 10.0);
    }

    #[test]
    fn a_run_without_invocations_says_how_far_it_came() {
        let preparation = Preparation {
            started: String::new(),
            version: String::new(),
            command: Vec::new(),
            plan: String::new(),
            metadata: Default::default(),
        };
        let run_file = RunFile { schema: 1, invocations: Vec::new(), preparation: Some(preparation) };
        let message = |events: &[JournalEvent]| {
            let (lines, _) = lines(&events.iter().map(|event| (0, event.clone())).collect::<Vec<_>>());
            unmeasured(&run_file, &lines).unwrap()
        };
        let guests = started(PreparationKind::Guests);
        let on_local = "starting guests of the profile `P` on `local`";
        assert_eq!(
            [
                message(&[]),
                message(std::slice::from_ref(&guests)),
                message(&[guests.clone(), aborted(InvocationEnd::Interrupted, None)]),
                message(&[guests, aborted(InvocationEnd::Failed, Some("no disk"))]),
                message(&[started(PreparationKind::Provisioning)]),
                message(&[started(PreparationKind::WorkerSetup)]),
            ],
            [
                "killed, or not finished yet, while the machines were prepared".to_owned(),
                format!("killed, or not finished yet, while {on_local}"),
                format!("interrupted while {on_local}"),
                format!("failed while {on_local}: no disk"),
                "killed, or not finished yet, while provisioning `local` by `P`".to_owned(),
                "killed, or not finished yet, while running the worker setup script P on `local`".to_owned(),
            ]
        );
    }
}
