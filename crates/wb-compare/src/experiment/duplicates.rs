//! Variants that ran identical programs: any difference between their results is noise.

use std::collections::{BTreeMap, BTreeSet};

use wb_model::Params;
use wb_results::experiment::DuplicateVariants;

use super::VariantSamples;

/// What determines a variant's results: parameters and programs, and the inputs of their build.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct VariantInputs {
    /// Effective ones, without those that only affect the build.
    pub params: Params,
    /// SHA-256 of the programs that ran, by name.
    pub programs: BTreeMap<String, String>,
    /// Effective parameters that only affect the build.
    pub build_params: Params,
    /// SHA-256 of compilers and other programs that the build uses, by name.
    pub build_programs: BTreeMap<String, String>,
}

impl VariantInputs {
    /// The build's inputs that differ, if everything else is the same. `None` if it is not, or if no program is known.
    fn build_only_differences(&self, other: &Self) -> Option<Vec<String>> {
        let is_same = self.params == other.params && self.programs == other.programs && !self.programs.is_empty();
        is_same.then(|| {
            let params: BTreeSet<&String> = self.build_params.keys().chain(other.build_params.keys()).collect();
            let params =
                params.into_iter().filter(|name| self.build_params.get(*name) != other.build_params.get(*name));
            // A program that only one of them uses was selected by a parameter, which is listed.
            let programs = self.build_programs.iter().filter(|(name, sha256)| {
                other.build_programs.get(*name).is_some_and(|other_sha256| other_sha256 != *sha256)
            });
            params.chain(programs.map(|(name, _)| name)).cloned().collect()
        })
    }
}

/// The pairs of variants that ran identical programs and have the same parameters, except those of the build.
pub(super) fn duplicates(variants: &[VariantSamples]) -> Vec<DuplicateVariants> {
    let mut pairs = Vec::new();
    for (index, one) in variants.iter().enumerate() {
        for other in &variants[index + 1..] {
            pairs.extend(one.inputs.build_only_differences(&other.inputs).map(|differences| DuplicateVariants {
                variants: [one.name.clone(), other.name.clone()],
                programs: one.inputs.programs.clone(),
                differences,
            }));
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variant(name: &str, flags: &str, program: &str, compiler: &str) -> VariantSamples {
        let owned = str::to_owned;
        let params = |name: &str, value: &str| Params::from([(owned(name), wb_model::ParamValue::Text(owned(value)))]);
        VariantSamples {
            name: owned(name),
            inputs: VariantInputs {
                params: params("flags", flags),
                programs: BTreeMap::from([(owned("affine"), owned(program))]),
                build_params: params("cc", compiler),
                build_programs: BTreeMap::from([(owned(compiler), format!("hash of {compiler}"))]),
            },
            ..VariantSamples::default()
        }
    }

    #[test]
    fn variants_with_identical_programs_and_equal_parameters_are_duplicates() {
        let base = variant("base", "-O2", "aa", "gcc");
        let pairs = |other: VariantSamples| duplicates(&[base.clone(), other]);
        assert_eq!(pairs(variant("b", "-O2", "bb", "gcc")), []);
        assert_eq!(pairs(variant("b", "-O3", "aa", "gcc")), []);
        let message = |other: VariantSamples| match &pairs(other)[..] {
            [pair] => pair.to_string(),
            pairs => panic!("expected one pair, found {pairs:?}"),
        };
        let identical = "`base` and `b` ran identical programs: affine (SHA-256 aa…)";
        let noise = "any difference between their results is noise";
        let differs_in_cc = format!("{identical}, although they differ in cc; {noise}");
        assert_eq!(message(variant("b", "-O2", "aa", "gcc-12")), differs_in_cc);
        assert_eq!(message(variant("b", "-O2", "aa", "gcc")), format!("{identical}; {noise}"));
        let mut without_cc = variant("b", "-O2", "aa", "gcc");
        without_cc.inputs.build_params.clear();
        assert_eq!(message(without_cc), differs_in_cc, "a build parameter that only one variant has");
        let mut upgraded = variant("b", "-O2", "aa", "gcc");
        upgraded.inputs.build_programs.insert("gcc".to_owned(), "another hash".to_owned());
        assert_eq!(message(upgraded), format!("{identical}, although they differ in gcc; {noise}"));
        let unknown = VariantSamples::default();
        assert_eq!(duplicates(&[unknown.clone(), unknown]), [], "nothing is known of their programs");
    }
}
