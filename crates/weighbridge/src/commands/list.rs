//! `weighbridge list`: lists tests, contention benches, metrics and plans.

use wb_contention::spec::{BenchDeclaration, PropertyGroup};
use wb_diagnostics::{help_with_suggestion, suggest};
use wb_model::{Declaration, Metric, Params};
use wb_plan::{Catalog, builtin};
use wb_report::text::{Align, Table};
use wb_results::contention::Bench;
use wb_session::definitions::registry_for;
use wb_test::Registry;

use crate::cli::ListArgs;
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{print_json, print_text};

const LISTS: [&str; 4] = ["tests", "benches", "metrics", "plans"];

pub(crate) fn list(args: &ListArgs, console: &Console) -> Result<Exit, Error> {
    // A broken definition of the named test is an error, others are skipped with a warning.
    let named: Vec<&str> = match (args.what.as_str(), args.name.as_deref()) {
        ("tests" | "metrics", name) => name.into_iter().collect(),
        (name, None) if !LISTS.contains(&name) && Bench::from_name(name).is_none() => vec![name],
        _ => Vec::new(),
    };
    let registry = registry_for(&named, &args.tests_d, None, &console.events())?;
    match (args.what.as_str(), args.name.as_deref()) {
        ("tests", None) => list_tests(&registry, args.json, console),
        ("tests", Some(name)) => show_test(&registry, name, args.json, console),
        ("benches", None) => list_benches(args.json, console),
        ("benches", Some(name)) => show_bench(find_bench(name)?, args.json, console),
        ("metrics", name) => list_metrics(&registry, name, args.json, console),
        ("plans", None) => list_plans(args.json, console),
        ("plans", Some(name)) => show_plan(name, args.json),
        (name, None) => match Bench::from_name(name) {
            Some(bench) => show_bench(bench, args.json, console),
            None => show_test(&registry, name, args.json, console),
        },
        (what, Some(_)) => Err(Error::Usage {
            what: format!("unknown list `{what}`: expected one of {}", LISTS.join(", ")),
            help: "each list takes an optional name: `weighbridge list tests NAME`".to_owned(),
        }),
    }?;
    Ok(Exit::Success)
}

fn list_tests(registry: &Registry, json: bool, console: &Console) -> Result<(), Error> {
    if json {
        return print_json(&registry.declarations().collect::<Vec<_>>());
    }
    let mut table =
        Table::new(&[("test", Align::Left), ("what it measures", Align::Left), ("parameters", Align::Right)]);
    for declaration in registry.declarations() {
        let count = declaration.params.len().to_string();
        table.row(vec![declaration.name.as_str().into(), declaration.summary.as_str().into(), count.into()]);
    }
    print_text(&table.draw(console.stdout_style))?;
    print_text("\n")?;
    list_benches(json, console)
}

fn list_benches(json: bool, console: &Console) -> Result<(), Error> {
    let benches = Bench::ALL.map(BenchDeclaration::new);
    if json {
        return print_json(&benches);
    }
    let mut table = Table::new(&[
        ("contention bench", Align::Left),
        ("what it measures", Align::Left),
        ("properties", Align::Right),
    ]);
    for bench in benches {
        let count = bench.properties.len().to_string();
        table.row(vec![bench.name.name().into(), bench.summary.into(), count.into()]);
    }
    print_text(&table.draw(console.stdout_style))
}

fn find_bench(name: &str) -> Result<Bench, Error> {
    let names = Bench::ALL.map(Bench::name);
    Bench::from_name(name).ok_or_else(|| Error::Usage {
        what: format!("unknown contention bench `{name}`"),
        help: help_with_suggestion(suggest(name, names).as_ref(), &format!("expected one of {}", names.join(", "))),
    })
}

fn show_bench(bench: Bench, json: bool, console: &Console) -> Result<(), Error> {
    let declaration = BenchDeclaration::new(bench);
    if json {
        return print_json(&declaration);
    }
    let mut table = Table::new(&[("property", Align::Left), ("default", Align::Left), ("what it sets", Align::Left)]);
    let mut has_later = false;
    for property in declaration.properties {
        if property.group == PropertyGroup::Later && !std::mem::replace(&mut has_later, true) {
            table.heading("later groups, one per stage");
        }
        let default = property.default.unwrap_or_else(|| "none".to_owned());
        table.row(vec![property.name.into(), default.into(), property.help.into()]);
    }
    print_text(&format!(
        "{bench}: {}\n\n{}\nA specification is `{bench}[:PROPERTY=VALUE,…[:…]]`; docs/contention.md describes the bench.\n",
        declaration.summary,
        table.draw(console.stdout_style)
    ))
}

