//! Data of the whole table for the page's script: columns in JSON, deflated, in base64. Browsers inflate it natively.

use std::io::{self, Write};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use indexmap::IndexSet;
use rayon::prelude::*;
use serde::{Serialize, Serializer};
use wb_compare::MeasuredValue;
use wb_compare::comparison::BuildCheck;
use wb_compare::run_perf::tolerance::score::ScorePart;
use wb_compare::statistical::MetricComparison;
use wb_results::comparison::{ComparisonMethod, ObservationKind, ParamDifference, RequiredSamples};

use super::check_table::CheckTable;
use super::display_unit::DisplayUnit;
use super::figures::JsonFigure;
use super::models;
use super::rows::is_weighted_score;
use super::verdict_style::{VerdictStyle, VerdictStyles};
use crate::compare::failures::describe_failures_alone;
use crate::compare::figures::shown_interval;

/// The data of the page; lists are indexed by row of the table unless stated otherwise. Builds are its columns, which
/// can be parts of one run.
#[derive(Serialize)]
struct PageData<'a> {
    /// What a column is.
    side: &'static str,
    /// Whether columns are in the order of time.
    is_history: bool,
    builds: Vec<&'a str>,
    /// Short names of builds for columns.
    names: &'a [String],
    kinds: Vec<VerdictStyle>,
    ids: Vec<String>,
    /// `1` for each primary check, `0` for the others.
    primary: String,
    /// Factor that makes a positive difference an improvement; 0 if neither direction is better.
    direction_sign: CompactList<i8>,
    /// The better direction of the values; `None` if there is none.
    better: CompactList<Option<&'static str>>,
    tolerance: CompactList<JsonFigure>,
    /// The lower and the upper limit of tolerated values.
    least: CompactList<JsonFigure>,
    most: CompactList<JsonFigure>,
    /// The names of the models' files, and the indices of the models that have the check.
    models: &'a [String],
    model_indices: CompactList<Vec<usize>>,
    suffixes: Vec<String>,
    /// Index into `suffixes`.
    suffix: CompactList<usize>,
    /// Indexed by build.
    values: Vec<CompactList<JsonFigure>>,
    /// Results, indexed by later build.
    cells: Vec<BuildColumn>,
    differences: Vec<&'a [ParamDifference]>,
}

/// The results of a later build. Ratios are given as differences in percent.
#[derive(Default, Serialize)]
struct BuildColumn {
    /// The index of each check's verdict as a digit, `-` if neither side has the check.
    verdicts: String,
    /// `s` if statistics decide, `t` if tolerances do.
    methods: String,
    score: CompactList<JsonFigure>,
    /// Whether the score is not the plain difference of both sides.
    is_weighted: CompactList<bool>,
    ratio: CompactList<JsonFigure>,
    low: CompactList<JsonFigure>,
    high: CompactList<JsonFigure>,
    confidence: CompactList<JsonFigure>,
    p: CompactList<JsonFigure>,
    /// The aspect that the ratio is of.
    aspect: CompactList<Option<&'static str>>,
    /// The ratio of medians.
    median: CompactList<JsonFigure>,
    /// The numbers of samples and of runs of the first build, and of this one.
    samples: CompactList<[usize; 2]>,
    runs: CompactList<[usize; 2]>,
    paired: CompactList<bool>,
    /// The failed attempts of checks that are worse by them alone.
    failures: Vec<(usize, String)>,
    /// The number of disturbed samples of both sides, if there are any.
    disturbed: Vec<(usize, [Option<usize>; 2])>,
    /// The unit, the number that would be conclusive, and whether it is the minimum for any result.
    required_samples: CompactList<Option<(char, Option<usize>, bool)>>,
    /// For scores with more than one part: the check, and name, difference and weight of each part.
    parts: Vec<(usize, Vec<EncodedScorePart>)>,
    /// The check and the index of its set of differing parameters.
    differences: Vec<(usize, usize)>,
}

