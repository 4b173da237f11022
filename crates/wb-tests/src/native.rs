//! Built-in kernels as workloads: `weighbridge exec KERNEL CONFIG` in a child process. `weighbridge exec KERNEL
//! CONFIG`, run like any other program.

use serde::Serialize;
use serde::de::DeserializeOwned;
use wb_kernels::{Isa, Probe, Residency, Work};
use wb_model::outcome::Gate;
use wb_model::{Class, Facts, HugePages, Metric, ParamValue, Placement, pluralize};

use crate::{Artefacts, Attempt, Conclusion, Failure, Measurement, Rejection, StudiedCell};

/// Under this name the report of a kernel is kept.
pub const REPORT: &str = "report";

/// Runs a kernel and keeps its report.
pub async fn exec<R: DeserializeOwned>(
    attempt: &mut Attempt,
    kernel: &str,
    config: &impl Serialize,
) -> Result<R, Failure> {
    exec_as(attempt, REPORT, kernel, config).await
}

/// Runs a kernel and keeps its report under a name, for tests that run several.
pub async fn exec_as<R: DeserializeOwned>(
    attempt: &mut Attempt,
    name: &str,
    kernel: &str,
    config: &impl Serialize,
) -> Result<R, Failure> {
    let config = serde_json::to_string(config).map_err(|error| Failure::refused(error.to_string()))?;
    let program = attempt.context.worker().program().to_owned();
    // The kernels pin their own threads and ask for their own pages; the rest is the process's.
    let asked = attempt.context.placement.clone();
    let placement = Placement { huge_pages: HugePages::Inherit, ..asked.clone() };
    let command = attempt.context.command([program.as_str(), "exec", kernel, &config]).placement(placement);
    let finished = attempt.run_with_placement(name, command, &asked).await?;
    serde_json::from_slice(&finished.stdout)
        .map_err(|error| Failure::crashed(format!("{kernel}: its report is no JSON: {error}")))
}

/// The report of a kernel.
pub fn report<R: DeserializeOwned>(artefacts: &Artefacts) -> Result<R, Rejection> {
    report_as(artefacts, REPORT)
}

/// The report of a kernel that was kept under a name.
pub fn report_as<R: DeserializeOwned>(artefacts: &Artefacts, name: &str) -> Result<R, Rejection> {
    artefacts.json(&format!("{name}.stdout"))
}

/// The work of this attempt: what earlier ones did, or as much as takes the time.
pub fn requested_work(attempt: &Attempt) -> Work {
    attempt.work.map_or(Work::Seconds(attempt.min_time.seconds()), Work::Iterations)
}

/// One CPU per thread: those of the placement, or whole cores first.
pub fn thread_cpus(threads: u32, placement: &Placement, facts: &Facts) -> Vec<usize> {
    let allowed = if placement.cpus.is_empty() { facts.cpus_for(facts.cpus.len()) } else { placement.cpus.clone() };
    allowed
        .iter()
        .cycle()
        .take(if allowed.is_empty() { 0 } else { threads as usize })
        .map(|cpu| *cpu as usize)
        .collect()
}

/// The kernels' word for the placement's huge pages.
pub fn huge_pages(placement: &Placement) -> wb_kernels::HugePagePolicy {
    match placement.huge_pages {
        HugePages::Inherit => wb_kernels::HugePagePolicy::Inherit,
        HugePages::Always => wb_kernels::HugePagePolicy::Always,
        HugePages::Never => wb_kernels::HugePagePolicy::Never,
    }
}

/// The instruction sets that such a machine has, narrowest first.
pub fn available_isas(facts: &Facts) -> Vec<Isa> {
    let has = |flags: &[&str]| flags.iter().all(|flag| facts.cpu_flags.contains(*flag));
    let there = |isa: &Isa| match isa {
        Isa::Scalar => true,
        Isa::Sse2 => has(&["sse2"]),
        Isa::Avx2 => has(&["avx2", "fma"]),
        Isa::Avx512 => has(&["avx512f", "avx512vl", "avx512dq", "avx512bw"]),
    };
    Isa::ALL.into_iter().filter(there).collect()
}

/// The widest instruction set of such a machine, as a parameter's value.
pub fn widest_isa(facts: &Facts) -> ParamValue {
    ParamValue::Text(available_isas(facts).last().map_or("scalar", |isa| isa.name()).to_owned())
}

