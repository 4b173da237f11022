//! Identifiers of checks, in run-perf's and in Weighbridge's syntax.

use std::fmt::{self, Write};

use wb_model::Class;

use super::Statistic;

/// The syntax of an identifier: run-perf's or Weighbridge's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IdFormat {
    #[default]
    /// `Localhost/fio/0000:./read-4KiB/throughput/iops_sec.mean`
    RunPerf,
    /// `Localhost/fio/0000:block-size=4k,rw=read/throughput/iops@vm2#mean`
    Weighbridge,
}

impl IdFormat {
    pub fn before_case(self) -> &'static str {
        match self {
            Self::RunPerf => ":./",
            Self::Weighbridge => ":",
        }
    }

    pub fn before_statistic(self) -> char {
        match self {
            Self::RunPerf => '.',
            Self::Weighbridge => '#',
        }
    }
}

/// Identifies a check: one statistic of a metric of a case. `Display` writes it exactly as [`CheckId::parse`] reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CheckId<'a> {
    pub id_format: IdFormat,
    pub profile: &'a str,
    pub test: &'a str,
    /// Among the tests of that name.
    pub serial: &'a str,
    /// The combination of parameters; an iteration's name in run-perf.
    pub case: &'a str,
    pub class: Class,
    /// With its worker if it has one.
    pub metric: &'a str,
    pub statistic: Statistic,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid check `{0}`: expected PROFILE/TEST/SERIAL:./CASE/CLASS/METRIC.mean or .stddev")]
pub struct ParseCheckIdError(String);

impl<'a> CheckId<'a> {
    /// In either syntax.
    pub fn parse(text: &'a str) -> Result<Self, ParseCheckIdError> {
        Self::parse_parts(text).ok_or_else(|| ParseCheckIdError(text.to_owned()))
    }

    /// Formats the identifier in one allocation, which matters for a million of them.
    pub fn text(&self) -> String {
        let parts = [self.profile, self.test, self.serial, self.case, self.metric];
        // Room for the longest class and statistic, and the separators.
        let mut text = String::with_capacity(parts.into_iter().map(str::len).sum::<usize>() + 32);
        // Writing to a string does not fail.
        _ = write!(text, "{self}");
        text
    }

    fn parse_parts(text: &'a str) -> Option<Self> {
        let (profile, rest) = text.split_once('/')?;
        let (test, rest) = rest.split_once('/')?;
        let (serial, rest) = rest.split_once(':')?;
        let (id_format, rest) = match rest.strip_prefix("./") {
            Some(rest) => (IdFormat::RunPerf, rest),
            None => (IdFormat::Weighbridge, rest),
        };
        let (rest, statistic) = rest.rsplit_once(id_format.before_statistic())?;
        let (rest, metric) = rest.rsplit_once('/')?;
        let (case, class) = rest.rsplit_once('/')?;
        let is_complete = [profile, test, serial, metric].iter().all(|part| !part.is_empty());
        let (class, statistic) = (class.parse().ok()?, Statistic::parse(statistic)?);
        is_complete.then_some(Self { id_format, profile, test, serial, case, class, metric, statistic })
    }
}

impl fmt::Display for CheckId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id_format, profile, test, serial, case, class, metric, statistic } = self;
        let (before_case, before_statistic) = (id_format.before_case(), id_format.before_statistic());
        write!(f, "{profile}/{test}/{serial}{before_case}{case}/{class}/{metric}{before_statistic}{statistic}")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn identifiers_round_trip_in_both_syntaxes() {
        for text in [
            "Localhost/fio/0000:./read-4KiB/throughput/iops_sec.mean",
            "Localhost/fio/0000:./read-4KiB/throughput/iops_sec.stddev",
            "TunedLibvirt/uperf/0003:./tcp_rr-64B-1i/latency/p99.9.mean",
            "Localhost/fio/0000:block-size=4k,rw=read/throughput/iops@vm2#mean",
            "Localhost/himeno/0000:/throughput/mflops#stddev",
        ] {
            assert_eq!(CheckId::parse(text).unwrap().to_string(), text);
        }
        let id = CheckId::parse("P/t/0001:./a/b-1/latency/p99.9.stddev").unwrap();
        assert_eq!((id.case, id.class, id.metric), ("a/b-1", Class::Latency, "p99.9"));
        assert_eq!(id.statistic, Statistic::Stddev);
    }

    #[test]
    fn an_incomplete_identifier_is_refused() {
        for bad in
            ["", "P", "P/t/0000", "P/t/0000:./c/latency/lat", "P/t/0000:./c/odd/lat.mean", "P//0:./c/latency/l.mean"]
        {
            assert!(CheckId::parse(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics_and_identifiers_round_trip(text in ".{0,12}(/.{0,4}){0,6}(:(\\./)?.{0,8}/latency/.{1,4}[.#]mean)?") {
            if let Ok(id) = CheckId::parse(&text) {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }
}
