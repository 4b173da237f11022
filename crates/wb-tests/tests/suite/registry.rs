//! What holds for every built-in test.

use std::collections::BTreeSet;
use std::path::Path;

use wb_model::{Facts, ParamValue, Params};
use wb_plan::Catalog;
use wb_test::Artefacts;

#[test]
fn every_declaration_is_complete() {
    for declaration in wb_tests::built_in().declarations() {
        let test = &declaration.name;
        assert!(!declaration.summary.is_empty(), "{test}");
        let mut names = BTreeSet::new();
        for param in &declaration.params {
            assert!(!param.help.is_empty(), "{test}: {} has no help", param.name);
            for name in std::iter::once(&param.name).chain(&param.aliases) {
                assert!(names.insert(name), "{test}: duplicate name `{name}`");
                let reserved = ["name", "id", "tools"].contains(&name.as_str());
                assert!(!reserved, "{test}: `{name}` is reserved in plans");
            }
            let is_optional = ["env", "before"].contains(&param.name.as_str());
            let has_value = is_optional || param.default.is_some() || param.resolved_from.is_some();
            assert!(
                has_value,
                "{test}: `{}` has neither a default nor a description of how it is resolved",
                param.name
            );
        }
    }
}

#[test]
fn every_declared_size_and_count_is_read_in_every_notation() {
    use wb_model::ParamKind;
    let registry = wb_tests::built_in();
    let mut checked = 0;
    for declaration in registry.declarations() {
        for param in &declaration.params {
            let mut kind = &param.kind;
            while let ParamKind::List { of } = kind {
                kind = of;
            }
            let notations: &[&str] = match kind {
                ParamKind::Integer { max: Some(max), .. } if *max < 2000 => &["10", "1e1", "0.01k", "100e-1"],
                ParamKind::Integer { .. } | ParamKind::Count => &["2000", "2k", "2K", "2e3", "0.002M"],
                ParamKind::Bytes { .. } => &["2097152", "2m", "2M", "2MiB", "2048k", "2.097152e6"],
                ParamKind::Duration { .. } => &["3600", "1h", "60min", "3.6e3", "3600s"],
                _ => continue,
            };
            let read = |text: &&str| kind.normalise(&ParamValue::Text((*text).to_owned()));
            let values: Vec<_> = notations.iter().map(read).collect();
            let same = values.iter().all(|value| *value == values[0]);
            // A smaller range than that of its type refuses all of them alike.
            let refused =
                values.iter().all(|value| value.as_ref().is_err_and(|error| error.message.contains(": expected at ")));
            assert!(refused || (same && values[0].is_ok()), "{}:{}: {values:?}", declaration.name, param.name);
            checked += 1;
        }
    }
    assert!(checked > 80, "{checked}");
}

#[test]
fn digits_mean_the_same_with_and_without_quotes() {
    for declaration in wb_tests::built_in().declarations() {
        for param in &declaration.params {
            for typed in ["007", "+7", "-0", "00", "7"] {
                let recorded = |value: &str| {
                    let spec = format!("{}:{}={value}", declaration.name, param.name);
                    param.kind.normalise(&wb_plan::spec::parse(&spec).unwrap().params[0].value.value())
                };
                let (bare, quoted) = (recorded(typed), recorded(&format!("\"{typed}\"")));
                assert_eq!(bare, quoted, "{} {} {typed}", declaration.name, param.name);
                if param.kind == wb_model::ParamKind::Text {
                    assert_eq!(bare.unwrap(), ParamValue::Text(typed.to_owned()));
                }
            }
        }
    }
}

#[test]
fn the_workload_of_some_tests_is_this_program() {
    let registry = wb_tests::built_in();
    let native = registry.declarations().map(|declaration| declaration.name.as_str());
    let native: Vec<&str> = native.filter(|test| registry.is_native(test)).collect();
    assert_eq!(native, ["himeno", "linpack", "net", "ramspeed", "ramspeed-sweep", "uperf"]);
}

#[test]
fn every_built_in_plan_can_be_expanded() {
    let cpu = |id| wb_model::facts::Cpu { id, core: id, package: 0, node: 0 };
    let memory = wb_model::Bytes(16 << 30);
    let facts = Facts {
        cpus: vec![cpu(0), cpu(1)],
        memory,
        memory_available: memory,
        arch: "x86_64".into(),
        ..Facts::default()
    };
    let (registry, profile) = (wb_tests::built_in(), wb_model::ProfileName::new("Localhost").unwrap());
    for name in wb_plan::builtin::names() {
        let plan = wb_plan::builtin::plan(name).unwrap().unwrap();
        let all = wb_plan::Selection::default();
        for workers in [Some(wb_plan::PlanWorkers::local(facts.clone())), None] {
            let plan =
                wb_plan::expand(&plan.requests, &plan.sampling, &registry, workers.as_ref(), &profile, &all).unwrap();
            let unsupported: Vec<&String> = plan.cells.iter().filter_map(|cell| cell.unsupported.as_ref()).collect();
            assert_eq!(unsupported, [""; 0], "{name}");
            let open = plan.cells.iter().filter(|cell| cell.key.is_none()).count();
            assert!(workers.is_none() || open == 0, "{name}: {open} cells are open");
        }
    }
}

#[test]
fn a_cell_with_invalid_parameters_is_unsupported_and_its_samples_are_rejected() {
    let params = Params::from([("threads".to_owned(), ParamValue::Integer(-1))]);
    let cell = wb_tests::built_in().test_cell("himeno", &params).unwrap();
    let reason = cell.unsupported(&Facts::default()).unwrap();
    assert!(reason.starts_with("`threads`: invalid value: integer `-1`, expected u32"), "{reason}");
    let rejection = cell.study(&Artefacts::new(Path::new("/nosuch"))).unwrap_err();
    assert_eq!(rejection.to_string(), format!("output: {reason}"));
}

#[test]
fn every_test_has_a_primary_metric_and_those_with_several_figures_have_more() {
    let registry = wb_tests::built_in();
    for declaration in registry.declarations() {
        let defaults: Params =
            declaration.params.iter().filter_map(|p| Some((p.name.clone(), p.default.clone()?))).collect();
        let metrics = registry.test_cell(declaration.name.as_str(), &defaults).unwrap().metrics();
        let expected = match declaration.name.as_str() {
            "peers" => 3,
            // Arithmetic and memory.
            "hpcc" => 2,
            _ => 1,
        };
        assert_eq!(metrics.iter().filter(|metric| metric.primary).count(), expected, "{}", declaration.name);
    }
}
