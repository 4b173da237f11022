//! Cells that are shown together: those of one test whose primary metrics can share a scale.

use wb_model::{CellId, Direction, Metric, Serial, Unit};
use wb_stats::SamplingRule;
use wb_study::result::{CellResult, Study};

use crate::phrasing;

/// Cells of one test, with primary metrics of one unit and direction. Variants of a test are one group, so that they are
/// drawn on one scale.
pub(crate) struct CellGroup<'a> {
    pub(crate) cells: Vec<&'a CellResult>,
    /// The unit and direction of the primary metrics; none where no cell has one.
    pub(crate) scale: Option<(&'a Unit, Direction)>,
    /// What tells it from the other groups, before the axes.
    pub(crate) title: String,
    /// The metric's name where it is the same for all.
    metric: Option<&'a str>,
    /// The axes that have one value in all of its cells.
    pub(crate) shared: Vec<(&'a str, &'a str)>,
    /// Whether its cells are told apart by their serials.
    has_variants: bool,
}

/// The groups of a study, in the order of its cells.
pub(crate) fn group_cells(study: &Study) -> Vec<CellGroup<'_>> {
    let mut groups: Vec<Vec<&CellResult>> = Vec::new();
    for cell in &study.cells {
        match groups.iter_mut().find(|group| belongs_to(group, cell)) {
            Some(group) => group.push(cell),
            None => groups.push(vec![cell]),
        }
    }
    groups.into_iter().map(|cells| CellGroup::new(study, cells)).collect()
}

fn primary_scale(cell: &CellResult) -> Option<(&Unit, Direction)> {
    cell.primary().map(|primary| (&primary.metric.unit, primary.metric.direction))
}

/// A cell without figures belongs to the first group of its test.
fn belongs_to(group: &[&CellResult], cell: &CellResult) -> bool {
    let of = |id: &CellId| (id.profile.clone(), id.test.clone());
    let is_same = |one: &CellResult, other: &CellResult| {
        of(&one.cell) == of(&other.cell)
            && (one.cell.serial == other.cell.serial || is_variant(one) && is_variant(other))
    };
    let known = group.iter().find_map(|member| primary_scale(member));
    let fits = known.is_none() || primary_scale(cell).is_none() || known == primary_scale(cell);
    fits && group.first().is_some_and(|first| is_same(first, cell))
}

/// Whether a cell is one of several with names of their own that are compared within the run, as `ab` has them.
fn is_variant(cell: &CellResult) -> bool {
    matches!((&cell.rule, &cell.cell.serial), (SamplingRule::External { .. }, Serial::Id(_)))
}

impl<'a> CellGroup<'a> {
    fn new(study: &Study, cells: Vec<&'a CellResult>) -> Self {
        let names: Vec<&str> = cells.iter().filter_map(|cell| cell.primary()).map(|p| p.metric.name.as_str()).collect();
        Self {
            scale: cells.iter().find_map(|cell| primary_scale(cell)),
            title: group_title(study, &cells),
            has_variants: cells.iter().any(|cell| cell.cell.serial != cells[0].cell.serial),
            metric: names.first().copied().filter(|first| names.iter().all(|name| name == first)),
            shared: shared_axes(&cells),
            cells,
        }
    }

    /// The test's name.
    pub(crate) fn test(&self) -> &str {
        self.cells.first().map_or("", |cell| cell.cell.test.as_str())
    }

    /// What the test says of itself.
    pub(crate) fn summary(&self) -> &str {
        self.cells.first().map_or("", |cell| cell.summary.as_str())
    }

    /// What is measured and which way is better: `mflops, higher is better`.
    pub(crate) fn measure(&self) -> String {
        let way = self.scale.map(|(_, way)| phrasing::describe_direction(way));
        [self.metric, way].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// The shared axes: `isa=avx2, threads=1`.
    pub(crate) fn shared_text(&self) -> String {
        format_axes(&self.shared)
    }

    /// What tells a cell from the others of the group.
    pub(crate) fn label(&self, cell: &CellResult) -> String {
        let own: Vec<(&str, &str)> = cell.cell.case.axes().filter(|axis| !self.shared.contains(axis)).collect();
        let case = match (self.has_variants, own.is_empty()) {
            (true, true) => cell.cell.serial.to_string(),
            (true, false) => format!("{}: {}", cell.cell.serial, format_axes(&own)),
            (false, true) => self.test().to_owned(),
            (false, false) => format_axes(&own),
        };
        match (self.metric, cell.primary()) {
            (None, Some(primary)) => format!("{case} {}", primary.metric.name),
            _ => case,
        }
    }

    /// The primary metric's declaration, where the cells agree on one.
    pub(crate) fn metric(&self) -> Option<&'a Metric> {
        self.metric.and(self.cells.iter().find_map(|cell| cell.primary()).map(|primary| &primary.metric))
    }
}

fn format_axes(axes: &[(&str, &str)]) -> String {
    axes.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", ")
}

/// The axes that all cells have with the same value; none of a cell that stands alone.
fn shared_axes<'a>(cells: &[&'a CellResult]) -> Vec<(&'a str, &'a str)> {
    let [first, others @ ..] = cells else { return Vec::new() };
    let everywhere = |(name, value): &(&str, &str)| others.iter().all(|cell| cell.cell.case.get(name) == Some(value));
    if others.is_empty() { Vec::new() } else { first.cell.case.axes().filter(everywhere).collect() }
}

/// The test, with its serial and its profile where those tell it from another group.
fn group_title(study: &Study, cells: &[&CellResult]) -> String {
    let Some(id) = cells.first().map(|cell| &cell.cell) else { return String::new() };
    let is_one = cells.iter().all(|cell| cell.cell.serial == id.serial);
    let several_serials = study.cells.iter().any(|cell| cell.cell.test == id.test && cell.cell.serial != id.serial);
    let several_profiles = study.cells.iter().any(|cell| cell.cell.profile != id.profile);
    let mut title = id.test.to_string();
    if is_one && (several_serials || matches!(id.serial, Serial::Id(_))) {
        title += &format!(" {}", id.serial);
    }
    if several_profiles {
        title += &format!(" in {}", id.profile);
    }
    title
}
