//! The summaries of builds and their runs.

use wb_results::comparison::{BuildSummary, RunSummary};

use crate::build::{Build, Run};

pub(super) fn summarize_build(build: &Build) -> BuildSummary {
    BuildSummary {
        name: build.name.clone(),
        runs: build.runs.iter().map(summarize_run).collect(),
        errors: build.errors().map(|error| (error.location.clone(), error.message.clone())).collect(),
        samples: build.sample_counts(),
    }
}

pub(super) fn summarize_run(run: &Run) -> RunSummary {
    let metadata = &run.metadata;
    let properties = [
        ("build", &metadata.build),
        ("url", &metadata.url),
        ("machine", &metadata.machine),
        ("machine url", &metadata.machine_url),
        ("distro", &metadata.distro),
        ("guest distro", &metadata.guest_distro),
        ("version", &metadata.version),
        ("command", &metadata.command),
    ];
    let properties = properties.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
    RunSummary {
        path: run.path.display().to_string(),
        metadata: metadata.others.clone().into_iter().chain(properties).collect(),
        environment: metadata.environment.clone(),
        systems: metadata.systems.clone(),
    }
}
