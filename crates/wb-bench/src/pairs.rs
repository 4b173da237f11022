//! Benchmarks two commands alternately and judges the ratio of their figures.

use crate::document::DocumentRow;
use rand::Rng;
use serde::Serialize;
use std::fmt;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use wb_stats::{PairedRatio, Samples, paired_ratio};

/// Minimum lower bound of the ratio's interval for "not slower".
const NOT_SLOWER: f64 = 0.97;

/// An interval is narrow enough if its upper end is at most this multiple of the lower one.
const NARROW: f64 = 1.04;

/// A paired benchmark: our side, the peer's side, and the unit of their figures. Higher is better.
pub(crate) struct PairedBenchmark<'a> {
    pub(crate) name: String,
    unit: &'static str,
    sides: Box<PrepareSides<'a>>,
}

/// Prepares our side and the peer's side, or returns the reason why it cannot.
type PrepareSides<'a> = dyn FnOnce() -> Result<(BenchSide, BenchSide), String> + 'a;

/// One side of a benchmark: a command that prints a figure.
pub(crate) struct BenchSide {
    name: String,
    command: Vec<String>,
    env: Vec<(String, String)>,
    unset: &'static [&'static str],
    folder: Option<PathBuf>,
    figure: Box<FigureParser>,
    rejected: Vec<RejectedCandidate>,
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RejectedCandidate {
    Slower { name: String, median: f64 },
    Unavailable { name: String, cause: String },
}

/// Parses the figure from standard output, then standard error.
type FigureParser = dyn Fn(&str) -> Option<f64>;

impl<'a> PairedBenchmark<'a> {
    /// `sides` prepares both sides when the benchmark is run, or returns the reason why it cannot.
    pub(crate) fn new(
        name: String,
        unit: &'static str,
        sides: impl FnOnce() -> Result<(BenchSide, BenchSide), String> + 'a,
    ) -> Self {
        Self { name, unit, sides: Box::new(sides) }
    }
}

impl BenchSide {
    pub(crate) fn new(name: &str, command: Vec<String>, figure: impl Fn(&str) -> Option<f64> + 'static) -> Self {
        let (env, rejected) = (Vec::new(), Vec::new());
        Self { name: name.to_owned(), command, env, unset: &[], folder: None, figure: Box::new(figure), rejected }
    }

