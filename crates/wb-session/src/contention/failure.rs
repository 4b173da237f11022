//! From errors of measurements to failures of stages.

use wb_agent::WorkerError;
use wb_contention::runner::{StageError, StageFailure};
use wb_contention_worker::{ContentionError, Requirement, RequirementReport};

pub(super) fn failure(error: ContentionError, device: &str) -> StageError {
    let reason = error.to_string();
    let failure = match error {
        ContentionError::NoControllers => StageFailure::CgroupV1,
        ContentionError::MissedRequirements(report) => missed_requirements(&report, device),
        ContentionError::NoSpace { path, .. } => StageFailure::NoSpace { path },
        ContentionError::OutOfMemory { program, .. } => StageFailure::OutOfMemory { process: program },
        ContentionError::NoContention => StageFailure::NoContention { reason },
        ContentionError::Process { .. } | ContentionError::Output { .. } | ContentionError::Unstable { .. } => {
            StageFailure::Workload { reason }
        }
        ContentionError::Worker(_)
        | ContentionError::Indispensable(_)
        | ContentionError::NoDevice { .. }
        | ContentionError::TooLittleMemory { .. }
        | ContentionError::ForeignChange { .. } => StageFailure::Machine { reason },
    };
    failure.into()
}

pub(super) fn worker_failure(error: &WorkerError) -> StageError {
    StageFailure::Machine { reason: error.to_string() }.into()
}

/// The failure of a machine that misses requirements. If the only one is that nothing else controls I/O, what does is
/// named.
fn missed_requirements(report: &RequirementReport, device: &str) -> StageFailure {
    let missed: Vec<Requirement> = report.missed.keys().copied().collect();
    match missed[..] {
        [Requirement::IocostUnused] => StageFailure::IocostInUse { device: device.to_owned() },
        [Requirement::IoControllersUnused] => StageFailure::IoControllerInUse { controller: report.describe_missed() },
        _ => StageFailure::Requirements { requirements: names(report) },
    }
}

pub(super) fn names(report: &RequirementReport) -> Vec<String> {
    report.missed.keys().map(ToString::to_string).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use wb_model::Bytes;

    use super::*;

    fn report(missed: &[Requirement]) -> RequirementReport {
        let missed = missed.iter().map(|requirement| (*requirement, vec!["found".to_owned()])).collect();
        RequirementReport { satisfied: Vec::new(), missed }
    }

    fn failure_of(error: ContentionError) -> StageFailure {
        match failure(error, "nvme0n1") {
            StageError::Failed(failure) => failure,
            StageError::Record(error) => panic!("{error}"),
        }
    }

    #[test]
    fn errors_keep_their_type() {
        let unmet = |missed: &[Requirement]| failure_of(ContentionError::MissedRequirements(report(missed)));
        assert_eq!(failure_of(ContentionError::NoControllers), StageFailure::CgroupV1);
        assert_eq!(unmet(&[Requirement::IocostUnused]), StageFailure::IocostInUse { device: "nvme0n1".to_owned() });
        assert_eq!(
            unmet(&[Requirement::IoControllersUnused]),
            StageFailure::IoControllerInUse { controller: "found".to_owned() }
        );
        let requirements = vec!["swap".to_owned(), "swap-on-device".to_owned()];
        assert_eq!(unmet(&[Requirement::SwapOnDevice, Requirement::Swap]), StageFailure::Requirements { requirements });
        let full = ContentionError::NoSpace { path: "/d".to_owned(), required: Bytes(1) };
        assert_eq!(failure_of(full), StageFailure::NoSpace { path: "/d".to_owned() });
        let killed = ContentionError::OutOfMemory { program: "hashd".to_owned(), group: "/g".to_owned() };
        assert_eq!(failure_of(killed), StageFailure::OutOfMemory { process: "hashd".to_owned() });
    }

    #[test]
    fn only_a_failed_workload_may_be_repeated_under_other_settings() {
        let unstable = failure_of(ContentionError::Unstable { reached: 1.0, target: 2.0, seconds: 3 });
        assert!(unstable.concerns_settings());
        let unused = failure_of(ContentionError::NoContention);
        assert!(!unused.concerns_settings() && !unused.is_transient(), "it says nothing about a setting");
        let foreign = failure_of(ContentionError::ForeignChange { what: "io.cost.qos".to_owned() });
        assert!(matches!(&foreign, StageFailure::Machine { .. }) && !foreign.is_transient(), "{foreign}");
    }
}
