//! Translates tests of run-perf, such as `fio:{"type": "read"}`, with pbench's parameters, units and lists and
//! run-perf's defaults.
//!
//! Sources: run-perf's `runperf/tests.py` and job files, and the options of pbench-fio, pbench-uperf and
//! pbench-linpack.

use serde_json::{Map, Value};
use wb_diagnostics::Diagnostic;

use crate::{ram_disk, tools};

/// A value that run-perf replaces by the number of CPUs of a worker.
const PER_WORKER_CPUS: &str = "__PER_WORKER_CPUS__";
pub(crate) const NAME_KEY: &str = "__NAME__";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PbenchValue {
    /// One value in the same unit here.
    Plain,
    /// Values separated by commas.
    List,
    /// Values separated by commas that are one value together.
    Ordered,
    /// Values separated by commas; numbers are in KiB.
    Kib,
    /// A number of MiB.
    Mib,
    /// `y` or `n`.
    Flag,
}

struct PbenchTest {
    name: &'static str,
    params: &'static [(&'static str, PbenchValue)],
    /// Parameters that run-perf adds.
    extra_params: &'static [(&'static str, PbenchValue)],
    defaults: &'static [(&'static str, &'static str)],
}

const FIO: [(&str, PbenchValue); 22] = [
    ("test-types", PbenchValue::List),
    ("direct", PbenchValue::Plain),
    ("sync", PbenchValue::Plain),
    ("rate-iops", PbenchValue::Plain),
    ("runtime", PbenchValue::Plain),
    ("ramptime", PbenchValue::Plain),
    ("block-sizes", PbenchValue::Kib),
    ("file-size", PbenchValue::Mib),
    ("targets", PbenchValue::List),
    ("job-mode", PbenchValue::Plain),
    ("ioengine", PbenchValue::Plain),
    ("iodepth", PbenchValue::Plain),
    ("config", PbenchValue::Plain),
    ("tool-group", PbenchValue::Plain),
    ("numjobs", PbenchValue::Plain),
    ("job-file", PbenchValue::Plain),
    ("pre-iteration-script", PbenchValue::Plain),
    ("samples", PbenchValue::Plain),
    ("max-stddev", PbenchValue::Plain),
    ("max-failures", PbenchValue::Plain),
    ("histogram-interval-sec", PbenchValue::Plain),
    ("sysinfo", PbenchValue::List),
];

const UPERF: [(&str, PbenchValue); 16] = [
    ("test-types", PbenchValue::List),
    ("runtime", PbenchValue::Plain),
    ("message-sizes", PbenchValue::List),
    ("protocols", PbenchValue::List),
    ("instances", PbenchValue::List),
    ("server-nodes", PbenchValue::Ordered),
    ("client-nodes", PbenchValue::Ordered),
    ("samples", PbenchValue::Plain),
    ("max-stddev", PbenchValue::Plain),
    ("max-failures", PbenchValue::Plain),
    ("start-iteration-num", PbenchValue::Plain),
    ("log-response-times", PbenchValue::Flag),
    ("config", PbenchValue::Plain),
    ("tool-group", PbenchValue::Plain),
    ("tool-label-pattern", PbenchValue::Plain),
    ("sysinfo", PbenchValue::List),
];

const LINPACK: [(&str, PbenchValue); 12] = [
    ("threads", PbenchValue::List),
    ("run-samples", PbenchValue::Plain),
    ("samples", PbenchValue::Plain),
    ("problem-sizes", PbenchValue::List),
    ("leading-dimensions", PbenchValue::List),
    ("alignment-values", PbenchValue::List),
    ("linpack-binary", PbenchValue::Plain),
    ("use-omp", PbenchValue::Flag),
    ("kmp-affinity", PbenchValue::Plain),
    ("numactl-args", PbenchValue::Plain),
    ("lininput-header", PbenchValue::Plain),
    ("lininput-subheader", PbenchValue::Plain),
];

/// Options of linpack programs, which the built-in kernel does not use.
const OF_LINPACK_PROGRAMS: [&str; 4] = ["use-omp", "kmp-affinity", "lininput-header", "lininput-subheader"];

