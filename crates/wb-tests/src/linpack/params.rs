//! The parameters of linpack: those of pbench-linpack, by its names.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_kernels::Isa;
use wb_model::Axis;
use wb_stats::SamplingRule;

use super::parameter_error;
use crate::count::AutoCount;

/// How a linpack cell is measured
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Params {
    /// Threads, each pinned to a core of its own while there are enough
    #[schemars(range(min = 1), extend("x-axis" = true, "x-resolved" = "steps from 1 to 2 × the CPUs, as run-perf: 1, 4, 8, 12, 16 on 8"))]
    pub(super) threads: Option<u32>,
    /// Equations to solve
    #[schemars(range(min = 1, max = 1_000_000), extend("x-aliases" = ["n"]))]
    pub(super) problem_sizes: Axis<u64>,
    /// Numbers from one column of the matrix to the next; 0: as many as equations
    #[schemars(range(max = 1_000_000))]
    pub(super) leading_dimensions: u64,
    /// Alignment of the matrix in KiB, a power of two
    #[schemars(range(min = 1, max = 1024))]
    pub(super) alignment_values: u64,
    /// pbench's: exactly so many samples, however far apart they lie; auto: the plan's rule, which goes on until the median
    /// is known well enough
    pub(super) run_samples: AutoCount,
    /// Solutions in one sample; auto: as many as fill its time
    pub(super) run_trials: AutoCount,
    /// Instruction set of our own kernel
    #[schemars(extend("x-resolved" = "the widest of the worker's CPU; none with linpack-binary"))]
    pub(super) isa: Option<Isa>,
    /// A linpack program to run instead of our own kernel: its name or path
    pub(super) linpack_binary: String,
    /// What linpack-binary is, which decides its input and output
    pub(super) linpack_kind: ProgramKind,
    /// With linpack-binary: whether OMP_NUM_THREADS and KMP_AFFINITY are set
    pub(super) use_omp: bool,
    /// With linpack-binary: KMP_AFFINITY
    pub(super) kmp_affinity: String,
    /// With linpack-binary: arguments of numactl, which then starts it
    pub(super) numactl_args: String,
    /// With xlinpack: first line of its input
    pub(super) lininput_header: String,
    /// With xlinpack: second line of its input, which it prints
    pub(super) lininput_subheader: String,
}

/// What kind of linpack program another one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ProgramKind {
    /// By its name: hpcc or hpl where that is part of it, else xlinpack
    #[default]
    Auto,
    /// Intel's linpack for shared memory
    Xlinpack,
    /// High-Performance Linpack
    Hpl,
    /// HPC Challenge, of which HPL is a part
    Hpcc,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            threads: None,
            problem_sizes: Axis(4000),
            leading_dimensions: 0,
            alignment_values: 4,
            run_samples: AutoCount::Auto,
            run_trials: AutoCount::Auto,
            isa: None,
            linpack_binary: String::new(),
            linpack_kind: ProgramKind::Auto,
            use_omp: true,
            kmp_affinity: "nowarnings,compact,1,0,granularity=fine".to_owned(),
            numactl_args: String::new(),
            lininput_header: "LINPACK Benchmark data file (linpack.input)".to_owned(),
            lininput_subheader: "LINPACK Benchmark data".to_owned(),
        }
    }
}

impl Params {
    /// Equations.
    pub(super) fn size(&self) -> usize {
        *self.problem_sizes as usize
    }

    /// Numbers from one column to the next.
    pub(super) fn leading_dimension(&self) -> u64 {
        if self.leading_dimensions == 0 { *self.problem_sizes } else { self.leading_dimensions }
    }

    /// Solutions in one sample, where they were given.
    pub(super) fn trials(&self) -> Option<u64> {
        match self.run_trials {
            AutoCount::Auto => None,
            AutoCount::Fixed(trials) => Some(trials),
        }
    }

    /// pbench's number of samples, unless the plan's rule is requested.
    pub(super) fn rule(&self) -> Option<SamplingRule> {
        let AutoCount::Fixed(samples) = self.run_samples else { return None };
        let samples = usize::try_from(samples).unwrap_or(usize::MAX);
        Some(SamplingRule::External { min_samples: samples, max_samples: samples })
    }

    /// Whether the program of others is measured.
    pub(super) fn is_external(&self) -> bool {
        !self.linpack_binary.is_empty()
    }

    /// The kind of the program, never `Auto`.
    pub(super) fn program_kind(&self) -> ProgramKind {
        let name = self.linpack_binary.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
        match self.linpack_kind {
            ProgramKind::Auto if name.contains("hpcc") => ProgramKind::Hpcc,
            ProgramKind::Auto if name.contains("hpl") => ProgramKind::Hpl,
            ProgramKind::Auto => ProgramKind::Xlinpack,
            kind => kind,
        }
    }

