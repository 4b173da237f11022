//! The whole table for the page's script: columns of JSON, deflated, in base 64. Browsers inflate it by themselves.

use std::io::{self, Write};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use indexmap::IndexSet;
use rayon::prelude::*;
use serde::{Serialize, Serializer};
use wb_compare::Value;
use wb_compare::outcome::{Difference, History, Judged, Method};
use wb_compare::statistical::{Needs, Unit};
use wb_compare::tolerance::score::Part;

use super::figures::Datum;
use super::kinds::{Kind, kinds};
use super::measure::Measure;
use super::models;

/// Everything; lists are by check unless they say otherwise.
#[derive(Serialize)]
struct Data<'a> {
    builds: Vec<&'a str>,
    /// The same, for columns.
    names: &'a [String],
    kinds: Vec<Kind>,
    ids: Vec<String>,
    /// `1` for each primary check, `0` for the others.
    primary: String,
    /// By what a difference is multiplied so that positive is better; 0 where neither way is.
    sense: List<i8>,
    tolerance: List<Datum>,
    /// The least and the largest value that is tolerated.
    least: List<Datum>,
    most: List<Datum>,
    /// The models' files, and which of them know the check.
    models: &'a [String],
    known_by: List<Vec<usize>>,
    suffixes: Vec<String>,
    /// Which of them.
    suffix: List<usize>,
    /// By build.
    values: Vec<List<Datum>>,
    /// By later build.
    cells: Vec<Column>,
    /// The distinct sets of parameters that differ.
    differences: Vec<&'a [Difference]>,
}

/// A later build. Ratios are differences in percent.
#[derive(Default, Serialize)]
struct Column {
    /// The place of each check's kind as a digit, `-` where neither side has the check.
    decided: String,
    /// `s` where statistics decide, `t` where tolerances do.
    by: String,
    score: List<Datum>,
    ratio: List<Datum>,
    low: List<Datum>,
    high: List<Datum>,
    confidence: List<Datum>,
    p: List<Datum>,
    /// How many values the first build has, and how many this one.
    before: List<usize>,
    after: List<usize>,
    /// `r` where runs are ranked, `s` where samples are.
    unit: String,
    /// How many would decide, and the unit before it.
    needs: List<Option<(char, Option<usize>, bool)>>,
    /// Only of scores with more than one part: the check, and of each part name, difference and weight.
    parts: Vec<(usize, Vec<PartOfScore>)>,
    /// Which set of parameters differs: the check and the set.
    differences: Vec<(usize, usize)>,
}

/// Name, difference and weight.
type PartOfScore = (String, Datum, Datum);

/// A list, written as one member where all are alike.
struct List<T>(Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(members: I) -> Self {
        Self(members.into_iter().collect())
    }
}

impl<T: Serialize + PartialEq> Serialize for List<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let alike = self.0.windows(2).all(|pair| pair[0] == pair[1]);
        serializer.collect_seq(if alike { &self.0[..self.0.len().min(1)] } else { &self.0[..] })
    }
}

/// All of it as text.
pub(super) fn packed(history: &History<'_>, names: &[String], fail_on_gain: bool) -> String {
    // 4 takes half of the time of the default level and makes the page 4 % larger.
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(4));
    let models = models::names(history);
    let data = Data::of(history, names, &models, fail_on_gain);
    let written = serde_json::to_writer(io::BufWriter::new(&mut encoder), &data);
    let packed = written.map_err(io::Error::other).and_then(|()| encoder.flush()).and_then(|()| encoder.finish());
    // Neither writing to memory nor numbers and strings as JSON can go wrong.
    BASE64_STANDARD.encode(packed.unwrap_or_default())
}

