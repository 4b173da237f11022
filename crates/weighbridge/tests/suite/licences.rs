//! Licences of dependencies permit distribution under our own.

use cargo_metadata::{Metadata, MetadataCommand, Package, PackageId};
use spdx::{Expression, Licensee, ParseMode};
use std::collections::{HashMap, HashSet, VecDeque};

const LICENCE: &str = "MIT OR Apache-2.0";

const ALLOWED: [&str; 10] = [
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "Unicode-3.0",
    "Zlib",
];

#[test]
fn every_dependency_has_an_allowed_licence() {
    let offenders = offenders(&workspace(), &ALLOWED);
    assert!(offenders.is_empty(), "not allowed:\n{}", offenders.join("\n"));
}

#[test]
fn every_workspace_crate_is_mit_or_apache() {
    for package in workspace().workspace_packages() {
        assert_eq!(package.license.as_deref(), Some(LICENCE), "{}", package.name);
    }
}

#[test]
fn offender_is_reported_with_its_licence_and_dependents() {
    let offenders = offenders(&workspace(), &["Zlib"]);
    let named = |line: &&String| line.ends_with(": MIT OR Apache-2.0, by weighbridge > cargo_metadata > camino");
    assert!(offenders.iter().find(named).is_some_and(|line| line.starts_with("  camino 1.")), "{offenders:#?}");
}

#[test]
fn licence_expressions_are_evaluated() {
    let mit = [Licensee::parse("MIT").expect("known licence")];
    assert!(allows(&mit, Some("MIT OR GPL-3.0-only")));
    assert!(allows(&mit, Some("MIT/Apache-2.0")));
    assert!(!allows(&mit, Some("MIT AND GPL-3.0-only")));
    assert!(!allows(&mit, Some("as you like")));
    assert!(!allows(&mit, None));
}

/// Metadata of the workspace and its dependencies on this platform, from the lock file.
fn workspace() -> Metadata {
    let options = ["--locked", "--filter-platform", "host-tuple"].map(String::from);
    MetadataCommand::new().other_options(options).exec().expect("cargo knows its own workspace")
}

/// One line for each dependency that none of the allowed licences covers.
fn offenders(metadata: &Metadata, allowed: &[&str]) -> Vec<String> {
    let allowed: Vec<Licensee> = allowed.iter().map(|name| Licensee::parse(name).expect("a licence")).collect();
    let names = metadata.packages.iter().map(|package| (&package.id, package.name.as_str())).collect();
    let used_by = users(metadata);
    let members: HashSet<&PackageId> = metadata.workspace_members.iter().collect();
    let offends = |package: &&Package| !members.contains(&package.id) && !allows(&allowed, package.license.as_deref());
    metadata
        .packages
        .iter()
        .filter(offends)
        .map(|package| {
            let licence = package.license.as_deref().unwrap_or("names no licence");
            format!("  {} {}: {licence}, by {}", package.name, package.version, chain(&package.id, &used_by, &names))
        })
        .collect()
}

fn allows(allowed: &[Licensee], expression: Option<&str>) -> bool {
    expression
        .and_then(|expression| Expression::parse_mode(expression, ParseMode::LAX).ok())
        .is_some_and(|expression| expression.evaluate(|licence| allowed.iter().any(|one| one.satisfies(licence))))
}

/// The dependency chain from the nearest workspace crate to a package.
fn chain(package: &PackageId, used_by: &HashMap<&PackageId, &PackageId>, names: &HashMap<&PackageId, &str>) -> String {
    let mut chain: Vec<&str> = std::iter::successors(Some(package), |id| used_by.get(*id).copied())
        .filter_map(|id| names.get(id).copied())
        .collect();
    chain.reverse();
    chain.join(" > ")
}

/// For each dependency, the dependent that is nearest to the workspace crates.
fn users(metadata: &Metadata) -> HashMap<&PackageId, &PackageId> {
    let nodes = &metadata.resolve.as_ref().expect("the resolved graph").nodes;
    let uses: HashMap<_, _> = nodes.iter().map(|node| (&node.id, &node.dependencies)).collect();
    let mut seen: HashSet<&PackageId> = metadata.workspace_members.iter().collect();
    let mut queue: VecDeque<&PackageId> = metadata.workspace_members.iter().collect();
    let mut used_by = HashMap::new();
    while let Some(user) = queue.pop_front() {
        for dependency in uses[user].iter().filter(|dependency| seen.insert(dependency)) {
            used_by.insert(dependency, user);
            queue.push_back(dependency);
        }
    }
    used_by
}
