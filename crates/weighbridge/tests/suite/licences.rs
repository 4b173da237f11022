//! What is built from other people's work may be given away under our own terms.

use cargo_metadata::{Metadata, MetadataCommand, Package, PackageId};
use spdx::{Expression, Licensee, ParseMode};
use std::collections::{HashMap, HashSet, VecDeque};

const OURS: &str = "MIT OR Apache-2.0";

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
fn every_dependency_has_a_licence_that_we_allow() {
    let offenders = offenders(&workspace(), &ALLOWED);
    assert!(offenders.is_empty(), "not allowed:\n{}", offenders.join("\n"));
}

#[test]
fn every_crate_of_ours_says_mit_or_apache() {
    for package in workspace().workspace_packages() {
        assert_eq!(package.license.as_deref(), Some(OURS), "{}", package.name);
    }
}

#[test]
fn an_offender_is_named_with_its_licence_and_who_brings_it() {
    let offenders = offenders(&workspace(), &["Zlib"]);
    let named = |line: &&String| line.ends_with(": MIT OR Apache-2.0, by weighbridge > cargo_metadata > camino");
    assert!(offenders.iter().find(named).is_some_and(|line| line.starts_with("  camino 1.")), "{offenders:#?}");
}

#[test]
fn one_side_of_an_or_is_enough_and_both_of_an_and_are_needed() {
    let mit = [Licensee::parse("MIT").expect("known")];
    assert!(allows(&mit, Some("MIT OR GPL-3.0-only")));
    assert!(allows(&mit, Some("MIT/Apache-2.0")));
    assert!(!allows(&mit, Some("MIT AND GPL-3.0-only")));
    assert!(!allows(&mit, Some("as you like")));
    assert!(!allows(&mit, None));
}

/// The workspace and all that is built for this platform, as it stands in the lock file.
fn workspace() -> Metadata {
    let options = ["--locked", "--filter-platform", "host-tuple"].map(String::from);
    MetadataCommand::new().other_options(options).exec().expect("cargo knows its own workspace")
}

/// One line for each dependency that none of the allowed licences covers.
fn offenders(metadata: &Metadata, allowed: &[&str]) -> Vec<String> {
    let allowed: Vec<Licensee> = allowed.iter().map(|name| Licensee::parse(name).expect("a licence")).collect();
    let names = metadata.packages.iter().map(|package| (&package.id, package.name.as_str())).collect();
    let used_by = users(metadata);
    let ours: HashSet<&PackageId> = metadata.workspace_members.iter().collect();
    let offends = |package: &&Package| !ours.contains(&package.id) && !allows(&allowed, package.license.as_deref());
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

/// The nearest crate of ours that brings a package, and every package between.
fn chain(package: &PackageId, used_by: &HashMap<&PackageId, &PackageId>, names: &HashMap<&PackageId, &str>) -> String {
    let mut chain: Vec<&str> = std::iter::successors(Some(package), |id| used_by.get(*id).copied())
        .filter_map(|id| names.get(id).copied())
        .collect();
    chain.reverse();
    chain.join(" > ")
}

/// Of each dependency, the user that is fewest steps away from our own crates.
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
