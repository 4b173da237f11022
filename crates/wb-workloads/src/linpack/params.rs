//! The parameters of linpack, with the names of pbench-linpack.

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
pub struct LinpackParams {
    /// Threads, each pinned to a separate core if there are enough
    #[schemars(range(min = 1), extend("x-axis" = true, "x-default" = "steps from 1 to 2 × the CPUs, as run-perf: 1, 4, 8, 12, 16 on 8"))]
    pub(super) threads: Option<u32>,
    /// Problem size: number of equations
    #[schemars(range(min = 1, max = 1_000_000), extend("x-aliases" = ["n"]))]
    pub(super) problem_sizes: Axis<u64>,
    /// Leading dimension of the matrix; 0: the number of equations
    #[schemars(range(max = 1_000_000))]
    pub(super) leading_dimensions: u64,
    /// Alignment of the matrix in KiB, a power of two
    #[schemars(range(min = 1, max = 1024))]
    pub(super) alignment_values: u64,
    /// Number of samples, as in pbench, whatever their spread; auto: the plan's rule, which stops when the median is
    /// precise enough
    pub(super) run_samples: AutoCount,
    /// Solutions per sample; auto: as many as fill its time
    pub(super) run_trials: AutoCount,
    /// Instruction set of the built-in kernel
    #[schemars(extend("x-default" = "the widest of the worker's CPU; none with linpack-binary"))]
    pub(super) isa: Option<Isa>,
    /// Name or path of a linpack program to run instead of the built-in kernel
    pub(super) linpack_binary: String,
    /// Kind of linpack-binary, which determines its input and output
    pub(super) linpack_kind: ProgramKind,
    /// With linpack-binary: whether to set OMP_NUM_THREADS and KMP_AFFINITY
    pub(super) use_omp: bool,
    /// With linpack-binary: value of KMP_AFFINITY
    pub(super) kmp_affinity: String,
    /// With linpack-binary: arguments of numactl to start it with
    pub(super) numactl_args: String,
    /// With xlinpack: first line of its input
    pub(super) lininput_header: String,
    /// With xlinpack: second line of its input, which is printed
    pub(super) lininput_subheader: String,
}

/// Kind of an external linpack program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ProgramKind {
    /// By its name: hpcc or hpl if the name contains it, else xlinpack
    #[default]
    Auto,
    /// Intel's linpack for shared memory
    Xlinpack,
    /// High-Performance Linpack
    Hpl,
    /// HPC Challenge, of which HPL is a part
    Hpcc,
}

impl Default for LinpackParams {
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

impl LinpackParams {
    pub(super) fn size(&self) -> usize {
        *self.problem_sizes as usize
    }

    /// Leading dimension of the matrix: distance between columns, in elements.
    pub(super) fn leading_dimension(&self) -> u64 {
        if self.leading_dimensions == 0 { *self.problem_sizes } else { self.leading_dimensions }
    }

    /// Solutions per sample, if given.
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

    /// A parameter that the program (none: the built-in kernel) does not use, with a value other than its default.
    fn unused_by(&self, kind: Option<ProgramKind>) -> Option<&'static str> {
        let default = Self::default();
        let of_programs =
            [("use-omp", self.use_omp != default.use_omp), ("kmp-affinity", self.kmp_affinity != default.kmp_affinity)];
        let of_xlinpack = [
            ("lininput-header", self.lininput_header != default.lininput_header),
            ("lininput-subheader", self.lininput_subheader != default.lininput_subheader),
        ];
        let of_programs = of_programs.into_iter().filter(|_| kind.is_none());
        let of_xlinpack = of_xlinpack.into_iter().filter(|_| kind != Some(ProgramKind::Xlinpack));
        of_programs.chain(of_xlinpack).find(|(_, is_given)| *is_given).map(|(name, _)| name)
    }

    pub(super) fn contradiction(&self) -> Option<String> {
        let (size, leading, alignment) = (*self.problem_sizes, self.leading_dimension(), self.alignment_values);
        if leading < size {
            let reason =
                format!("{leading} is less than the number of equations, {size}: expected {size} or more, or 0");
            return Some(parameter_error("leading-dimensions", reason));
        }
        if !alignment.is_power_of_two() {
            return Some(parameter_error(
                "alignment-values",
                format!("invalid alignment {alignment} KiB: expected a power of two"),
            ));
        }
        if self.isa.is_some() && self.is_external() {
            return Some(parameter_error("isa", "applies only to the built-in kernel, not to `linpack-binary`"));
        }
        if self.linpack_kind != ProgramKind::Auto && !self.is_external() {
            return Some(parameter_error("linpack-kind", "requires `linpack-binary`"));
        }
        if !self.is_external() {
            let reason = "requires `linpack-binary`; the built-in kernel is placed by `cpus` and `memory-nodes`";
            let placed = (!self.numactl_args.is_empty()).then(|| parameter_error("numactl-args", reason));
            let reason = "has no effect on the built-in kernel: requires `linpack-binary`";
            return placed.or_else(|| Some(parameter_error(self.unused_by(None)?, reason)));
        }
        if let Some(name) = self.unused_by(Some(self.program_kind())) {
            return Some(parameter_error(name, "has no effect on HPL and HPCC: it is a line of xlinpack's input"));
        }
        let (trials, max_trials) = (self.trials().unwrap_or(1), self.program_kind().max_trials());
        let reason =
            || format!("{} solves at most {max_trials} times per run, {trials} requested", self.linpack_binary);
        (trials > max_trials).then(|| parameter_error("run-trials", reason()))
    }
}

