//! The whole table for the page's script: columns of JSON, deflated, in base 64. Browsers inflate it by themselves.

use std::io::{self, Write};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use indexmap::IndexSet;
use serde::Serialize;
use wb_compare::Value;
use wb_compare::outcome::{Difference, History, Judged, Method};
use wb_compare::statistical::{Needs, Unit};

use super::figures::Datum;
use super::kinds::{Kind, kinds};
use super::measure::Measure;

/// Everything; lists are by check unless they say otherwise.
#[derive(Serialize)]
struct Data<'a> {
    builds: Vec<&'a str>,
    kinds: Vec<Kind>,
    ids: Vec<String>,
    /// `1` for each primary check, `0` for the others.
    primary: String,
    /// By what a difference is multiplied so that positive is better; 0 where neither way is.
    sense: Vec<i8>,
    tolerance: Vec<Datum>,
    suffixes: Vec<String>,
    /// Which of them.
    suffix: Vec<usize>,
    /// By build.
    values: Vec<Vec<Datum>>,
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
    score: Vec<Datum>,
    ratio: Vec<Datum>,
    low: Vec<Datum>,
    high: Vec<Datum>,
    confidence: Vec<Datum>,
    p: Vec<Datum>,
    n: [Vec<usize>; 2],
    /// `r` where runs are ranked, `s` where samples are.
    unit: String,
    needs: Vec<Needed>,
    /// Only of scores with more than one part: the check, and of each part name, difference and weight.
    parts: Vec<(usize, Vec<(String, Datum, Datum)>)>,
    /// Which set of parameters differs: the check and the set.
    differences: Vec<(usize, usize)>,
}

/// How many would decide; the unit before it.
type Needed = Option<(char, Option<usize>)>;

/// All of it as text.
pub(super) fn packed(history: &History<'_>, fail_on_gain: bool) -> String {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    let written = serde_json::to_writer(io::BufWriter::new(&mut encoder), &Data::of(history, fail_on_gain));
    let packed = written.map_err(io::Error::other).and_then(|()| encoder.flush()).and_then(|()| encoder.finish());
    // Neither writing to memory nor numbers and strings as JSON can go wrong.
    BASE64_STANDARD.encode(packed.unwrap_or_default())
}

impl<'a> Data<'a> {
    fn of(history: &'a History<'_>, fail_on_gain: bool) -> Self {
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
        let cells = (1..builds.len()).map(|build| Column::of(history, build, &mut differences)).collect();
        Self {
            builds: builds.iter().map(|build| build.name.as_str()).collect(),
            kinds: kinds(fail_on_gain).to_vec(),
            ids: checks.clone().map(|at| tolerances.id(at).to_string()).collect(),
            primary: tolerances.checks.iter().map(|check| if check.primary { '1' } else { '0' }).collect(),
            sense: tolerances.checks.iter().map(|check| tolerances.sense(*check).unwrap_or(0.0) as i8).collect(),
            tolerance: checks.clone().map(|at| Datum::of(Some(tolerances.tolerance(at)), 4)).collect(),
            suffixes: suffixes.into_iter().collect(),
            suffix,
            values: values.collect(),
            cells,
            differences: differences.into_iter().collect(),
        }
    }
}

impl Column {
    fn of<'a>(history: &'a History<'_>, build: usize, sets: &mut IndexSet<&'a [Difference]>) -> Self {
        let mut column = Self::default();
        for at in 0..history.tolerances.checks.len() {
            let judged = history.judged(at, build);
            column.add(judged);
            let parts = history.tolerances.parts(at, build);
            if parts.len() > 1 {
                let told = |part: &wb_compare::tolerance::score::Part| {
                    (part.term.to_string(), Datum::of(Some(part.difference), 6), Datum::of(Some(part.weight), 4))
                };
                column.parts.push((at, parts.iter().map(told).collect()));
            }
            if let Some(differences) = judged.map(|judged| judged.differences).filter(|it| !it.is_empty()) {
                column.differences.push((at, sets.insert_full(differences).0));
            }
        }
        column
    }

    fn add(&mut self, judged: Option<Judged<'_>>) {
        let found = judged.and_then(|judged| judged.by_statistics);
        let effect = found.and_then(|found| found.effect);
        let interval = effect.and_then(|effect| effect.interval);
        let percent = |ratio: Option<f64>| Datum::of(ratio.map(|ratio| (ratio - 1.0) * 100.0), 4);
        self.decided.push(judged.map_or('-', |judged| char::from(b'0' + judged.decided as u8)));
        self.by.push(if judged.is_some_and(|it| it.decided_by == Method::Statistical) { 's' } else { 't' });
        self.score.push(Datum::of(judged.and_then(|judged| judged.by_tolerance.score), 5));
        self.ratio.push(percent(effect.map(|effect| effect.estimate)));
        self.low.push(percent(interval.map(|interval| interval.low)));
        self.high.push(percent(interval.map(|interval| interval.high)));
        self.confidence.push(Datum::of(interval.map(|interval| interval.confidence_reached), 4));
        self.p.push(Datum::of(found.and_then(|found| found.p), 3));
        let units = found.map(|found| found.units);
        self.n[0].push(units.map_or(0, |units| units.src));
        self.n[1].push(units.map_or(0, |units| units.dst));
        self.unit.push(units.map_or('s', |units| letter(units.unit)));
        self.needs.push(found.and_then(|found| found.needs).map(|Needs { unit, each }| (letter(unit), each)));
    }
}

fn letter(unit: Unit) -> char {
    match unit {
        Unit::Samples => 's',
        Unit::Runs => 'r',
    }
}