/// pbench's collectors of system information that need programs of their own, and do not exist here.
const COLLECTORS_OF_PBENCH: [&str; 3] = ["ara", "insights", "stockpile"];

const PBENCH_TESTS: [PbenchTest; 5] = [
    PbenchTest {
        name: "fio",
        params: &FIO,
        extra_params: &[],
        defaults: &[("test-types", "read,write,rw"), ("ramptime", "10"), ("runtime", "180"), ("samples", "3")],
    },
    // Defaults from run-perf's job files and from pbench-fio.
    PbenchTest {
        name: "fio-nbd",
        params: &FIO,
        extra_params: &[],
        defaults: &[("ramptime", "5"), ("runtime", "30"), ("samples", "5")],
    },
    PbenchTest {
        name: ram_disk::TEST_NAME,
        params: &FIO,
        extra_params: &[("hipri", PbenchValue::Plain), ("target", PbenchValue::Plain)],
        defaults: &[("ramptime", "5"), ("runtime", "10"), ("samples", "5")],
    },
    PbenchTest {
        name: "uperf",
        params: &UPERF,
        extra_params: &[],
        defaults: &[
            ("test-types", "stream"),
            ("runtime", "60"),
            ("samples", "3"),
            ("protocols", "tcp"),
            ("message-sizes", "1,64,16384"),
        ],
    },
    PbenchTest { name: "linpack", params: &LINPACK, extra_params: &[], defaults: &[("samples", "3")] },
];

#[derive(Debug, Default, PartialEq, Eq)]
pub struct TranslatedTest {
    /// Its name and parameters as one argument.
    pub spec: String,
    /// The commands to run during its samples; `None` if it names no tools.
    pub tools: Option<Vec<String>>,
    /// Differences from run-perf, one sentence each.
    pub notes: Vec<String>,
    /// Whether it needs a server, which run-perf starts on the host of a guest.
    pub has_server: bool,
    /// Whether it repeats sets of samples until their deviation is small, as pbench does.
    pub has_sets: bool,
}

/// Translates `NAME` or `NAME:JSON`.
pub fn translate(text: &str) -> Result<TranslatedTest, Diagnostic> {
    let (name, params) = split_params("test", text)?;
    translate_test(&name, params)
}

pub(crate) fn translate_test(name: &str, mut params: Map<String, Value>) -> Result<TranslatedTest, Diagnostic> {
    let has_sets = PBENCH_TESTS.iter().any(|pbench| pbench.name == name && pbench.repeats_sets());
    let mut test = TranslatedTest { has_server: name == "uperf", has_sets, ..TranslatedTest::default() };
    let mut words = Vec::new();
    if let Some(label) = params.remove(NAME_KEY).filter(|label| *label != Value::String(String::new())) {
        words.push(format!("id={}", sanitize_name(&value_text(&label))));
    }
    if let Some(list) = params.remove("pbench_tools") {
        test.tools = Some(tools::translate(&list, &mut test.notes)?);
    }
    let mut defaults = Vec::new();
    if name == ram_disk::TEST_NAME {
        defaults = ram_disk::translate(&mut params, &mut test.notes)?;
    }
    let special: Vec<String> = params.keys().filter(|key| key.starts_with("__")).cloned().collect();
    for key in special {
        params.remove(&key);
        test.notes.push(format!("`{key}` of `{name}` has no effect"));
    }
    match PBENCH_TESTS.iter().find(|pbench| pbench.name == name) {
        Some(pbench) => words.extend(pbench.spec_words(params, &defaults, &mut test.notes)?),
        None => words.extend(params.iter().map(|(key, value)| format!("{key}={}", format_value(value)))),
    }
    test.spec = if words.is_empty() { name.to_owned() } else { format!("{name}:{}", words.join(",")) };
    Ok(test)
}

impl PbenchTest {
    fn repeats_sets(&self) -> bool {
        self.params.iter().any(|(name, _)| *name == "max-failures")
    }

