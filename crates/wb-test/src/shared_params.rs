//! Parameters that every test has, and their separation from those of a test.

use serde::de::DeserializeOwned;
use wb_knobs::tune::KnobSetting;
use wb_model::{AttemptSetup, Facts, Param, ParamValue, Params, Placement};
use wb_plan::{KNOBS, SIDES, WORKERS};

/// Decoded parameters of a cell that every test has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SharedParams {
    pub placement: Placement,
    /// Environment variables, and the command to run before each attempt.
    pub setup: AttemptSetup,
    /// Set while a sample is taken; ordered by key.
    pub knobs: Vec<KnobSetting>,
}

/// Why effective parameters cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidParams {
    #[error("`{name}`: {reason}")]
    One { name: String, reason: String },
    /// Each is valid, but not all together.
    #[error("{0}")]
    Together(String),
}

impl SharedParams {
    pub fn declarations() -> Vec<Param> {
        let text = |word: &str| Some(ParamValue::Text(word.to_owned()));
        let help_and_default = |name: &str| match name {
            "cpus" => ("CPUs that the measured processes may run on; empty: all", Some(ParamValue::List(Vec::new()))),
            "memory-nodes" => {
                ("NUMA nodes that their memory must come from; empty: any", Some(ParamValue::List(Vec::new())))
            }
            "huge-pages" => ("Transparent huge pages of the measured processes", text("inherit")),
            "aslr" => ("Address-space randomisation of the measured processes", text("inherit")),
            // Without a default, cells that were defined without them keep their identity.
            "env" => ("Environment variables of the test's processes, each `NAME=VALUE`", None),
            _ => ("Command line for sh, run before each attempt; it must succeed", None),
        };
        let params = Param::from_schema::<Placement>().into_iter().chain(Param::from_schema::<AttemptSetup>());
        let described = params.map(|param| {
            let (help, default) = help_and_default(&param.name);
            Param { help: help.to_owned(), default, ..param }
        });
        described.collect()
    }

    /// Splits the effective parameters of a cell into those of its test and the shared ones. Parameters by which a plan
    /// assigns roles to workers belong to neither.
    pub fn split(params: &Params) -> Result<(Params, Self), InvalidParams> {
        let (mut own, mut placement, mut setup) = (Params::new(), Params::new(), Params::new());
        let mut knobs = Vec::new();
        for (name, value) in params {
            if let Some(key) = name.strip_prefix(KNOBS) {
                // Plans have only knobs that exist. A recorded cell may have one that earlier versions had, and is
                // studied nevertheless.
                knobs.push(KnobSetting::from_checked_key(key, value.to_string()));
                continue;
            }
            let group = match name.as_str() {
                WORKERS | SIDES => continue,
                // Every test has them; they are part of the key and can be axes: `himeno:huge-pages=[always,never]`.
                name if Placement::PARAMS.contains(&name) => &mut placement,
                name if AttemptSetup::PARAMS.contains(&name) => &mut setup,
                _ => &mut own,
            };
            group.insert(name.clone(), value.clone());
        }
        Ok((own, Self { placement: decode(&placement)?, setup: decode(&setup)?, knobs }))
    }

    /// Why a machine does not support them, if so.
    pub fn unsupported(&self, facts: &Facts) -> Option<String> {
        if let Err(reason) = self.setup.variables() {
            return Some(reason);
        }
        let Placement { cpus, memory_nodes, .. } = &self.placement;
        if let Some(cpu) = cpus.iter().find(|cpu| facts.cpus.iter().all(|existing| existing.id != **cpu)) {
            return Some(format!("no such CPU on this worker: {cpu}"));
        }
        let is_unknown = |node: &&u32| facts.nodes.iter().all(|existing| existing.id != **node);
        memory_nodes.iter().find(is_unknown).map(|node| format!("no such NUMA node on this worker: {node}"))
    }
}

/// The error names the parameter at fault.
pub fn decode<P: DeserializeOwned>(params: &Params) -> Result<P, InvalidParams> {
    let decode = |params: &Params| -> serde_json::Result<P> { serde_json::from_value(serde_json::to_value(params)?) };
    decode(params).map_err(|error| {
        let is_invalid = |(name, value): &(&String, &ParamValue)| {
            decode(&Params::from([((*name).clone(), (*value).clone())])).is_err()
        };
        let reason = error.to_string();
        match params.iter().find(is_invalid) {
            Some((name, _)) => InvalidParams::One { name: name.clone(), reason },
            None => InvalidParams::Together(reason),
        }
    })
}

#[cfg(test)]
mod tests {
    use wb_model::HugePages;

    use super::*;

    fn params(json: &str) -> Params {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn parameters_are_split_by_what_they_determine() {
        let json = r#"{"n": 3, "cpus": [0, 2], "huge-pages": "always", "env": ["A=b"], "before": "sync",
            "knobs.thp-enabled": "never", "knobs.nr-requests@sda": 64, "workers": 2, "sides": "apart"}"#;
        let (own, shared) = SharedParams::split(&params(json)).unwrap();
        assert_eq!(own, params(r#"{"n": 3}"#));
        assert_eq!((shared.placement.cpus, shared.placement.huge_pages), (vec![0, 2], HugePages::Always));
        assert_eq!((shared.setup.env, shared.setup.before_command), (vec!["A=b".to_owned()], Some("sync".to_owned())));
        let setting = |key, value: &str| KnobSetting::new(key, value.to_owned()).unwrap();
        assert_eq!(shared.knobs, [setting("nr-requests@sda", "64"), setting("thp-enabled", "never")]);
    }

    #[test]
    fn an_error_names_the_invalid_parameter() {
        let error = SharedParams::split(&params(r#"{"aslr": "off", "cpus": [-1]}"#)).unwrap_err();
        assert!(matches!(&error, InvalidParams::One { name, .. } if name == "cpus"), "{error}");
        assert!(error.to_string().starts_with("`cpus`: invalid value: integer `-1`, expected u32"), "{error}");
    }

    #[test]
    fn what_a_machine_lacks_is_unsupported() {
        let reason = |json: &str| SharedParams::split(&params(json)).unwrap().1.unsupported(&Facts::default());
        assert_eq!(reason("{}"), None);
        assert_eq!(reason(r#"{"cpus": [7]}"#).as_deref(), Some("no such CPU on this worker: 7"));
        assert_eq!(reason(r#"{"memory-nodes": [1]}"#).as_deref(), Some("no such NUMA node on this worker: 1"));
        assert_eq!(
            reason(r#"{"env": ["=b"]}"#).as_deref(),
            Some("invalid environment variable `=b`: expected NAME=VALUE")
        );
    }

    #[test]
    fn only_parameters_of_the_setup_have_no_default() {
        for param in SharedParams::declarations() {
            let is_of_setup = AttemptSetup::PARAMS.contains(&param.name.as_str());
            assert_eq!(param.default.is_none(), is_of_setup, "{}", param.name);
        }
    }
}