impl ProgramKind {
    /// Maximum number of solutions in one run of the program.
    pub(super) fn max_trials(self) -> u64 {
        match self {
            Self::Auto | Self::Xlinpack => 1000,
            // Maximum length of a list in HPL's input.
            Self::Hpl => 20,
            Self::Hpcc => 1,
        }
    }
}

/// Numbers of threads up to `max` in the steps of run-perf: 1 and each quarter of `max`; all numbers up to 4.
pub(super) fn thread_steps(max: i64) -> Vec<i64> {
    let max = max.max(1);
    let step = (max / 4).max(1);
    let mut steps: Vec<i64> = std::iter::once(1).chain((step..=max).step_by(step as usize)).chain([max]).collect();
    steps.dedup();
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_steps_are_those_of_run_perf() {
        assert_eq!(thread_steps(16), [1, 4, 8, 12, 16]);
        assert_eq!(thread_steps(4), [1, 2, 3, 4]);
        assert_eq!(thread_steps(2), [1, 2]);
        assert_eq!(thread_steps(1), [1]);
        assert_eq!(thread_steps(0), [1]);
        assert_eq!(thread_steps(22), [1, 5, 10, 15, 20, 22]);
    }

    #[test]
    fn run_samples_fixes_the_number_of_samples() {
        let rule = |json: &str| serde_json::from_str::<LinpackParams>(json).unwrap().rule();
        let exactly = SamplingRule::External { min_samples: 3, max_samples: 3 };
        assert_eq!(rule(r#"{"run-samples": "3"}"#), Some(exactly));
        assert_eq!((exactly.min_samples(), exactly.max_samples()), (3, 3));
        assert_eq!((rule("{}"), rule(r#"{"run-trials": "3"}"#)), (None, None));
    }

    #[test]
    fn the_kind_of_a_program_follows_from_its_name_or_a_parameter() {
        let kind = |binary: &str, linpack_kind| {
            LinpackParams { linpack_binary: binary.to_owned(), linpack_kind, ..LinpackParams::default() }.program_kind()
        };
        assert_eq!(kind("/usr/bin/hpcc", ProgramKind::Auto), ProgramKind::Hpcc);
        assert_eq!(kind("xhpl", ProgramKind::Auto), ProgramKind::Hpl);
        assert_eq!(kind("/opt/hpl/xlinpack_xeon64", ProgramKind::Auto), ProgramKind::Xlinpack);
        assert_eq!(kind("/opt/mine", ProgramKind::Hpl), ProgramKind::Hpl);
    }

    #[test]
    fn contradictions_are_reported() {
        let contradiction = |params: LinpackParams| params.contradiction().unwrap();
        let leading = LinpackParams { leading_dimensions: 100, ..LinpackParams::default() };
        assert!(
            contradiction(leading).starts_with("`leading-dimensions`: 100 is less than the number of equations, 4000")
        );
        assert!(
            contradiction(LinpackParams { alignment_values: 3, ..LinpackParams::default() })
                .contains("expected a power of two")
        );
        assert!(
            contradiction(LinpackParams { numactl_args: "-N0".into(), ..LinpackParams::default() })
                .contains("`memory-nodes`")
        );
        assert!(
            contradiction(LinpackParams { linpack_kind: ProgramKind::Hpl, ..LinpackParams::default() })
                .contains("`linpack-binary`")
        );
        let other = LinpackParams { linpack_binary: "xhpl".into(), isa: Some(Isa::Scalar), ..LinpackParams::default() };
        assert!(contradiction(other).starts_with("`isa`"));
        let hpcc = LinpackParams {
            linpack_binary: "hpcc".into(),
            run_trials: AutoCount::Fixed(2),
            ..LinpackParams::default()
        };
        assert!(contradiction(hpcc).contains("at most 1 times"));
        assert_eq!(LinpackParams::default().contradiction(), None);
    }

    #[test]
    fn a_parameter_without_effect_is_reported() {
        let reason =
            |json: &str| serde_json::from_str::<LinpackParams>(json).unwrap().contradiction().unwrap_or_default();
        let given = [
            ("use-omp", "false"),
            ("kmp-affinity", r#""compact""#),
            ("lininput-header", r#""a""#),
            ("lininput-subheader", r#""a""#),
        ];
        for (name, value) in given {
            let alone = reason(&format!(r#"{{"{name}": {value}}}"#));
            assert!(alone.starts_with(&format!("`{name}`: has no effect on the built-in kernel")), "{alone}");
            let with = |binary: &str| reason(&format!(r#"{{"{name}": {value}, "linpack-binary": "{binary}"}}"#));
            assert_eq!(with("xlinpack_xeon64"), "");
            assert_eq!(with("xhpl").is_empty(), !name.starts_with("lininput"), "{name}");
        }
    }
}
