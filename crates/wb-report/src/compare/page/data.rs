//! The whole table for the page's script: columns of JSON, deflated, in base 64. Browsers inflate it by themselves.

use std::io::{self, Write};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use indexmap::IndexSet;
use rayon::prelude::*;
use serde::{Serialize, Serializer};
use wb_compare::MeasuredValue;
use wb_compare::comparison::{BuildCheck, BuildHistory, ComparisonMethod, ParamDifference};
use wb_compare::statistical::{ObservationKind, RequiredSamples};
use wb_compare::tolerance::score::ScorePart;

use super::display_unit::DisplayUnit;
use super::figures::Datum;
use super::models;
use super::verdict_style::{VerdictStyle, verdict_styles};

/// Everything; lists are by check unless they say otherwise.
#[derive(Serialize)]
struct PageData<'a> {
    builds: Vec<&'a str>,
    /// The same, for columns.
    names: &'a [String],
    kinds: Vec<VerdictStyle>,
    ids: Vec<String>,
    /// `1` for each primary check, `0` for the others.
    primary: String,
    /// By what a difference is multiplied so that positive is better; 0 where neither way is.
    direction_sign: CompactList<i8>,
    tolerance: CompactList<Datum>,
    /// The least and the largest value that is tolerated.
    least: CompactList<Datum>,
    most: CompactList<Datum>,
    /// The models' files, and which of them know the check.
    models: &'a [String],
    model_indices: CompactList<Vec<usize>>,
    suffixes: Vec<String>,
    /// Which of them.
    suffix: CompactList<usize>,
    /// By build.
    values: Vec<CompactList<Datum>>,
    /// By later build.
    cells: Vec<BuildColumn>,
    /// The distinct sets of parameters that differ.
    differences: Vec<&'a [ParamDifference]>,
}

/// A later build. Ratios are differences in percent.
#[derive(Default, Serialize)]
struct BuildColumn {
    /// The place of each check's kind as a digit, `-` where neither side has the check.
    verdicts: String,
    /// `s` where statistics decide, `t` where tolerances do.
    methods: String,
    score: CompactList<Datum>,
    ratio: CompactList<Datum>,
    low: CompactList<Datum>,
    high: CompactList<Datum>,
    confidence: CompactList<Datum>,
    p: CompactList<Datum>,
    /// How many values the first build has, and how many this one.
    baseline_counts: CompactList<usize>,
    candidate_counts: CompactList<usize>,
    /// `r` where runs are ranked, `s` where samples are.
    unit: String,
    /// How many would decide, and the unit before it.
    required_samples: CompactList<Option<(char, Option<usize>, bool)>>,
    /// Only of scores with more than one part: the check, and of each part name, difference and weight.
    parts: Vec<(usize, Vec<EncodedScorePart>)>,
    /// Which set of parameters differs: the check and the set.
    differences: Vec<(usize, usize)>,
}

/// Name, difference and weight.
type EncodedScorePart = (String, Datum, Datum);

/// A list, written as one member where all are alike.
struct CompactList<T>(Vec<T>);

impl<T> Default for CompactList<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> FromIterator<T> for CompactList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(members: I) -> Self {
        Self(members.into_iter().collect())
    }
}

impl<T: Serialize + PartialEq> Serialize for CompactList<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let alike = self.0.windows(2).all(|pair| pair[0] == pair[1]);
        serializer.collect_seq(if alike { &self.0[..self.0.len().min(1)] } else { &self.0[..] })
    }
}

/// All of it as text.
pub(super) fn encode(history: &BuildHistory<'_>, names: &[String], fail_on_gain: bool) -> String {
    // 4 takes half of the time of the default level and makes the page 4 % larger.
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(4));
    let models = models::model_names(history);
    let data = PageData::of(history, names, &models, fail_on_gain);
    let written = serde_json::to_writer(io::BufWriter::new(&mut encoder), &data);
    let packed = written.map_err(io::Error::other).and_then(|()| encoder.flush()).and_then(|()| encoder.finish());
    // Neither writing to memory nor numbers and strings as JSON can go wrong.
    BASE64_STANDARD.encode(packed.unwrap_or_default())
}

