//! Parser of the tables of `results.md`: three of figures, and the status of each row in a table or as `- Status:` below
//! its name.

use std::collections::BTreeMap;

use wb_model::Gate;
use wb_peers::plausibility::{format_time, unit_factor};

use super::{Figures, PLAUSIBLE_ROUND_TRIP, Pair, Row, Scenario, SuiteResults, written_resolution};
use crate::ReadError;

pub(super) fn is_markdown(text: &str) -> bool {
    text.lines().any(|line| heading(line).is_some_and(|title| Table::new(title).is_some()))
        || text.lines().any(|line| line.trim() == "## Box Plot Statistics")
}

#[derive(Debug, Clone, PartialEq)]
struct Table {
    scenario: Scenario,
    unit: String,
}

impl Table {
    /// The table below a heading such as `Upload Throughput (Gbps)`.
    fn new(title: &str) -> Option<Self> {
        let (name, unit) = title.strip_suffix(')')?.rsplit_once(" (")?;
        let scenario = match name {
            "Upload Throughput" => Scenario::Upload,
            "Download Throughput" => Scenario::Download,
            "Latency" => Scenario::RoundTrip,
            _ => return None,
        };
        Some(Self { scenario, unit: unit.to_owned() })
    }
}

enum Section {
    Figures(Table),
    /// Below the name of a row.
    Named(String),
    Other,
}

#[derive(Default)]
struct Parser {
    results: SuiteResults,
    /// Names and statuses, in the order of the file.
    statuses: Vec<(String, String)>,
    /// By name.
    causes: BTreeMap<String, String>,
    /// By name, with the figures of each table as written.
    rows: Vec<(String, [Option<Figures>; 3])>,
    /// Last row of each name.
    index: BTreeMap<String, usize>,
    units: [Option<String>; 3],
    columns: Vec<String>,
}

pub(super) fn parse(text: &str) -> Result<SuiteResults, ReadError> {
    let mut parser = Parser::default();
    let mut section = Section::Other;
    for (index, line) in text.lines().enumerate() {
        if let Some(title) = heading(line) {
            parser.columns.clear();
            section = match Table::new(title) {
                Some(table) => {
                    parser.units[table.scenario as usize] = Some(table.unit.clone());
                    Section::Figures(table)
                }
                None if Pair::parse(title).is_some() => Section::Named(unescape(title)),
                None => Section::Other,
            };
            parser.add_title(title);
        } else if let Some(cells) = table_cells(line) {
            parser.add_table_row(&section, &cells, index + 1)?;
        } else {
            parser.columns.clear();
            parser.add_line(&section, line);
        }
    }
    parser.finish()
}

fn heading(line: &str) -> Option<&str> {
    let title = line.trim_end().trim_start_matches('#');
    (line.starts_with('#') && title.starts_with(' ')).then(|| title.trim())
}

/// Splits a line of a table at each `|` without a backslash.
fn table_cells(line: &str) -> Option<Vec<String>> {
    let line = line.trim().strip_prefix('|')?;
    let mut cells = vec![String::new()];
    let mut is_escaped = false;
    for letter in line.chars() {
        match letter {
            '|' if !is_escaped => cells.push(String::new()),
            letter => cells.iter_mut().last().into_iter().for_each(|cell| cell.push(letter)),
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    // Behind the last `|`.
    cells.pop_if(|cell| cell.trim().is_empty());
    Some(cells.iter().map(|cell| unescape(cell.trim())).collect())
}

/// Removes the backslashes in front of special characters.
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let is_escape = letter == '\\' && letters.peek().is_some_and(char::is_ascii_punctuation);
        plain.extend(if is_escape { letters.next() } else { Some(letter) });
    }
    plain
}

/// Splits `**Key:** value`, also in a list.
fn key_value(line: &str) -> Option<(&str, &str)> {
    let line = line.trim().trim_start_matches("- ").trim();
    let (key, value) = line.split_once(':')?;
    Some((key.trim_matches('*').trim(), value.trim_start_matches('*').trim()))
}

fn provenance_name(key: &str) -> Option<&'static str> {
    Some(match key.to_ascii_lowercase().as_str() {
        "test pass" => "test pass",
        "started" => "measured at",
        "completed" => "completed at",
        "duration" => "duration",
        "platform" => "platform",
        "os" => "operating system",
        _ => return None,
    })
}

