//! Free space of file systems.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::condition::{Condition, ConditionDescription, ConditionReport, SystemSample};
use crate::target::KnobTarget;

pub struct DiskSpace;

/// Usage in percent from which file systems and solid-state disks have to search for free space.
const NEARLY_FULL_PERCENT: f64 = 90.0;

impl Condition for DiskSpace {
    fn description(&self) -> ConditionDescription {
        ConditionDescription {
            name: "disk-space",
            why: "a full file system fragments new files, and a full solid-state disk moves data to free blocks",
            evidence: "statvfs(3) of the root, temporary and current folders; Hu et al. (SYSTOR 2009) show how write amplification grows with the used share",
        }
    }
    fn observe(&self, sample: &SystemSample<'_>) -> Vec<ConditionReport> {
        if !sample.root.is_real() {
            return vec![ConditionReport::unsupported("available only on the running system")];
        }
        let mut devices = BTreeSet::new();
        let folders = [Some(PathBuf::from("/")), Some(std::env::temp_dir()), std::env::current_dir().ok()];
        let folders = folders
            .into_iter()
            .flatten()
            .filter(|folder| folder.metadata().is_ok_and(|metadata| devices.insert(metadata.dev())));
        folders.filter_map(|folder| Some(assess(&folder.display().to_string(), used(&folder)?))).collect()
    }
}

/// Used share of the space available to users, in percent.
fn used(folder: &std::path::Path) -> Option<f64> {
    let space = rustix::fs::statvfs(folder).ok()?;
    let used = space.f_blocks.checked_sub(space.f_bfree)?;
    (space.f_blocks > 0).then(|| used as f64 / used.saturating_add(space.f_bavail).max(1) as f64 * 100.0)
}

fn assess(folder: &str, percent: f64) -> ConditionReport {
    let state = format!("{percent:.0} % in use");
    let observed = if percent < NEARLY_FULL_PERCENT {
        ConditionReport::no_noise(state)
    } else {
        ConditionReport::noisy(
            state,
            "free some space",
            Some(format!("sudo du -xh --max-depth=2 {folder} | sort -h | tail")),
        )
    };
    observed.with_target(KnobTarget::Folder(folder.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::NoiseVerdict;

    #[test]
    fn a_full_disk_is_noisy() {
        assert_eq!(assess("/", 97.2).verdict, NoiseVerdict::Noisy);
        assert_eq!(assess("/", 30.0).verdict, NoiseVerdict::NoNoise);
        assert!(used(std::path::Path::new("/")).is_some_and(|percent| (0.0..=100.0).contains(&percent)));
    }
}