    /// The fastest of several sides, by the median of three figures each, measured alternately; it lists the others.
    /// Fails with the cause of each if none can be measured.
    pub(crate) fn fastest(candidates: Vec<Result<Self, RejectedCandidate>>) -> Result<Self, String> {
        let (mut available, mut others) = (Vec::new(), Vec::new());
        for candidate in candidates {
            match candidate {
                Ok(side) => available.push((side, Vec::new())),
                Err(other) => others.push(other),
            }
        }
        for _ in 0..3 {
            let mut measured = Vec::new();
            for (side, mut figures) in available {
                match side.measure() {
                    Ok(figure) => {
                        figures.push(figure);
                        measured.push((side, figures));
                    }
                    Err(cause) => others.push(RejectedCandidate::Unavailable { name: side.name, cause }),
                }
            }
            available = measured;
        }
        let mut ranked = Vec::new();
        for (side, figures) in available {
            ranked.push((Samples::new(&figures).map_err(|error| error.to_string())?.median(), side));
        }
        ranked.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        let mut ranked = ranked.into_iter();
        let Some((_, mut fastest)) = ranked.next() else {
            return Err(others.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "));
        };
        fastest.rejected = ranked.map(|(median, side)| RejectedCandidate::Slower { name: side.name, median }).collect();
        fastest.rejected.append(&mut others);
        Ok(fastest)
    }

    pub(crate) fn unset(mut self, names: &'static [&'static str]) -> Self {
        self.unset = names;
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn in_folder(mut self, folder: PathBuf) -> Self {
        self.folder = Some(folder);
        self
    }

    fn measure(&self) -> Result<f64, String> {
        let (program, arguments) = self.command.split_first().ok_or("the command is empty")?;
        let mut command = Command::new(program);
        command.args(arguments);
        for name in self.unset {
            command.env_remove(name);
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        let output = command.output().map_err(|error| format!("{program}: {error}"))?;
        let text = [&output.stdout[..], &output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        if !output.status.success() {
            return Err(format!("{program}: {}: {}", output.status, text.trim()));
        }
        let figure = (self.figure)(&text).filter(|figure| figure.is_finite() && *figure > 0.0);
        figure.ok_or_else(|| format!("{program}: no figure in its output: {}", text.trim()))
    }
}

pub(crate) fn json_figure(key: &'static str) -> impl Fn(&str) -> Option<f64> {
    move |output| serde_json::from_str::<serde_json::Value>(output.lines().next()?).ok()?[key].as_f64()
}

pub(crate) struct PairRunner {
    /// Pairs of each benchmark, at least.
    pub(crate) pairs: u32,
    /// Maximum number of pairs, for benchmarks whose interval is still too wide.
    pub(crate) max_pairs: u32,
}

#[derive(Serialize)]
pub(crate) struct PairResult {
    name: String,
    unit: &'static str,
    outcome: PairOutcome,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum PairOutcome {
    Compared { ours: SideResult, peer: SideResult, ratio: PairedRatio, verdict: PairVerdict },
    Skipped { reason: String },
}

#[derive(Serialize)]
struct SideResult {
    name: String,
    median: f64,
    figures: Vec<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rejected: Vec<RejectedCandidate>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum PairVerdict {
    Ok,
    /// Slower, or not proven to be not slower.
    Missed,
}

impl PairResult {
    /// The result as a row; `None` if it could not be measured.
    pub(crate) fn row(&self) -> Option<DocumentRow> {
        let PairOutcome::Compared { peer, ratio, verdict, .. } = &self.outcome else { return None };
        Some(DocumentRow {
            name: self.name.clone(),
            result: format!("{} of {}", format_ratio(ratio), peer.name),
            verdict: verdict.to_string(),
            repetitions: format!("{} pairs", ratio.n),
        })
    }
}

impl PairRunner {
    /// Warms up both sides once, then measures the pairs, each in random order.
    pub(crate) fn run(&self, row: PairedBenchmark<'_>) -> PairResult {
        let outcome = (row.sides)().and_then(|sides| self.compare(&row.name, sides));
        clear_progress();
        let outcome = outcome.unwrap_or_else(|reason| PairOutcome::Skipped { reason });
        PairResult { name: row.name, unit: row.unit, outcome }
    }

    fn compare(&self, name: &str, (ours, peer): (BenchSide, BenchSide)) -> Result<PairOutcome, String> {
        ours.measure()?;
        peer.measure()?;
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for pair in 1..=self.max_pairs.max(self.pairs) {
            if pair > self.pairs && is_narrow(&paired_ratio(&a, &b).map_err(|error| error.to_string())?) {
                break;
            }
            if rand::rng().random() {
                a.push(ours.measure()?);
                b.push(peer.measure()?);
            } else {
                b.push(peer.measure()?);
                a.push(ours.measure()?);
            }
            print_progress(name, pair, self.max_pairs.max(self.pairs));
        }
        let ratio = paired_ratio(&a, &b).map_err(|error| error.to_string())?;
        let verdict = judge(&ratio);
        Ok(PairOutcome::Compared { ours: SideResult::new(ours, a)?, peer: SideResult::new(peer, b)?, ratio, verdict })
    }
}

impl SideResult {
    fn new(side: BenchSide, figures: Vec<f64>) -> Result<Self, String> {
        let median = Samples::new(&figures).map_err(|error| error.to_string())?.median();
        Ok(Self { name: side.name, median, figures, rejected: side.rejected })
    }
}

fn is_narrow(ratio: &PairedRatio) -> bool {
    ratio.interval.as_ref().is_some_and(|interval| interval.high <= interval.low * NARROW)
}

fn judge(ratio: &PairedRatio) -> PairVerdict {
    match &ratio.interval {
        Some(interval) if interval.low >= NOT_SLOWER => PairVerdict::Ok,
        _ => PairVerdict::Missed,
    }
}

fn print_progress(name: &str, pair: u32, pairs: u32) {
    let mut out = std::io::stderr().lock();
    if std::io::IsTerminal::is_terminal(&out) {
        // Measuring continues if progress cannot be printed.
        let _ = write!(out, "\r{name}: pair {pair} of at most {pairs}");
        let _ = out.flush();
    }
}

fn clear_progress() {
    let mut out = std::io::stderr().lock();
    if std::io::IsTerminal::is_terminal(&out) {
        // As above.
        let _ = write!(out, "\r\x1b[K");
        let _ = out.flush();
    }
}

fn format_ratio(ratio: &PairedRatio) -> String {
    match &ratio.interval {
        Some(interval) => {
            let wide = if is_narrow(ratio) { "" } else { ", wider than 4 %" };
            format!("{:.3} [{:.3}, {:.3}{wide}]", ratio.median, interval.low, interval.high)
        }
        None => format!("{:.3} [no interval below 6 pairs]", ratio.median),
    }
}

impl fmt::Display for PairVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "ok",
            Self::Missed => "missed",
        })
    }
}

impl fmt::Display for RejectedCandidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slower { name, median } => write!(f, "{name}: slower, {median:.0}"),
            Self::Unavailable { name, cause } => write!(f, "{name}: unavailable: {cause}"),
        }
    }
}

