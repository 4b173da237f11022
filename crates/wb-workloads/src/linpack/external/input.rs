//! The input files of LINPACK programs: xlinpack's `lininput`, HPL's `HPL.dat`, hpcc's `hpccinf.txt`.

use std::fmt::{self, Display};

/// Input of Intel's xlinpack: the seven lines of its `lininput` files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XlinpackInput {
    /// xlinpack ignores it.
    header: String,
    /// xlinpack prints it.
    subheader: String,
    /// The third line has their number; each has one entry in each of the last four lines.
    problems: Vec<XlinpackProblem>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XlinpackProblem {
    /// Number of equations: rows and columns of the matrix.
    pub size: u64,
    /// Distance between columns of the matrix, in elements.
    pub leading_dimension: u64,
    pub trials: u64,
    pub alignment_kib: u64,
}

/// Error: a header contains a line break, which would shift all lines that follow. Holds the parameter's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} contains a line break: expected one line")]
pub struct LineBreakError(pub &'static str);

impl XlinpackInput {
    /// Creates an input after checking that each header is one line.
    pub fn new(header: String, subheader: String, problems: Vec<XlinpackProblem>) -> Result<Self, LineBreakError> {
        for (name, line) in [("lininput-header", &header), ("lininput-subheader", &subheader)] {
            if line.contains(['\n', '\r']) {
                return Err(LineBreakError(name));
            }
        }
        Ok(Self { header, subheader, problems })
    }
}

impl Display for XlinpackInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = |field: fn(&XlinpackProblem) -> u64| join(self.problems.iter().map(field));
        writeln!(f, "{}", self.header)?;
        writeln!(f, "{}", self.subheader)?;
        writeln!(f, "{} # number of tests", self.problems.len())?;
        writeln!(f, "{} # problem sizes", row(|problem| problem.size))?;
        writeln!(f, "{} # leading dimensions", row(|problem| problem.leading_dimension))?;
        writeln!(f, "{} # times to run a test", row(|problem| problem.trials))?;
        writeln!(f, "{} # alignment values (in KBytes)", row(|problem| problem.alignment_kib))
    }
}

/// Input of HPL. The options of the algorithm are fixed at the values that HPL's "Tuning" page suggests to start with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HplInput {
    /// Numbers of equations.
    pub sizes: Vec<u64>,
    pub block_sizes: Vec<u64>,
    /// Process grids, rows by columns; each product is at most the number of processes.
    pub grids: Vec<(u64, u64)>,
}

impl HplInput {
    /// Renders `HPL.dat`, which HPL reads from its working directory.
    #[must_use]
    pub fn hpl_dat(&self) -> String {
        let dimension = |side: fn(&(u64, u64)) -> u64| join(self.grids.iter().map(side));
        let line = |value: &dyn Display, comment: &str| format!("{value:<12} {comment}\n");
        [
            "HPLinpack benchmark input file\n".to_owned(),
            "written by weighbridge\n".to_owned(),
            line(&"HPL.out", "output file"),
            line(&6, "device out (6=stdout)"),
            line(&self.sizes.len(), "problem sizes (N)"),
            line(&join(self.sizes.iter()), "Ns"),
            line(&self.block_sizes.len(), "block sizes (NB)"),
            line(&join(self.block_sizes.iter()), "NBs"),
            line(&0, "process mapping (0=row-major)"),
            line(&self.grids.len(), "process grids (P x Q)"),
            line(&dimension(|grid| grid.0), "Ps"),
            line(&dimension(|grid| grid.1), "Qs"),
            line(&"16.0", "residual threshold"),
            line(&1, "panel factorizations"),
            line(&2, "PFACTs (2=right)"),
            line(&1, "recursive stopping criteria"),
            line(&4, "NBMINs"),
            line(&1, "panels in recursion"),
            line(&2, "NDIVs"),
            line(&1, "recursive panel factorizations"),
            line(&1, "RFACTs (1=Crout)"),
            line(&1, "broadcasts"),
            line(&1, "BCASTs (1=1rM)"),
            line(&1, "look-ahead depths"),
            line(&1, "DEPTHs"),
            line(&2, "SWAP (2=mix)"),
            line(&64, "swapping threshold"),
            line(&0, "L1 (0=transposed)"),
            line(&0, "U (0=transposed)"),
            line(&1, "equilibration (1=yes)"),
            line(&8, "memory alignment in doubles"),
        ]
        .concat()
    }

    /// Renders `hpccinf.txt`, the input of hpcc: `HPL.dat`, followed by empty lists of additional sizes for PTRANS.
    #[must_use]
    pub fn hpccinf(&self) -> String {
        self.hpl_dat()
            + "separator\n\
               0            further problem sizes for PTRANS\n\
               0            values of N\n\
               0            further block sizes for PTRANS\n\
               0            values of NB\n"
    }
}

fn join(numbers: impl Iterator<Item = impl Display>) -> String {
    numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lininput_has_seven_lines_and_an_entry_for_each_problem() {
        let problem = |size, trials| XlinpackProblem { size, leading_dimension: size + 16, trials, alignment_kib: 4 };
        let input =
            XlinpackInput::new("a header".into(), "a subheader".into(), vec![problem(10_000, 2), problem(20_000, 1)]);
        assert_eq!(
            input.unwrap().to_string(),
            "a header\n\
             a subheader\n\
             2 # number of tests\n\
             10000 20000 # problem sizes\n\
             10016 20016 # leading dimensions\n\
             2 1 # times to run a test\n\
             4 4 # alignment values (in KBytes)\n"
        );
    }

    #[test]
    fn a_header_of_two_lines_is_rejected() {
        let result = XlinpackInput::new("one".into(), "two\nlines".into(), Vec::new());
        assert_eq!(result, Err(LineBreakError("lininput-subheader")));
    }

    #[test]
    fn hpl_dat_has_its_values_on_the_lines_that_hpl_expects() {
        let input = HplInput { sizes: vec![1000, 4000], block_sizes: vec![192], grids: vec![(1, 2)] };
        let text = input.hpl_dat();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 31);
        assert!(lines[4].starts_with("2 ") && lines[5].starts_with("1000 4000 "));
        assert!(lines[6].starts_with("1 ") && lines[7].starts_with("192 "));
        assert!(lines[10].starts_with("1 ") && lines[11].starts_with("2 "));
        assert!(lines[12].starts_with("16.0 "));
        assert_eq!(input.hpccinf().lines().count(), 36);
    }
}
