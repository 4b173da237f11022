//! Every shipped test over every value that its axes have by default, and over two others.

use std::collections::BTreeSet;

use wb_model::{Declaration, Param, ParamKind};

use crate::lab::Lab;

/// How the axes of a test are measured in little time.
struct ShippedTest {
    name: &'static str,
    /// Parameters that make its samples short.
    short: &'static str,
    axes: &'static [Axis],
}

/// An axis of a test.
struct Axis {
    name: &'static str,
    /// Its value while another axis is measured; empty if the test determines it from the other axes.
    pinned: &'static str,
    /// Two values that it does not have by default, or all of them.
    others: &'static [&'static str],
    /// Whether its defaults take many seconds: they are measured by `make test-long`.
    slow_defaults: bool,
}

const fn axis(name: &'static str, pinned: &'static str, others: &'static [&'static str]) -> Axis {
    Axis { name, pinned, others, slow_defaults: false }
}

const fn slow_axis(name: &'static str, pinned: &'static str, others: &'static [&'static str]) -> Axis {
    Axis { name, pinned, others, slow_defaults: true }
}

const FIO: &[Axis] =
    &[axis("test-types", "randread", &["write", "randrw"]), axis("block-sizes", "4k", &["512", "128k"])];

const TESTS: &[ShippedTest] = &[
    ShippedTest {
        name: "7z",
        short: "",
        axes: &[axis("threads", "2", &["3", "4"]), slow_axis("dictionary", "18", &["19", "20"])],
    },
    ShippedTest {
        name: "compile-c",
        short: "",
        axes: &[axis("cc", "gcc", &["cc", "clang"]), axis("flags", "-O1", &["-O0", "-O3"])],
    },
    ShippedTest { name: "fio", short: "runtime=100ms,ramptime=0,file-size=4m,samples=1,sysinfo=none", axes: FIO },
    ShippedTest { name: "fio-libblkio", short: "runtime=100ms,ramptime=0,samples=1,sysinfo=none", axes: FIO },
    ShippedTest { name: "fio-nbd", short: "runtime=100ms,ramptime=0,samples=1,sysinfo=none", axes: FIO },
    ShippedTest {
        name: "himeno",
        short: "",
        axes: &[axis("grid", "XS", &["XS", "S"]), axis("threads", "1", &["3", "4"])],
    },
    ShippedTest {
        name: "himeno-c",
        short: "",
        axes: &[
            axis("cc", "gcc", &["cc", "clang"]),
            axis("flags", "-O1", &["-O0", "-O3 -ffast-math"]),
            slow_axis("grid", "XS", &["XS", "S"]),
        ],
    },
    ShippedTest {
        name: "hpcc",
        short: "",
        axes: &[axis("processes", "1", &["3", "4"]), slow_axis("n", "200", &["200", "300"])],
    },
    ShippedTest {
        name: "iperf3",
        short: "",
        axes: &[axis("streams", "1", &["2", "5"]), axis("block-size", "128k", &["4k", "1m"])],
    },
    ShippedTest {
        name: "linpack",
        short: "run-samples=1",
        axes: &[axis("threads", "1", &["2", "3"]), slow_axis("problem-sizes", "100", &["100", "333"])],
    },
    ShippedTest {
        name: "openssl-speed",
        short: "",
        axes: &[
            axis("algorithm", "sha256", &["sha256", "chacha20-poly1305"]),
            axis("block-size", "1k", &["16", "1000"]),
            axis("processes", "1", &["3", "4"]),
        ],
    },
    ShippedTest {
        name: "ramspeed",
        short: "array-size=1m",
        axes: &[axis("mode", "triad", &[]), axis("kind", "integer", &[]), axis("threads", "1", &["3", "4"])],
    },
    ShippedTest {
        name: "ramspeed-c",
        short: "array-size=1m",
        axes: &[
            axis("cc", "gcc", &["cc", "clang"]),
            axis("flags", "-O1", &["-O0", "-O3 -ffast-math"]),
            axis("mode", "triad", &["copy", "scale", "add"]),
            axis("kind", "floating", &["integer"]),
        ],
    },
    ShippedTest { name: "ramspeed-sweep", short: "array-size=256k", axes: &[] },
    ShippedTest {
        name: "redis",
        short: "requests=2000,keyspace=100,clients=3",
        axes: &[axis("command", "set", &[]), axis("placement", "none", &["same-cpu", "same-node", "one-node"])],
    },
    ShippedTest {
        name: "sockperf",
        short: "",
        axes: &[axis("protocol", "tcp", &["udp"]), axis("message-size", "64", &["14", "1472"])],
    },
    ShippedTest {
        name: "stress-ng",
        short: "",
        axes: &[axis("stressor", "switch", &["switch", "matrix"]), axis("instances", "1", &["1", "3"])],
    },
    ShippedTest { name: "sysbench-cpu", short: "max-prime=100", axes: &[axis("threads", "1", &["3", "5"])] },
    ShippedTest {
        name: "sysbench-memory",
        short: "",
        axes: &[
            axis("threads", "2", &["3", "5"]),
            axis("operation", "write", &["read"]),
            axis("access", "seq", &["rnd"]),
            axis("block-size", "1m", &["1k", "16m"]),
        ],
    },
    ShippedTest {
        name: "uperf",
        short: "runtime=200ms,samples=1,sysinfo=none",
        axes: &[
            axis("test-types", "rr", &["crr", "udp-rr"]),
            axis("message-sizes", "64", &["100", "4k"]),
            axis("protocols", "", &["tcp", "udp"]),
            axis("instances", "1", &["2", "3"]),
        ],
    },
];

