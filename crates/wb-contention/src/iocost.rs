//! Limits of the kernel's I/O cost controller: the vrate below which a device would be too slow, and those that a quality
//! of service permits.

use std::ops::RangeInclusive;

use wb_model::io_cost::round_hundredths;
use wb_model::{IocostModel, IocostQos};

/// The performance below which a device is not throttled: about three quarters of a hard disk of 7,200 rpm, with less
/// for sequential operations, at which old SSDs resemble hard disks (resctl-bench, `iocost.rs`). With less, hashd does
/// not recover from reclaim.
const FLOOR: IocostModel =
    IocostModel { rbps: 125 << 20, rseqiops: 280, rrandiops: 280, wbps: 125 << 20, wseqiops: 280, wrandiops: 280 };

/// The lowest vrate at which every parameter is at least that of a slow hard disk, in percent with two decimals.
pub fn min_vrate(model: IocostModel) -> f64 {
    let ratios = FLOOR.to_array().into_iter().zip(model.to_array()).map(|(floor, own)| floor as f64 / own as f64);
    round_hundredths(ratios.fold(0.0, f64::max) * 100.0)
}

/// Deviation from a bound of the vrate that the kernel's rounding explains, in percent.
const VRATE_ROUNDING: f64 = 1.0;

/// The vrates that a quality of service permits, in percent, as the kernel rounds them.
pub fn vrate_bounds(qos: IocostQos) -> RangeInclusive<f64> {
    qos.min - VRATE_ROUNDING..=qos.max + VRATE_ROUNDING
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fast_device_may_be_throttled_to_the_speed_of_a_hard_disk() {
        let model = FLOOR.scaled(8.0);
        assert_eq!(min_vrate(model), 12.5);
        assert_eq!(min_vrate(IocostModel { wrandiops: 560, ..model }), 50.0);
    }
}
