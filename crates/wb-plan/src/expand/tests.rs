use wb_model::{Metric, Nanos};

use super::*;
use crate::plan::Shortfall;
use crate::spec;

struct SingleTestCatalog(Declaration);

impl Catalog for SingleTestCatalog {
    fn declaration(&self, test: &str) -> Option<&Declaration> {
        (test == "t").then_some(&self.0)
    }
    fn names(&self) -> Vec<&str> {
        vec!["t"]
    }
    fn is_native(&self, _: &str) -> bool {
        false
    }
    fn knob(&self, name: &str) -> Option<&'static str> {
        ["thp", "thp-enabled"].contains(&name).then_some("thp-enabled")
    }
    fn knobs(&self) -> Vec<&'static str> {
        vec!["thp-enabled"]
    }
    fn resolve(&self, _: &str, given: &Params, facts: &Facts) -> BTreeMap<String, Vec<ParamValue>> {
        let all = (1..=facts.cpus_for(2).len() as i64).map(ParamValue::Integer).collect();
        if given.contains_key("threads") { BTreeMap::new() } else { BTreeMap::from([("threads".to_owned(), all)]) }
    }
    fn metrics(&self, _: &str, params: &Params) -> Vec<Metric> {
        let mut metrics = vec![Metric::throughput("rate", "1/s").primary(), Metric::latency("p99", "s")];
        if params.get("rw") == Some(&ParamValue::Text("write".into())) {
            metrics.push(Metric::latency("sync", "s"));
            metrics.push(Metric::throughput("sync", "1/s"));
            metrics.push(Metric::check("residual", "1"));
        }
        metrics
    }
    fn cell(&self, _: &str, params: &Params) -> Option<Box<dyn CatalogCell>> {
        let writes = params.get("rw") == Some(&ParamValue::Text("write".into()));
        Some(Box::new(ReadOnlyCell { writes }))
    }
}

/// A cell that cannot write.
struct ReadOnlyCell {
    writes: bool,
}

impl CatalogCell for ReadOnlyCell {
    fn unsupported(&self, _: &Facts) -> Option<String> {
        self.writes.then(|| "read only".to_owned())
    }
}

fn param(name: &str, kind: ParamKind, default: Option<ParamValue>, axis: bool) -> Param {
    let resolved = default.is_none().then(|| "one per CPU".to_owned());
    Param { name: name.into(), aliases: vec![], help: String::new(), kind, default, resolved_from: resolved, axis }
}

fn catalog() -> SingleTestCatalog {
    let rw = ParamKind::Choice { values: vec!["read".into(), "write".into()] };
    let integer = ParamKind::Integer { min: Some(1), max: None };
    SingleTestCatalog(Declaration {
        name: TestName::new("t").unwrap(),
        summary: String::new(),
        version: 1,
        params: vec![
            param("rw", rw, Some(ParamValue::Text("read".into())), true),
            Param {
                aliases: vec!["block".to_owned()],
                ..param("bs", ParamKind::Bytes { min: None }, Some(ParamValue::Text("4k".into())), false)
            },
            param("cpus", ParamKind::List { of: Box::new(integer.clone()) }, Some(ParamValue::List(vec![])), false),
            param("threads", integer, None, true),
            param("note", ParamKind::Text, Some(ParamValue::Text(String::new())), false),
        ],
        scope: Scope::Cell,
        requires: vec![],
    })
}

fn planned(specs: &[&str], facts: Option<&Facts>) -> Result<Plan, Diagnostics> {
    let requests: Vec<Request> = specs.iter().map(|text| spec::parse(text).unwrap()).collect();
    let sampling = Sampling { max_prepared: 2, ..Sampling::default() };
    let workers = facts.map(|facts| PlanWorkers::local(facts.clone()));
    expand(&requests, &sampling, &catalog(), workers.as_ref(), &ProfileName::localhost(), &Selection::default())
}

fn two_cpus() -> Facts {
    let cpu = |id| wb_model::facts::Cpu { id, core: id, package: 0, node: 0 };
    Facts { cpus: vec![cpu(0), cpu(1)], ..Facts::default() }
}

fn names(plan: &Plan) -> Vec<String> {
    plan.cells.iter().map(|cell| cell.id.to_string()).collect()
}