    /// Translates its parameters, sorted by name, with its defaults and the given ones.
    fn spec_words(
        &self,
        params: Map<String, Value>,
        defaults: &[(&str, &str)],
        notes: &mut Vec<String>,
    ) -> Result<Vec<String>, Diagnostic> {
        let mut words = std::collections::BTreeMap::new();
        let has_program = params.keys().any(|key| self.param(key).0 == "linpack-binary");
        for (key, value) in params {
            let (name, kind) = self.param(&key);
            let mut value = text_values(&value);
            if OF_LINPACK_PROGRAMS.contains(&name.as_str()) && !has_program {
                notes.push(format!(
                    "`{name}` of `{}` has no effect on the built-in kernel: `linpack-binary` names a program to run",
                    self.name
                ));
                continue;
            }
            if name == "sysinfo" {
                value = available_collectors(&value, notes);
            }
            // pbench ignores an empty value.
            if value.iter().all(String::is_empty) {
                continue;
            }
            if words.insert(name.clone(), kind.format_values(&value)).is_some() {
                let what = format!("`{name}` of `{}` is given twice", self.name);
                return Err(Diagnostic::new(what).with_help("give it once"));
            }
        }
        for (name, value) in self.defaults.iter().chain(defaults) {
            let (name, kind) = self.param(name);
            words.entry(name).or_insert_with(|| kind.format_values(&[(*value).to_owned()]));
        }
        Ok(words.into_iter().map(|(name, value)| format!("{name}={value}")).collect())
    }

    /// Resolves a parameter name as pbench's scripts do: `_` is `-`, `type` is `test-types`, and an unambiguous prefix
    /// stands for the name. Other names stay as they are.
    fn param(&self, key: &str) -> (String, PbenchValue) {
        let dashed = key.replace('_', "-");
        let name = if dashed == "type" || dashed == "types" { "test-types" } else { &dashed };
        let exact = self.extra_params.iter().chain(self.params).find(|(given, _)| *given == name);
        let mut prefixed = self.params.iter().filter(|(given, _)| given.starts_with(name));
        let param = exact.or_else(|| prefixed.next().filter(|_| prefixed.next().is_none()));
        match param {
            // run-perf's name for the same parameter.
            Some(("samples", kind)) if self.name == "linpack" => ("run-samples".to_owned(), *kind),
            Some((name, kind)) => ((*name).to_owned(), *kind),
            None => (key.to_owned(), PbenchValue::Plain),
        }
    }
}

impl PbenchValue {
    fn format_values(self, values: &[String]) -> String {
        let parts: Vec<&str> = match self {
            Self::List | Self::Ordered | Self::Kib => {
                values.iter().flat_map(|value| wb_plan::split_commas(value)).collect()
            }
            Self::Plain | Self::Mib | Self::Flag => values.iter().map(String::as_str).collect(),
        };
        let is_number = |text: &str| text.parse::<u64>().is_ok();
        let one = |text: &str| match self {
            _ if text == PER_WORKER_CPUS => wb_plan::WORKER_CPUS.to_owned(),
            Self::Kib if is_number(text) => format!("{text}k"),
            Self::Mib if is_number(text) => format!("{text}m"),
            Self::Flag if text == "y" => "true".to_owned(),
            Self::Flag if text == "n" => "false".to_owned(),
            _ => quote(text),
        };
        let all: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).map(one).collect();
        match all.as_slice() {
            [one] if self != Self::Ordered => one.clone(),
            all => format!("[{}]", all.join(",")),
        }
    }
}

/// The collectors of `sysinfo` that exist here, with a note on each other one; `none` if none of them exists.
fn available_collectors(values: &[String], notes: &mut Vec<String>) -> Vec<String> {
    let named: Vec<&str> = values.iter().flat_map(|value| wb_plan::split_commas(value)).map(str::trim).collect();
    let (missing, available): (Vec<&str>, Vec<&str>) =
        named.iter().copied().partition(|name| COLLECTORS_OF_PBENCH.contains(name));
    notes.extend(missing.iter().map(|name| format!("pbench's collector `{name}` of `sysinfo` is skipped")));
    let none = (available.is_empty() && !missing.is_empty()).then_some("none");
    available.into_iter().chain(none).map(str::to_owned).collect()
}

