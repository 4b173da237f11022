//! Reserves the huge pages that back guests' memory.

use std::collections::BTreeMap;

use wb_fleet::HostParams;
use wb_knobs::knobs::hugetlb::{HugePagePool, NodeHugePagePool};
use wb_knobs::tune::KnobSetting;
use wb_knobs::{Knob, KnobTarget};

use super::sizing::GuestSize;
use super::template::{FilledTemplate, PageSize};
use crate::error::ProfileErrorKind;
use crate::host_context::HostContext;
use crate::profile::{CpuPinning, GuestsConfig};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HugePageDemand {
    kibibytes: u64,
    /// The default size of the host in KiB.
    default: Option<u64>,
    /// Whether the guests cannot start without them.
    is_required: bool,
}

impl HugePageDemand {
    /// The pages that the user's template requests or, without a template, that pinned guests need.
    pub(super) fn new(
        guests: &GuestsConfig,
        template: Option<&FilledTemplate>,
        params: &HostParams,
        detected: &HostParams,
    ) -> Option<Self> {
        let (kibibytes, is_required) = match template {
            None if guests.placement == CpuPinning::Free => return None,
            None => (params.hugepage_kb, false),
            Some(filled) => match filled.huge_pages? {
                PageSize::Default => (detected.hugepage_kb, true),
                PageSize::Kibibytes(kibibytes) => (Some(kibibytes), true),
            },
        };
        Some(Self { kibibytes: kibibytes?, default: detected.hugepage_kb, is_required })
    }

    /// Reserves the pages until the group is torn down. If the host cannot, returns false with a message, or fails if
    /// the guests require them.
    pub(super) async fn reserve(
        &self,
        sizes: &[GuestSize],
        context: &HostContext<'_>,
    ) -> Result<bool, ProfileErrorKind> {
        let knobs = self.knobs(sizes);
        match context.group.tune(knobs.clone()).await {
            // Without an error all of them are set, and the record of each guest has the result.
            Ok(_) => Ok(true),
            Err(error) if self.is_required => Err(error.into()),
            Err(error) => {
                context.notify(format!("guests have no huge pages: {error}"));
                // Guests now need the memory of the pages that could be reserved.
                let none = knobs.into_iter().map(|setting| KnobSetting { value: "0".to_owned(), ..setting }).collect();
                for result in context.group.tune_best_effort(none).await?.0 {
                    if let Some(reason) = result.outcome.reason() {
                        context.notify(format!(
                            "huge pages stay reserved: {} of {}: {reason}",
                            result.knob, result.target
                        ));
                    }
                }
                Ok(false)
            }
        }
    }

    /// The knobs to set, if the guests cannot start otherwise.
    pub(super) fn required_knobs(&self, sizes: &[GuestSize]) -> Vec<KnobSetting> {
        if self.is_required { self.knobs(sizes) } else { Vec::new() }
    }

    /// The number of pages on each node of pinned guests; of others, on all nodes together.
    fn knobs(&self, sizes: &[GuestSize]) -> Vec<KnobSetting> {
        let page_size = self.kibibytes << 10;
        let size_name = format!("{}kB", self.kibibytes);
        let other_size = (self.default != Some(self.kibibytes)).then_some(&size_name);
        let mut pages = BTreeMap::<KnobTarget, u64>::new();
        for size in sizes {
            if size.nodes.is_empty() {
                let pool = KnobTarget::PageSize(size_name.clone());
                *pages.entry(pool).or_default() += size.memory.0.div_ceil(page_size);
            }
            let share = size.memory.0.div_ceil(size.nodes.len().max(1) as u64);
            for node in &size.nodes {
                let pool = KnobTarget::NodePages(*node, other_size.cloned());
                *pages.entry(pool).or_default() += share.div_ceil(page_size);
            }
        }
        let setting = |(pool, count): (KnobTarget, u64)| {
            let knob: &dyn Knob =
                if matches!(pool, KnobTarget::NodePages(..)) { &NodeHugePagePool } else { &HugePagePool };
            KnobSetting::for_knob(knob, Some(&pool), &count.to_string())
        };
        pages.into_iter().map(setting).collect()
    }
}

#[cfg(test)]
mod tests {
    use wb_model::Bytes;

    use super::*;

    fn demand(kibibytes: u64) -> HugePageDemand {
        HugePageDemand { kibibytes, default: Some(2048), is_required: true }
    }

    fn guest(mebibytes: u64, nodes: &[u32]) -> GuestSize {
        GuestSize { cpus: 2, memory: Bytes(mebibytes << 20), pinned: vec![], nodes: nodes.to_vec() }
    }

    fn knobs(kibibytes: u64, sizes: &[GuestSize]) -> Vec<String> {
        demand(kibibytes).knobs(sizes).iter().map(|setting| format!("{}={}", setting.key(), setting.value)).collect()
    }

    // Pages were reserved in the default size of the host, whatever `hugepage-kb` said.
    #[test]
    fn pages_are_of_the_requested_size_on_the_guests_nodes() {
        let guests = [guest(512, &[0]), guest(515, &[0, 1])];
        assert_eq!(knobs(2048, &guests), ["nr-hugepages@node0=385", "nr-hugepages@node1=129"]);
        let guests = [guest(1024, &[0]), guest(3072, &[0, 1])];
        assert_eq!(knobs(1 << 20, &guests), ["nr-hugepages@node0/1048576kB=3", "nr-hugepages@node1/1048576kB=2"]);
        assert_eq!(knobs(2048, &[guest(512, &[]), guest(3, &[])]), ["hugetlb@2048kB=258"]);
    }

    #[test]
    fn template_decides_about_huge_pages_if_there_is_one() {
        let params = |hugepage_kb| HostParams { hugepage_kb, ..HostParams::default() };
        let (given, detected) = (params(Some(1 << 20)), params(Some(2048)));
        let pinned = GuestsConfig { placement: CpuPinning::Pinned, ..GuestsConfig::default() };
        let of = |guests: &GuestsConfig, huge_pages: Option<Option<PageSize>>| {
            let template = huge_pages.map(|huge_pages| FilledTemplate { xml: String::new(), huge_pages });
            let demand = HugePageDemand::new(guests, template.as_ref(), &given, &detected)?;
            Some((demand.kibibytes, demand.is_required))
        };
        assert_eq!(of(&pinned, None), Some((1 << 20, false)));
        assert_eq!(of(&GuestsConfig::default(), None), None);
        assert_eq!(of(&pinned, Some(None)), None);
        assert_eq!(of(&GuestsConfig::default(), Some(Some(PageSize::Default))), Some((2048, true)));
        assert_eq!(of(&pinned, Some(Some(PageSize::Kibibytes(4)))), Some((4, true)));
    }
}
