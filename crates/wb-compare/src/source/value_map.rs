//! Pairs cells of which an axis has another value in later builds: versions of an implementation, for instance.

use std::collections::{BTreeMap, BTreeSet};

use wb_model::{Case, ParamValue, Params};

use super::pairing::ResultSource;
use super::parsed_result::ParsedResult;
use crate::build::Build;
use crate::interner::Symbol;
use crate::unknown_name::{UnknownName, join_build_names};

/// Values of axes: by the value in later builds, the value of the first build that it is compared as. Cells with a value
/// of the other side alone are skipped: in the first build those of later builds, in later builds those of the first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ValueMap(BTreeMap<String, String>);

impl ValueMap {
    /// Each pair has the value in the first build, and that in the others.
    pub fn new<'a>(pairs: impl IntoIterator<Item = &'a (String, String)>) -> Self {
        Self(pairs.into_iter().map(|(first, other)| (other.clone(), first.clone())).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Replaces each word that is a value: names of cells consist of values.
    fn map_text(&self, text: &str) -> String {
        let words = text.split(' ').map(|word| self.0.get(word).map_or(word, String::as_str));
        words.collect::<Vec<_>>().join(" ")
    }

    pub(super) fn map_params(&self, params: &mut Params) {
        for value in params.values_mut() {
            if let ParamValue::Text(text) = value {
                *text = self.map_text(text);
            }
        }
    }

    /// The case that a case is compared as; `None` if it is skipped.
    fn map_case(&self, case: &Case) -> Option<Case> {
        let is_skipped = |value: &str| !self.0.contains_key(value) && self.0.values().any(|first| first == value);
        if case.axes().any(|(_, value)| is_skipped(value)) {
            return None;
        }
        let mapped = |(axis, value): (&str, &str)| (axis.to_owned(), ParamValue::Text(self.map_text(value)));
        let axes: Vec<(String, ParamValue)> = case.axes().map(mapped).collect();
        Some(Case::new(axes.iter().map(|(axis, value)| (axis.as_str(), value))))
    }

    fn map_result(&self, parsed: &mut ParsedResult) {
        rename_cases(parsed, |case| self.map_case(case));
        let mut params: BTreeMap<usize, usize> = BTreeMap::new();
        for index in 0..parsed.metrics.len() {
            let set = parsed.metrics[index].params;
            let mapped = match params.get(&set) {
                Some(mapped) => *mapped,
                None => {
                    let pairs = parsed.params[set].to_vec();
                    let texts: Vec<(Symbol, String)> = pairs
                        .into_iter()
                        .map(|(name, value)| (name, self.map_text(parsed.names.resolve(value))))
                        .collect();
                    let pairs = texts.into_iter().map(|(name, text)| (name, parsed.names.intern(&text))).collect();
                    *params.entry(set).or_insert(parsed.intern_params(pairs))
                }
            };
            parsed.metrics[index].params = mapped;
        }
    }

    /// Replaces the values in later builds. Fails if a value does not exist in the builds that should have it.
    pub(super) fn map_results(&self, sources: &mut [ResultSource], builds: &[Build]) -> Result<(), UnknownName> {
        if self.is_empty() {
            return Ok(());
        }
        let values = |is_first: bool| -> BTreeSet<String> {
            let results = sources.iter().filter(|source| (source.run.build == 0) == is_first);
            let parsed = results.filter_map(|source| source.content.as_ref().ok());
            let cases = parsed.flat_map(|parsed| {
                let texts = parsed.metrics.iter().map(|metric| parsed.names.resolve(metric.case));
                texts.collect::<BTreeSet<_>>()
            });
            let axes = cases.filter_map(|case| case.parse::<Case>().ok());
            axes.flat_map(|case| case.axes().map(|(_, value)| value.to_owned()).collect::<Vec<_>>()).collect()
        };
        let (first, others) = (values(true), values(false));
        for (other_value, first_value) in &self.0 {
            for (name, candidates, searched) in
                [(first_value, &first, &builds[..1]), (other_value, &others, &builds[1..])]
            {
                if !candidates.contains(name) {
                    let builds = join_build_names(searched.iter());
                    let (name, candidates) = (name.clone(), candidates.clone());
                    return Err(UnknownName { kind: "value of an axis", name, builds, candidates });
                }
            }
        }
        for source in sources {
            match &mut source.content {
                Ok(parsed) if source.run.build == 0 => rename_cases(parsed, |case| self.case_of_first(case)),
                Ok(parsed) => self.map_result(parsed),
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// The case itself, as one of the first build; `None` if it is skipped.
    fn case_of_first(&self, case: &Case) -> Option<Case> {
        let is_skipped = |value: &str| self.0.contains_key(value) && self.0.values().all(|first| first != value);
        (!case.axes().any(|(_, value)| is_skipped(value))).then(|| case.clone())
    }
}

/// Renames the cases of a result, and removes those without a name.
fn rename_cases(parsed: &mut ParsedResult, mapped: impl Fn(&Case) -> Option<Case>) {
    let of_metrics = parsed.metrics.iter().map(|metric| metric.case);
    let texts: BTreeSet<Symbol> = of_metrics.chain(parsed.errors.iter().map(|(case, _)| *case)).collect();
    let mut cases: BTreeMap<Symbol, Option<Symbol>> = BTreeMap::new();
    for text in texts {
        // What has no axes, as in run-perf's layout, stays.
        let Ok(case) = parsed.names.resolve(text).parse::<Case>() else { continue };
        cases.insert(text, mapped(&case).map(|case| parsed.names.intern(&case.to_string())));
    }
    let name = |case: Symbol| cases.get(&case).copied().unwrap_or(Some(case));
    parsed.metrics.retain(|metric| name(metric.case).is_some());
    parsed.programs.retain(|(case, _)| name(*case).is_some());
    parsed.errors.retain(|(case, _)| name(*case).is_some());
    let all = parsed.metrics.iter_mut().map(|metric| &mut metric.case);
    let all = all.chain(parsed.programs.iter_mut().map(|(case, _)| case));
    for case in all.chain(parsed.errors.iter_mut().map(|(case, _)| case)) {
        *case = name(*case).unwrap_or(*case);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> ValueMap {
        ValueMap::new(&[("rust-1".to_owned(), "rust-2".to_owned())])
    }

    #[test]
    fn words_that_are_values_are_replaced() {
        assert_eq!(map().map_text("rust-2 x go (tcp)"), "rust-1 x go (tcp)");
        assert_eq!(map().map_text("rust-20"), "rust-20");
    }

    #[test]
    fn cases_with_a_value_of_the_first_build_alone_are_skipped() {
        let case = |text: &str| text.parse::<Case>().unwrap();
        assert_eq!(map().map_case(&case("dialer=rust-2,listener=go")), Some(case("dialer=rust-1,listener=go")));
        assert_eq!(map().map_case(&case("dialer=rust-1,listener=go")), None);
        assert_eq!(map().map_case(&case("dialer=go,listener=go")), Some(case("dialer=go,listener=go")));
        assert_eq!(map().case_of_first(&case("dialer=rust-1,listener=rust-2")), None);
        assert_eq!(map().case_of_first(&case("dialer=rust-1")), Some(case("dialer=rust-1")));
    }
}
