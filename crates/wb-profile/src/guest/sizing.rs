//! Determines the number, size and placement of guests.

use wb_fleet::{CpuSpec, HostParams};
use wb_model::{Bytes, Facts, Quantity, pluralize};
use wb_sys::facts::cpu_list;

use crate::error::ProfileErrorKind;
use crate::profile::{CpuPinning, GuestCount, GuestsConfig};

/// The minimum memory that a Linux guest starts with.
const MIN_MEMORY: Bytes = Bytes(256 << 20);

/// CPUs of each guest where neither the profile nor the host determines their number.
const SMALL_GUEST_CPUS: u32 = 2;

/// Size and placement of one guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GuestSize {
    pub(crate) cpus: u32,
    pub(crate) memory: Bytes,
    /// The host's CPUs that its CPUs are pinned to, in order; empty if it may run anywhere.
    pub(crate) pinned: Vec<u32>,
    pub(crate) nodes: Vec<u32>,
}

/// The guests of a profile on a host with these parameters.
pub(crate) fn plan_guests(
    guests: &GuestsConfig,
    params: &HostParams,
    facts: &Facts,
) -> Result<Vec<GuestSize>, ProfileErrorKind> {
    let unknown = || ProfileErrorKind::NotEnoughResources("the host's CPUs are unknown".to_owned());
    let guest_cpus = params.guest_cpus.as_ref().ok_or_else(unknown)?;
    let host_count = params.host_cpus.as_ref().map_or(guest_cpus.count(), CpuSpec::count);
    let available = u32::try_from(guest_cpus.count()).unwrap_or(u32::MAX);
    let each = guests.cpus.unwrap_or(match guests.count {
        GuestCount::Exactly(count) => (available / count.max(1)).max(1),
        GuestCount::Fill => SMALL_GUEST_CPUS,
        // As in run-perf. Guests of all CPUs would make a single one, which overcommits nothing.
        GuestCount::Times(_) if guest_cpus.count() < host_count => available.max(1),
        GuestCount::Times(_) => SMALL_GUEST_CPUS,
    });
    let count = match guests.count {
        GuestCount::Exactly(count) => count,
        GuestCount::Fill => (available / each).max(1),
        GuestCount::Times(times) => ((host_count as f64 * times / f64::from(each)) as u32).max(1),
    };
    let share = Bytes((params.guest_mem_m.unwrap_or(0) << 20) / u64::from(count));
    let memory = guests.memory.unwrap_or(share);
    if memory < MIN_MEMORY {
        let [share, minimum] = [memory, MIN_MEMORY].map(|size| size.0 >> 20);
        return Err(ProfileErrorKind::NotEnoughResources(format!(
            "{} would have {share} MiB of memory each, and at least {minimum} MiB are required",
            pluralize(count as usize, "guest")
        )));
    }
    let required = memory.0.saturating_mul(u64::from(count));
    // The host needs some itself. Facts without memory are of a host that hides it.
    if facts.memory > Bytes(0) && required.saturating_add(MIN_MEMORY.0) > facts.memory.0 {
        let [each, required, kept, total] = [memory.0, required, MIN_MEMORY.0, facts.memory.0]
            .map(|bytes| Quantity { value: bytes as f64, unit: "B" }.to_string());
        return Err(ProfileErrorKind::NotEnoughResources(format!(
            "{} of {each} need {required} of memory; the host has {total}, of which it needs {kept} itself",
            pluralize(count as usize, "guest")
        )));
    }
    let size = GuestSize { cpus: each, memory, pinned: Vec::new(), nodes: Vec::new() };
    if guests.placement == CpuPinning::Free {
        return Ok(vec![size; count as usize]);
    }
    let for_guests = resolve_cpus(guest_cpus, facts)?;
    let required = each as usize * count as usize;
    if required > for_guests.len() {
        let available = for_guests.len();
        return Err(ProfileErrorKind::NotEnoughResources(format!(
            "pinned guests need {required} CPUs, and {available} are available for guests"
        )));
    }
    let pinned = for_guests.chunks(each as usize).take(count as usize);
    Ok(pinned.map(|cpus| GuestSize { pinned: cpus.to_vec(), nodes: nodes(cpus, facts), ..size.clone() }).collect())
}

/// The CPUs of a parameter: those of a list, which must all be online; for a mere number, the first ones, core by core.
fn resolve_cpus(cpus: &CpuSpec, facts: &Facts) -> Result<Vec<u32>, ProfileErrorKind> {
    let online = || facts.cpus.iter().map(|cpu| cpu.id);
    match cpus {
        CpuSpec::List(list) => {
            let offline: Vec<u32> = list.iter().copied().filter(|cpu| online().all(|other| other != *cpu)).collect();
            if offline.is_empty() {
                return Ok(list.clone());
            }
            Err(ProfileErrorKind::NotEnoughResources(format!(
                "`guest-cpus` is `{cpus}`, and of these the host has no {} online",
                cpu_list::format(&offline)
            )))
        }
        CpuSpec::Count(count) => Ok(online().take(*count as usize).collect()),
    }
}

