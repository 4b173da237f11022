//! Parsers of the output of redis-benchmark, and of the server's statistics (INFO).

use std::collections::BTreeMap;

use wb_test::Rejection;

/// One row of redis-benchmark's CSV; latencies are in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BenchmarkResult {
    pub(super) test: String,
    pub(super) requests_per_second: f64,
    pub(super) average: f64,
    pub(super) min: f64,
    pub(super) p50: f64,
    pub(super) p95: f64,
    pub(super) p99: f64,
    pub(super) max: f64,
}

/// Whether the benchmark ended within one tick of its millisecond clock; its rate is then `inf` or `nan`.
pub(super) fn is_too_short(csv: &str) -> bool {
    let rate = Row::parse(csv).and_then(|row| row.field("rps"));
    rate.is_ok_and(|rate| rate.parse().is_ok_and(|rate: f64| !rate.is_finite()))
}

/// The only result in redis-benchmark's CSV, by column name.
struct Row<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Row<'a> {
    fn parse(csv: &'a str) -> Result<Self, Rejection> {
        // Even with --csv, progress lines that end with carriage returns may precede the table.
        let lines = csv.split(['\n', '\r']).map(str::trim).filter(|line| line.starts_with('"'));
        let rows: Vec<Vec<&str>> =
            lines.map(|line| line.split(',').map(|field| field.trim_matches('"')).collect()).collect();
        let [names, row] = rows.as_slice() else {
            let reason =
                format!("redis-benchmark printed {} lines of CSV, expected a header and one result", rows.len());
            return Err(Rejection::output(reason));
        };
        Ok(Self(names.iter().copied().zip(row.iter().copied()).collect()))
    }

    fn field(&self, name: &str) -> Result<&'a str, Rejection> {
        self.0.get(name).copied().ok_or_else(|| {
            Rejection::output(format!("missing column `{name}` in redis-benchmark's CSV: redis 7 or newer is required"))
        })
    }
}

pub(super) fn parse_benchmark(csv: &str) -> Result<BenchmarkResult, Rejection> {
    let row = Row::parse(csv)?;
    let field = |name: &str| row.field(name);
    let number = |name: &str| {
        let text = field(name)?;
        let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
        number.ok_or_else(|| {
            Rejection::output(format!("invalid number in column `{name}` of redis-benchmark's CSV: `{text}`"))
        })
    };
    let latency = |name: &str| Ok(number(&format!("{name}_latency_ms"))? * 1e6);
    Ok(BenchmarkResult {
        test: field("test")?.to_owned(),
        requests_per_second: number("rps")?,
        average: latency("avg")?,
        min: latency("min")?,
        p50: latency("p50")?,
        p95: latency("p95")?,
        p99: latency("p99")?,
        max: latency("max")?,
    })
}

/// Output of `INFO all`, and the sizes that were queried with it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ServerInfo(BTreeMap<String, String>);

impl ServerInfo {
    /// Parses `name:value` lines.
    pub(super) fn parse(text: &str) -> Self {
        let entry = |line: &str| line.trim().split_once(':').map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self(text.lines().filter_map(entry).collect())
    }

    pub(super) fn text(&self, name: &str) -> Result<&str, Rejection> {
        self.0
            .get(name)
            .map(String::as_str)
            .ok_or_else(|| Rejection::output(format!("missing `{name}` in the server's INFO")))
    }

    pub(super) fn number(&self, name: &str) -> Result<f64, Rejection> {
        let text = self.text(name)?;
        let number = text.parse().ok().filter(|number: &f64| number.is_finite());
        number.ok_or_else(|| Rejection::output(format!("invalid number in `{name}` of the server's INFO: `{text}`")))
    }