impl Parser {
    fn add_title(&mut self, title: &str) {
        if let Some(name) = title.strip_prefix("Results of test pass ") {
            self.add_provenance("test pass", name);
        }
    }

    fn add_provenance(&mut self, key: &str, value: &str) {
        let Some(name) = provenance_name(key) else { return };
        if !value.is_empty() && self.results.provenance.iter().all(|(known, _)| *known != name) {
            self.results.provenance.push((name, value.to_owned()));
        }
    }

    /// A line outside of tables: a property of the run, or the status of a row.
    fn add_line(&mut self, section: &Section, line: &str) {
        let Some((key, value)) = key_value(line) else { return };
        match section {
            Section::Named(name) if key.eq_ignore_ascii_case("status") => {
                // Emphasis and a symbol may stand around the word.
                let word = value.split(|c: char| !c.is_ascii_alphanumeric()).find(|word| !word.is_empty());
                self.add_status(name, word.unwrap_or(value));
            }
            Section::Named(name) if key.eq_ignore_ascii_case("cause") => {
                self.causes.insert(name.clone(), unescape(value));
            }
            _ => self.add_provenance(key, value),
        }
    }

    fn add_status(&mut self, name: &str, status: &str) {
        self.statuses.push((name.to_owned(), status.to_ascii_lowercase()));
    }

    fn add_table_row(&mut self, section: &Section, cells: &[String], line: usize) -> Result<(), ReadError> {
        if self.columns.is_empty() {
            self.columns = cells.iter().map(|cell| cell.to_ascii_lowercase()).collect();
            return Ok(());
        }
        if cells.iter().all(|cell| cell.chars().all(|c| matches!(c, '-' | ':'))) {
            return Ok(());
        }
        let value = |column: &str| {
            let position = self.columns.iter().position(|name| name == column)?;
            cells.get(position).map(String::as_str)
        };
        match section {
            Section::Figures(table) => {
                let Some(name) = value("test").map(str::to_owned) else { return Ok(()) };
                let malformed = |column: &str, text: &str| ReadError::Malformed {
                    format: super::FORMAT,
                    reason: format!("line {line}: invalid {column} `{text}`: expected a number or null"),
                };
                let mut figures = Figures { resolution: 1.0, ..Figures::default() };
                let missing = || ReadError::Malformed {
                    format: super::FORMAT,
                    reason: format!("line {line}: expected {} columns, found {}", self.columns.len(), cells.len()),
                };
                for column in ["min", "q1", "median", "q3", "max", "outliers"] {
                    if !self.columns.iter().any(|name| name == column) {
                        continue;
                    }
                    let text = value(column).ok_or_else(missing)?;
                    let figure = match text {
                        "" | "null" | "N/A" | "-" => None,
                        text => {
                            let number: f64 = text.parse().map_err(|_| malformed(column, text))?;
                            Some(number).filter(|number| number.is_finite())
                        }
                    };
                    if column != "outliers" {
                        figures.resolution = figures.resolution.min(written_resolution(text));
                    }
                    *figures.field(column) = figure;
                }
                self.add_figures(name, table.scenario, figures);
            }
            _ => {
                let named =
                    value("test").zip(value("status")).map(|(name, status)| (name.to_owned(), status.to_owned()));
                match (named, cells) {
                    (Some((name, status)), _) => self.add_status(&name, &status),
                    (None, [key, value]) => self.add_provenance(key, value),
                    (None, _) => {}
                }
            }
        }
        Ok(())
    }

    fn add_figures(&mut self, name: String, scenario: Scenario, figures: Figures) {
        let scenario = scenario as usize;
        let row = self.index.get(&name).and_then(|position| self.rows.get_mut(*position));
        match row.filter(|(_, all)| all[scenario].is_none()) {
            Some((_, all)) => all[scenario] = Some(figures),
            None => {
                let mut all = [None, None, None];
                all[scenario] = Some(figures);
                self.index.insert(name.clone(), self.rows.len());
                self.rows.push((name, all));
            }
        }
    }

