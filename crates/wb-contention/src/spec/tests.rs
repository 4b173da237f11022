//! Tests of specifications: what is read, printed and refused.

use insta::assert_snapshot;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use wb_model::Bytes;
use wb_results::contention::{
    Bench, HogSpeed, LATENCY_PERCENTILES, LatencyKind, MemHog, MemHogTune, PERCENTILES, Passive, Percentile,
    QosOverride, Series, Solution, Target,
};

use super::*;

fn mistakes(text: &str) -> String {
    let lines: Vec<String> = match BenchSpec::parse(text) {
        Ok(spec) => panic!("expected mistakes in {text}: {spec:?}"),
        Err(mistakes) => {
            mistakes.as_slice().iter().map(|one| format!("{} [{}]", one.one_line(), one.label())).collect()
        }
    };
    lines.join("\n")
}

fn qos(text: &str) -> IocostQosProperties {
    match BenchSpec::parse(text).unwrap().properties {
        Properties::IocostQos(properties) => properties,
        other => panic!("{other:?}"),
    }
}

#[test]
fn empty_groups_stand_for_defaults() {
    let three = qos("iocost-qos:::min=75,max=75:min=50,max=50");
    let expected = [QosOverride::default(), QosOverride::fixed_vrate(75.0), QosOverride::fixed_vrate(50.0)];
    assert_eq!(three.settings, expected);
    assert_eq!(BenchSpec::parse("iocost-qos:").unwrap(), BenchSpec::new(Bench::IocostQos));
    assert_eq!(qos("iocost-qos::").settings, [QosOverride::default()]);
}

#[test]
fn a_key_alone_is_true_and_id_and_passive_belong_to_the_bench() {
    let spec = BenchSpec::parse("storage:apply,id=s-0,passive=mem/io").unwrap();
    assert_eq!(spec.id.as_deref(), Some("s-0"));
    assert_eq!(spec.passive, Some("mem/io".parse().unwrap()));
    assert_eq!(spec.to_string(), "storage:id=s-0,passive=mem/io,apply=true");
    assert_eq!(BenchSpec::parse("storage:apply").unwrap(), BenchSpec::parse("storage:apply=true").unwrap());
}

#[test]
fn the_first_group_is_for_the_bench_and_later_ones_for_stages() {
    let spec = "iocost-qos:id=qos-0,storage-base-loops=1:min=100,max=100:min=75,max=75:min=50,max=50";
    let properties = qos(spec);
    assert_eq!((properties.storage_base_loops, properties.storage.loops, properties.settings.len()), (1, 1, 3));
    assert_eq!(BenchSpec::parse(spec).unwrap().to_string(), spec);
}