    /// Returns one figure of a command's statistics; 0 if it was never called.
    pub(super) fn command_stat(&self, command: &str, figure: &str) -> Result<u64, Rejection> {
        let name = format!("cmdstat_{command}");
        let Some(figures) = self.0.get(&name) else { return Ok(0) };
        let value = figures.split(',').find_map(|entry| entry.split_once('=').filter(|(name, _)| *name == figure));
        value.and_then(|(_, value)| value.parse().ok()).ok_or_else(|| {
            Rejection::output(format!("missing `{figure}` in `{name}` of the server's INFO: `{figures}`"))
        })
    }

    pub(super) fn cpu_seconds(&self) -> Result<f64, Rejection> {
        Ok(self.number("used_cpu_user")? + self.number("used_cpu_sys")?)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEADER: &str = r#""test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms""#;

    fn csv(row: &str) -> String {
        format!("{HEADER}\n{row}\n")
    }

    #[test]
    fn a_result_is_parsed_by_column_name() {
        let result =
            parse_benchmark(&csv(r#""GET","25706.94","1.293","0.104","0.519","6.327","9.511","20.063""#)).unwrap();
        assert_eq!((result.test.as_str(), result.requests_per_second), ("GET", 25706.94));
        assert_eq!((result.p50, result.max.round()), (519_000.0, 20_063_000.0));
    }

    #[test]
    fn invalid_results_are_rejected_with_a_reason() {
        let reason = |text: &str| parse_benchmark(text).unwrap_err().figures;
        assert!(reason("").contains("0 lines of CSV"));
        assert!(reason(r#""SET","108695.65""#).contains("1 lines of CSV"));
        assert!(
            reason(&csv(r#""GET","nan","1","1","1","1","1","1""#))
                .contains("column `rps` of redis-benchmark's CSV: `nan`")
        );
        assert!(reason(&csv(r#""GET","100","1""#)).contains("missing column `min_latency_ms`"));
        assert!(reason("\"test\",\"rps\"\n\"GET\",\"1\"").contains("redis 7 or newer"));
        assert!(reason(&csv(r#""GET","100","-1","1","1","1","1","1""#)).contains("`avg_latency_ms`"));
        assert!(reason("Error: Server closed the connection").contains("0 lines of CSV"));
    }

    #[test]
    fn a_benchmark_without_a_finite_rate_was_too_short() {
        assert!(is_too_short(&csv(r#""GET","inf","0.1","0.1","0.1","0.1","0.1","0.1""#)));
        assert!(!is_too_short(&csv(r#""GET","2000.0","0.1","0.1","0.1","0.1","0.1","0.1""#)));
        assert!(!is_too_short(&csv(r#""GET","fast","0.1","0.1","0.1","0.1","0.1","0.1""#)));
        assert!(!is_too_short("inf"));
    }

    #[test]
    fn statistics_of_the_server_are_found_by_name() {
        let info = ServerInfo::parse(
            "# Stats\r\nkeyspace_hits:7\r\nused_cpu_user:1.5\r\nused_cpu_sys:0.25\r\n\
             cmdstat_get:calls=100,usec=154285,failed_calls=2\r\ncmdstat_set:rubbish\r\n",
        );
        assert_eq!(info.number("keyspace_hits"), Ok(7.0));
        assert_eq!(info.cpu_seconds(), Ok(1.75));
        assert_eq!((info.command_stat("get", "calls"), info.command_stat("get", "failed_calls")), (Ok(100), Ok(2)));
        assert_eq!(info.command_stat("lpop", "calls"), Ok(0));
        assert!(info.command_stat("set", "calls").is_err());
        assert!(info.number("keyspace_misses").is_err());
    }

    proptest! {
        #[test]
        fn garbage_never_panics(text: String, row in "[\"0-9a-z.,\n]{0,80}") {
            let _ = parse_benchmark(&text);
            let _ = parse_benchmark(&csv(&row));
            let info = ServerInfo::parse(&text);
            let _ = info.command_stat("get", "calls");
            let _ = info.cpu_seconds();
        }
    }
}
