//! Groups cells for display: cells of one test whose primary metrics can share a scale.

use wb_model::{CellId, Direction, Metric, Serial, Unit};
use wb_results::{CellResult, Study};

use crate::phrasing;

/// Cells of one test whose primary metrics have the same unit and direction. Variants of a test form one group, so that
/// they are drawn on one scale.
pub(crate) struct CellGroup<'a> {
    pub(crate) cells: Vec<&'a CellResult>,
    /// The unit and direction of the primary metrics; `None` if no cell has one.
    pub(crate) scale: Option<(&'a Unit, Direction)>,
    /// Distinguishes the group from others, without the axes.
    pub(crate) title: String,
    /// The metric's name, if it is the same for all cells.
    metric: Option<&'a str>,
    pub(crate) shared: Vec<(&'a str, &'a str)>,
    /// Whether the cells differ in their serials.
    has_variants: bool,
}

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

/// Whether a cell belongs to a group. A cell without figures belongs to the first group of its test.
fn belongs_to(group: &[&CellResult], cell: &CellResult) -> bool {
    let key = |id: &CellId| (id.profile.clone(), id.test.clone());
    let is_same = |left: &CellResult, right: &CellResult| {
        key(&left.id) == key(&right.id) && (left.id.serial == right.id.serial || is_variant(left) && is_variant(right))
    };
    let group_scale = group.iter().find_map(|member| primary_scale(member));
    let fits = group_scale.is_none() || primary_scale(cell).is_none() || group_scale == primary_scale(cell);
    fits && group.first().is_some_and(|first| is_same(first, cell))
}

/// Whether a cell is a named variant that is compared within the run, as in `ab`.
fn is_variant(cell: &CellResult) -> bool {
    cell.rule.is_external() && matches!(cell.id.serial, Serial::Id(_))
}

impl<'a> CellGroup<'a> {
    fn new(study: &Study, cells: Vec<&'a CellResult>) -> Self {
        let names: Vec<&str> = cells.iter().filter_map(|cell| cell.primary()).map(|p| p.metric.name.as_str()).collect();
        Self {
            scale: cells.iter().find_map(|cell| primary_scale(cell)),
            title: group_title(study, &cells),
            has_variants: cells.iter().any(|cell| cell.id.serial != cells[0].id.serial),
            metric: names.first().copied().filter(|first| names.iter().all(|name| name == first)),
            shared: shared_axes(&cells),
            cells,
        }
    }

    pub(crate) fn test(&self) -> &str {
        self.cells.first().map_or("", |cell| cell.id.test.as_str())
    }

    pub(crate) fn summary(&self) -> &str {
        self.cells.first().map_or("", |cell| cell.description.as_str())
    }

    /// `mflops, higher is better`.
    pub(crate) fn metric_description(&self) -> String {
        let direction = self.scale.map(|(_, direction)| phrasing::describe_direction(direction));
        [self.metric, direction].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// `isa=avx2, threads=1`.
    pub(crate) fn shared_text(&self) -> String {
        format_axes(&self.shared)
    }

    /// The label that distinguishes a cell from the others of the group.
    pub(crate) fn label(&self, cell: &CellResult) -> String {
        let distinct_axes: Vec<(&str, &str)> = cell.id.case.axes().filter(|axis| !self.shared.contains(axis)).collect();
        let case = match (self.has_variants, distinct_axes.is_empty()) {
            (true, true) => cell.id.serial.to_string(),
            (true, false) => format!("{}: {}", cell.id.serial, format_axes(&distinct_axes)),
            (false, true) => self.test().to_owned(),
            (false, false) => format_axes(&distinct_axes),
        };
        match (self.metric, cell.primary()) {
            (None, Some(primary)) => format!("{case} {}", primary.metric.name),
            _ => case,
        }
    }

    /// The primary metric's declaration, if it is the same for all cells.
    pub(crate) fn metric(&self) -> Option<&'a Metric> {
        self.metric.and(self.cells.iter().find_map(|cell| cell.primary()).map(|primary| &primary.metric))
    }
}

fn format_axes(axes: &[(&str, &str)]) -> String {
    axes.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", ")
}

/// The axes that have the same value in all cells; empty for a single cell.
fn shared_axes<'a>(cells: &[&'a CellResult]) -> Vec<(&'a str, &'a str)> {
    let [first, others @ ..] = cells else { return Vec::new() };
    let is_shared = |(name, value): &(&str, &str)| others.iter().all(|cell| cell.id.case.get(name) == Some(value));
    if others.is_empty() { Vec::new() } else { first.id.case.axes().filter(is_shared).collect() }
}

/// The test's name, with its serial and its profile if they distinguish it from another group.
fn group_title(study: &Study, cells: &[&CellResult]) -> String {
    let Some(id) = cells.first().map(|cell| &cell.id) else { return String::new() };
    let has_one_serial = cells.iter().all(|cell| cell.id.serial == id.serial);
    let several_serials = study.cells.iter().any(|cell| cell.id.test == id.test && cell.id.serial != id.serial);
    let several_profiles = study.cells.iter().any(|cell| cell.id.profile != id.profile);
    let mut title = id.test.to_string();
    if has_one_serial && (several_serials || matches!(id.serial, Serial::Id(_))) {
        title += &format!(" {}", id.serial);
    }
    if several_profiles {
        title += &format!(" in {}", id.profile);
    }
    title
}