    /// What contradicts itself, whatever the machine.
    pub(super) fn contradiction(&self) -> Option<String> {
        let (size, leading, alignment) = (*self.problem_sizes, self.leading_dimension(), self.alignment_values);
        if leading < size {
            let why = format!("{leading} is less than the {size} equations: give {size} or more, or 0");
            return Some(parameter_error("leading-dimensions", why));
        }
        if !alignment.is_power_of_two() {
            return Some(parameter_error("alignment-values", format!("{alignment} KiB is no power of two")));
        }
        if self.isa.is_some() && self.is_external() {
            return Some(parameter_error("isa", "is for our own kernel; `linpack-binary` has its own instructions"));
        }
        if self.linpack_kind != ProgramKind::Auto && !self.is_external() {
            return Some(parameter_error("linpack-kind", "is for `linpack-binary`, which is not given"));
        }
        if !self.is_external() {
            let why = "is for `linpack-binary`; our own kernel follows `cpus` and `memory-nodes`";
            return (!self.numactl_args.is_empty()).then(|| parameter_error("numactl-args", why));
        }
        let (trials, most) = (self.trials().unwrap_or(1), self.program_kind().max_trials());
        let why = || format!("{} solves at most {most} times in one run, not {trials} times", self.linpack_binary);
        (trials > most).then(|| parameter_error("run-trials", why()))
    }
}

impl ProgramKind {
    /// How often such a program solves in one run, at most.
    pub(super) fn max_trials(self) -> u64 {
        match self {
            Self::Auto | Self::Xlinpack => 1000,
            // The fixed length of a list in HPL's input.
            Self::Hpl => 20,
            Self::Hpcc => 1,
        }
    }
}

/// Numbers of threads up to `most` as run-perf steps: quarters of it, and 1; all of them where there are few.
pub(super) fn thread_steps(most: i64) -> Vec<i64> {
    let most = most.max(1);
    let step = (most / 4).max(1);
    let mut steps: Vec<i64> = std::iter::once(1).chain((step..=most).step_by(step as usize)).chain([most]).collect();
    steps.dedup();
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_step_as_run_perf_steps() {
        assert_eq!(thread_steps(16), [1, 4, 8, 12, 16]);
        assert_eq!(thread_steps(4), [1, 2, 3, 4]);
        assert_eq!(thread_steps(2), [1, 2]);
        assert_eq!(thread_steps(1), [1]);
        assert_eq!(thread_steps(0), [1]);
        assert_eq!(thread_steps(22), [1, 5, 10, 15, 20, 22]);
    }

    #[test]
    fn run_samples_are_pbenchs_number_of_samples() {
        let rule = |json: &str| serde_json::from_str::<Params>(json).unwrap().rule();
        let exactly = SamplingRule::External { min_samples: 3, max_samples: 3 };
        assert_eq!(rule(r#"{"run-samples": "3"}"#), Some(exactly));
        assert_eq!((exactly.min_samples(), exactly.max_samples()), (3, 3));
        assert_eq!((rule("{}"), rule(r#"{"run-trials": "3"}"#)), (None, None));
    }

    #[test]
    fn a_program_is_known_by_its_name_or_by_what_is_said() {
        let kind = |binary: &str, said| {
            Params { linpack_binary: binary.to_owned(), linpack_kind: said, ..Params::default() }.program_kind()
        };
        assert_eq!(kind("/usr/bin/hpcc", ProgramKind::Auto), ProgramKind::Hpcc);
        assert_eq!(kind("xhpl", ProgramKind::Auto), ProgramKind::Hpl);
        assert_eq!(kind("/opt/hpl/xlinpack_xeon64", ProgramKind::Auto), ProgramKind::Xlinpack);
        assert_eq!(kind("/opt/mine", ProgramKind::Hpl), ProgramKind::Hpl);
    }

    #[test]
    fn contradictions_are_told() {
        let fault = |params: Params| params.contradiction().unwrap();
        let leading = Params { leading_dimensions: 100, ..Params::default() };
        assert!(fault(leading).starts_with("`leading-dimensions`: 100 is less than the 4000 equations"));
        assert!(fault(Params { alignment_values: 3, ..Params::default() }).contains("no power of two"));
        assert!(fault(Params { numactl_args: "-N0".into(), ..Params::default() }).contains("`memory-nodes`"));
        assert!(fault(Params { linpack_kind: ProgramKind::Hpl, ..Params::default() }).contains("`linpack-binary`"));
        let other = Params { linpack_binary: "xhpl".into(), isa: Some(Isa::Scalar), ..Params::default() };
        assert!(fault(other).starts_with("`isa`"));
        let hpcc = Params { linpack_binary: "hpcc".into(), run_trials: AutoCount::Fixed(2), ..Params::default() };
        assert!(fault(hpcc).contains("at most 1 times"));
        assert_eq!(Params::default().contradiction(), None);
    }
}