/// Tests whose cells are those of files that users write.
const OF_USERS: [&str; 2] = ["net", "peers"];

/// Why a cell of this machine may be unsupported.
const ALLOWED_REASONS: [&str; 4] = ["no such program", "the ioengine", "NUMA node", "not installed"];

/// The parameters of a specification: those of the test, the other axes pinned, and a value of the measured axis,
/// by default those that it has by default.
fn specification(test: &ShippedTest, measured: Option<&Axis>, value: Option<&str>) -> String {
    let mut params: Vec<String> = test.short.split(',').filter(|text| !text.is_empty()).map(str::to_owned).collect();
    for axis in test.axes {
        let is_measured = measured.is_some_and(|measured| measured.name == axis.name);
        match (is_measured, value) {
            (true, Some(value)) => params.push(format!("{}={value}", axis.name)),
            (true, None) => {}
            (false, _) if axis.pinned.is_empty() => {}
            (false, _) => params.push(format!("{}={}", axis.name, axis.pinned)),
        }
    }
    if params.is_empty() { test.name.to_owned() } else { format!("{}:{}", test.name, params.join(",")) }
}

/// Measures one sample of each cell, and returns what went wrong.
fn problems_of(test: &ShippedTest, specifications: Vec<String>) -> Vec<String> {
    let lab = Lab::new();
    let mut command = lab.command("run --min-time 100ms --warm-up 0 --samples 1 --retakes 0 --into R --json");
    let result = lab.run_command(command.args(&specifications));
    assert!([0, 3].contains(&result.code), "{specifications:?}: {}", result.transcript());
    let study = result.json();
    let cells = study["cells"].as_array().unwrap();
    assert!(!cells.is_empty(), "{specifications:?}");
    let mut problems = Vec::new();
    let mut skips = BTreeSet::new();
    for cell in cells {
        let counted = cell["attempts"].as_array().unwrap().iter().any(|attempt| attempt["counted"] == true);
        let outcome = &cell["outcome"];
        match outcome["reason"].as_str() {
            Some(reason)
                if outcome["outcome"] == "unsupported"
                    && ALLOWED_REASONS.iter().any(|allowed| reason.contains(allowed)) =>
            {
                skips.insert(reason);
            }
            _ if !counted => problems.push(format!("{} of {}: {outcome}", cell["id"], test.name)),
            _ => {}
        }
    }
    for reason in skips {
        wb_test_skip::skip!("{}: {reason}", test.name);
    }
    problems
}

fn assert_measured(test: &ShippedTest, specifications: Vec<String>) {
    let problems = problems_of(test, specifications);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

fn shipped(name: &str) -> &'static ShippedTest {
    TESTS.iter().find(|test| test.name == name).unwrap()
}

/// Measures a test over the default values of its axes, and over others, one axis after the other.
fn measure_axes(name: &str) {
    let test = shipped(name);
    let mut specifications = Vec::new();
    for axis in test.axes {
        if !axis.slow_defaults {
            specifications.push(specification(test, Some(axis), None));
        }
        specifications.extend(axis.others.iter().map(|value| specification(test, Some(axis), Some(value))));
    }
    if specifications.is_empty() {
        specifications.push(specification(test, None, None));
    }
    assert_measured(test, specifications);
}

