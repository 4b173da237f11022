//! Parser of the results table of Intel's xlinpack (MKL's LINPACK for shared memory).

use super::{OutputError, check_consistent};

#[derive(Clone, Debug, PartialEq)]
pub struct XlinpackOutput {
    pub threads: Option<u32>,
    pub trials: Vec<Trial>,
}

/// One row of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// Number of equations.
    pub size: u64,
    /// Distance between columns of the matrix, in elements.
    pub leading_dimension: u64,
    pub alignment_kib: u64,
    /// To factor and solve, with a resolution of 1 ms.
    pub seconds: f64,
    /// 10⁹ operations per second.
    pub gflops: f64,
    pub residual: f64,
    /// ‖Ax−b‖∞ over ε(‖A‖∞‖x‖∞+‖b‖∞)n.
    pub normalized_residual: f64,
    pub passed: bool,
}

const TIME_RESOLUTION_SECONDS: f64 = 0.001;
const COLUMN_HEADERS: [&str; 8] = ["Size", "LDA", "Align.", "Time(s)", "GFlops", "Residual", "Residual(norm)", "Check"];

/// Parses the output of xlinpack. Fails also if a speed contradicts its time.
pub fn parse(output: &str) -> Result<XlinpackOutput, OutputError> {
    let mut lines = output.lines().enumerate();
    let mut threads = None;
    loop {
        let Some((_, line)) = lines.next() else {
            return Err(OutputError::Missing("table of trials (`Size LDA Align. …`)"));
        };
        if line.split_whitespace().eq(COLUMN_HEADERS) {
            break;
        }
        if let Some(("Number of threads", value)) = line.split_once(':').map(|(name, value)| (name.trim(), value)) {
            threads = value.trim().parse().ok();
        }
    }
    let trials = lines
        .take_while(|(_, line)| !line.trim().is_empty())
        .map(|(index, line)| parse_trial(index, line))
        .collect::<Result<Vec<_>, _>>()?;
    if trials.is_empty() {
        return Err(OutputError::Missing("trial in the table"));
    }
    Ok(XlinpackOutput { threads, trials })
}

fn parse_trial(index: usize, line: &str) -> Result<Trial, OutputError> {
    let trial = parse_fields(line).ok_or_else(|| OutputError::invalid_line(index, "row of xlinpack's table", line))?;
    check_consistent(index, trial.size, trial.seconds, TIME_RESOLUTION_SECONDS, trial.gflops)?;
    Ok(trial)
}

fn parse_fields(line: &str) -> Option<Trial> {
    let fields: Vec<_> = line.split_whitespace().collect();
    let [size, leading_dimension, alignment, seconds, gflops, residual, normalized, check] = fields[..] else {
        return None;
    };
    let non_negative = |text: &str| text.parse().ok().filter(|x: &f64| x.is_finite() && *x >= 0.0);
    Some(Trial {
        size: size.parse().ok()?,
        leading_dimension: leading_dimension.parse().ok()?,
        alignment_kib: alignment.parse().ok()?,
        seconds: non_negative(seconds)?,
        gflops: non_negative(gflops).filter(|gflops| *gflops > 0.0)?,
        residual: residual.parse().ok()?,
        normalized_residual: normalized.parse().ok()?,
        passed: match check {
            "pass" => true,
            "fail" => false,
            _ => return None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SAMPLE: &str = "\
A subheader

Current date/time: Thu Jan  1 00:00:00 1970

CPU frequency:    2.500 GHz
Number of CPUs: 1
Number of cores: 2
Number of threads: 2

Parameters are set to:

Number of tests: 3
Number of equations to solve (problem size) : 1000  2000  90000
Leading dimension of array                  : 1008  2000  90000
Number of trials to run                     : 2     1     1
Data alignment value (in Kbytes)            : 4     4     4

Maximum memory requested that can be used=32016064, at the size=2000

=================== Timing linear equation system solver ===================

Size   LDA    Align. Time(s)    GFlops   Residual     Residual(norm) Check
1000   1008   4      0.012      55.7222  9.298812e-13 3.171134e-02   pass
1000   1008   4      0.011      60.7879  9.298812e-13 3.171134e-02   pass
2000   2000   4      0.089      59.9888  4.085732e-12 3.554086e+02   fail

Performance Summary (GFlops)

Size   LDA    Align.  Average  Maximal
1000   1008   4       58.2551  60.7879
2000   2000   4       59.9888  59.9888

Residual checks FAILED

End of tests
";

    #[test]
    fn every_trial_of_the_table_is_parsed() {
        let output = parse(SAMPLE).unwrap();
        assert_eq!(output.threads, Some(2));
        assert_eq!(output.trials.len(), 3);
        assert_eq!(output.trials[1].gflops, 60.7879);
        assert_eq!(output.trials[0].leading_dimension, 1008);
        assert_eq!(output.trials[0].alignment_kib, 4);
        assert!(output.trials[0].passed && !output.trials[2].passed);
        assert_eq!(output.trials[2].normalized_residual, 355.4086);
    }

    #[test]
    fn a_truncated_row_is_an_error_with_its_line() {
        let truncated = &SAMPLE[..SAMPLE.find("60.7879").unwrap()];
        let error = parse(truncated).unwrap_err();
        assert_eq!(
            error.to_string(),
            "invalid row of xlinpack's table on line 24 of the output: `1000   1008   4      0.011`"
        );
    }

    #[test]
    fn output_without_a_table_is_an_error() {
        assert!(matches!(parse("Segmentation fault\n"), Err(OutputError::Missing(_))));
        let empty = &SAMPLE[..SAMPLE.find("1000   1008").unwrap()];
        assert!(matches!(parse(empty), Err(OutputError::Missing("trial in the table"))));
    }

    #[test]
    fn a_speed_in_another_unit_is_an_error() {
        let error = parse(&SAMPLE.replace("59.9888  4", "59988.8  4")).unwrap_err();
        assert!(matches!(error, OutputError::Inconsistent { line: 25, .. }), "{error}");
    }

    proptest! {
        #[test]
        fn garbage_never_panics(text in ".*", cut in 0..SAMPLE.len(), junk in "[ -~\n]{0,40}") {
            let _ = parse(&text);
            let _ = parse(&format!("{}{junk}{}", &SAMPLE[..cut], &SAMPLE[cut..]));
        }
    }
}
