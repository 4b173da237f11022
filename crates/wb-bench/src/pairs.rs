//! Two subjects in turn, pair by pair, and what their ratio says.

use rand::Rng;
use serde::Serialize;
use std::{fmt, io::Write, path::PathBuf, process::Command};
use wb_stats::{PairedRatio, Samples, paired_ratio};

/// "Not slower": the lower bound of the ratio's interval reaches this.
const NOT_SLOWER: f64 = 0.97;

/// One comparison: our side, the peer's, and the unit of their figures. Higher is better.
pub(crate) struct PairedBenchmark<'a> {
    pub(crate) name: String,
    unit: &'static str,
    sides: Box<PrepareSides<'a>>,
}

/// Prepares ours and the peer's side, or says why there is none.
type PrepareSides<'a> = dyn FnOnce() -> Result<(BenchSide, BenchSide), String> + 'a;

/// One side of a row: a command that prints a figure.
pub(crate) struct BenchSide {
    name: String,
    command: Vec<String>,
    env: Vec<(String, String)>,
    unset: &'static [&'static str],
    folder: Option<PathBuf>,
    figure: Box<FigureParser>,
    rejected: Vec<RejectedCandidate>,
}

/// What could have been a side, and is not.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RejectedCandidate {
    /// It was slower than the side that was chosen.
    Slower { name: String, median: f64 },
    /// It could not be prepared or measured.
    Unavailable { name: String, cause: String },
}

/// Finds the figure in what a command printed (standard output, then standard error).
type FigureParser = dyn Fn(&str) -> Option<f64>;

impl<'a> PairedBenchmark<'a> {
    /// `sides` prepares ours and the peer's when the row's turn comes, or says why there is none.
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

    /// The fastest of several by the median of three figures each, taken alternately; the others are listed with it.
    ///
    /// # Errors
    /// Where none can be measured, with the cause of each.
    pub(crate) fn fastest(candidates: Vec<Result<Self, RejectedCandidate>>) -> Result<Self, String> {
        let (mut found, mut others) = (Vec::new(), Vec::new());
        for candidate in candidates {
            match candidate {
                Ok(side) => found.push((side, Vec::new())),
                Err(other) => others.push(other),
            }
        }
        for _ in 0..3 {
            let mut measured = Vec::new();
            for (side, mut figures) in found {
                match side.measure() {
                    Ok(figure) => {
                        figures.push(figure);
                        measured.push((side, figures));
                    }
                    Err(cause) => others.push(RejectedCandidate::Unavailable { name: side.name, cause }),
                }
            }
            found = measured;
        }
        let mut ranked = Vec::new();
        for (side, figures) in found {
            ranked.push((Samples::new(&figures).map_err(|error| error.to_string())?.median(), side));
        }
        ranked.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        let mut ranked = ranked.into_iter();
        let Some((_, mut first)) = ranked.next() else {
            return Err(others.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "));
        };
        first.rejected = ranked.map(|(median, side)| RejectedCandidate::Slower { name: side.name, median }).collect();
        first.rejected.append(&mut others);
        Ok(first)
    }

    /// Leaves variables of this process out of the command's environment.
    pub(crate) fn unset(mut self, names: &'static [&'static str]) -> Self {
        self.unset = names;
        self
    }

    /// Sets an environment variable of the command.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs the command in a folder.
    pub(crate) fn in_folder(mut self, folder: PathBuf) -> Self {
        self.folder = Some(folder);
        self
    }

    fn measure(&self) -> Result<f64, String> {
        let (program, arguments) = self.command.split_first().ok_or("an empty command")?;
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
        let printed = [&output.stdout[..], &output.stderr].concat();
        let printed = String::from_utf8_lossy(&printed);
        if !output.status.success() {
            return Err(format!("{program}: {}: {}", output.status, printed.trim()));
        }
        let figure = (self.figure)(&printed).filter(|figure| figure.is_finite() && *figure > 0.0);
        figure.ok_or_else(|| format!("{program} printed no figure: {}", printed.trim()))
    }
}

/// The figure of a key of a JSON object.
pub(crate) fn json_figure(key: &'static str) -> impl Fn(&str) -> Option<f64> {
    move |printed| serde_json::from_str::<serde_json::Value>(printed.lines().next()?).ok()?[key].as_f64()
}

/// How rows are run.
pub(crate) struct PairRunner {
    pub(crate) pairs: u32,
}

/// A row that has been run.
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
    Skipped { why: String },
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
    /// Not slower than the peer.
    Ok,
    /// Slower, or not shown to be not slower.
    Slower,
}

impl PairRunner {
    /// Warms both sides up once, then takes the pairs, each in random order.
    pub(crate) fn run(&self, row: PairedBenchmark<'_>) -> PairResult {
        let outcome = (row.sides)().and_then(|sides| self.compare(&row.name, sides));
        let outcome = outcome.unwrap_or_else(|why| PairOutcome::Skipped { why });
        PairResult { name: row.name, unit: row.unit, outcome }
    }