fn find_declaration<'a>(registry: &'a Registry, name: &str) -> Result<&'a Declaration, Error> {
    if let Some(declaration) = registry.declaration(name) {
        return Ok(declaration);
    }
    if builtin::text(name).is_some() {
        let help = format!("`weighbridge list plans {name}` shows it, `weighbridge plan --plan {name}` its cells");
        return Err(Error::Usage { what: format!("expected a test, but `{name}` is a plan"), help });
    }
    let suggestion = suggest(name, registry.names().into_iter().chain(LISTS).chain(Bench::ALL.map(Bench::name)));
    let help = help_with_suggestion(suggestion.as_ref(), "`weighbridge list` shows all");
    Err(Error::Usage { what: format!("unknown test `{name}`"), help })
}

fn show_test(registry: &Registry, name: &str, json: bool, console: &Console) -> Result<(), Error> {
    let declaration = find_declaration(registry, name)?;
    if json {
        return print_json(declaration);
    }
    let mut table = Table::new(&[
        ("parameter", Align::Left),
        ("default", Align::Left),
        ("values", Align::Left),
        ("what it does", Align::Left),
    ]);
    for param in &declaration.params {
        let aliases = param.aliases.iter().map(|alias| format!(", {alias}")).collect::<String>();
        let axis = if param.axis { " *" } else { "" };
        let default = match (&param.default, &param.resolved_from) {
            (Some(default), _) => match default.to_string() {
                empty if empty.is_empty() => "none".to_owned(),
                default => default,
            },
            (None, Some(resolved)) => format!("({resolved})"),
            (None, None) => "none".to_owned(),
        };
        let name = format!("{}{aliases}{axis}", param.name);
        table.row(vec![name.into(), default.into(), param.kind.describe().into(), param.help.as_str().into()]);
    }
    let requires = declaration.requires.iter().map(|required| format!("{} ({})", required.program, required.package));
    let requires = requires.collect::<Vec<_>>().join(", ");
    let needs = if requires.is_empty() { String::new() } else { format!("needs: {requires}\n") };
    print_text(&format!(
        "{}: {}\n{needs}\n{}\n* an axis: its value is part of the case name. A list of values makes any parameter an axis; a parameter that is itself a list takes a list of lists: `[[a,b],[c]]`.\n",
        declaration.name,
        declaration.summary,
        table.draw(console.stdout_style)
    ))
}

fn list_metrics(registry: &Registry, name: Option<&str>, json: bool, console: &Console) -> Result<(), Error> {
    let selected: Vec<&Declaration> = match name {
        Some(name) => vec![find_declaration(registry, name)?],
        None => registry.declarations().collect(),
    };
    let metrics_of = |declaration: &Declaration| -> Vec<Metric> {
        let defaults: Params =
            declaration.params.iter().filter_map(|p| Some((p.name.clone(), p.default.clone()?))).collect();
        registry.test_cell(declaration.name.as_str(), &defaults).map(|cell| cell.metrics()).unwrap_or_default()
    };
    if json {
        let all: std::collections::BTreeMap<&str, Vec<Metric>> =
            selected.iter().map(|declaration| (declaration.name.as_str(), metrics_of(declaration))).collect();
        return print_json(&all);
    }
    let mut table = Table::new(&[
        ("metric", Align::Left),
        ("unit", Align::Left),
        ("better", Align::Left),
        ("over workers", Align::Left),
    ]);
    for declaration in selected {
        table.heading(declaration.name.as_str());
        for metric in metrics_of(declaration) {
            let primary = if metric.primary { " (primary)" } else { "" };
            let name = format!("{}{primary}", metric.key());
            let word = |debug: String| debug.to_lowercase();
            let (direction, aggregate) =
                (word(format!("{:?}", metric.direction)), word(format!("{:?}", metric.aggregate)));
            table.row(vec![name.into(), metric.unit.as_str().into(), direction.into(), aggregate.into()]);
        }
    }
    print_text(&table.draw(console.stdout_style))
}

fn list_plans(json: bool, console: &Console) -> Result<(), Error> {
    let all = builtin::names().filter_map(|name| builtin::plan(name)?.ok()).collect::<Vec<_>>();
    if json {
        let named: std::collections::BTreeMap<_, _> = all.iter().map(|plan| (&plan.name, &plan.summary)).collect();
        return print_json(&named);
    }
    let mut table = Table::new(&[("plan", Align::Left), ("what it is for", Align::Left)]);
    for plan in all {
        table.row(vec![plan.name.into(), plan.summary.into()]);
    }
    print_text(&table.draw(console.stdout_style))
}

fn show_plan(name: &str, json: bool) -> Result<(), Error> {
    let unknown = || Error::Usage {
        what: format!("unknown plan `{name}`"),
        help: format!("expected one of {}", builtin::names().collect::<Vec<_>>().join(", ")),
    };
    if json {
        return print_json(&builtin::json(name).ok_or_else(unknown)?);
    }
    print_text(builtin::text(name).ok_or_else(unknown)?)
}
