//! How many guests there are, of what size, and where.

use wb_fleet::{CpuSpec, HostParams};
use wb_model::{Bytes, Facts};

use crate::error::ProfileErrorKind;
use crate::profile::{CpuPinning, GuestCount, GuestsConfig};

/// The least memory that a Linux guest starts with.
const LEAST_MEMORY: Bytes = Bytes(256 << 20);

/// One guest, before it is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GuestSize {
    /// How many CPUs it has.
    pub(crate) cpus: u32,
    /// Its memory.
    pub(crate) memory: Bytes,
    /// The host's CPUs that are its own, one for each of its; none where it may run anywhere.
    pub(crate) pinned: Vec<u32>,
    /// The NUMA nodes of those.
    pub(crate) nodes: Vec<u32>,
}

/// The guests of a profile on a host of these parameters, found or given.
///
/// # Errors
/// Where there is no room for them.
pub(crate) fn plan_guests(
    guests: &GuestsConfig,
    params: &HostParams,
    facts: &Facts,
) -> Result<Vec<GuestSize>, ProfileErrorKind> {
    let none = || ProfileErrorKind::NotEnoughResources("the host's CPUs are not known".to_owned());
    let for_guests = resolve_cpus(params.guest_cpus.as_ref().ok_or_else(none)?, facts);
    let of_host = params.host_cpus.as_ref().map_or(for_guests.len(), CpuSpec::count);
    let all = u32::try_from(for_guests.len()).unwrap_or(u32::MAX);
    let each = guests.cpus.unwrap_or(match guests.count {
        GuestCount::Exactly(count) => (all / count.max(1)).max(1),
        GuestCount::Fill | GuestCount::Times(_) => 1,
    });
    let count = match guests.count {
        GuestCount::Exactly(count) => count,
        GuestCount::Fill => (all / each).max(1),
        GuestCount::Times(times) => ((of_host as f64 * times / f64::from(each)) as u32).max(1),
    };
    let share = Bytes((params.guest_mem_m.unwrap_or(0) << 20) / u64::from(count));
    let memory = guests.memory.unwrap_or(share);
    if memory < LEAST_MEMORY {
        let [share, least] = [memory, LEAST_MEMORY].map(|size| size.0 >> 20);
        return Err(ProfileErrorKind::NotEnoughResources(format!(
            "{count} guests would have {share} MiB of memory each, and need {least} MiB"
        )));
    }
    let size = GuestSize { cpus: each, memory, pinned: Vec::new(), nodes: Vec::new() };
    if guests.placement == CpuPinning::Free {
        return Ok(vec![size; count as usize]);
    }
    let wanted = each as usize * count as usize;
    if wanted > for_guests.len() {
        let there = for_guests.len();
        return Err(ProfileErrorKind::NotEnoughResources(format!(
            "guests with CPUs of their own need {wanted}, and {there} are there for guests"
        )));
    }
    let pinned = for_guests.chunks(each as usize).take(count as usize);
    Ok(pinned.map(|cpus| GuestSize { pinned: cpus.to_vec(), nodes: nodes(cpus, facts), ..size.clone() }).collect())
}

/// Which CPUs are meant; where only a number is said, the first ones, core by core.
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

    fn of(guests: &GuestsConfig) -> Vec<GuestSize> {
        plan_guests(guests, &params(), &facts()).unwrap()
    }

    #[test]
    fn one_guest_has_all_and_several_share() {
        let one = of(&GuestsConfig::default());
        assert_eq!((one.len(), one[0].cpus, one[0].memory), (1, 6, Bytes(6000 << 20)));
        let fill = of(&GuestsConfig { count: GuestCount::Fill, cpus: Some(2), ..GuestsConfig::default() });
        assert_eq!((fill.len(), fill[0].cpus, fill[0].memory), (3, 2, Bytes(2000 << 20)));
        let over = of(&GuestsConfig { count: GuestCount::Times(1.5), cpus: Some(2), ..GuestsConfig::default() });
        assert_eq!((over.len(), over[0].memory), (6, Bytes(1000 << 20)));
        let three = of(&GuestsConfig {
            count: GuestCount::Exactly(3),
            memory: Some(Bytes(1 << 30)),
            ..GuestsConfig::default()
        });
        assert_eq!((three.len(), three[0].cpus, three[0].memory), (3, 2, Bytes(1 << 30)));
    }

    #[test]
    fn pinned_guests_have_cpus_of_their_own_and_the_memory_beside_them() {
        let guests =
            GuestsConfig { count: GuestCount::Exactly(2), placement: CpuPinning::Pinned, ..GuestsConfig::default() };
        let places: Vec<(Vec<u32>, Vec<u32>)> = of(&guests).into_iter().map(|one| (one.pinned, one.nodes)).collect();
        assert_eq!(places, [(vec![2, 3, 4], vec![0, 1]), (vec![5, 6, 7], vec![1])]);
        let more = GuestsConfig { cpus: Some(4), ..guests };
        assert!(plan_guests(&more, &params(), &facts()).unwrap_err().to_string().contains("need 8, and 6 are there"));
    }

    #[test]
    fn too_little_memory_is_told() {
        let guests = GuestsConfig { count: GuestCount::Exactly(6), ..GuestsConfig::default() };
        let little = HostParams { guest_mem_m: Some(600), ..params() };
        assert!(plan_guests(&guests, &little, &facts()).unwrap_err().to_string().contains("100 MiB"));
    }
}