impl<'a> Data<'a> {
    fn of(history: &'a History<'_>, names: &'a [String], models: &'a [String], fail_on_gain: bool) -> Self {
        let tolerances = history.tolerances;
        let checks = 0..tolerances.checks.len();
        let builds = history.builds.list();
        let measures: Vec<Measure> = checks.clone().map(|at| Measure::of(history, at)).collect();
        let mut suffixes = IndexSet::new();
        let suffix = measures.iter().map(|measure| suffixes.insert_full(measure.suffix.clone()).0).collect();
        let mut differences = IndexSet::new();
        let value = |at: usize, build| match tolerances.value(at, build) {
            Value::Missing => Datum::None,
            Value::Invalid => Datum::Word("invalid"),
            Value::Known(value) => Datum::of(Some(value / measures[at].divisor), 6),
        };
        let values = (0..builds.len()).map(|build| checks.clone().map(|at| value(at, build)).collect());
        let columns: Vec<_> =
            (1..builds.len()).into_par_iter().map(|build| Column::of(history, models, build)).collect();
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
            kinds: kinds(fail_on_gain).to_vec(),
            ids: checks.clone().map(|at| tolerances.id(at).to_string()).collect(),
            primary: tolerances.checks.iter().map(|check| if check.primary { '1' } else { '0' }).collect(),
            sense: tolerances.checks.iter().map(|check| tolerances.sense(*check).unwrap_or(0.0) as i8).collect(),
            tolerance: checks.clone().map(|at| Datum::of(Some(tolerances.tolerance(at)), 4)).collect(),
            least: end(|range| range.0),
            most: end(|range| range.1),
            models,
            known_by: limits.iter().map(|limits| limits.models.clone()).collect(),
            suffixes: suffixes.into_iter().collect(),
            suffix,
            values: values.collect(),
            cells,
            differences: differences.into_iter().collect(),
        }
    }
}

/// The checks whose parameters differ, with these.
type Differing<'a> = Vec<(usize, &'a [Difference])>;

impl Column {
    fn of<'a>(history: &'a History<'_>, models: &[String], build: usize) -> (Self, Differing<'a>) {
        let (mut column, mut differing) = (Self::default(), Vec::new());
        for at in 0..history.tolerances.checks.len() {
            let judged = history.judged(at, build);
            column.add(judged);
            let parts = history.tolerances.parts(at, build);
            if parts.len() > 1 {
                column.parts.push((at, parts.iter().map(|it| part(it, models)).collect()));
            }
            let differences = judged.map(|judged| judged.differences);
            differing.extend(differences.filter(|set| !set.is_empty()).map(|set| (at, set)));
        }
        (column, differing)
    }

    fn add(&mut self, judged: Option<Judged<'_>>) {
        let found = judged.and_then(|judged| judged.by_statistics);
        let effect = found.and_then(|found| found.effect);
        let interval = effect.and_then(|effect| effect.interval);
        let percent = |ratio: Option<f64>| Datum::percent(ratio.map(|ratio| (ratio - 1.0) * 100.0));
        self.decided.push(judged.map_or('-', |judged| char::from(b'0' + judged.decided as u8)));
        self.by.push(if judged.is_some_and(|it| it.decided_by == Method::Statistical) { 's' } else { 't' });
        self.score.0.push(Datum::percent(judged.and_then(|judged| judged.by_tolerance.score)));
        self.ratio.0.push(percent(effect.map(|effect| effect.estimate)));
        self.low.0.push(percent(interval.map(|interval| interval.low)));
        self.high.0.push(percent(interval.map(|interval| interval.high)));
        self.confidence.0.push(Datum::of(interval.map(|interval| interval.confidence_reached), 4));
        self.p.0.push(Datum::of(found.and_then(|found| found.p), 3));
        let units = found.map(|found| found.units);
        self.before.0.push(units.map_or(0, |units| units.src));
        self.after.0.push(units.map_or(0, |units| units.dst));
        self.unit.push(units.map_or('s', |units| letter(units.unit)));
        self.needs
            .0
            .push(found.and_then(|found| found.needs).map(|Needs { unit, each, fewest }| (letter(unit), each, fewest)));
    }
}

fn part(part: &Part, models: &[String]) -> (String, Datum, Datum) {
    (models::term(part.term, models), Datum::percent(Some(part.difference)), Datum::of(Some(part.weight), 4))
}

fn letter(unit: Unit) -> char {
    match unit {
        Unit::Samples => 's',
        Unit::Runs => 'r',
    }
}
