//! Built-in plans.

use wb_diagnostics::Diagnostics;

use crate::file::{self, PlanFile};

const PLANS: [(&str, &str); 2] =
    [("quick", include_str!("../plans/quick.toml")), ("standard", include_str!("../plans/standard.toml"))];

/// Parses a built-in plan; `None` if there is none with this name.
pub fn plan(name: &str) -> Option<Result<PlanFile, Diagnostics>> {
    PLANS
        .iter()
        .find(|(candidate, _)| *candidate == name)
        .map(|(name, text)| file::parse(&format!("{name}.toml"), text))
}

/// The text of a built-in plan, to read or to use as a template.
pub fn text(name: &str) -> Option<&'static str> {
    PLANS.iter().find(|(candidate, _)| *candidate == name).map(|(_, text)| *text)
}

pub fn json(name: &str) -> Option<serde_json::Value> {
    toml::from_str(text(name)?).ok()
}

pub fn names() -> impl Iterator<Item = &'static str> {
    PLANS.iter().map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_builtin_plan_parses() {
        for name in names() {
            let plan = plan(name).unwrap().unwrap();
            assert_eq!(plan.name, name);
            assert!(!plan.summary.is_empty() && !plan.requests.is_empty());
            assert_eq!(json(name).unwrap()["test"].as_array().unwrap().len(), plan.requests.len());
        }
    }
}