/// Name, difference and weight.
type EncodedScorePart = (String, JsonFigure, JsonFigure);

/// A list that serialises to one element if all are equal.
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
        let all_equal = self.0.windows(2).all(|pair| pair[0] == pair[1]);
        serializer.collect_seq(if all_equal { &self.0[..self.0.len().min(1)] } else { &self.0[..] })
    }
}

pub(super) fn encode(table: &CheckTable<'_>, names: &[String], styles: VerdictStyles) -> String {
    // Level 4 takes half the time of the default level and makes the page 4 % larger.
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(4));
    let models = models::model_names(table.history);
    let data = PageData::new(table, names, &models, styles);
    let written = serde_json::to_writer(io::BufWriter::new(&mut encoder), &data);
    let compressed = written.map_err(io::Error::other).and_then(|()| encoder.flush()).and_then(|()| encoder.finish());
    // Serialising numbers and strings to memory cannot fail.
    BASE64_STANDARD.encode(compressed.unwrap_or_default())
}

impl<'a> PageData<'a> {
    fn new(table: &'a CheckTable<'_>, names: &'a [String], models: &'a [String], styles: VerdictStyles) -> Self {
        let tolerances = table.history.tolerances;
        let rows = 0..table.rows();
        let measures: Vec<DisplayUnit> = rows.clone().map(|row| DisplayUnit::new(table, row)).collect();
        let mut suffixes = IndexSet::new();
        let suffix = measures.iter().map(|measure| suffixes.insert_full(measure.suffix.clone()).0).collect();
        let mut differences = IndexSet::new();
        let value = |row: usize, column| match table.value(row, column) {
            MeasuredValue::Missing => JsonFigure::None,
            MeasuredValue::Invalid => JsonFigure::Word("invalid"),
            MeasuredValue::Known(value) => JsonFigure::new(Some(value / measures[row].divisor), 6),
        };
        let values = (0..names.len()).map(|column| rows.clone().map(|row| value(row, column)).collect());
        let columns: Vec<_> =
            table.judged().into_par_iter().map(|column| BuildColumn::new(table, models, column)).collect();
        let columns = columns.into_iter().map(|(mut column, differing)| {
            let indices = differing.into_iter().map(|(check, set)| (check, differences.insert_full(set).0));
            column.differences = indices.collect();
            column
        });
        let cells = columns.collect();
        let limits: Vec<_> = rows.clone().map(|row| tolerances.limits(table.any_check(row))).collect();
        let end = |select: fn((f64, f64)) -> f64| {
            let ends = limits
                .iter()
                .zip(&measures)
                .map(|(limits, measure)| limits.range.map(|range| select(range) / measure.divisor));
            ends.map(|end| JsonFigure::new(end, 6)).collect()
        };
        Self {
            side: styles.wording.page_words().side,
            is_history: !table.has_parts(),
            builds: table.names.clone(),
            names,
            kinds: styles.all().to_vec(),
            ids: rows.clone().map(|row| table.id(row).to_string()).collect(),
            primary: rows.clone().map(|row| if table.is_primary(row) { '1' } else { '0' }).collect(),
            direction_sign: rows
                .clone()
                .map(|row| tolerances.direction_sign(tolerances.checks[table.any_check(row)]).unwrap_or(0.0) as i8)
                .collect(),
            better: rows.clone().map(|row| table.better(row)).collect(),
            tolerance: rows
                .clone()
                .map(|row| JsonFigure::new(Some(tolerances.tolerance(table.any_check(row))), 4))
                .collect(),
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

type DifferingChecks<'a> = Vec<(usize, &'a [ParamDifference])>;

impl BuildColumn {
    fn new<'a>(table: &'a CheckTable<'_>, models: &[String], index: usize) -> (Self, DifferingChecks<'a>) {
        let (mut column, mut differing) = (Self::default(), Vec::new());
        for row in 0..table.rows() {
            let judged = table.result(row, index);
            column.add(judged);
            column.failures.extend(judged.as_ref().and_then(describe_failures_alone).map(|text| (row, text)));
            let disturbed = table.disturbed(row, index);
            if disturbed.iter().flatten().any(|count| *count > 0) {
                column.disturbed.push((row, disturbed));
            }
            let parts = table.score_parts(row, index);
            if parts.len() > 1 {
                column
                    .parts
                    .push((row, parts.iter().map(|score_part| encode_score_part(score_part, models)).collect()));
            }
            let differences = judged.map(|judged| judged.differences);
            differing.extend(differences.filter(|set| !set.is_empty()).map(|set| (row, set)));
        }
        (column, differing)
    }

    fn add(&mut self, judged: Option<BuildCheck<'_>>) {
        let statistics = judged.and_then(|judged| judged.by_statistics);
        // Too few samples have the difference of their means, as in every output.
        let is_shown = judged.is_some_and(|judged| !judged.too_few_samples);
        let decisive = statistics.filter(|_| is_shown).and_then(MetricComparison::decisive);
        let interval =
            decisive.and_then(|aspect| shown_interval(judged?.final_verdict, aspect.interval, aspect.runs_interval));
        let percent = |ratio: Option<f64>| JsonFigure::percent(ratio.map(|ratio| (ratio - 1.0) * 100.0));
        self.verdicts.push(judged.map_or('-', |judged| char::from(b'0' + judged.final_verdict as u8)));
        self.methods.push(if judged.is_some_and(|judged| judged.decided_by == ComparisonMethod::Statistical) {
            's'
        } else {
            't'
        });
        // A value below zero leaves no ratio, and the score is no difference beside its verdict.
        let has_ratio = decisive.is_none_or(|aspect| aspect.base.is_none());
        let score = judged.filter(|judged| has_ratio || judged.decided_by == ComparisonMethod::Tolerance);
        self.score.0.push(JsonFigure::percent(score.and_then(|judged| judged.by_tolerance.score)));
        self.is_weighted.0.push(judged.as_ref().is_some_and(is_weighted_score));
        let interval = interval.filter(|_| has_ratio);
        self.ratio.0.push(percent(decisive.filter(|_| has_ratio).map(|aspect| aspect.ratio)));
        self.low.0.push(percent(interval.map(|interval| interval.low)));
        self.high.0.push(percent(interval.map(|interval| interval.high)));
        self.confidence.0.push(JsonFigure::new(interval.map(|interval| interval.confidence), 4));
        self.p.0.push(JsonFigure::new(statistics.and_then(|statistics| statistics.p), 3));
        self.aspect.0.push(decisive.map(|aspect| aspect.aspect.as_str()));
        let median_ratio = statistics.and_then(|it| it.median_ratio).filter(|_| has_ratio);
        self.median.0.push(percent(median_ratio.map(|ratio| ratio.estimate)));
        let counts = statistics.map(|statistics| statistics.counts).unwrap_or_default();
        self.samples.0.push(counts.samples);
        self.runs.0.push(counts.runs);
        self.paired.0.push(counts.paired);
        self.required_samples.0.push(
            statistics
                .and_then(|statistics| statistics.required_samples)
                .map(|RequiredSamples { unit, per_side: each, is_minimum: fewest }| (unit_letter(unit), each, fewest)),
        );
    }
}

fn encode_score_part(part: &ScorePart, models: &[String]) -> (String, JsonFigure, JsonFigure) {
    (
        models::term_name(part.term, models),
        JsonFigure::percent(Some(part.difference)),
        JsonFigure::new(Some(part.weight), 4),
    )
}

fn unit_letter(unit: ObservationKind) -> char {
    match unit {
        ObservationKind::Samples => 's',
        ObservationKind::Runs => 'r',
    }
}