macro_rules! axes_tests {
    ($($function:ident: $name:literal,)*) => {
        $(
            #[test]
            fn $function() {
                measure_axes($name);
            }
        )*

        /// The tests that are measured by `make test`.
        const MEASURED: &[&str] = &[$($name),*];
    };
}

axes_tests! {
    compile_c_is_measured_over_its_axes: "compile-c",
    fio_is_measured_over_its_axes: "fio",
    fio_libblkio_is_measured_over_its_axes: "fio-libblkio",
    himeno_is_measured_over_its_axes: "himeno",
    himeno_c_is_measured_over_its_axes: "himeno-c",
    linpack_is_measured_over_its_axes: "linpack",
    ramspeed_is_measured_over_its_axes: "ramspeed",
    ramspeed_sweep_is_measured_over_its_axes: "ramspeed-sweep",
    redis_is_measured_over_its_axes: "redis",
    sysbench_cpu_is_measured_over_its_axes: "sysbench-cpu",
}

/// Tests whose samples or many axes take more than 4 s of CPU time, 75 s together: `make test-long` measures them.
const SLOW: [&str; 10] = [
    "7z",
    "fio-nbd",
    "hpcc",
    "iperf3",
    "openssl-speed",
    "ramspeed-c",
    "sockperf",
    "stress-ng",
    "sysbench-memory",
    "uperf",
];

#[test]
#[ignore = "takes minutes: make test-long"]
fn soak_slow_tests_and_defaults_of_slow_axes_are_measured() {
    for test in TESTS {
        if SLOW.contains(&test.name) {
            measure_axes(test.name);
        }
        let slow = test.axes.iter().filter(|axis| axis.slow_defaults);
        let specifications: Vec<String> = slow.map(|axis| specification(test, Some(axis), None)).collect();
        if !specifications.is_empty() {
            assert_measured(test, specifications);
        }
    }
}

/// Values of an axis beside those by default, if they can be listed.
fn remaining_choices(param: &Param, defaults: &BTreeSet<String>) -> Option<usize> {
    let ParamKind::Choice { values } = &param.kind else { return None };
    Some(values.iter().filter(|value| !defaults.contains(*value)).count())
}

#[test]
fn every_axis_of_every_shipped_test_is_measured() {
    let registry = wb_tests::built_in();
    let facts = wb_sys::facts(&wb_sys::SysRoot::real());
    let mut names = BTreeSet::new();
    for Declaration { name, params, .. } in registry.declarations() {
        let name = name.as_str();
        names.insert(name);
        if OF_USERS.contains(&name) {
            continue;
        }
        let test = TESTS.iter().find(|test| test.name == name);
        let test = test.unwrap_or_else(|| panic!("{name}: add it to the table of this file"));
        assert!(MEASURED.contains(&name) || SLOW.contains(&name), "{name} has no test in this file");
        let resolved = registry.test(name).unwrap().resolve(&wb_model::Params::new(), &facts);
        let axes: BTreeSet<&str> = params.iter().filter(|param| param.axis).map(|param| param.name.as_str()).collect();
        let measured: BTreeSet<&str> = test.axes.iter().map(|axis| axis.name).collect();
        assert_eq!(measured, axes, "axes of {name}");
        for param in params.iter().filter(|param| param.axis) {
            let defaults = match resolved.get(&param.name) {
                Some(values) => values.iter().map(ToString::to_string).collect(),
                None => param.default.iter().map(ToString::to_string).collect::<BTreeSet<String>>(),
            };
            let others = test.axes.iter().find(|axis| axis.name == param.name).unwrap().others;
            let new = others.iter().filter(|value| !defaults.contains(**value)).count();
            let expected = remaining_choices(param, &defaults).map_or(2, |choices| choices.min(2));
            // On machines with more CPUs, some of the values are defaults.
            let is_of_machine = resolved.contains_key(&param.name);
            assert!(new >= expected || is_of_machine, "{name}: `{}` requires {expected} other values", param.name);
        }
    }
    assert_eq!(TESTS.iter().map(|test| test.name).filter(|name| !names.contains(name)).count(), 0);
}