#[test]
fn scenarios_and_solutions_have_the_documented_defaults() {
    let BenchSpec { properties: Properties::Protection(protection), .. } = BenchSpec::new(Bench::Protection) else {
        panic!("expected protection")
    };
    let loads = protection.all_scenarios().into_iter().map(|scenario| match scenario {
        Scenario::MemHog(hog) => (hog.load, hog.loops, hog.speed.to_string()),
        Scenario::MemHogTune(tune) => panic!("{tune:?}"),
    });
    assert_eq!(loads.collect::<Vec<_>>(), [(1.0, 2, "2x".to_owned()), (0.8, 2, "2x".to_owned())]);
    let solutions = IocostTuneProperties::default().all_solutions();
    let lines: Vec<String> = solutions.iter().map(|one| format!("{}: {}", one.name, one.target)).collect();
    assert_snapshot!(lines.join("\n"), @"
    naive: vrate=75-100,rpct=99,wpct=99
    bandwidth: amof=max-vrate
    isolated-bandwidth: isolated-bandwidth
    isolation: isolation
    rlat-99-q1: rlat-99=0.75-1
    rlat-99-q2: rlat-99=0.5-0.75
    rlat-99-q3: rlat-99=0.25-0.5
    rlat-99-q4: rlat-99=0-0.25
    ");
}

#[test]
fn mistakes_have_positions_and_suggestions() {
    assert_snapshot!(mistakes("iocost-qso:min=1"), @"command line:1:1: unknown bench `iocost-qso`: expected one of storage, iocost-params, hashd-params, iocost-qos, iocost-tune, protection [did you mean `iocost-qos`?]");
    assert_snapshot!(mistakes("iocost-qos:vrate-mni=5:mim=3"), @"command line:1:12: unknown property `vrate-mni`: expected one of id, passive, vrate-min, vrate-max, vrate-intvs, dither, storage-base-loops, storage-loops, rps-max, hash-size, chunk-pages, log-bps, mem-avail-err-max, mem-avail-inner-retries, mem-avail-outer-retries, isol-pct, isol-thr, retries, allow-fail, ignore-min-perf [did you mean `vrate-min`?]");
    assert_snapshot!(mistakes("iocost-qos::mim=3:max=x,max=4"), @"
    command line:1:13: unknown property `mim`: expected one of rpct, wpct, min, max, rlat, wlat [did you mean `min`?]
    command line:1:25: duplicate property `max` [given before in this group]
    command line:1:23: invalid value `x` of `max`: expected a number from 0 []
    ");
    assert_snapshot!(mistakes("storage:loops:x"), @"command line:1:15: unexpected property group: `storage` has a single one: separate the properties of a group with `,` [after the first group]");
    assert_snapshot!(mistakes("storage:loops,id=a/b,rps-max=0"), @"
    command line:1:18: invalid value `a/b` of `id`: expected a name of letters, digits, `_`, `.` and `-` that begins with a letter or a digit []
    command line:1:9: missing value of `loops`: expected a whole number from 1 to 4294967295 []
    command line:1:30: invalid value `0` of `rps-max`: expected a whole number from 1 to 4294967295 []
    ");
    assert_snapshot!(mistakes("iocost-qos::id=x"), @"command line:1:13: unknown property `id`: expected one of rpct, wpct, min, max, rlat, wlat [unknown]");
    assert_snapshot!(mistakes("protection::scenario=mem-hog-tune"), @"command line:1:13: missing range of footprints: give both size-min and size-max [in this group]");
    assert_snapshot!(mistakes("iocost-tune::vrate=75-100,mof=max"), @"
    command line:1:14: missing name of the solution: add `name=NAME` [in this group]
    command line:1:14: several targets of one solution: put each solution into a group of its own [in this group]
    ");
    assert_snapshot!(mistakes("iocost-qos:isol-pct=33,passive=me"), @"
    command line:1:32: invalid value `me` of `passive`: expected ALL, all, cpu, mem, fs, io, oomd or none, joined by `/` []
    command line:1:12: invalid isol-pct `33`: expected one of 00, 01, 05, 10, 25, 50, 75, 90, 95, 99, 100 [in this group]
    ");
}

#[test]
fn impossible_values_are_refused_wherever_they_are() {
    let tune = "protection::scenario=mem-hog-tune,size-min=1g,size-max=2g";
    for (spec, key, value) in [
        ("iocost-qos:isol-thr=90".to_owned(), "isol-thr", "90"),
        ("iocost-qos:mem-avail-err-max=110%".to_owned(), "mem-avail-err-max", "110%"),
        (format!("{tune},isol-thr=1.01"), "isol-thr", "1.01"),
        ("storage:mem-avail-err-max=2".to_owned(), "mem-avail-err-max", "2"),
        ("storage:hash-size=0".to_owned(), "hash-size", "0"),
        ("hashd-params:hash-size=0k".to_owned(), "hash-size", "0k"),
        ("iocost-qos:storage-hash-size=0".to_owned(), "hash-size", "0"),
        ("storage:chunk-pages=0".to_owned(), "chunk-pages", "0"),
    ] {
        let mistakes = mistakes(&spec);
        assert!(mistakes.contains(&format!("invalid value `{value}` of `{key}`")), "{spec}: {mistakes}");
    }
    assert_eq!(qos("iocost-qos:isol-thr=90%").isol_thr, 0.9);
    assert_snapshot!(mistakes("iocost-tune:isol-07"), @"command line:1:13: unknown property `isol-07`: expected one of id, passive, scale-min, scale-max; or the name of a series, with a percentile of its table: isol-05, rlat-90, wlat-99.9-mean [unknown]");
}

#[test]
fn properties_of_storage_are_those_of_iocost_qos_with_or_without_its_name() {
    let storage = |spec: &str| match BenchSpec::parse(spec).unwrap().properties {
        Properties::Storage(properties) => properties.work,
        other => panic!("{other:?}"),
    };
    let values = ["7", "8k", "9", "10k", "0.2", "3", "4"];
    for (key, value) in StorageWork::PROPERTIES.into_iter().zip(values) {
        let expected = StorageWork { loops: 1, ..storage(&format!("storage:{key}={value}")) };
        assert_ne!(expected, StorageWork { loops: 1, ..StorageWork::default() }, "{key}");
        for spec in [format!("iocost-qos:{key}={value}"), format!("iocost-qos:storage-{key}={value}")] {
            assert_eq!(qos(&spec).storage, expected, "{spec}");
        }
        let twice = mistakes(&format!("iocost-qos:{key}={value},storage-{key}={value}"));
        assert!(twice.contains(&format!("duplicate property `storage-{key}`")), "{twice}");
    }
}

#[test]
fn options_of_format_belong_to_their_bench() {
    let pdf = FormatSpec::parse("iocost-tune:pdf=output.pdf").unwrap();
    assert_eq!(pdf.options.pdf, Some(PdfFile::At("output.pdf".into())));
    assert_eq!(FormatSpec::parse("iocost-tune:pdf").unwrap().options.pdf, Some(PdfFile::OfRun));
    assert!(FormatSpec::parse("iocost-qos:sub-full,id=a").unwrap().options.sub_full);
    assert!(FormatSpec::parse("storage:pdf").is_err());
    assert!(FormatSpec::parse("iocost-tune:pdf,high-level").is_err());
}

/// Numbers as people write them: with at most two decimals.
fn hundredths(max: u32) -> impl Strategy<Value = f64> {
    (0..=max * 100).prop_map(|number| f64::from(number) / 100.0)
}

fn setting() -> impl Strategy<Value = QosOverride> {
    let percent = || option::of(hundredths(100));
    (percent(), option::of(any::<u64>()), percent(), option::of(any::<u64>()), percent(), percent()).prop_map(
        |(rpct, rlat, wpct, wlat, min, max)| {
            let is_range = min.zip(max).is_none_or(|(min, max)| min <= max);
            QosOverride { rpct, rlat, wpct, wlat, min: if is_range { min } else { None }, max }
        },
    )
}

fn isol() -> impl Strategy<Value = (Percentile, f64)> {
    (prop::sample::select(PERCENTILES.to_vec()), hundredths(1))
}

fn iocost_qos() -> impl Strategy<Value = Properties> {
    let dither = prop_oneof![
        Just(None),
        Just(Some(Dither::HalfStep)),
        hundredths(50).prop_map(|distance| Some(Dither::Distance(distance)))
    ];
    let counts = (1..9u32, 1..9u32, 0..9u32, 0..99u32);
    let flags = (any::<bool>(), any::<bool>());
    let storage = (1..9999u32, requests());
    (hundredths(99), dither, counts, storage, flags, isol(), vec(setting(), 0..4)).prop_map(
        |(vrate_min, dither, counts, (rps_max, requests), flags, (isol_pct, isol_thr), settings)| {
            let (base, loops, retries, vrate_intvs) = counts;
            Properties::IocostQos(IocostQosProperties {
                vrate_min,
                vrate_max: vrate_min + 1.0,
                vrate_intvs,
                dither,
                storage_base_loops: base,
                storage: StorageWork {
                    loops,
                    rps_max,
                    requests,
                    mem_avail_err_max: isol_thr,
                    ..StorageWork::default()
                },
                isol_pct,
                isol_thr,
                retries,
                allow_fail: flags.0,
                ignore_min_perf: flags.1,
                settings,
            })
        },
    )
}

fn target() -> impl Strategy<Value = Target> {
    let percentile = || option::of(prop::sample::select(LATENCY_PERCENTILES[1..].to_vec()));
    prop_oneof![
        prop::sample::select(vec![
            Target::NAIVE,
            Target::MofMax,
            Target::AmofMax,
            Target::AmofMaxVrate,
            Target::Isolation,
            Target::IsolatedBandwidth,
        ]),
        (1..9000u32, 0..9000u32, percentile(), percentile()).prop_map(|(min, more, rpct, wpct)| {
            Target::Vrate { min: f64::from(min) / 100.0, max: f64::from(min + more) / 100.0, rpct, wpct }
        }),
        (any::<bool>(), prop::sample::select(LATENCY_PERCENTILES.to_vec()), hundredths(1)).prop_map(
            |(is_read, percentile, low)| {
                let kind = if is_read { LatencyKind::Read } else { LatencyKind::Write };
                Target::Latency { kind, percentile, low: low / 2.0, high: low / 2.0 + 0.5 }
            }
        ),
    ]
}

fn iocost_tune() -> impl Strategy<Value = Properties> {
    let series = prop::collection::btree_set(prop::sample::select(Series::always().collect::<Vec<_>>()), 0..4);
    let solutions = vec(("[a-z][a-z0-9-]{0,8}", target()), 0..4);
    (hundredths(1), series, solutions).prop_map(|(scale, series, solutions)| {
        Properties::IocostTune(IocostTuneProperties {
            scale_min: scale + 0.01,
            scale_max: scale + 0.5,
            series,
            solutions: solutions.into_iter().map(|(name, target)| Solution { name, target }).collect(),
        })
    })
}

fn scenario() -> impl Strategy<Value = Scenario> {
    let speed = || prop::sample::select(HogSpeed::ALL.to_vec());
    let load = || (1..=100u32).prop_map(|percent| f64::from(percent) / 100.0);
    prop_oneof![
        (1..9u32, load(), speed()).prop_map(|(loops, load, speed)| Scenario::MemHog(MemHog { loops, load, speed })),
        (load(), speed(), any::<u32>(), 1..99u64, 1..20u32, isol()).prop_map(
            |(load, speed, min, more, intvs, (isol_pct, isol_thr))| {
                let (size_min, size_max) = (Bytes(u64::from(min)), Bytes(u64::from(min) + more));
                Scenario::MemHogTune(MemHogTune { load, speed, size_min, size_max, intvs, isol_pct, isol_thr })
            }
        ),
    ]
}

fn requests() -> impl Strategy<Value = RequestProperties> {
    (option::of(1..=u64::MAX), option::of(1..99u32), option::of(any::<u64>())).prop_map(
        |(hash_size, chunk_pages, log_bps)| RequestProperties {
            hash_size: hash_size.map(Bytes),
            chunk_pages,
            log_bps: log_bps.map(Bytes),
        },
    )
}

fn properties() -> impl Strategy<Value = Properties> {
    let flags = || (any::<bool>(), any::<bool>(), any::<bool>());
    prop_oneof![
        (flags(), 1..9u32, 1..9999u32, requests(), hundredths(1), 0..5u32).prop_map(
            |((apply, commit, _), loops, rps_max, requests, mem_avail_err_max, retries)| {
                let work = StorageWork {
                    loops,
                    rps_max,
                    requests,
                    mem_avail_err_max,
                    mem_avail_inner_retries: retries,
                    mem_avail_outer_retries: retries / 2,
                };
                Properties::Storage(StorageProperties { apply, commit, work })
            }
        ),
        flags().prop_map(|(apply, commit, _)| Properties::IocostParams(IocostParamsProperties { apply, commit })),
        (flags(), option::of(1..9999u32), requests()).prop_map(|((apply, commit, fake), rps_max, requests)| {
            Properties::HashdParams(HashdParamsProperties { apply, commit, fake_cpu_load: fake, rps_max, requests })
        }),
        iocost_qos(),
        iocost_tune(),
        vec(scenario(), 0..4).prop_map(|scenarios| Properties::Protection(ProtectionProperties { scenarios })),
    ]
}

fn passive() -> impl Strategy<Value = Option<Passive>> {
    let areas = ["none", "ALL", "all", "cpu", "mem/io", "fs/oomd"];
    option::of(prop::sample::select(areas.to_vec()).prop_map(|areas| areas.parse().unwrap()))
}

proptest! {
    #[test]
    fn a_specification_is_read_as_it_was_printed(
        id in option::of("[a-z0-9][A-Za-z0-9_.-]{0,9}"),
        passive in passive(),
        properties in properties(),
    ) {
        let spec = BenchSpec { id, passive, properties };
        let text = spec.to_string();
        prop_assert_eq!(BenchSpec::parse(&text).map_err(|mistakes| format!("{text}: {mistakes}")), Ok(spec));
    }

    #[test]
    fn arbitrary_text_is_read_or_refused(
        text in "\\PC{0,60}",
        bench in prop::sample::select(Bench::ALL.to_vec()),
        rest in "[a-z0-9=,:%.éx-]{0,80}",
    ) {
        for text in [text, format!("{bench}:{rest}")] {
            let _ = FormatSpec::parse(&text);
            if let Err(mistakes) = BenchSpec::parse(&text) {
                prop_assert!(!mistakes.as_slice().is_empty());
            }
        }
    }

    #[test]
    fn arbitrary_properties_are_read_or_refused_within_the_text(
        bench in prop::sample::select(Bench::ALL.to_vec()),
        words in vec((prop::sample::select(KEYS.to_vec()), prop::sample::select(VALUES.to_vec())), 0..6),
    ) {
        let words: String = words.into_iter().map(|(key, value)| format!("{key}{value}")).collect();
        let text = format!("{bench}:{words}");
        match BenchSpec::parse(&text) {
            Ok(spec) => prop_assert_eq!(BenchSpec::parse(&spec.to_string()).map_err(|error| error.to_string()), Ok(spec)),
            Err(mistakes) => for mistake in mistakes.as_slice() {
                let end = mistake.location().map_or(0, |index| index.span.end);
                prop_assert!(end <= text.len(), "{mistake} in {text}");
            }
        }
    }
}

const KEYS: [&str; 22] = [
    "id",
    "passive",
    "apply",
    "commit",
    "loops",
    "rps-max",
    "hash-size",
    "vrate-min",
    "vrate-max",
    "vrate-intvs",
    "dither",
    "isol-pct",
    "min",
    "max",
    "rlat",
    "name",
    "vrate",
    "rpct",
    "rlat-99",
    "scenario",
    "size-min",
    ":",
];
const VALUES: [&str; 16] = [
    ",",
    ":",
    "=,",
    "=1,",
    "=x,",
    "=75-100:",
    "=0.5,",
    "=mem-hog:",
    "=99:",
    "=4k,",
    "=true,",
    "=q1:",
    "=1,size-max=9:",
    "=max,",
    "=-1,",
    "=99999999999999999999,",
];
