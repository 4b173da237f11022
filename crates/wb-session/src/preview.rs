//! Plans a session without measuring anything.

use wb_model::roles::all_workers;
use wb_model::{ParamValue, Params};
use wb_plan::{Cell, Plan};
use wb_profile::{NamedProfile, PlannedGuest, Preflight, ProfileErrorKind};
use wb_run::WorkerPool;

use crate::error::SessionError;
use crate::event::EventSink;
use crate::hosts::ConnectedHosts;
use crate::request::MeasureRequest;

/// Plans for each profile without a worker, so values that depend on it stay unresolved.
pub fn plan_without_workers(
    request: &MeasureRequest,
    profiles: &[NamedProfile],
    events: &EventSink,
) -> Result<Plan, SessionError> {
    let plans = profiles.iter().map(|named| request.plan(None, named, events)).collect::<Result<_, _>>()?;
    Ok(merge_plans(plans))
}

/// Plans for the hosts in each profile, after checking the profile without changing anything. Returns the results of
/// these checks too.
pub async fn plan_on_hosts(
    request: &MeasureRequest,
    profiles: &[NamedProfile],
    hosts: &ConnectedHosts,
    events: &EventSink,
) -> Result<(Plan, Vec<Preflight>), SessionError> {
    let (mut plans, mut all) = (Vec::new(), Vec::new());
    for named in profiles {
        let preflights = hosts.preflight(named).await?;
        let pool = exclude_unfit_hosts(&hosts.pool, &preflights);
        plans.push(match named.profile.guests {
            Some(_) => plan_guests(request, named, &pool, &preflights, events)?,
            None => {
                let mut plan = request.plan(Some(&pool.plan_workers()), named, events)?;
                let test_cells = wb_run::active_cell::decode_cells(&plan, &request.registry)?;
                wb_run::provenance::check_requirements(&mut plan, &test_cells, &pool).await?;
                plan
            }
        });
        all.extend(preflights);
    }
    Ok((merge_plans(plans), all))
}

/// The workers, with those to which a profile cannot be applied marked as absent with the reason.
fn exclude_unfit_hosts(pool: &WorkerPool, preflights: &[Preflight]) -> WorkerPool {
    let mut pool = pool.clone();
    for preflight in preflights.iter().filter(|preflight| !preflight.obstacles.is_empty()) {
        let reason = |obstacle: &ProfileErrorKind| match (obstacle.message_on(&preflight.host), obstacle.help()) {
            (message, Some(help)) => format!("{message} ({help})"),
            (message, None) => message,
        };
        let reasons: Vec<String> = preflight.obstacles.iter().map(reason).collect();
        pool.workers.retain(|member| *member.worker.name() != preflight.host);
        pool.unreachable.insert(
            preflight.host.clone(),
            format!("`{}` on `{}`: {}", preflight.profile, preflight.host, reasons.join("; ")),
        );
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
    events: &EventSink,
) -> Result<Plan, SessionError> {
    let mut plan = request.plan(None, named, events)?;
    let mut workers = pool.plan_workers();
    for preflight in preflights {
        let on_host = |guest: &PlannedGuest| (guest.name.to_string(), vec![preflight.host.clone()]);
        workers.groups.extend(preflight.guests.iter().map(on_host));
    }
    // If there is no plan for the hosts themselves, assume that each cell needs all of them.
    let below = request.expand(Some(&workers), named).ok();
    for cell in &mut plan.cells {
        let same_test = |other: &&Cell| (&other.id.test, &other.id.serial) == (&cell.id.test, &cell.id.serial);
        cell.unsupported = match &below {
            None => pool.unreachable.values().next().cloned(),
            Some(below) => {
                let mut roles = below.cells.iter().filter(same_test).flat_map(|other| all_workers(&other.roles));
                roles.find_map(|worker| pool.unreachable.get(worker).cloned())
            }
        };
        let guests = preflights.iter().flat_map(|preflight| &preflight.guests);
        cell.unsupported = cell.unsupported.take().or_else(|| missing_guest_cpu(&cell.params, guests));
    }
    Ok(plan)
}

/// The reason why no guest can measure a cell on its CPUs, as each guest would give it.
fn missing_guest_cpu<'a>(params: &Params, guests: impl Iterator<Item = &'a PlannedGuest>) -> Option<String> {
    let Some(ParamValue::List(cpus)) = params.get("cpus") else { return None };
    let most = guests.map(|guest| i64::from(guest.cpus)).max()?;
    cpus.iter().find_map(|cpu| match cpu {
        ParamValue::Integer(cpu) if *cpu >= most => Some(format!("no such CPU on this worker: {cpu}")),
        _ => None,
    })
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

#[cfg(test)]
mod tests {
    use wb_model::Bytes;

    use super::*;

    // A run refused the cell only after the guests had booted.
    #[test]
    fn a_cpu_that_no_guest_has_is_missing() {
        let guest = |name: &str, cpus| PlannedGuest {
            name: name.parse().unwrap(),
            cpus,
            memory: Bytes(1 << 30),
            disk: Bytes(1 << 30),
            image: String::new(),
            virt_type: None,
        };
        let guests = [guest("vm1", 1), guest("vm2", 2)];
        let missing = |cpus: &[i64]| {
            let cpus = cpus.iter().map(|cpu| ParamValue::Integer(*cpu)).collect();
            missing_guest_cpu(&Params::from([("cpus".to_owned(), ParamValue::List(cpus))]), guests.iter())
        };
        assert_eq!(missing(&[0, 1]), None);
        assert_eq!(missing(&[1, 2]).as_deref(), Some("no such CPU on this worker: 2"));
        assert_eq!(missing(&[]), None);
        assert_eq!(missing_guest_cpu(&Params::new(), guests.iter()), None);
    }
}
