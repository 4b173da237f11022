//! Changes to the quality of service of io.cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::IocostQos;
use wb_model::io_cost::round_hundredths;

/// Changes to a quality of service; what is `None` stays.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct QosOverride {
    /// See [`IocostQos::rpct`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rpct: Option<f64>,
    /// See [`IocostQos::rlat`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rlat: Option<u64>,
    /// See [`IocostQos::wpct`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wpct: Option<f64>,
    /// See [`IocostQos::wlat`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wlat: Option<u64>,
    /// See [`IocostQos::min`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// See [`IocostQos::max`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
}

impl QosOverride {
    /// A fixed vrate, in percent.
    pub fn fixed_vrate(vrate: f64) -> Self {
        let vrate = Some(round_hundredths(vrate));
        Self { min: vrate, max: vrate, ..Self::default() }
    }

    /// The fixed vrate that it sets, if it changes nothing else.
    pub fn as_fixed_vrate(&self) -> Option<f64> {
        let Self { rpct: None, rlat: None, wpct: None, wlat: None, min: Some(min), max: Some(max) } = *self else {
            return None;
        };
        (min == max).then_some(min)
    }

    pub fn apply(&self, base: IocostQos) -> IocostQos {
        IocostQos {
            rpct: self.rpct.unwrap_or(base.rpct),
            rlat: self.rlat.unwrap_or(base.rlat),
            wpct: self.wpct.unwrap_or(base.wpct),
            wlat: self.wlat.unwrap_or(base.wlat),
            min: self.min.unwrap_or(base.min),
            max: self.max.unwrap_or(base.max),
        }
        .rounded()
    }

    /// A quality of service with these changes, each in brackets: `rpct=95.00 … [min=75.00] [max=75.00]`.
    pub fn describe(&self, base: IocostQos) -> String {
        let qos = self.apply(base);
        let figures = [
            (self.rpct.is_some(), format!("rpct={:.2}", qos.rpct)),
            (self.rlat.is_some(), format!("rlat={}", qos.rlat)),
            (self.wpct.is_some(), format!("wpct={:.2}", qos.wpct)),
            (self.wlat.is_some(), format!("wlat={}", qos.wlat)),
            (self.min.is_some(), format!("min={:.2}", qos.min)),
            (self.max.is_some(), format!("max={:.2}", qos.max)),
        ];
        let words = figures.map(|(is_changed, figure)| if is_changed { format!("[{figure}]") } else { figure });
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QOS: IocostQos = IocostQos { rpct: 95.0, rlat: 217, wpct: 95.0, wlat: 161, min: 60.0, max: 100.0 };

    #[test]
    fn changes_are_shown_in_brackets() {
        assert_eq!(
            QosOverride::fixed_vrate(75.0).describe(QOS),
            "rpct=95.00 rlat=217 wpct=95.00 wlat=161 [min=75.00] [max=75.00]"
        );
        assert_eq!(QosOverride::default().describe(QOS), QOS.to_string());
    }

    #[test]
    fn only_a_change_of_both_limits_alone_is_a_fixed_vrate() {
        assert_eq!(QosOverride::fixed_vrate(33.333).as_fixed_vrate(), Some(33.33));
        assert_eq!(QosOverride { rlat: Some(1), ..QosOverride::fixed_vrate(50.0) }.as_fixed_vrate(), None);
        assert_eq!(QosOverride { max: Some(60.0), ..QosOverride::fixed_vrate(50.0) }.as_fixed_vrate(), None);
    }
}
