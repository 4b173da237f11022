//! Differences between the machines of several results.

use wb_model::Bytes;
use wb_results::contention::SystemInfo;

use crate::figures;

/// What differs on another machine, as the header names it.
pub(super) fn differences(own: &SystemInfo, other: &SystemInfo) -> Vec<String> {
    let fields = |system: &SystemInfo| {
        let size = |bytes: Bytes| figures::size(bytes.0 as f64);
        [
            ("kernel", format!("{:?}", system.kernel)),
            ("nr_cpus", system.nr_cpus.to_string()),
            ("memory", size(system.memory)),
            ("swap", size(system.swap)),
            ("swappiness", system.swappiness.to_string()),
            ("zswap", system.zswap.to_string()),
            ("passive", system.passive.to_string()),
            ("size", size(system.device.size)),
            ("iosched", system.device.scheduler.clone()),
            ("wbt", if system.device.wbt { "on" } else { "off" }.to_owned()),
            ("missed", system.missed_requirements.join("/")),
        ]
    };
    let pairs = fields(own).into_iter().zip(fields(other));
    pairs.filter(|(own, other)| own != other).map(|(_, (name, value))| format!("{name}={value}")).collect()
}