impl<'a> PageData<'a> {
    fn of(history: &'a BuildHistory<'_>, names: &'a [String], models: &'a [String], fail_on_gain: bool) -> Self {
        let tolerances = history.tolerances;
        let checks = 0..tolerances.checks.len();
        let builds = history.builds.list();
        let measures: Vec<DisplayUnit> = checks.clone().map(|at| DisplayUnit::of(history, at)).collect();
        let mut suffixes = IndexSet::new();
        let suffix = measures.iter().map(|measure| suffixes.insert_full(measure.suffix.clone()).0).collect();
        let mut differences = IndexSet::new();
        let value = |at: usize, build| match tolerances.value(at, build) {
            MeasuredValue::Missing => Datum::None,
            MeasuredValue::Invalid => Datum::Word("invalid"),
            MeasuredValue::Known(value) => Datum::of(Some(value / measures[at].divisor), 6),
        };
        let values = (0..builds.len()).map(|build| checks.clone().map(|at| value(at, build)).collect());
        let columns: Vec<_> =
            (1..builds.len()).into_par_iter().map(|build| BuildColumn::of(history, models, build)).collect();
        let columns = columns.into_iter().map(|(mut column, differing)| {
            let placed = differing.into_iter().map(|(at, set)| (at, differences.insert_full(set).0));
            column.differences = placed.collect();
            column
        });
        let cells = columns.collect();
        let limits: Vec<_> = checks.clone().map(|at| tolerances.limits(at)).collect();
        let end = |of: fn((f64, f64)) -> f64| {
            let ends = limits
                .iter()
                .zip(&measures)
                .map(|(limits, measure)| limits.range.map(|range| of(range) / measure.divisor));
            ends.map(|end| Datum::of(end, 6)).collect()
        };
        Self {
            builds: builds.iter().map(|build| build.name.as_str()).collect(),
            names,
            kinds: verdict_styles(fail_on_gain).to_vec(),
            ids: checks.clone().map(|at| tolerances.id(at).to_string()).collect(),
            primary: tolerances.checks.iter().map(|check| if check.primary { '1' } else { '0' }).collect(),
            direction_sign: tolerances
                .checks
                .iter()
                .map(|check| tolerances.sign(*check).unwrap_or(0.0) as i8)
                .collect(),
            tolerance: checks.clone().map(|at| Datum::of(Some(tolerances.tolerance(at)), 4)).collect(),
            least: end(|range| range.0),
            most: end(|range| range.1),
            models,
            model_indices: limits.iter().map(|limits| limits.models.clone()).collect(),
            suffixes: suffixes.into_iter().collect(),
            suffix,
            values: values.collect(),
            cells,
            differences: differences.into_iter().collect(),
        }
    }
}

/// The checks whose parameters differ, with these.
type DifferingChecks<'a> = Vec<(usize, &'a [ParamDifference])>;

impl BuildColumn {
    fn of<'a>(history: &'a BuildHistory<'_>, models: &[String], build: usize) -> (Self, DifferingChecks<'a>) {
        let (mut column, mut differing) = (Self::default(), Vec::new());
        for at in 0..history.tolerances.checks.len() {
            let judged = history.build_check(at, build);
            column.add(judged);
            let parts = history.tolerances.parts(at, build);
            if parts.len() > 1 {
                column.parts.push((at, parts.iter().map(|it| encode_score_part(it, models)).collect()));
            }
            let differences = judged.map(|judged| judged.differences);
            differing.extend(differences.filter(|set| !set.is_empty()).map(|set| (at, set)));
        }
        (column, differing)
    }

    fn add(&mut self, judged: Option<BuildCheck<'_>>) {
        let found = judged.and_then(|judged| judged.by_statistics);
        let effect = found.and_then(|found| found.effect);
        let interval = effect.and_then(|effect| effect.interval);
        let percent = |ratio: Option<f64>| Datum::percent(ratio.map(|ratio| (ratio - 1.0) * 100.0));
        self.verdicts.push(judged.map_or('-', |judged| char::from(b'0' + judged.final_verdict as u8)));
        self.methods.push(if judged.is_some_and(|it| it.decided_by == ComparisonMethod::Statistical) {
            's'
        } else {
            't'
        });
        self.score.0.push(Datum::percent(judged.and_then(|judged| judged.by_tolerance.score)));
        self.ratio.0.push(percent(effect.map(|effect| effect.estimate)));
        self.low.0.push(percent(interval.map(|interval| interval.low)));
        self.high.0.push(percent(interval.map(|interval| interval.high)));
        self.confidence.0.push(Datum::of(interval.map(|interval| interval.confidence), 4));
        self.p.0.push(Datum::of(found.and_then(|found| found.p), 3));
        let units = found.map(|found| found.units);
        self.baseline_counts.0.push(units.map_or(0, |units| units.src));
        self.candidate_counts.0.push(units.map_or(0, |units| units.dst));
        self.unit.push(units.map_or('s', |units| unit_letter(units.unit)));
        self.required_samples.0.push(
            found
                .and_then(|found| found.required_samples)
                .map(|RequiredSamples { unit, per_side: each, is_minimum: fewest }| (unit_letter(unit), each, fewest)),
        );
    }
}

fn encode_score_part(part: &ScorePart, models: &[String]) -> (String, Datum, Datum) {
    (models::term_name(part.term, models), Datum::percent(Some(part.difference)), Datum::of(Some(part.weight), 4))
}

fn unit_letter(unit: ObservationKind) -> char {
    match unit {
        ObservationKind::Samples => 's',
        ObservationKind::Runs => 'r',
    }
}
