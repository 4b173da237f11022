//! Properties of `iocost-params`.

use wb_diagnostics::Diagnostics;
use wb_results::contention::Bench;

use crate::spec::reader::{Group, GroupReader};
use crate::spec::refuse_stages;
use crate::spec::value::Property;

#[derive(Debug, Clone, PartialEq)]
pub struct IocostParamsProperties {
    /// Whether later benches of the sequence use the result.
    pub apply: bool,
    /// Whether the result is kept for later sequences; implies `apply`.
    pub commit: bool,
}

impl Default for IocostParamsProperties {
    fn default() -> Self {
        Self { apply: true, commit: true }
    }
}

pub(crate) fn read(mut first: GroupReader<'_>, rest: &[Group<'_>]) -> Result<IocostParamsProperties, Diagnostics> {
    refuse_stages(Bench::IocostParams, rest, first.source)?;
    let default = IocostParamsProperties::default();
    let properties = IocostParamsProperties {
        apply: first.take("apply").unwrap_or(default.apply),
        commit: first.take("commit").unwrap_or(default.commit),
    };
    first.finish()?;
    Ok(properties)
}

impl IocostParamsProperties {
    pub(crate) fn list(&self) -> Vec<Property> {
        let default = Self::default();
        let properties = [
            Property::unless("apply", self.apply, default.apply),
            Property::unless("commit", self.commit, default.commit),
        ];
        properties.into_iter().flatten().collect()
    }
}
