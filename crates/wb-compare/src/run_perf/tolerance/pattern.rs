//! Check patterns: identifiers with `*` in place of some parts.

use std::borrow::Cow;
use std::fmt;

use wb_model::Class;
use wb_results::comparison::{CheckId, IdFormat, Statistic};

/// Which parts of an identifier are wildcards. The values in a case always are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wildcards {
    pub profile: bool,
    pub test: bool,
    pub serial: bool,
    /// Whatever the parameters are.
    pub case: bool,
    pub class: bool,
    pub metric: bool,
}

const NONE: Wildcards =
    Wildcards { profile: false, test: false, serial: false, case: false, class: false, metric: false };

impl Wildcards {
    /// The cases of a test that only differ in values.
    pub const PER_CASE: Self = NONE;
    /// The cases of a test that only differ in values, over all profiles.
    pub const PER_CASE_OF_ALL_PROFILES: Self = Self { profile: true, ..NONE };
    /// A metric over all serials, cases and classes of a test.
    pub const PER_TEST_METRIC: Self = Self { serial: true, case: true, class: true, ..NONE };
    /// All tests of a profile.
    pub const PER_PROFILE: Self = Self { test: true, serial: true, case: true, class: true, metric: true, ..NONE };
}

/// A pattern for identifiers; `Display` writes it in run-perf's or Weighbridge's syntax.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CheckPattern<'a> {
    pub id_format: IdFormat,
    pub profile: Option<&'a str>,
    pub test: Option<&'a str>,
    pub serial: Option<&'a str>,
    /// With stars for its values.
    pub case: Option<Cow<'a, str>>,
    pub class: Option<Class>,
    pub metric: Option<&'a str>,
    pub statistic: Option<Statistic>,
}

impl<'a> CheckPattern<'a> {
    /// For both statistics.
    pub fn new(id: &CheckId<'a>, wildcards: Wildcards) -> Self {
        Self {
            id_format: id.id_format,
            profile: (!wildcards.profile).then_some(id.profile),
            test: (!wildcards.test).then_some(id.test),
            serial: (!wildcards.serial).then_some(id.serial),
            case: (!wildcards.case).then(|| case_pattern(id.id_format, id.case)),
            class: (!wildcards.class).then_some(id.class),
            metric: (!wildcards.metric).then_some(id.metric),
            statistic: None,
        }
    }

    pub fn with(self, statistic: Statistic) -> Self {
        Self { statistic: Some(statistic), ..self }
    }
}

/// `read-4KiB` → `read-*`; `block-size=4k,rw=read` → `block-size=*,rw=*`.
fn case_pattern(id_format: IdFormat, case: &str) -> Cow<'_, str> {
    match id_format {
        IdFormat::RunPerf => format!("{}-*", case.split_once('-').map_or(case, |(stem, _)| stem)).into(),
        IdFormat::Weighbridge if case.contains('=') => {
            let names = case.split(',').map(|axis| axis.split_once('=').map_or(axis, |(name, _)| name));
            names.map(|name| format!("{name}=*")).collect::<Vec<_>>().join(",").into()
        }
        IdFormat::Weighbridge => case.into(),
    }
}

impl fmt::Display for CheckPattern<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part_or_star = |part: Option<&str>| part.unwrap_or("*").to_owned();
        let every_case = match self.id_format {
            IdFormat::RunPerf => "*-*",
            IdFormat::Weighbridge => "*",
        };
        write!(
            f,
            "{}/{}/{}{}{}/{}/{}",
            part_or_star(self.profile),
            part_or_star(self.test),
            part_or_star(self.serial),
            self.id_format.before_case(),
            self.case.as_deref().unwrap_or(every_case),
            self.class.map_or_else(|| "*".to_owned(), |class| class.to_string()),
            part_or_star(self.metric)
        )?;
        match self.statistic {
            Some(statistic) => write!(f, "{}{statistic}", self.id_format.before_statistic()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_replace_the_wildcard_parts() {
        let of = |text, wildcards| CheckPattern::new(&CheckId::parse(text).unwrap(), wildcards);
        let fio = "Localhost/fio/0000:./read-4KiB/throughput/iops_sec.mean";
        let mean = Statistic::Mean;
        for (wildcards, expected) in [
            (Wildcards::PER_CASE, "Localhost/fio/0000:./read-*/throughput/iops_sec.mean"),
            (Wildcards::PER_CASE_OF_ALL_PROFILES, "*/fio/0000:./read-*/throughput/iops_sec.mean"),
            (Wildcards::PER_PROFILE, "Localhost/*/*:./*-*/*/*.mean"),
        ] {
            assert_eq!(of(fio, wildcards).with(mean).to_string(), expected);
        }
        assert_eq!(of(fio, Wildcards::PER_TEST_METRIC).to_string(), "Localhost/fio/*:./*-*/*/iops_sec");
        let own = "Localhost/fio/0000:block-size=4k,rw=read/throughput/iops#mean";
        assert_eq!(
            of(own, Wildcards::PER_CASE).with(mean).to_string(),
            "Localhost/fio/0000:block-size=*,rw=*/throughput/iops#mean"
        );
        assert_eq!(of(own, Wildcards::PER_PROFILE).to_string(), "Localhost/*/*:*/*/*");
        let plain = of("Localhost/x/0000:./linpack/throughput/gflops.mean", Wildcards::PER_CASE);
        assert_eq!(plain.to_string(), "Localhost/x/0000:./linpack-*/throughput/gflops");
    }
}