    fn finish(self) -> Result<SuiteResults, ReadError> {
        let Self { mut results, statuses, causes, rows, index, units, .. } = self;
        if let Some(missing) = Scenario::ALL.into_iter().find(|scenario| units[*scenario as usize].is_none()) {
            let reason = format!("no table of {}: the file may be truncated", missing.key());
            return Err(ReadError::Malformed { format: super::FORMAT, reason });
        }
        for (name, all) in &rows {
            if let Some(missing) = Scenario::ALL.into_iter().find(|scenario| all[*scenario as usize].is_none()) {
                let reason = format!("`{name}` is not in the table of {}: the file may be truncated", missing.key());
                return Err(ReadError::Malformed { format: super::FORMAT, reason });
            }
        }
        let factors = Scenario::ALL.map(|scenario| {
            let unit = units[scenario as usize].as_deref()?;
            let factor = scenario.factor(unit);
            if factor.is_none() {
                results.notes.push(format!("table of {}: unknown unit `{unit}`", scenario.key()));
            }
            factor
        });
        let [upload, download, latency] = factors;
        let latency = latency.map(|factor| {
            let medians: Vec<f64> = rows.iter().filter_map(|(_, all)| all[2].as_ref()?.median).collect();
            let (factor, finding) = latency_unit(factor, &medians);
            results.findings.extend(finding.map(|finding| (Scenario::RoundTrip, finding)));
            factor
        });
        let factors = [upload, download, latency];
        // Rows that only have a status are baselines: the suite publishes no figures of theirs.
        for (name, status) in statuses.iter().filter(|(name, _)| !index.contains_key(name)) {
            let status = (Some(status.clone()), causes.get(name).cloned());
            results.add_row(true, name.clone(), status, [None, None, None]);
        }
        let by_name: BTreeMap<&str, &str> =
            statuses.iter().map(|(name, status)| (name.as_str(), status.as_str())).collect();
        for (name, all) in rows {
            let [upload, download, latency] = all;
            let scaled = [(upload, factors[0]), (download, factors[1]), (latency, factors[2])]
                .map(|(figures, factor)| Some(figures?.scaled(factor?)).filter(|figures| !figures.is_empty()));
            let status = by_name.get(name.as_str()).map(|status| (*status).to_owned());
            let status = (status, causes.get(&name).cloned());
            results.add_row(false, name, status, scaled);
        }
        Ok(results)
    }
}

impl SuiteResults {
    fn add_row(
        &mut self,
        is_baseline: bool,
        name: String,
        (status, cause): (Option<String>, Option<String>),
        figures: [Option<Figures>; 3],
    ) {
        let Some(pair) = Pair::parse(&name) else {
            self.notes.push(format!("row `{name}`: invalid name: expected `DIALER x LISTENER (TRANSPORT, …)`"));
            return;
        };
        let location = format!("{}/{name}", if is_baseline { "baselines" } else { "tests" });
        let rows = if is_baseline { &mut self.baselines } else { &mut self.tests };
        // Only this program's own files have causes.
        let gate = cause
            .as_deref()
            .and_then(|cause| Gate::ALL.into_iter().find(|gate| cause.starts_with(&format!("{gate}: "))));
        let further = Vec::new();
        rows.push(Row { location, name, pair, status, cause, gate, further, figures, has_figures: !is_baseline });
    }
}

/// Factor of the table of latencies to nanoseconds, and what is wrong with its heading. The suite's heading says
/// seconds, and its endpoints print milliseconds.
fn latency_unit(declared: f64, medians: &[f64]) -> (f64, Option<String>) {
    const SECONDS: f64 = 1e9;
    const MILLISECONDS: f64 = 1e6;
    if declared != SECONDS || medians.is_empty() {
        return (declared, None);
    }
    let longest = medians.iter().copied().fold(0.0, f64::max);
    let is_plausible = |seconds: &f64| (PLAUSIBLE_ROUND_TRIP.0..=PLAUSIBLE_ROUND_TRIP.1).contains(seconds);
    let are_seconds_only =
        medians.iter().all(is_plausible) && medians.iter().any(|figure| !is_plausible(&(figure / 1e3)));
    if are_seconds_only {
        return (declared, None);
    }
    let evidence = match unit_factor(longest, PLAUSIBLE_ROUND_TRIP) {
        Some(_) => format!("a mean round trip of {} on one host is impossible, and ", format_time(longest)),
        None => String::new(),
    };
    let finding = format!(
        "the heading of the table of latencies says seconds: read as milliseconds, because {evidence}the suite's endpoints \
         print milliseconds"
    );
    (MILLISECONDS, Some(finding))
}

