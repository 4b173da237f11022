//! The built-in linpack kernel.

use wb_kernels::linpack::{Config, LinpackReport, required_bytes};
use wb_kernels::{Isa, Work};
use wb_model::outcome::Gate;
use wb_model::{Class, Facts, MetricKey, Placement};
use wb_test::{Artefacts, Attempt, Failure, Measurement, Rejection};

use super::{LinpackParams, Solution, operations, process_seconds, summarize_solutions};
use crate::native;

fn config(params: &LinpackParams, placement: &Placement, facts: &Facts, work: Work) -> Config {
    Config {
        n: params.size(),
        leading_dimension: params.leading_dimension() as usize,
        alignment: params.alignment_values as usize * 1024,
        cpus: native::thread_cpus(params.threads.unwrap_or(1), placement, facts),
        huge_pages: native::huge_pages(placement),
        seed: 0,
        work,
        isa: Some(params.isa.unwrap_or(Isa::Scalar)),
    }
}

pub(super) fn unsupported(params: &LinpackParams, placement: &Placement, facts: &Facts) -> Option<String> {
    // The configuration names a CPU for each thread: not before their number is known to be possible.
    let required = || required_bytes(&config(params, placement, facts, Work::Iterations(1)));
    native::unsupported_isa(params.isa, facts)
        .or_else(|| native::unsupported_threads(params.threads, facts))
        .or_else(|| native::unsupported_memory(required(), facts))
}

pub(super) async fn sample(params: &LinpackParams, attempt: &mut Attempt) -> Result<(), Failure> {
    let work = params.trials().map_or_else(|| native::requested_work(attempt), Work::Iterations);
    let config = config(params, &attempt.context.placement, &attempt.context.facts, work);
    attempt.add_json("config.json", &config)?;
    let report: LinpackReport = native::exec(attempt, "linpack", &config).await?;
    attempt.record_work(report.repeats.len() as u64);
    Ok(())
}

pub(super) fn study(params: &LinpackParams, artefacts: &Artefacts) -> Result<Measurement, Rejection> {
    let config: Config = artefacts.json("config.json")?;
    let report: LinpackReport = native::report(artefacts)?;
    let operations = operations(config.n);
    let solution =
        |seconds: f64, residual| Solution { seconds, gflops: operations / seconds * 1e-9, residual, passed: true };
    let solutions: Vec<Solution> =
        report.repeats.iter().map(|repeat| solution(repeat.seconds, repeat.residual)).collect();
    let expected = match config.work {
        Work::Iterations(repeats) => repeats,
        Work::Seconds(_) => solutions.len().max(1) as u64,
    };
    let mut measurement = summarize_solutions(&solutions, expected, process_seconds(artefacts, native::REPORT)?);
    let by_time = measurement.values[&MetricKey::new(Class::Throughput, "gflops")];
    measurement.require((report.gflops / by_time - 1.0).abs() < 1e-6, Gate::Plausibility, || {
        format!("reported {} GFLOPS, but the times give {by_time} GFLOPS", report.gflops)
    });
    let requested = (params.isa, params.threads.map(|threads| threads as usize));
    let measured = (Some(report.isa), Some(report.threads));
    measurement
        .require(requested == measured, Gate::Work, || format!("requested {requested:?}, measured {measured:?}"));
    native::record_residency(&mut measurement, report.residency, config.huge_pages);
    measurement.add_provenance("isa", report.isa);
    measurement.add_provenance("solutions", solutions.len());
    Ok(measurement)
}

#[cfg(test)]
mod tests {
    use wb_model::Validity;

    use super::*;
    use wb_test_artefacts::{artefact_folder, failed_gate, value};

    const CONFIG: &str =
        r#"{"n":1000,"leading-dimension":1000,"alignment":4096,"cpus":[0],"work":{"iterations":2},"isa":"avx2"}"#;
    const PROCESS: &str = r#"{"elapsed-seconds":0.2}"#;

    fn report() -> String {
        let gflops = 2.0 * operations(1000) / 0.08 * 1e-9;
        format!(
            r#"{{"gflops":{gflops},"repeats":[{{"seconds":0.03,"residual":0.01}},{{"seconds":0.05,"residual":0.02}}],"residual":0.02,"isa":"avx2","threads":1,"residency":{{"bytes":8008000,"huge-bytes":0}}}}"#
        )
    }

    fn study(report: &str) -> Result<Measurement, Rejection> {
        let files = [("config.json", CONFIG), ("report.stdout", report), ("report.process.json", PROCESS)];
        let params = LinpackParams { threads: Some(1), isa: Some(Isa::Avx2), ..LinpackParams::default() };
        super::study(&params, &Artefacts::new(artefact_folder(&files).path()))
    }

    #[test]
    fn a_correct_report_is_valid() {
        let measurement = study(&report()).unwrap();
        assert_eq!(measurement.validity, Validity::Valid);
        assert!((value(&measurement, "throughput/gflops") - 16.704).abs() < 1e-3);
        assert_eq!(value(&measurement, "check/residual"), 0.02);
    }

    #[test]
    fn incorrect_or_implausible_reports_are_invalid() {
        for (from, to, gate) in [
            ("0.02}", "17.0}", Gate::Answer),
            (r#""isa":"avx2""#, r#""isa":"scalar""#, Gate::Work),
            (r#""threads":1"#, r#""threads":2"#, Gate::Work),
            (r#""gflops":16"#, r#""gflops":26"#, Gate::Plausibility),
            (r#"},{"seconds":0.05,"residual":0.02}"#, "}", Gate::Work),
        ] {
            let changed = report().replace(from, to);
            assert_ne!(changed, report());
            assert_eq!(failed_gate(&study(&changed).unwrap()), Some(gate), "{from} → {to}");
        }
    }

    #[test]
    fn garbage_is_rejected() {
        for report in ["", "{}", &report()[..40], &report().replace("0.03", "NaN")] {
            assert_eq!(study(report).unwrap_err().gate, Gate::Output);
        }
    }
}