/// Why an instruction set cannot be used on such a machine.
pub fn unsupported_isa(isa: Option<Isa>, facts: &Facts) -> Option<String> {
    let isa = isa?;
    let here: Vec<&str> = available_isas(facts).iter().map(|isa| isa.name()).collect();
    (!here.contains(&isa.name())).then(|| format!("this CPU has no {isa}; it has {}", here.join(", ")))
}

/// Why so many threads make no sense on such a machine: what has more than two on each CPU measures its scheduler.
pub fn unsupported_threads(threads: Option<u32>, facts: &Facts) -> Option<String> {
    let (threads, cpus) = (threads? as usize, facts.cpus.len());
    (cpus > 0 && threads > 2 * cpus)
        .then(|| format!("{threads} threads are more than two for each of {}", pluralize(cpus, "CPU")))
}

/// Why so much memory cannot be had on such a machine.
pub fn unsupported_memory(bytes: u64, facts: &Facts) -> Option<String> {
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let available = facts.memory_available.0;
    (bytes > available)
        .then(|| format!("it needs {:.1} GiB of memory, and {:.1} GiB are available", gib(bytes), gib(available)))
}

/// The metric of [`residency`].
pub fn residency_metric() -> Metric {
    Metric::check("huge-page-residency", "%")
}

/// How much of the arrays was on huge pages, as measured; a finding where it is not as asked.
pub fn record_residency(measured: &mut Measurement, memory: Residency, asked: wb_kernels::HugePagePolicy) {
    let share = memory.huge_bytes as f64 / memory.bytes.max(1) as f64 * 100.0;
    measured.set(Class::Check, "huge-page-residency", share);
    let differs = match asked {
        wb_kernels::HugePagePolicy::Inherit => false,
        wb_kernels::HugePagePolicy::Always => share < 90.0,
        wb_kernels::HugePagePolicy::Never => share > 0.0,
    };
    if differs {
        measured.findings.push(
            format!("huge pages `{asked:?}` were asked for, and {share:.0} % of the arrays were on them")
                .to_lowercase(),
        );
    }
}

/// Rejects a measurement whose time did not follow its work: the calibration's time per iteration has to be of the
/// size of the measured one.
pub fn check_effort(measured: &mut Measurement, probe: Probe, iterations: u64, seconds: f64) {
    const FAR: f64 = 4.0;
    // A short probe is mostly the cost of starting threads, and says nothing.
    let telling = probe.seconds >= 1e-4 && iterations >= 8 * probe.iterations && probe.iterations > 0;
    let per_iteration = seconds / iterations.max(1) as f64;
    let ratio = per_iteration / (probe.seconds / probe.iterations.max(1) as f64);
    measured.require(!telling || (1.0 / FAR..=FAR).contains(&ratio), Gate::Effort, || {
        format!("{iterations} iterations took {ratio:.2} times what {} had made expect", probe.iterations)
    });
}

/// How much faster the most threads are than one by a metric in this unit, for every set of cells that differ in their threads alone.
pub fn scaling(cells: &[StudiedCell<'_>], metric: &str, unit: &str) -> Vec<Conclusion> {
    let unit = wb_model::Unit::new(unit);
    let threads = |cell: &StudiedCell<'_>| cell.case.get("threads").and_then(|threads| threads.parse::<u32>().ok());
    let ones = cells.iter().filter(|cell| threads(cell) == Some(1));
    let answer = |one: &StudiedCell<'_>| {
        let group = one.case.without("threads");
        let same = cells.iter().filter(|cell| cell.case.without("threads") == group);
        let most = same.max_by_key(|cell| threads(cell))?;
        let (threads, few, many) = (threads(most)?, one.medians.get(metric)?, most.medians.get(metric)?);
        let speedup = many / few;
        (threads > 1 && speedup.is_finite()).then(|| Conclusion {
            cells: String::new(),
            name: format!("speed-up of {threads} threads over one ({group})"),
            value: speedup,
            unit: wb_model::Unit::new("×"),
            explanation: format!(
                "{} over {}; {:.0} % of a perfect {threads}",
                unit.quantity(*many),
                unit.quantity(*few),
                speedup / f64::from(threads) * 100.0
            ),
        })
    };
    ones.filter_map(answer).collect()
}
