//! CPU time and context switches, by the kernel's accounting.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// CPU time and context switches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// CPU time in user mode, in nanoseconds.
    pub user_ns: u64,
    /// CPU time in the kernel, in nanoseconds.
    pub system_ns: u64,
    /// Voluntary context switches: the thread waited.
    pub voluntary_switches: u64,
    /// Involuntary context switches: another thread was scheduled.
    pub involuntary_switches: u64,
}

impl Usage {
    /// CPU time in user mode and in the kernel, in nanoseconds. Saturates, as usages also come from other machines.
    #[inline]
    pub fn cpu_ns(self) -> u64 {
        self.user_ns.saturating_add(self.system_ns)
    }

    #[inline]
    #[must_use]
    pub fn split_among(self, among: u64) -> Self {
        let share = |all: u64| all / among.max(1);
        Self {
            user_ns: share(self.user_ns),
            system_ns: share(self.system_ns),
            voluntary_switches: share(self.voluntary_switches),
            involuntary_switches: share(self.involuntary_switches),
        }
    }

    #[inline]
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        self.combine(before, u64::saturating_sub)
    }

    /// Saturates, as usages also come from other machines.
    #[inline]
    pub fn add(&mut self, other: Self) {
        *self = self.combine(other, u64::saturating_add);
    }

    #[inline]
    fn combine(self, other: Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            user_ns: combine(self.user_ns, other.user_ns),
            system_ns: combine(self.system_ns, other.system_ns),
            voluntary_switches: combine(self.voluntary_switches, other.voluntary_switches),
            involuntary_switches: combine(self.involuntary_switches, other.involuntary_switches),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usages_of_any_size_are_summed() {
        let largest = Usage {
            user_ns: u64::MAX,
            system_ns: u64::MAX,
            voluntary_switches: u64::MAX,
            involuntary_switches: u64::MAX,
        };
        let mut sum = largest;
        sum.add(largest);
        assert_eq!((sum, sum.cpu_ns()), (largest, u64::MAX));
        assert_eq!(Usage::default().since(largest), Usage::default());
    }
}
