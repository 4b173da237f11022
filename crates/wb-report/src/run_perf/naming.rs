//! pbench's names of iterations, metrics and parameters, by test. What pbench does not have keeps its own name.

use wb_model::{Bytes, Class, Metric, Nanos, ParamValue, Params};
use wb_results::CellResult;

#[derive(Clone, Copy)]
enum PbenchTest {
    Fio,
    Uperf,
    Linpack,
}

impl PbenchTest {
    fn new(test: &str) -> Option<Self> {
        match test {
            "fio" | "fio-nbd" | "fio-libblkio" => Some(Self::Fio),
            "uperf" => Some(Self::Uperf),
            "linpack" => Some(Self::Linpack),
            _ => None,
        }
    }

    fn named_params(self) -> &'static [&'static str] {
        match self {
            Self::Fio => &["test-types", "block-sizes"],
            Self::Uperf => &["protocols", "test-types", "message-sizes", "instances"],
            Self::Linpack => &["threads"],
        }
    }

    /// `read-4KiB`, `tcp_stream-64B-1i`, `2-threads`; `None` if the parameters for the name are missing.
    fn iteration(self, params: &Params) -> Option<String> {
        let text = |name: &str| params.get(name).map(ToString::to_string);
        let bytes = |name: &str| text(name)?.parse::<Bytes>().ok().map(|Bytes(bytes)| bytes);
        Some(match self {
            Self::Fio => format!("{}-{}KiB", text("test-types")?, bytes("block-sizes")? as f64 / 1024.0),
            Self::Uperf => format!(
                "{}_{}-{}B-{}i",
                text("protocols")?,
                text("test-types")?,
                bytes("message-sizes")?,
                text("instances")?
            ),
            Self::Linpack => format!("{}-threads", text("threads")?),
        })
    }

    /// pbench's name of a metric, and the factor from its unit here to that of pbench.
    fn metric(self, class: Class, name: &str) -> Option<(&'static str, f64)> {
        match (self, class, name) {
            (Self::Fio, Class::Throughput, "iops") => Some(("iops_sec", 1.0)),
            (Self::Fio, Class::Latency, "mean") => Some(("clat", 1.0)),
            (Self::Fio, Class::Latency, "slat-mean") => Some(("slat", 1.0)),
            (Self::Fio, Class::Latency, "lat-mean") => Some(("lat", 1.0)),
            (Self::Uperf, Class::Throughput, "received") => Some(("Gb_sec", 1e-9)),
            (Self::Uperf, Class::Throughput, "rounds") => Some(("trans_sec", 1.0)),
            (Self::Uperf, Class::Latency, "mean") => Some(("usec", 1e-3)),
            _ => None,
        }
    }

    fn param(self, name: &str) -> Option<&'static str> {
        match (self, name) {
            (Self::Fio, "block-sizes") => Some("bs"),
            (Self::Fio, "test-types") => Some("rw"),
            (Self::Fio, "file-size") => Some("size"),
            (Self::Fio, "targets") => Some("filename"),
            (Self::Fio, "ramptime") => Some("ramp_time"),
            (Self::Fio | Self::Uperf, "max-stddev") => Some("max_stddevpct"),
            (Self::Uperf, "test-types") => Some("test_type"),
            (Self::Uperf, "protocols") => Some("protocol"),
            (Self::Uperf, "message-sizes") => Some("message_size_bytes"),
            _ => None,
        }
    }
}

/// The name of a cell's iteration. Axes that pbench's name has no place for follow it. For a test that pbench does not
/// have, it is the case, or the test's name without axes.
pub(super) fn iteration(cell: &CellResult) -> String {
    let test = PbenchTest::new(cell.id.test.as_str());
    match test.and_then(|test| Some((test, test.iteration(&cell.params)?))) {
        Some((test, name)) => {
            let own = test.named_params().iter().fold(cell.id.case.clone(), |case, param| case.without(param));
            if own.is_empty() { name } else { format!("{name}-{own}") }
        }
        None if cell.id.case.is_empty() => cell.id.test.to_string(),
        None => cell.id.case.to_string(),
    }
}

/// The name of a metric, and the factor of its values. A point would begin the statistic in run-perf's identifiers.
pub(super) fn metric(test: &str, metric: &Metric) -> (String, f64) {
    let of_pbench = PbenchTest::new(test).and_then(|test| test.metric(metric.class, &metric.name));
    of_pbench.map_or_else(|| (metric.name.replace('.', "_"), 1.0), |(name, factor)| (name.to_owned(), factor))
}

