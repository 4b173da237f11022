//! Reading what redis-benchmark prints and what the server says of itself.

use std::collections::BTreeMap;

use crate::Rejection;

/// One line of redis-benchmark's CSV. Latencies in nanoseconds.
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

/// Whether the benchmark was over before its clock of milliseconds had moved: its rate is then `inf` or `nan`.
pub(super) fn is_too_short(csv: &str) -> bool {
    let rate = Row::parse(csv).and_then(|row| row.field("rps"));
    rate.is_ok_and(|rate| rate.parse().is_ok_and(|rate: f64| !rate.is_finite()))
}

/// The one result in redis-benchmark's CSV, by the names of its columns.
struct Row<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Row<'a> {
    fn parse(csv: &'a str) -> Result<Self, Rejection> {
        // With --csv it still may say how far it is, ended by carriage returns, before the table.
        let lines = csv.split(['\n', '\r']).map(str::trim).filter(|line| line.starts_with('"'));
        let rows: Vec<Vec<&str>> =
            lines.map(|line| line.split(',').map(|field| field.trim_matches('"')).collect()).collect();
        let [names, row] = rows.as_slice() else {
            let why =
                format!("redis-benchmark printed {} lines of CSV, a head and one result are expected", rows.len());
            return Err(Rejection::output(why));
        };
        Ok(Self(names.iter().copied().zip(row.iter().copied()).collect()))
    }

    fn field(&self, name: &str) -> Result<&'a str, Rejection> {
        self.0.get(name).copied().ok_or_else(|| {
            Rejection::output(format!("redis-benchmark's CSV has no `{name}`: redis 7 or newer is expected"))
        })
    }
}

/// What redis-benchmark measured.
pub(super) fn parse_benchmark(csv: &str) -> Result<BenchmarkResult, Rejection> {
    let row = Row::parse(csv)?;
    let field = |name: &str| row.field(name);
    let number = |name: &str| {
        let text = field(name)?;
        let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
        number.ok_or_else(|| Rejection::output(format!("redis-benchmark's `{name}` is no number: `{text}`")))
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

/// What `INFO all` says, and the sizes that were asked for with it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ServerInfo(BTreeMap<String, String>);

impl ServerInfo {
    /// Reads `name:value` lines.
    pub(super) fn parse(text: &str) -> Self {
        let entry = |line: &str| line.trim().split_once(':').map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self(text.lines().filter_map(entry).collect())
    }

    /// A text.
    pub(super) fn text(&self, name: &str) -> Result<&str, Rejection> {
        self.0
            .get(name)
            .map(String::as_str)
            .ok_or_else(|| Rejection::output(format!("the server does not tell `{name}`")))
    }

    /// A number.
    pub(super) fn number(&self, name: &str) -> Result<f64, Rejection> {
        let text = self.text(name)?;
        let number = text.parse().ok().filter(|number: &f64| number.is_finite());
        number.ok_or_else(|| Rejection::output(format!("the server's `{name}` is no number: `{text}`")))
    }

    /// One figure of a command's statistics; zero where it was never called.
    pub(super) fn command_stat(&self, command: &str, figure: &str) -> Result<u64, Rejection> {
        let name = format!("cmdstat_{command}");
        let Some(figures) = self.0.get(&name) else { return Ok(0) };
        let value = figures.split(',').find_map(|entry| entry.split_once('=').filter(|(name, _)| *name == figure));
        value
            .and_then(|(_, value)| value.parse().ok())
            .ok_or_else(|| Rejection::output(format!("the server's `{name}` has no `{figure}`: `{figures}`")))
    }

    /// CPU time that the server has used, in seconds.
    pub(super) fn cpu_seconds(&self) -> Result<f64, Rejection> {
        Ok(self.number("used_cpu_user")? + self.number("used_cpu_sys")?)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEAD: &str = r#""test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms""#;

    fn csv(row: &str) -> String {
        format!("{HEAD}\n{row}\n")
    }

    #[test]
    fn a_result_is_read_by_the_names_of_its_columns() {
        let read =
            parse_benchmark(&csv(r#""GET","25706.94","1.293","0.104","0.519","6.327","9.511","20.063""#)).unwrap();
        assert_eq!((read.test.as_str(), read.requests_per_second), ("GET", 25706.94));
        assert_eq!((read.p50, read.max.round()), (519_000.0, 20_063_000.0));
    }

    #[test]
    fn what_is_no_result_is_rejected_with_the_reason() {
        let why = |text: &str| parse_benchmark(text).unwrap_err().figures;
        assert!(why("").contains("0 lines of CSV"));
        assert!(why(r#""SET","108695.65""#).contains("1 lines of CSV"));
        assert!(why(&csv(r#""GET","nan","1","1","1","1","1","1""#)).contains("`rps` is no number: `nan`"));
        assert!(why(&csv(r#""GET","100","1""#)).contains("no `min_latency_ms`"));
        assert!(why("\"test\",\"rps\"\n\"GET\",\"1\"").contains("redis 7 or newer"));
        assert!(why(&csv(r#""GET","100","-1","1","1","1","1","1""#)).contains("`avg_latency_ms`"));
        assert!(why("Error: Server closed the connection").contains("0 lines of CSV"));
    }

    #[test]
    fn a_benchmark_without_a_rate_was_too_short_and_garbage_was_not() {
        assert!(is_too_short(&csv(r#""GET","inf","0.1","0.1","0.1","0.1","0.1","0.1""#)));
        assert!(!is_too_short(&csv(r#""GET","2000.0","0.1","0.1","0.1","0.1","0.1","0.1""#)));
        assert!(!is_too_short(&csv(r#""GET","fast","0.1","0.1","0.1","0.1","0.1","0.1""#)));
        assert!(!is_too_short("inf"));
    }

    #[test]
    fn figures_of_the_server_are_found_by_their_names() {
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