impl Figures {
    fn field(&mut self, column: &str) -> &mut Option<f64> {
        match column {
            "min" => &mut self.min,
            "q1" => &mut self.q1,
            "q3" => &mut self.q3,
            "max" => &mut self.max,
            "outliers" => &mut self.outliers,
            _ => &mut self.median,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLES: &str = "
# Performance Test Results

**Test Pass:** perf-1
- **Platform:** x86_64

### Upload Throughput (Gbps)

| Test | Min | Q1 | Median | Q3 | Max | Outliers |
|------|-----|-------|--------|-------|-----|----------|
| a x b (tcp, tls, yamux) | 0.94 | 0.94 | 0.95 | 0.96 | 0.97 | 2 |
| b x b (quic-v1) | null | null | null | null | null | 0 |

### Download Throughput (Gbps)

| Test | Min | Q1 | Median | Q3 | Max | Outliers |
|------|-----|-------|--------|-------|-----|----------|
| a x b (tcp, tls, yamux) | null | null | null | null | null | 0 |
| b x b (quic-v1) | null | null | null | null | null | 0 |

### Latency (seconds)

| Test | Min | Q1 | Median | Q3 | Max |
|---|---|---|---|---|---|
| a x b (tcp, tls, yamux) | 87.7 | 87.9 | 88.0 | 88.1 | 88.2 |
| b x b (quic-v1) | null | null | null | null | null |

## Baseline Results

### iperf x iperf (tcp)
- Status: pass

### a x b (tcp, tls, yamux)
- **Status:** ✅ pass
";

    #[test]
    fn tables_and_statuses_are_rows() {
        let results = parse(TABLES).unwrap();
        assert_eq!(results.provenance, [("test pass", "perf-1".to_owned()), ("platform", "x86_64".to_owned())]);
        let [baseline] = &results.baselines[..] else { panic!("{results:?}") };
        assert_eq!((baseline.name.as_str(), baseline.status.as_deref()), ("iperf x iperf (tcp)", Some("pass")));
        let [first, second] = &results.tests[..] else { panic!("{results:?}") };
        let upload = first.figures[0].as_ref().unwrap();
        assert_eq!(
            (upload.median, upload.outliers, first.status.as_deref()),
            (Some(0.95 * 125e6), Some(2.0), Some("pass"))
        );
        assert_eq!(first.figures[2].as_ref().unwrap().median, Some(88e6));
        assert_eq!((second.status.as_deref(), &second.figures), (None, &[None, None, None]));
        let [(Scenario::RoundTrip, finding)] = &results.findings[..] else { panic!("{results:?}") };
        assert!(finding.contains("88 s"), "{finding}");
    }

    #[test]
    fn latencies_are_milliseconds_unless_only_seconds_are_plausible() {
        assert_eq!(latency_unit(1e9, &[0.367, 88.0]).0, 1e6);
        assert_eq!(latency_unit(1e9, &[0.367]).0, 1e6);
        assert_eq!(latency_unit(1e9, &[0.000_367]), (1e9, None));
        assert_eq!(latency_unit(1e6, &[88.0]), (1e6, None));
    }

    #[test]
    fn a_cell_that_is_not_a_number_is_malformed() {
        let error = parse(&TABLES.replace("0.97", "fast")).unwrap_err();
        assert_eq!(error.to_string(), "invalid libp2p results: line 11: invalid max `fast`: expected a number or null");
        let error = parse(&TABLES.replace(" 0.96 | 0.97 | 2 |", "")).unwrap_err();
        assert_eq!(error.to_string(), "invalid libp2p results: line 11: expected 7 columns, found 4");
        let error = parse(TABLES.split("### Latency").next().unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "invalid libp2p results: no table of latency: the file may be truncated");
        let truncated = TABLES.split("| b x b (quic-v1) | null | null | null | null | null |\n").next().unwrap();
        let error = parse(truncated).unwrap_err();
        assert!(error.to_string().contains("`b x b (quic-v1)` is not in the table of latency"), "{error}");
    }
}