#[test]
fn axes_and_lists_make_cases_and_nothing_else_does() {
    let plan = planned(&["t:bs=[4096,8k],threads=1"], Some(&two_cpus())).unwrap();
    assert_eq!(names(&plan), ["Localhost/t/0000:bs=4k,rw=read,threads=1", "Localhost/t/0000:bs=8k,rw=read,threads=1"]);
    let plan = planned(&["t:bs=4k,threads=1,cpus=[1,2]"], Some(&two_cpus())).unwrap();
    assert_eq!(names(&plan), ["Localhost/t/0000:rw=read,threads=1"]);
}

#[test]
fn knobs_are_axes_by_their_canonical_names() {
    let list = |text: &str| planned(&[text], Some(&two_cpus())).unwrap().cells[0].params["cpus"].to_string();
    assert_eq!(list("t:threads=1,cpus=1-2"), "1+2");
    assert_eq!(list("t:threads=1,cpus=[1-2,4]"), "1+2+4");
    assert_eq!(list(r#"t:threads=1,cpus="1-2,4""#), "1+2+4");
    let plan = planned(&["t:threads=1,knobs.thp=[always,never]"], Some(&two_cpus())).unwrap();
    let case = |value| format!("Localhost/t/0000:knobs.thp-enabled={value},rw=read,threads=1");
    assert_eq!(names(&plan), ["always", "never"].map(case));
    let message = |text: &str| planned(&[text], Some(&two_cpus())).unwrap_err().to_string();
    assert_eq!(message("t:knobs.tph=never"), "unknown knob `tph`");
    assert_eq!(message("t:knobs.thp=never,knobs.thp-enabled=never"), "`knobs.thp-enabled` is given twice");
}

/// A plan on two workers, of which the second has no CPU.
fn plan_on(names: [&str; 2], specs: &[&str]) -> Result<Plan, Diagnostics> {
    let requests: Vec<Request> = specs.iter().map(|text| spec::parse(text).unwrap()).collect();
    let worker = |name: &str, cpus: usize| {
        let Facts { cpus: all, .. } = two_cpus();
        (WorkerName::new(name).unwrap(), Ok(Facts { cpus: all[..cpus].to_vec(), ..Facts::default() }))
    };
    let workers = PlanWorkers { workers: vec![worker(names[0], 2), worker(names[1], 0)], ..PlanWorkers::default() };
    let (sampling, profile) = (Sampling::default(), ProfileName::localhost());
    expand(&requests, &sampling, &catalog(), Some(&workers), &profile, &Selection::default())
}

#[test]
fn a_metric_of_each_worker_alone_decides_about_one_worker_only() {
    let metrics = |spec: &str| plan_on(["a", "b"], &[spec]).map(|plan| plan.cells[0].criteria.metrics.len());
    assert_eq!(metrics("t:threads=1,rw=write,on=a,metrics=residual").unwrap(), 1);
    assert_eq!(metrics("t:threads=1,rw=write,metrics=p99").unwrap(), 1);
    let errors = metrics("t:threads=1,rw=write,metrics=[p99,residual]").unwrap_err();
    let [error] = errors.as_slice() else { panic!("one error") };
    assert_eq!(error.to_string(), "metric `check/residual` of test `t` cannot decide about several workers together");
    assert_eq!((error.excerpt(), error.label()), ("residual", "has a value of each worker alone"));
    let help = "measure on one worker (`on=NAME`), or choose one of throughput/rate, latency/p99, latency/sync, \
                throughput/sync";
    assert_eq!(error.help(), Some(help));
}

#[test]
fn the_number_of_workers_is_part_of_the_key_and_their_names_are_not() {
    let key = |names, spec: &str| plan_on(names, &[spec]).unwrap().cells[0].key.clone().unwrap();
    assert_eq!(key(["a", "b"], "t:threads=1"), key(["c", "d"], "t:threads=1"));
    assert_ne!(key(["a", "b"], "t:threads=1"), key(["a", "b"], "t:threads=1,on=a"));
    let alone = planned(&["t:threads=1"], Some(&two_cpus())).unwrap();
    assert_eq!(Some(key(["a", "b"], "t:threads=1,on=b")), alone.cells[0].key);
    let plan = plan_on(["a", "b"], &["t:threads=1"]).unwrap();
    assert_eq!((plan.cells[0].roles.len(), plan.cells[0].params["workers"].to_string()), (2, "2".to_owned()));
    // Values resolved from the machine must be the same on all workers.
    let message = plan_on(["a", "b"], &["t"]).unwrap_err().to_string();
    assert_eq!(message, "`threads` would be 1, 2 on `a` and nothing on `b`");
    let write = plan_on(["a", "b"], &["t:threads=1,rw=write"]).unwrap();
    assert_eq!(write.cells[0].unsupported.as_deref(), Some("on `a`: read only"));
}

#[test]
fn a_text_with_commas_is_a_list_if_no_value_can_contain_a_comma() {
    let cell_names = |text: &str| names(&planned(&[text], Some(&two_cpus())).unwrap());
    assert_eq!(cell_names(r#"t:{"rw":"read,write","threads":"1, 2"}"#), cell_names("t:rw=[read,write],threads=[1,2]"));
    assert_eq!(cell_names(r#"t:rw="read,write",threads="1,2""#), cell_names("t:rw=[read,write],threads=[1,2]"));
    assert_eq!(cell_names(r#"t:{"rw":["read","write"],"threads":"1,worker-cpus"}"#).len(), 4);
    // Texts keep their commas, whether they are an axis or not.
    let plan = planned(&[r#"t:{"knobs.thp":"always,never","note":"a,b","threads":"1"}"#], Some(&two_cpus())).unwrap();
    assert_eq!(plan.cells[0].params["knobs.thp-enabled"], ParamValue::Text("always,never".into()));
    assert_eq!(plan.cells[0].params["note"], ParamValue::Text("a,b".into()));
    assert_eq!(plan.cells.len(), 1);
    let error = |text: &str| planned(&[text], Some(&two_cpus())).unwrap_err().to_string();
    assert_eq!(error(r#"t:{"rw":"read,raed"}"#), "`rw` of `t`: invalid value `raed`");
    assert_eq!(error(r#"t:{"rw":"read,"}"#), "`rw` of `t`: invalid value ``");
    assert_eq!(error(r#"t:{"bs":"4k,8k"}"#), error(r#"t:bs="4k,8k""#), "no axis");
}

proptest::proptest! {
    #[test]
    fn numbers_with_commas_are_the_list_of_them(numbers in proptest::collection::btree_set(1u32..100, 1..6)) {
        let joined: Vec<String> = numbers.iter().map(u32::to_string).collect();
        let joined = joined.join(",");
        let text = planned(&[&format!(r#"t:{{"threads":"{joined}"}}"#)], Some(&two_cpus())).unwrap();
        let list = planned(&[&format!("t:threads=[{joined}]")], Some(&two_cpus())).unwrap();
        assert_eq!(text, list);
    }

    #[test]
    fn a_text_stays_whole(text in "[a-z, ]{0,12}") {
        let quoted = serde_json::to_string(&text).unwrap();
        let plan = planned(&[&format!(r#"t:{{"note":{quoted},"threads":1}}"#)], Some(&two_cpus())).unwrap();
        assert_eq!(plan.cells.len(), 1);
        assert_eq!(plan.cells[0].params["note"], ParamValue::Text(text));
    }
}

#[test]
fn errors_name_parameters_as_they_were_given() {
    let error = |text: &str| planned(&[text], Some(&two_cpus())).unwrap_err().to_string();
    assert!(error("t:bs=x").starts_with("`bs` of `t`: "), "{}", error("t:bs=x"));
    assert!(error("t:block=x").starts_with("`block` of `t`: "), "{}", error("t:block=x"));
    assert_eq!(error("t:bs=4k,block=8k"), "`bs` is given twice");
}

#[test]
fn parameters_not_given_are_resolved_from_the_machine() {
    let plan = planned(&["t"], Some(&two_cpus())).unwrap();
    assert_eq!(names(&plan), ["Localhost/t/0000:rw=read,threads=1", "Localhost/t/0000:rw=read,threads=2"]);
    let plan = planned(&["t"], None).unwrap();
    assert_eq!(plan.cells[0].key, None);
    assert_eq!(plan.cells[0].unresolved["threads"], "one per CPU");
}

#[test]
fn a_workers_number_of_cpus_can_be_a_value() {
    let plan = planned(&["t:threads=worker-cpus"], Some(&two_cpus())).unwrap();
    assert_eq!(names(&plan), ["Localhost/t/0000:rw=read,threads=2"]);
    assert_eq!(plan.cells[0].key, planned(&["t:threads=2"], Some(&two_cpus())).unwrap().cells[0].key);
    let plan = planned(&["t:threads=[1,worker-cpus]"], Some(&two_cpus())).unwrap();
    assert_eq!(names(&plan).len(), 2);
    let plan = planned(&["t:threads=worker-cpus"], None).unwrap();
    assert_eq!(plan.cells[0].unresolved["threads"], "the CPUs of a worker");
    assert_eq!((&plan.cells[0].key, plan.cells[0].params.get("threads")), (&None, None));
    assert!(planned(&["t:rw=worker-cpus"], Some(&two_cpus())).is_err(), "it is a number");
}

#[test]
fn an_id_renumbers_nothing() {
    let facts = two_cpus();
    let plan = planned(&["t:threads=1", "t:id=mine,threads=1", "t:threads=1"], Some(&facts)).unwrap();
    let serials: Vec<String> = plan.cells.iter().map(|cell| cell.id.serial.to_string()).collect();
    assert_eq!(serials, ["0000", "mine", "0001"]);
    assert!(planned(&["t:id=a,threads=1", "t:id=a,threads=1"], Some(&facts)).is_err());
}

#[test]
fn equal_definitions_have_equal_keys_in_any_notation() {
    let facts = two_cpus();
    let key = |spec: &str| planned(&[spec], Some(&facts)).unwrap().cells[0].key.clone().unwrap();
    assert_eq!(key("t:bs=4096,threads=1"), key("t:threads=1"));
    assert_ne!(key("t:bs=8k,threads=1"), key("t:threads=1"));
    assert_eq!(key("t:threads=[1,2]"), key("t:threads=1"));
}

#[test]
fn cells_that_stay_prepared_are_divided_into_blocks() {
    let plan = planned(&["t:bs=[1k,2k,3k,4k,5k],threads=1"], Some(&two_cpus())).unwrap();
    assert_eq!(plan.cells.iter().map(|cell| cell.block).collect::<Vec<_>>(), [0, 0, 1, 1, 2]);
}

#[test]
fn errors_suggest_the_nearest_spelling() {
    let error_parts = |spec: &str| {
        let errors = planned(&[spec], None).unwrap_err();
        let first = &errors.as_slice()[0];
        (errors.to_string(), first.label().to_owned(), first.help().unwrap_or_default().to_owned())
    };
    assert_eq!(error_parts("t:thread=1").0, "unknown parameter `thread` for test `t`");
    assert_eq!(error_parts("t:thread=1").1, "did you mean `threads`?");
    assert_eq!(error_parts("t:rw=raed").1, "did you mean `read`?");
    assert_eq!(error_parts("t:rw=raed").2, "expected one of read, write");
    assert_eq!(error_parts("u").2, "expected one of t");
    assert_eq!(error_parts("t::x=1").0, "test `t` has a single stage");
    assert!(error_parts("t:threads=0").0.contains("expected at least 1"));
    assert_eq!(error_parts("t:rw=read:bs=4k").2, "put all properties into one group: `t:rw=read,bs=4k`");
    assert_eq!(error_parts("t::").2, "remove the `:`");
    assert_eq!(error_parts("t:rw=[[read]]").0, "a value of `rw` cannot be a list");
    assert_eq!(error_parts("t:cpus=[[1],[[2]]]").1, "a list within a list");
}

#[test]
fn a_budget_below_the_minimum_number_of_samples_is_a_shortfall() {
    let shortfall = |budget: u64| {
        let mut plan = planned(&["t:threads=1"], Some(&two_cpus())).unwrap();
        plan.sampling.budget = Some(Nanos(budget * 1_000_000_000));
        plan.shortfall(&plan.cells[0])
    };
    assert_eq!(shortfall(600), None);
    // A warm-up and six samples of five seconds each; the last starts after thirty.
    assert_eq!(shortfall(31), None);
    assert_eq!(shortfall(30), Some(Shortfall { affordable: 5, required: 6 }));
    assert_eq!(shortfall(1), Some(Shortfall { affordable: 0, required: 6 }));
}

/// The criteria of a plan's cells, or the first error: message, marked text, label and help.
fn criteria_of(text: &str) -> Result<Vec<String>, String> {
    let described = |error: &Diagnostic| {
        let help = error.help().unwrap_or_default();
        format!("{error} | {} | {} | {help}", error.excerpt(), error.label())
    };
    let plan = crate::file::parse("p.toml", text).map_err(|errors| described(&errors.as_slice()[0]))?;
    let (facts, sampling) = (PlanWorkers::local(two_cpus()), Sampling::default());
    let profile = ProfileName::localhost();
    let plan = expand(&plan.requests, &sampling, &catalog(), Some(&facts), &profile, &Selection::default());
    let plan = plan.map_err(|errors| described(&errors.as_slice()[0]))?;
    let describe = |cell: &Cell| {
        let metrics: Vec<String> = cell.criteria.metrics.iter().map(ToString::to_string).collect();
        let thresholds = cell.criteria.thresholds.iter().map(|(metric, percent)| format!("{metric}={percent}"));
        metrics.into_iter().chain(thresholds).collect::<Vec<_>>().join(" ")
    };
    Ok(plan.cells.iter().map(describe).collect())
}

#[test]
fn a_plan_chooses_the_metrics_that_decide_and_thresholds_for_the_cells_that_have_them() {
    let test = |lines: &str| format!("[[test]]\nname = \"t\"\nthreads = 1\n{lines}\n");
    let one = |lines: &str| criteria_of(&test(lines)).unwrap();
    assert_eq!(one(""), [""]);
    assert_eq!(one("metrics = \"p99\""), ["latency/p99"]);
    assert_eq!(one("metrics = [\"latency/p99\", \"rate\"]"), ["latency/p99 throughput/rate"]);
    assert_eq!(one("thresholds = { rate = 2.5, \"latency/p99\" = 10 }"), ["latency/p99=10 throughput/rate=2.5"]);
    assert_eq!(one("[test.thresholds]\np99 = 0"), ["latency/p99=0"]);
    // Only what writes has it.
    let both = "rw = [\"read\", \"write\"]\nmetrics = [\"latency/sync\", \"p99\"]";
    assert_eq!(one(both), ["latency/p99", "latency/sync latency/p99"]);
    assert_eq!(one("rw = [\"read\", \"write\"]\nmetrics = \"latency/sync\""), ["", "latency/sync"]);
}

#[test]
fn metrics_and_thresholds_that_no_cell_can_have_are_errors_at_their_places() {
    let error = |lines: &str| criteria_of(&format!("[[test]]\nname = \"t\"\nthreads = 1\n{lines}\n")).unwrap_err();
    let all = [
        "metrics = [\"rate\", \"p98\"]",
        "metrics = \"throughput/raet\"",
        "metrics = \"sync\"",
        "metrics = \"sync\"\nrw = \"write\"",
        "metrics = [\"rate\", \"throughput/rate\"]",
        "thresholds = { rate = 5, \"throughput/rate\" = 6 }",
        "metrics = []",
        "metrics = [5]",
        "thresholds = { p9 = 5 }",
        "thresholds = { p99 = -1 }",
        "thresholds = { p99 = 1e9 }",
        "thresholds = { p99 = \"5\" }",
        "thresholds = 5",
    ];
    insta::assert_snapshot!(all.map(error).join("\n"), @r#"
    unknown metric `p98` of test `t` | "p98" | did you mean `p99`? | expected one of latency/p99, throughput/rate
    unknown metric `throughput/raet` of test `t` | "throughput/raet" | did you mean `throughput/rate`? | expected one of latency/p99, throughput/rate
    unknown metric `sync` of test `t` | "sync" | unknown | expected one of latency/p99, throughput/rate
    ambiguous metric `sync` of test `t` | "sync" | in several classes | write `latency/sync` or `throughput/sync`
    `throughput/rate` is given twice | "throughput/rate" | here again | 
    `throughput/rate` is given twice | "throughput/rate" | here again | 
    `metrics` has no values | [] | this list is empty | without it, the metrics decide that the test declares
    invalid value in `metrics`: expected the name of a metric | 5 | not a name | 
    unknown metric `p9` of test `t` | p9 | did you mean `p99`? | expected one of latency/p99, throughput/rate
    invalid threshold of `p99` | -1 | expected a percentage from 0 to 1000 | 
    invalid threshold of `p99` | 1e9 | expected a percentage from 0 to 1000 | 
    invalid threshold of `p99` | "5" | expected a percentage from 0 to 1000 | 
    invalid `thresholds`: expected a percentage for each metric | 5 | expected a table such as `{ p99 = 10 }` | 
    "#);
}

#[test]
fn a_test_on_the_command_line_has_metrics_too() {
    let facts = two_cpus();
    let metrics = |spec: &str| planned(&[spec], Some(&facts)).unwrap().cells[0].criteria.metrics.len();
    assert_eq!([metrics("t:threads=1,metrics=[p99,rate]"), metrics("t:metrics=rate,threads=1")], [2, 1]);
    let message = |spec: &str| planned(&[spec], Some(&facts)).unwrap_err().to_string();
    assert_eq!(message("t:threads=1,metrics=p98"), "unknown metric `p98` of test `t`");
    // Metrics that decide are no part of what is measured.
    let key = |spec: &str| planned(&[spec], Some(&facts)).unwrap().cells[0].key.clone();
    assert_eq!(key("t:threads=1,metrics=p99"), key("t:threads=1"));
}
