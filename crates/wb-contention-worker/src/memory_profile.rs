//! Memory profiles: machines of a standard size, which make results of different ones comparable.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Bytes;

use super::ContentionError;

const GIB: u64 = 1 << 30;

/// A machine of a given size, emulated on a larger one
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "u32", into = "u32")]
pub struct MemoryProfile(u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid memory profile `{0}`: expected a power of two, in GiB")]
pub struct InvalidProfile(pub u32);

impl TryFrom<u32> for MemoryProfile {
    type Error = InvalidProfile;

    fn try_from(gib: u32) -> Result<Self, InvalidProfile> {
        if gib.is_power_of_two() { Ok(Self(gib)) } else { Err(InvalidProfile(gib)) }
    }
}

impl From<MemoryProfile> for u32 {
    fn from(profile: MemoryProfile) -> Self {
        profile.0
    }
}

impl MemoryProfile {
    /// What the workload gets: half of up to 4 GiB, three quarters of up to 16 GiB, all but 8 GiB of a larger one
    /// (resctl-bench, `mem-profile`).
    pub fn share(self) -> Bytes {
        let gib = u64::from(self.0);
        Bytes(match gib {
            0..=4 => gib * GIB / 2,
            5..=16 => gib * GIB / 4 * 3,
            _ => (gib - 8) * GIB,
        })
    }
}

/// The memory that sizing may use of a share: all but an eighth, which is at most 1 GiB. Longer runs need it in
/// addition to what a short one determined.
pub fn target(share: Bytes) -> Bytes {
    Bytes(share.0 - (share.0 / 8).min(GIB))
}

/// Memory that is left for the workload, and what it gets of that
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct MemoryShare {
    /// The profile, in GiB; none if the whole machine is used
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<MemoryProfile>,
    /// Memory that workloads can get on this machine
    pub avail: Bytes,
    /// What the workload gets of it
    pub share: Bytes,
    /// What sizing uses of the share
    pub target: Bytes,
}

impl MemoryShare {
    /// The share of a profile, or of the whole machine. Fails if less is available than the profile's share.
    pub fn new(profile: Option<MemoryProfile>, avail: Bytes) -> Result<Self, ContentionError> {
        let share = profile.map_or(avail, MemoryProfile::share);
        if let Some(profile) = profile
            && share > avail
        {
            return Err(ContentionError::TooLittleMemory { profile: profile.0, share, available: avail });
        }
        Ok(Self { profile, avail, share, target: target(share) })
    }

    /// The size of the balloon that leaves the target for sizing.
    pub fn sizing_balloon(&self) -> Bytes {
        Bytes(self.avail.0 - self.target.0)
    }

    /// The size of the balloon that leaves the share for the workload.
    pub fn balloon(&self) -> Bytes {
        Bytes(self.avail.0 - self.share.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_targets_are_those_of_resctl_bench() {
        let sizes = |gib: u32| {
            let share = MemoryProfile::try_from(gib).unwrap().share();
            [share, target(share)].map(|size| size.0 as f64 / GIB as f64)
        };
        assert_eq!(sizes(1), [0.5, 0.4375]);
        assert_eq!(sizes(4), [2.0, 1.75]);
        assert_eq!(sizes(8), [6.0, 5.25]);
        // As in the header of a result with the profile 16.
        assert_eq!(sizes(16), [12.0, 11.0]);
        assert_eq!(sizes(64), [56.0, 55.0]);
    }

    #[test]
    fn a_profile_is_a_power_of_two() {
        assert_eq!(MemoryProfile::try_from(3), Err(InvalidProfile(3)));
        assert_eq!(MemoryProfile::try_from(0), Err(InvalidProfile(0)));
        let text = serde_json::from_str::<MemoryProfile>("12").unwrap_err().to_string();
        assert!(text.starts_with("invalid memory profile `12`: expected a power of two, in GiB"), "{text}");
    }

    #[test]
    fn a_profile_needs_its_share() {
        let profile = MemoryProfile::try_from(1).unwrap();
        let memory = MemoryShare::new(Some(profile), Bytes(GIB)).unwrap();
        assert_eq!((memory.balloon(), memory.sizing_balloon()), (Bytes(GIB / 2), Bytes(GIB / 16 * 9)));
        let error = MemoryShare::new(Some(profile), Bytes(GIB / 4)).unwrap_err().to_string();
        assert_eq!(error, "the memory profile of 1 GiB needs 512 MiB, and 256 MiB are available: use a smaller one");
        let whole = MemoryShare::new(None, Bytes(GIB)).unwrap();
        assert_eq!((whole.share, whole.balloon()), (Bytes(GIB), Bytes(0)));
    }
}