fn nodes(cpus: &[u32], facts: &Facts) -> Vec<u32> {
    let mut nodes: Vec<u32> = facts.cpus.iter().filter(|cpu| cpus.contains(&cpu.id)).map(|cpu| cpu.node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

#[cfg(test)]
mod tests {
    use wb_model::facts::Cpu;

    use super::*;

    fn facts() -> Facts {
        let cpus = (0..8).map(|id| Cpu { id, core: id, package: 0, node: id / 4 }).collect();
        Facts { cpus, ..Facts::default() }
    }

    fn params() -> HostParams {
        let cpus = |first, last| Some(CpuSpec::List((first..=last).collect()));
        HostParams { host_cpus: cpus(0, 7), guest_cpus: cpus(2, 7), guest_mem_m: Some(6000), ..HostParams::default() }
    }

    fn plan(guests: &GuestsConfig) -> Vec<GuestSize> {
        plan_guests(guests, &params(), &facts()).unwrap()
    }

    #[test]
    fn one_guest_gets_all_resources_and_several_share() {
        let one = plan(&GuestsConfig::default());
        assert_eq!((one.len(), one[0].cpus, one[0].memory), (1, 6, Bytes(6000 << 20)));
        let fill = plan(&GuestsConfig { count: GuestCount::Fill, cpus: Some(2), ..GuestsConfig::default() });
        assert_eq!((fill.len(), fill[0].cpus, fill[0].memory), (3, 2, Bytes(2000 << 20)));
        let over = plan(&GuestsConfig { count: GuestCount::Times(1.5), cpus: Some(2), ..GuestsConfig::default() });
        assert_eq!((over.len(), over[0].memory), (6, Bytes(1000 << 20)));
        // Guests of the CPUs for guests, as in run-perf: 8 / 6 × 1.5; of two CPUs if those are all.
        let sizes = |params: &HostParams| {
            let config = GuestsConfig { count: GuestCount::Times(1.5), ..GuestsConfig::default() };
            let guests = plan_guests(&config, params, &facts()).unwrap();
            (guests.len(), guests[0].cpus)
        };
        assert_eq!(sizes(&params()), (2, 6));
        assert_eq!(sizes(&HostParams { guest_cpus: params().host_cpus, ..params() }), (6, 2));
        let run_perf =
            HostParams { host_cpus: Some(CpuSpec::Count(16)), guest_cpus: Some(CpuSpec::Count(8)), ..params() };
        assert_eq!(sizes(&run_perf), (3, 8), "as given, although the host has 8 CPUs");
        let three = plan(&GuestsConfig {
            count: GuestCount::Exactly(3),
            memory: Some(Bytes(1 << 30)),
            ..GuestsConfig::default()
        });
        assert_eq!((three.len(), three[0].cpus, three[0].memory), (3, 2, Bytes(1 << 30)));
    }

    #[test]
    fn pinned_guests_have_dedicated_cpus_and_their_nodes_memory() {
        let guests =
            GuestsConfig { count: GuestCount::Exactly(2), placement: CpuPinning::Pinned, ..GuestsConfig::default() };
        let places: Vec<(Vec<u32>, Vec<u32>)> =
            plan(&guests).into_iter().map(|size| (size.pinned, size.nodes)).collect();
        assert_eq!(places, [(vec![2, 3, 4], vec![0, 1]), (vec![5, 6, 7], vec![1])]);
        let more = GuestsConfig { cpus: Some(4), ..guests };
        assert!(
            plan_guests(&more, &params(), &facts())
                .unwrap_err()
                .to_string()
                .contains("need 8 CPUs, and 6 are available")
        );
    }

    #[test]
    fn pinned_guests_need_the_named_cpus_online() {
        let guests = GuestsConfig { placement: CpuPinning::Pinned, ..GuestsConfig::default() };
        let refuse = |cpus: CpuSpec| {
            let params = HostParams { guest_cpus: Some(cpus), ..params() };
            plan_guests(&guests, &params, &facts()).unwrap_err().to_string()
        };
        let message = "`guest-cpus` is `6-9`, and of these the host has no 8-9 online";
        assert_eq!(refuse(CpuSpec::List(vec![6, 7, 8, 9])), message);
        assert_eq!(refuse(CpuSpec::Count(9)), "pinned guests need 9 CPUs, and 8 are available for guests");
    }

    #[test]
    fn guests_that_do_not_fit_into_the_memory_of_the_host_are_refused() {
        let host = |mebibytes: u64| Facts { memory: Bytes(mebibytes << 20), ..facts() };
        let guests = |count, mebibytes: u64| GuestsConfig {
            count: GuestCount::Exactly(count),
            memory: Some(Bytes(mebibytes << 20)),
            ..GuestsConfig::default()
        };
        let plan =
            |guests: &GuestsConfig, host: &Facts| plan_guests(guests, &params(), host).map_err(|it| it.to_string());
        let error = plan(&guests(3, 9000), &host(24_064)).unwrap_err();
        insta::assert_snapshot!(
            error,
            @"3 guests of 8.79 GiB need 26.4 GiB of memory; the host has 23.5 GiB, of which it needs 256 MiB itself"
        );
        assert_eq!(plan(&guests(1, 3840), &host(4096)).unwrap().len(), 1, "the host keeps 256 MiB");
        assert!(plan(&guests(1, 3841), &host(4096)).is_err());
        // A share of what the host parameters leave for guests is checked, too.
        let share = GuestsConfig { count: GuestCount::Exactly(2), ..GuestsConfig::default() };
        assert!(plan(&share, &host(6000)).is_err());
        assert!(plan(&share, &host(0)).is_ok(), "unknown memory");
    }

    #[test]
    fn too_little_memory_is_refused() {
        let guests = GuestsConfig { count: GuestCount::Exactly(6), ..GuestsConfig::default() };
        let small = HostParams { guest_mem_m: Some(600), ..params() };
        assert!(plan_guests(&guests, &small, &facts()).unwrap_err().to_string().contains("100 MiB"));
    }
}