/// Splits `NAME` or `NAME:JSON`, where JSON is an object, into name and parameters.
pub(crate) fn split_params(kind: &str, text: &str) -> Result<(String, Map<String, Value>), Diagnostic> {
    let Some((name, json)) = text.split_once(':') else { return Ok((text.to_owned(), Map::new())) };
    let invalid = |reason: String| {
        Diagnostic::new(format!("invalid {kind} `{text}`: {reason}")).with_help(format!(
            "a {kind} is written NAME or NAME:JSON, such as `{name}:{{\"key\": \"value\"}}`, in quotes for the shell"
        ))
    };
    match serde_json::from_str(json) {
        Ok(Value::Object(params)) => Ok((name.to_owned(), params)),
        Ok(_) => Err(invalid("expected an object after the colon".to_owned())),
        Err(error) => Err(invalid(format!("the JSON after the colon cannot be read: {error}"))),
    }
}

/// Replaces characters that are invalid in names of files and cells by `_`.
pub(crate) fn sanitize_name(name: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-') { c } else { '_' };
    name.chars().map(keep).collect()
}

fn text_values(value: &Value) -> Vec<String> {
    match value {
        Value::Array(list) => list.iter().map(value_text).collect(),
        single => vec![value_text(single)],
    }
}

/// A value as a string, as run-perf puts it into a command line.
pub(crate) fn value_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Formats a value of a test that pbench does not have.
fn format_value(value: &Value) -> String {
    match value {
        Value::Array(list) => format!("[{}]", list.iter().map(format_value).collect::<Vec<_>>().join(",")),
        single if value_text(single) == PER_WORKER_CPUS => wb_plan::WORKER_CPUS.to_owned(),
        single => quote(&value_text(single)),
    }
}