    fn compare(&self, name: &str, (ours, peer): (BenchSide, BenchSide)) -> Result<PairOutcome, String> {
        ours.measure()?;
        peer.measure()?;
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for pair in 1..=self.pairs {
            if rand::rng().random() {
                a.push(ours.measure()?);
                b.push(peer.measure()?);
            } else {
                b.push(peer.measure()?);
                a.push(ours.measure()?);
            }
            print_progress(name, pair, self.pairs);
        }
        let ratio = paired_ratio(&a, &b).map_err(|error| error.to_string())?;
        let verdict = judge(&ratio);
        Ok(PairOutcome::Compared { ours: SideResult::of(ours, a)?, peer: SideResult::of(peer, b)?, ratio, verdict })
    }
}

impl SideResult {
    fn of(side: BenchSide, figures: Vec<f64>) -> Result<Self, String> {
        let median = Samples::new(&figures).map_err(|error| error.to_string())?.median();
        Ok(Self { name: side.name, median, figures, rejected: side.rejected })
    }
}

fn judge(ratio: &PairedRatio) -> PairVerdict {
    match &ratio.interval {
        Some(interval) if interval.low >= NOT_SLOWER => PairVerdict::Ok,
        _ => PairVerdict::Slower,
    }
}

fn print_progress(name: &str, pair: u32, pairs: u32) {
    let mut out = std::io::stderr().lock();
    if std::io::IsTerminal::is_terminal(&out) {
        let end = if pair == pairs { "\r\x1b[K" } else { "" };
        // Progress that cannot be drawn is no reason to stop measuring.
        let _ = write!(out, "\r{name}: pair {pair} of {pairs}{end}");
        let _ = out.flush();
    }
}

impl fmt::Display for RejectedCandidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slower { name, median } => write!(f, "{name}: slower, {median:.0}"),
            Self::Unavailable { name, cause } => write!(f, "{name}: not available: {cause}"),
        }
    }
}

impl fmt::Display for PairResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, unit, outcome } = self;
        match outcome {
            PairOutcome::Skipped { why } => write!(f, "{name}: SKIPPED: {why}"),
            PairOutcome::Compared { ours, peer, ratio, verdict } => {
                writeln!(
                    f,
                    "{name}: {} {:.0} {unit}, {} {:.0} {unit}, {} pairs",
                    ours.name, ours.median, peer.name, peer.median, ratio.n
                )?;
                for other in ours.rejected.iter().chain(&peer.rejected) {
                    writeln!(f, "{name}: {other}")?;
                }
                write!(f, "{name}: ratio a/b {:.3} ", ratio.median)?;
                match &ratio.interval {
                    Some(interval) => write!(f, "[{:.3}, {:.3}] ", interval.low, interval.high)?,
                    None => write!(f, "[no interval below 6 pairs] ")?,
                }
                write!(f, "{}", if *verdict == PairVerdict::Ok { "ok" } else { "short" })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(name: &str, script: &str) -> BenchSide {
        let command = ["sh", "-c", script].map(str::to_owned).to_vec();
        BenchSide::new(name, command, |printed| printed.trim().parse().ok())
    }

    fn judged(a: &str, b: &str, pairs: u32) -> String {
        PairRunner { pairs }
            .run(PairedBenchmark::new("row".into(), "u/s", || Ok((side("a", a), side("b", b)))))
            .to_string()
    }

    #[test]
    fn a_side_that_is_as_fast_is_ok_and_one_that_is_not_is_short() {
        assert_eq!(
            judged("echo 99", "echo 100", 6),
            "row: a 99 u/s, b 100 u/s, 6 pairs\nrow: ratio a/b 0.990 [0.990, 0.990] ok"
        );
        assert!(judged("echo 96", "echo 100", 6).ends_with("short"));
    }

    #[test]
    fn too_few_pairs_prove_nothing() {
        assert!(judged("echo 200", "echo 100", 5).ends_with("ratio a/b 2.000 [no interval below 6 pairs] short"));
    }

    #[test]
    fn a_side_that_fails_or_prints_no_figure_is_skipped_with_the_reason() {
        assert_eq!(judged("echo 1", "echo broken; exit 3", 6), "row: SKIPPED: sh: exit status: 3: broken");
        assert_eq!(judged("echo nan", "echo 1", 6), "row: SKIPPED: sh printed no figure: nan");
    }

    #[test]
    fn the_fastest_of_several_is_the_peer_and_the_others_are_listed_with_it() {
        let missing = RejectedCandidate::Unavailable { name: "d".into(), cause: "no wheel".into() };
        let candidates =
            vec![Ok(side("a", "echo 10")), Ok(side("b", "echo 30")), Ok(side("c", "exit 3")), Err(missing)];
        let peer = BenchSide::fastest(candidates).unwrap();
        let row = PairedBenchmark::new("row".into(), "u/s", || Ok((side("ours", "echo 60"), peer)));
        assert_eq!(
            PairRunner { pairs: 6 }.run(row).to_string(),
            "row: ours 60 u/s, b 30 u/s, 6 pairs\nrow: a: slower, 10\nrow: d: not available: no wheel\n\
             row: c: not available: sh: exit status: 3: \nrow: ratio a/b 2.000 [2.000, 2.000] ok"
        );
        let error = BenchSide::fastest(vec![Ok(side("c", "exit 3"))]).err().unwrap();
        assert_eq!(error, "c: not available: sh: exit status: 3: ");
    }

    #[test]
    fn a_variable_of_this_process_that_is_unset_does_not_reach_the_command() {
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