/// The name and the value of a parameter, as pbench has it in its results; `None` if it is empty.
pub(super) fn param(test: &str, name: &str, value: &ParamValue) -> Option<(String, String)> {
    let pbench = PbenchTest::new(test);
    let text = match value {
        ParamValue::Bool(flag) if pbench.is_some() => u8::from(*flag).to_string(),
        ParamValue::List(values) => values.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    };
    // pbench's times are whole seconds.
    let seconds = ["runtime", "ramptime"].contains(&name).then(|| text.parse::<Nanos>().ok()).flatten();
    let text = match seconds {
        Some(time) if pbench.is_some() => time.seconds().to_string(),
        _ => text,
    };
    let name = pbench.and_then(|test| test.param(name)).map_or_else(|| name.replace('-', "_"), str::to_owned);
    (!text.is_empty()).then_some((name, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn iteration_of(test: &str, params: &[(&str, ParamValue)]) -> Option<String> {
        let params = params.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        PbenchTest::new(test)?.iteration(&params)
    }

    #[test]
    fn iterations_have_pbenchs_names() {
        let text = |text: &str| ParamValue::Text(text.to_owned());
        for (size, name) in [("4k", "read-4KiB"), ("1m", "read-1024KiB"), ("512", "read-0.5KiB")] {
            for test in ["fio", "fio-nbd", "fio-libblkio"] {
                let params = [("test-types", text("read")), ("block-sizes", text(size))];
                assert_eq!(iteration_of(test, &params).as_deref(), Some(name), "{test}");
            }
        }
        let stream = [
            ("protocols", text("tcp")),
            ("test-types", text("stream")),
            ("message-sizes", text("16k")),
            ("instances", ParamValue::Integer(8)),
        ];
        assert_eq!(iteration_of("uperf", &stream).as_deref(), Some("tcp_stream-16384B-8i"));
        assert_eq!(iteration_of("linpack", &[("threads", ParamValue::Integer(2))]).as_deref(), Some("2-threads"));
        assert_eq!(iteration_of("linpack", &[]), None);
        assert_eq!(iteration_of("himeno", &[("threads", ParamValue::Integer(2))]), None);
    }

    #[test]
    fn metrics_have_pbenchs_names_and_units_and_no_point() {
        let named = |test: &str, one: Metric| metric(test, &one);
        assert_eq!(named("fio", Metric::throughput("iops", "ops/s")), ("iops_sec".to_owned(), 1.0));
        assert_eq!(named("fio", Metric::latency("mean", "ns")), ("clat".to_owned(), 1.0));
        assert_eq!(named("fio", Metric::latency("lat-mean", "ns")), ("lat".to_owned(), 1.0));
        assert_eq!(named("fio", Metric::latency("slat-mean", "ns")), ("slat".to_owned(), 1.0));
        assert_eq!(named("fio", Metric::latency("p99.99", "ns")), ("p99_99".to_owned(), 1.0));
        assert_eq!(named("uperf", Metric::throughput("received", "bit/s")), ("Gb_sec".to_owned(), 1e-9));
        assert_eq!(named("uperf", Metric::latency("mean", "ns")), ("usec".to_owned(), 1e-3));
        assert_eq!(named("redis", Metric::latency("mean", "ns")), ("mean".to_owned(), 1.0));
    }

    #[test]
    fn parameters_are_those_of_pbenchs_results() {
        let param = |test: &str, name: &str, value: ParamValue| {
            param(test, name, &value).map(|(name, text)| format!("{name}={text}"))
        };
        let text = |text: &str| ParamValue::Text(text.to_owned());
        assert_eq!(param("fio", "runtime", text("1min")).as_deref(), Some("runtime=60"));
        assert_eq!(param("fio", "direct", ParamValue::Bool(true)).as_deref(), Some("direct=1"));
        assert_eq!(param("fio", "block-sizes", text("4k")).as_deref(), Some("bs=4k"));
        assert_eq!(param("fio", "job-file", text("")), None);
        assert_eq!(param("x", "a-b", ParamValue::List(vec![text("1"), text("2")])).as_deref(), Some("a_b=1,2"));
    }
}