fn quote(text: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+' | '@' | '%');
    if !text.is_empty() && text.chars().all(is_bare) { text.to_owned() } else { Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> String {
        let spec = translate(text).unwrap().spec;
        wb_plan::spec::parse(&spec).unwrap();
        spec
    }

    #[test]
    fn run_perf_defaults_are_explicit() {
        let all = ["fio", "fio-nbd", "fio-libblkio", "uperf", "linpack", "himeno"];
        insta::assert_snapshot!(all.map(spec).join("\n"), @r"
        fio:ramptime=10,runtime=180,samples=3,test-types=[read,write,rw]
        fio-nbd:ramptime=5,runtime=30,samples=5
        fio-libblkio:direct=false,file-size=1024m,ramptime=5,runtime=10,samples=5,target=/dev/shm
        uperf:message-sizes=[1,64,16384],protocols=tcp,runtime=60,samples=3,test-types=stream
        linpack:run-samples=3
        himeno
        ");
    }

    #[test]
    fn unknown_parameter_name_is_unchanged() {
        assert!(spec(r#"fio:{"foo__":1}"#).starts_with("fio:foo__=1,"), "{}", spec(r#"fio:{"foo__":1}"#));
    }

    #[test]
    fn pbench_names_units_and_lists_are_translated() {
        let all = [
            r#"fio:{"type":"read", "ramptime":"1", "runtime":"10", "samples":"1", "file-size": "100", "targets": "/fio"}"#,
            r#"fio:{"test_types":"read,randwrite","block-size":"4,64","targets":"/a b,/c","numjobs":"__PER_WORKER_CPUS__"}"#,
            r#"fio:{"block-sizes":["4k",1024],"file-size":"1g","type":"read","run":1,"ramp":0,"samp":1,"rate-iops":""}"#,
            r#"uperf:{"protocol":"tcp,udp","instances":"1,2","log-response-times":"y","message-sizes":64}"#,
            r#"linpack:{"threads": "32"}"#,
            r#"linpack:{"threads": "1,2","samples":5,"use_omp":"n","kmp-affinity":"compact,1,0","linpack-binary":"xhpl"}"#,
            r#"himeno:{"grid":["XS","S"],"threads":"__PER_WORKER_CPUS__"}"#,
            r#"fio-nbd:{"__NAME__":"nbd on Fedora", "type":"read"}"#,
            r#"fio-libblkio:{"type":"read,write","target":"/srv/image","hipri":1,"targets":""}"#,
        ];
        insta::assert_snapshot!(all.map(spec).join("\n"), @r#"
        fio:file-size=100m,ramptime=1,runtime=10,samples=1,targets=/fio,test-types=read
        fio:block-sizes=[4k,64k],numjobs=worker-cpus,ramptime=10,runtime=180,samples=3,targets=["/a b",/c],test-types=[read,randwrite]
        fio:block-sizes=[4k,1024k],file-size=1g,ramptime=0,runtime=1,samples=1,test-types=read
        uperf:instances=[1,2],log-response-times=true,message-sizes=64,protocols=[tcp,udp],runtime=60,samples=3,test-types=stream
        linpack:run-samples=3,threads=32
        linpack:kmp-affinity="compact,1,0",linpack-binary=xhpl,run-samples=5,threads=[1,2],use-omp=false
        himeno:grid=[XS,S],threads=worker-cpus
        fio-nbd:id=nbd_on_Fedora,ramptime=5,runtime=30,samples=5,test-types=read
        fio-libblkio:hipri=1,ramptime=5,runtime=10,samples=5,target=/srv/image,test-types=[read,write]
        "#);
    }

    #[test]
    fn invalid_tests_are_reported() {
        let message = |text: &str| translate(text).unwrap_err().to_string();
        assert!(message("fio:{\"type\": }").starts_with("invalid test `fio:{\"type\": }`: the JSON after the colon"));
        assert_eq!(message("fio:[1]"), "invalid test `fio:[1]`: expected an object after the colon");
        assert_eq!(message(r#"fio:{"type":"read","test-types":"rw"}"#), "`test-types` of `fio` is given twice");
    }

    #[test]
    fn nodes_are_one_ordered_list() {
        let nodes = |json: &str| {
            let spec = spec(&format!("uperf:{{{json}}}"));
            spec.split_once("server-nodes=").unwrap().1.split_once(",test-types").unwrap().0.to_owned()
        };
        for json in [r#""server-node":"0,1""#, r#""server_nodes":[0,1]"#, r#""server-n":"0,1""#] {
            assert_eq!(nodes(json), "[0,1]", "{json}");
        }
        assert_eq!(nodes(r#""server-nodes":0"#), "[0]");
    }

    #[test]
    fn collectors_that_do_not_exist_are_named() {
        for test in ["fio", "fio-nbd", "fio-libblkio", "uperf"] {
            let translated =
                translate(&format!(r#"{test}:{{"sysinfo":"block,ara,stockpile,insights,topology"}}"#)).unwrap();
            assert!(translated.spec.contains("sysinfo=[block,topology]"), "{}", translated.spec);
            for name in COLLECTORS_OF_PBENCH {
                let note = format!("pbench's collector `{name}` of `sysinfo` is skipped");
                assert!(translated.notes.contains(&note), "{:?}", translated.notes);
            }
            let none = translate(&format!(r#"{test}:{{"sysinfo":["ara"]}}"#)).unwrap().spec;
            assert!(none.contains("sysinfo=none"), "{none}");
        }
        assert!(!spec(r#"fio:{"sysinfo":""}"#).contains("sysinfo"));
    }

    #[test]
    fn options_of_linpack_programs_need_one() {
        for name in OF_LINPACK_PROGRAMS {
            let alone = translate(&format!(r#"linpack:{{"{name}":"n"}}"#)).unwrap();
            assert_eq!(alone.spec, "linpack:run-samples=3");
            assert!(alone.notes[0].starts_with(&format!("`{name}` of `linpack` has no effect")), "{:?}", alone.notes);
            let with = translate(&format!(r#"linpack:{{"{name}":"n","linpack_binary":"xhpl"}}"#)).unwrap();
            assert!(with.spec.contains(&format!("{name}=")) && with.notes.is_empty(), "{}", with.spec);
        }
    }

    #[test]
    fn run_perf_keys_are_not_parameters() {
        let test = translate(r#"fio:{"__X__":1,"pbench_tools":["sar:--interval=5"],"type":"read"}"#).unwrap();
        assert_eq!(test.notes, ["`__X__` of `fio` has no effect"]);
        assert_eq!(test.tools.unwrap(), ["sar -A 5"]);
    }
}
