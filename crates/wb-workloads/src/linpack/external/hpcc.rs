//! Parser of the summary at the end of the output of hpcc (HPC Challenge), `hpccoutf.txt`.

use std::collections::BTreeMap;

use super::OutputError;

/// Figures of a complete summary, by hpcc's names.
#[derive(Clone, Debug, PartialEq)]
pub struct HpccSummary(BTreeMap<String, Entry>);

#[derive(Clone, Debug, PartialEq)]
struct Entry {
    line: usize,
    value: String,
}

impl HpccSummary {
    pub fn number(&self, name: &'static str) -> Result<f64, OutputError> {
        let entry = self.0.get(name).ok_or(OutputError::Missing(name))?;
        let number = entry.value.parse().ok().filter(|number: &f64| number.is_finite());
        number.ok_or_else(|| OutputError::invalid_line(entry.line, name, &entry.value))
    }

    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|entry| entry.value.as_str())
    }

    /// Whether hpcc reports that all of its tests succeeded.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.get("Success") == Some("1")
    }

    /// HPL's scaled residual, ‖Ax−b‖∞/(ε(‖A‖∞‖x‖∞+‖b‖∞)n), from the norms in the summary.
    pub fn hpl_residual(&self) -> Result<f64, OutputError> {
        let a_times_x = self.number("HPL_AnormI")? * self.number("HPL_XnormI")?;
        let scale = self.number("HPL_eps")? * (a_times_x + self.number("HPL_BnormI")?);
        Ok(self.number("HPL_RnormI")? / (scale * self.number("HPL_N")?))
    }
}

/// Parses the summary. Fails if it is incomplete, or has a line other than `name=value`.
pub fn parse(output: &str) -> Result<HpccSummary, OutputError> {
    let mut lines = output.lines().enumerate();
    if !lines.any(|(_, line)| line.trim() == "Begin of Summary section.") {
        return Err(OutputError::Missing("summary section of hpcc"));
    }
    let mut entries = BTreeMap::new();
    for (index, line) in lines {
        if line.trim() == "End of Summary section." {
            return Ok(HpccSummary(entries));
        }
        let (name, value) = line
            .split_once('=')
            .ok_or_else(|| OutputError::invalid_line(index, "`name=value` of hpcc's summary", line))?;
        let entry = Entry { line: index, value: value.trim().to_owned() };
        entries.insert(name.trim().to_owned(), entry);
    }
    Err(OutputError::Missing("end of hpcc's summary section"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SAMPLE: &str = "\
End of HPL section.
Begin of Summary section.
VersionMajor=1
Success=1
HPL_Tflops=0.0527
HPL_eps=1.11022e-16
HPL_RnormI=2e-11
HPL_AnormI=1000
HPL_XnormI=4
HPL_BnormI=0.5
HPL_N=4000
HPL_cpfact=R
StarDGEMM_Gflops=2.48054
StarSTREAM_Triad=5.1
SingleSTREAM_Triad=nan
End of Summary section.
########################################################################
";

    #[test]
    fn figures_are_found_by_name() {
        let summary = parse(SAMPLE).unwrap();
        assert!(summary.succeeded());
        assert_eq!(summary.number("HPL_Tflops"), Ok(0.0527));
        assert_eq!(summary.number("StarSTREAM_Triad"), Ok(5.1));
        assert_eq!(summary.get("HPL_cpfact"), Some("R"));
    }

    #[test]
    fn the_residual_follows_from_the_norms() {
        let residual = parse(SAMPLE).unwrap().hpl_residual().unwrap();
        assert!((residual - 0.011_257).abs() < 1e-6, "{residual}");
    }

    #[test]
    fn missing_and_invalid_figures_are_distinct_errors() {
        let summary = parse(SAMPLE).unwrap();
        let missing = OutputError::Missing("SingleDGEMM_Gflops");
        assert_eq!(summary.number("SingleDGEMM_Gflops"), Err(missing));
        let error = summary.number("SingleSTREAM_Triad").unwrap_err();
        assert_eq!(error.to_string(), "invalid SingleSTREAM_Triad on line 15 of the output: `nan`");
    }

    #[test]
    fn a_summary_without_begin_or_end_is_an_error() {
        assert!(matches!(parse("nothing"), Err(OutputError::Missing(_))));
        let truncated = &SAMPLE[..SAMPLE.find("HPL_N").unwrap()];
        assert!(matches!(parse(truncated), Err(OutputError::Missing(_))));
        assert!(matches!(parse(&format!("{truncated}HPL_\n")), Err(OutputError::Line { line: 11, .. })));
    }

    proptest! {
        #[test]
        fn garbage_never_panics(text in ".*", cut in 0..SAMPLE.len(), junk in "[ -~\n]{0,40}") {
            let _ = parse(&text);
            if let Ok(summary) = parse(&format!("{}{junk}{}", &SAMPLE[..cut], &SAMPLE[cut..])) {
                let _ = summary.hpl_residual();
            }
        }
    }
}
