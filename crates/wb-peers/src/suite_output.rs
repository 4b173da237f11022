//! What a dialer of libp2p's performance suites prints: statistics of its uploads, downloads and round trips, in YAML.

use serde::Deserialize;

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct SuiteOutput {
    /// In gigabits per second.
    pub upload: Option<SuiteStatistics>,
    /// In gigabits per second.
    pub download: Option<SuiteStatistics>,
    /// Round trips, in milliseconds.
    pub latency: Option<SuiteStatistics>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct SuiteStatistics {
    /// As requested, whatever was done.
    pub iterations: Option<f64>,
    pub median: Option<f64>,
    /// The figures behind the statistics; without outliers in some endpoints.
    pub samples: Vec<f64>,
    /// Figures that are not among the samples.
    pub outliers: Vec<f64>,
    pub unit: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SuiteOutputError {
    #[error("invalid YAML: {0}")]
    Yaml(String),
    #[error("{scenario}: invalid unit `{unit}`: expected {expected}")]
    Unit { scenario: &'static str, unit: String, expected: &'static str },
}

impl SuiteOutput {
    /// Parses standard output. Fails if it is not the YAML of a suite, or has other units.
    pub fn parse(text: &str) -> Result<Self, SuiteOutputError> {
        let output: Self = serde_saphyr::from_str(text)
            .map_err(|error| SuiteOutputError::Yaml(error.without_snippet().to_string()))?;
        let units = [
            ("upload", &output.upload, "Gbps"),
            ("download", &output.download, "Gbps"),
            ("latency", &output.latency, "ms"),
        ];
        for (scenario, statistics, expected) in units {
            let unit = statistics.as_ref().and_then(|statistics| statistics.unit.clone());
            if let Some(unit) = unit.filter(|unit| unit != expected) {
                return Err(SuiteOutputError::Unit { scenario, unit, expected });
            }
        }
        Ok(output)
    }
}

impl SuiteStatistics {
    /// The figures of single iterations; only the median where a process prints no others.
    pub fn figures(&self) -> Vec<f64> {
        if self.samples.is_empty() { self.median.into_iter().collect() } else { self.samples.clone() }
    }

    /// Whether there is a figure for each iteration; assumed where only a median is printed.
    pub fn is_complete(&self, iterations: u32) -> bool {
        self.samples.is_empty() || self.samples.len() >= iterations as usize
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OUTPUT: &str = "\
upload:
  iterations: 3
  min: 1.00
  q1: 1.10
  median: 1.20
  q3: 1.25
  max: 1.30
  outliers: []
  samples: [1.0, 1.2, 1.3]
  unit: Gbps
latency:
  iterations: 100
  median: 0.25
  unit: ms
";

    #[test]
    fn statistics_are_parsed() {
        let output = SuiteOutput::parse(OUTPUT).unwrap();
        let upload = output.upload.unwrap();
        assert_eq!(
            (upload.figures(), upload.is_complete(3), upload.is_complete(4)),
            (vec![1.0, 1.2, 1.3], true, false)
        );
        assert_eq!(output.latency.unwrap().figures(), [0.25]);
        assert_eq!(output.download, None);
    }

    #[test]
    fn another_unit_is_an_error() {
        let error = SuiteOutput::parse(&OUTPUT.replace("unit: ms", "unit: s")).unwrap_err();
        assert_eq!(error.to_string(), "latency: invalid unit `s`: expected ms");
        assert!(matches!(SuiteOutput::parse("upload: ["), Err(SuiteOutputError::Yaml(_))));
    }

    proptest! {
        #[test]
        fn no_text_panics(text: String) {
            let _ = SuiteOutput::parse(&text);
        }
    }
}
