//! Plans that come with the program.

use crate::PlanError;
use crate::file::{self, PlanFile};

/// Name and text of every plan that comes with the program.
const PLANS: [(&str, &str); 2] =
    [("quick", include_str!("../plans/quick.toml")), ("standard", include_str!("../plans/standard.toml"))];

/// The plan of this name, if there is one.
pub fn plan(name: &str) -> Option<Result<PlanFile, PlanError>> {
    PLANS.iter().find(|(known, _)| *known == name).map(|(name, text)| file::parse(&format!("{name}.toml"), text))
}

/// The text of the plan of this name, to look at or to start one's own from.
pub fn text(name: &str) -> Option<&'static str> {
    PLANS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// What the plan of this name says, as JSON.
pub fn json(name: &str) -> Option<serde_json::Value> {
    toml::from_str(text(name)?).ok()
}

/// The names of the plans.
pub fn names() -> impl Iterator<Item = &'static str> {
    PLANS.iter().map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plan_can_be_read() {
        for name in names() {
            let plan = plan(name).unwrap().unwrap();
            assert_eq!(plan.name, name);
            assert!(!plan.summary.is_empty() && !plan.requests.is_empty());
            assert_eq!(json(name).unwrap()["test"].as_array().unwrap().len(), plan.requests.len());
        }
    }
}
