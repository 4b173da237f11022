//! Parser of the output of HPL (HPL.out or standard output), which is also part of hpcc's output.

use super::{OutputError, check_consistent};

const TIME_RESOLUTION_SECONDS: f64 = 0.01;

#[derive(Clone, Debug, PartialEq)]
pub struct HplResult {
    /// As HPL encodes it, such as `WR11C2R4`.
    pub variant: String,
    /// Number of equations.
    pub size: u64,
    pub block: u64,
    /// Rows and columns of the process grid.
    pub grid: (u64, u64),
    /// To factor and solve, with a resolution of 10 ms.
    pub seconds: f64,
    /// 10⁹ operations per second.
    pub gflops: f64,
    /// Residual checks: one since HPL 2, three before.
    pub checks: Vec<ResidualCheck>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResidualCheck {
    pub residual: f64,
    pub passed: bool,
}

impl HplResult {
    #[must_use]
    pub fn passed(&self) -> bool {
        !self.checks.is_empty() && self.checks.iter().all(|check| check.passed)
    }
}

/// Parses all solved systems with their checks. Fails if there is no result line, or a check without a result.
pub fn parse(output: &str) -> Result<Vec<HplResult>, OutputError> {
    let mut solves: Vec<HplResult> = Vec::new();
    for (index, line) in output.lines().enumerate() {
        if is_result_line(line) {
            let solve =
                parse_result(line).ok_or_else(|| OutputError::invalid_line(index, "result line of HPL", line))?;
            check_consistent(index, solve.size, solve.seconds, TIME_RESOLUTION_SECONDS, solve.gflops)?;
            solves.push(solve);
        } else if let Some((_, verdict)) = line.split_once(")=") {
            let error = |expected| OutputError::invalid_line(index, expected, line);
            let check = parse_check(verdict).ok_or_else(|| error("residual check of HPL"))?;
            let solve = solves.last_mut().ok_or_else(|| error("residual check (no result before it)"))?;
            solve.checks.push(check);
        }
    }
    if solves.is_empty() {
        return Err(OutputError::Missing("result line of HPL (`WR…`)"));
    }
    Ok(solves)
}

/// Result lines start with `WR` for wall time on a row-major grid, or `WC` on a column-major one.
fn is_result_line(line: &str) -> bool {
    let name = line.strip_prefix("WR").or_else(|| line.strip_prefix("WC"));
    name.is_some_and(|name| name.starts_with(|c: char| c.is_ascii_digit()))
}

fn parse_result(line: &str) -> Option<HplResult> {
    let fields: Vec<_> = line.split_whitespace().collect();
    let [variant, size, block, p, q, seconds, gflops] = fields[..] else { return None };
    let non_negative = |text: &str| text.parse().ok().filter(|x: &f64| x.is_finite() && *x >= 0.0);
    Some(HplResult {
        variant: variant.to_owned(),
        size: size.parse().ok()?,
        block: block.parse().ok()?,
        grid: (p.parse().ok()?, q.parse().ok()?),
        seconds: non_negative(seconds)?,
        gflops: non_negative(gflops).filter(|gflops| *gflops > 0.0)?,
        checks: Vec::new(),
    })
}

/// Parses `   3.38456923e-03 ...... PASSED`.
fn parse_check(verdict: &str) -> Option<ResidualCheck> {
    let fields: Vec<_> = verdict.split_whitespace().collect();
    let [residual, "......", word] = fields[..] else { return None };
    let passed = match word {
        "PASSED" => true,
        "FAILED" => false,
        _ => return None,
    };
    Some(ResidualCheck { residual: residual.parse().ok()?, passed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SAMPLE: &str = "\
- The following scaled residual check will be computed:
      ||Ax-b||_oo / ( eps * ( || x ||_oo * || A ||_oo + || b ||_oo ) * N )
================================================================================
T/V                N    NB     P     Q               Time                 Gflops
--------------------------------------------------------------------------------
WR11C2R4        4000   192     1     2               0.81             5.2724e+01
HPL_pdgesv() start time Thu Jan  1 00:00:00 1970

HPL_pdgesv() end time   Thu Jan  1 00:00:01 1970

--------------------------------------------------------------------------------
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   4.89711678e-03 ...... PASSED
================================================================================
T/V                N    NB     P     Q               Time                 Gflops
--------------------------------------------------------------------------------
WC00L2L2          29     1     1     2               0.00             1.9114e-02
--------------------------------------------------------------------------------
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=              nan ...... FAILED
";

    #[test]
    fn every_result_is_parsed_with_its_check() {
        let solves = parse(SAMPLE).unwrap();
        assert_eq!(solves.len(), 2);
        assert_eq!((solves[0].size, solves[0].block, solves[0].grid), (4000, 192, (1, 2)));
        assert_eq!((solves[0].seconds, solves[0].gflops), (0.81, 52.724));
        assert_eq!(solves[0].checks, [ResidualCheck { residual: 4.897_116_78e-3, passed: true }]);
        assert!(solves[0].passed() && !solves[1].passed());
        assert!(solves[1].checks[0].residual.is_nan());
    }

    #[test]
    fn a_result_without_checks_has_not_passed() {
        let truncated = &SAMPLE[..SAMPLE.find("HPL_pdgesv").unwrap()];
        assert!(!parse(truncated).unwrap()[0].passed());
    }

    #[test]
    fn a_truncated_result_line_is_an_error_with_its_line() {
        let truncated = &SAMPLE[..SAMPLE.find("5.2724").unwrap()];
        assert!(matches!(parse(truncated), Err(OutputError::Line { line: 6, .. })));
    }

    #[test]
    fn a_speed_in_another_unit_is_an_error() {
        let in_tflops = SAMPLE.replace("5.2724e+01", "5.2724e-02");
        assert!(matches!(parse(&in_tflops), Err(OutputError::Inconsistent { line: 6, .. })));
    }

    #[test]
    fn output_without_results_is_an_error() {
        assert!(matches!(parse("HPL ERROR\n"), Err(OutputError::Missing(_))));
        let orphan = "||Ax-b||_oo/(eps*N)= 1.0 ...... PASSED";
        assert!(matches!(parse(orphan), Err(OutputError::Line { line: 1, .. })));
    }

    proptest! {
        #[test]
        fn garbage_never_panics(text in ".*", cut in 0..SAMPLE.len(), junk in "[ -~\n]{0,40}") {
            let _ = parse(&text);
            let _ = parse(&format!("{}{junk}{}", &SAMPLE[..cut], &SAMPLE[cut..]));
        }
    }
}
