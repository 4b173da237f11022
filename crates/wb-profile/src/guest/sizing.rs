//! Determines the number, size and placement of guests.

use wb_fleet::{CpuSpec, HostParams};
use wb_model::{Bytes, Facts};

use crate::error::ProfileErrorKind;
use crate::profile::{CpuPinning, GuestCount, GuestsConfig};

/// The minimum memory that a Linux guest starts with.
const MIN_MEMORY: Bytes = Bytes(256 << 20);

/// Size and placement of one guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GuestSize {
    /// Its number of CPUs.
    pub(crate) cpus: u32,
    /// Its memory.
    pub(crate) memory: Bytes,
    /// The host's CPUs that its CPUs are pinned to, in order; empty if it may run anywhere.
    pub(crate) pinned: Vec<u32>,
    /// The NUMA nodes of the pinned CPUs.
    pub(crate) nodes: Vec<u32>,
}

/// The guests of a profile on a host with these parameters.
///
/// # Errors
/// If the CPUs or the memory do not suffice.
pub(crate) fn plan_guests(
    guests: &GuestsConfig,
    params: &HostParams,
    facts: &Facts,
) -> Result<Vec<GuestSize>, ProfileErrorKind> {
    let unknown = || ProfileErrorKind::NotEnoughResources("the host's CPUs are unknown".to_owned());
    let for_guests = resolve_cpus(params.guest_cpus.as_ref().ok_or_else(unknown)?, facts);
    let host_count = params.host_cpus.as_ref().map_or(for_guests.len(), CpuSpec::count);
    let available = u32::try_from(for_guests.len()).unwrap_or(u32::MAX);
    let each = guests.cpus.unwrap_or(match guests.count {
        GuestCount::Exactly(count) => (available / count.max(1)).max(1),
        GuestCount::Fill | GuestCount::Times(_) => 1,
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
            "{count} guests would have {share} MiB of memory each, and at least {minimum} MiB are required"
        )));
    }
    let size = GuestSize { cpus: each, memory, pinned: Vec::new(), nodes: Vec::new() };
    if guests.placement == CpuPinning::Free {
        return Ok(vec![size; count as usize]);
    }
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

/// The CPUs of a parameter; for a mere number, the first ones, core by core.
fn resolve_cpus(cpus: &CpuSpec, facts: &Facts) -> Vec<u32> {
    match cpus {
        CpuSpec::List(list) => list.clone(),
        CpuSpec::Count(count) => facts.cpus.iter().map(|cpu| cpu.id).take(*count as usize).collect(),
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
    fn too_little_memory_is_refused() {
        let guests = GuestsConfig { count: GuestCount::Exactly(6), ..GuestsConfig::default() };
        let small = HostParams { guest_mem_m: Some(600), ..params() };
        assert!(plan_guests(&guests, &small, &facts()).unwrap_err().to_string().contains("100 MiB"));
    }
}