impl fmt::Display for PairResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, unit, outcome } = self;
        match outcome {
            PairOutcome::Skipped { reason } => write!(f, "{name}: SKIPPED: {reason}"),
            PairOutcome::Compared { ours, peer, ratio, verdict } => {
                writeln!(
                    f,
                    "{name}: {} {:.0} {unit}, {} {:.0} {unit}, {} pairs",
                    ours.name, ours.median, peer.name, peer.median, ratio.n
                )?;
                for other in ours.rejected.iter().chain(&peer.rejected) {
                    writeln!(f, "{name}: {other}")?;
                }
                write!(f, "{name}: ratio {} {verdict}", format_ratio(ratio))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(name: &str, script: &str) -> BenchSide {
        let command = ["sh", "-c", script].map(str::to_owned).to_vec();
        BenchSide::new(name, command, |output| output.trim().parse().ok())
    }

    fn judged(a: &str, b: &str, pairs: u32) -> String {
        PairRunner { pairs, max_pairs: pairs }
            .run(PairedBenchmark::new("row".into(), "u/s", || Ok((side("a", a), side("b", b)))))
            .to_string()
    }

    #[test]
    fn a_side_that_is_as_fast_is_ok_and_a_slower_one_misses_the_goal() {
        assert_eq!(
            judged("echo 99", "echo 100", 6),
            "row: a 99 u/s, b 100 u/s, 6 pairs\nrow: ratio 0.990 [0.990, 0.990] ok"
        );
        assert!(judged("echo 96", "echo 100", 6).ends_with("missed"));
    }

    #[test]
    fn too_few_pairs_prove_nothing() {
        assert!(judged("echo 200", "echo 100", 5).ends_with("ratio 2.000 [no interval below 6 pairs] missed"));
    }

    #[test]
    fn a_failing_side_or_one_without_a_figure_is_skipped_with_the_reason() {
        assert_eq!(judged("echo 1", "echo broken; exit 3", 6), "row: SKIPPED: sh: exit status: 3: broken");
        assert_eq!(judged("echo nan", "echo 1", 6), "row: SKIPPED: sh: no figure in its output: nan");
    }

    #[test]
    fn the_fastest_of_several_is_the_peer_and_the_others_are_listed_with_it() {
        let missing = RejectedCandidate::Unavailable { name: "d".into(), cause: "no wheel".into() };
        let candidates =
            vec![Ok(side("a", "echo 10")), Ok(side("b", "echo 30")), Ok(side("c", "exit 3")), Err(missing)];
        let peer = BenchSide::fastest(candidates).unwrap();
        let row = PairedBenchmark::new("row".into(), "u/s", || Ok((side("ours", "echo 60"), peer)));
        assert_eq!(
            PairRunner { pairs: 6, max_pairs: 6 }.run(row).to_string(),
            "row: ours 60 u/s, b 30 u/s, 6 pairs\nrow: a: slower, 10\nrow: d: unavailable: no wheel\n\
             row: c: unavailable: sh: exit status: 3: \nrow: ratio 2.000 [2.000, 2.000] ok"
        );
        let error = BenchSide::fastest(vec![Ok(side("c", "exit 3"))]).err().unwrap();
        assert_eq!(error, "c: unavailable: sh: exit status: 3: ");
    }

    #[test]
    fn an_unset_variable_of_this_process_does_not_reach_the_command() {
        // `cargo test` sets it.
        let side = || side("a", "[ -z \"$CARGO_MANIFEST_DIR\" ] && echo 1 || echo 2");
        assert_eq!(side().measure(), Ok(2.0));
        assert_eq!(side().unset(&["CARGO_MANIFEST_DIR"]).measure(), Ok(1.0));
    }

    #[test]
    fn the_environment_and_the_folder_reach_the_command() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("figure"), "4").unwrap();
        let side = side("a", "echo $(cat figure)$TWO").env("TWO", "2").in_folder(folder.path().to_owned());
        assert_eq!(side.measure(), Ok(42.0));
    }
}
