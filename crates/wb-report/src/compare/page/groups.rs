//! Tables of groups: averages over related checks, in every build.

use minijinja::Value;
use serde::Serialize;
use wb_compare::comparison::BuildHistory;
use wb_compare::run_perf::tolerance::groups::Group;

use super::figures::{format_percent, format_value};
use super::markup::HtmlWriter;
use super::verdict_style::{VerdictStyle, VerdictStyles};
use crate::compare::figures::readable_id;

/// Tables of changed and of other groups; the second is collapsible.
#[derive(Serialize)]
pub(super) struct GroupsView {
    /// Whether a group of several checks changed; one of a single check says nothing that the check does not.
    open: bool,
    /// Whether a changed group decides.
    decides: bool,
    /// Number of changed groups, and of others.
    changed: usize,
    others: usize,
    /// Rows of groups that are worse or better in any build.
    changed_rows: Value,
    other_rows: Value,
}

impl GroupsView {
    pub(super) fn new(history: &BuildHistory<'_>, styles: VerdictStyles) -> Self {
        let builds = 1..history.builds.list().len();
        let kind_in = |group: &Group<'_>, build: usize| {
            let status = group.cell(build)?.status;
            Some(styles.of(status.into()))
        };
        let is_changed = |group: &&Group<'_>| {
            let is_change = |kind: VerdictStyle| kind.is_change && kind.class != "lacking";
            builds.clone().any(|build| kind_in(group, build).is_some_and(is_change))
        };
        let (changed, others): (Vec<&Group<'_>>, Vec<_>) = history.tolerances.groups.iter().partition(is_changed);
        let scored = |group: &Group<'_>| {
            builds.clone().filter_map(|build| group.cell(build)).map(|cell| cell.scored).max().unwrap_or_default()
        };
        let rows = |groups: &[&Group<'_>]| {
            let mut rows = HtmlWriter::default();
            for group in groups {
                rows.raw("<tr><th scope=row class=id><bdi>").text(&readable_id(&group.id.to_string())).raw("</bdi>");
                rows.raw("<td>").figure(scored(group));
                for build in builds.clone() {
                    write_cell(&mut rows, history, group, build, kind_in(group, build));
                }
            }
            rows.finish()
        };
        let open = changed.iter().any(|group| scored(group) > 1);
        let decides = |group: &&Group<'_>| builds.clone().any(|build| history.affects_exit_code(group, build));
        Self {
            open,
            decides: changed.iter().any(decides),
            changed: changed.len(),
            others: others.len(),
            changed_rows: rows(&changed),
            other_rows: rows(&others),
        }
    }
}

fn write_cell(
    rows: &mut HtmlWriter,
    history: &BuildHistory<'_>,
    group: &Group<'_>,
    build: usize,
    kind: Option<VerdictStyle>,
) {
    let (Some(cell), Some(kind)) = (group.cell(build), kind) else {
        rows.raw("<td>–");
        return;
    };
    let decides = history.affects_exit_code(group, build);
    if decides { kind } else { VerdictStyle { class: "undecisive", ..kind } }.write(rows);
    rows.raw(" ").figure(format_percent(cell.improvement.unwrap_or(cell.score)).trim_end_matches(" %"));
    rows.raw("<small>tolerance ").figure(format_value(cell.tolerance)).raw("&nbsp;%");
    if !decides {
        rows.raw(", not decisive");
    }
    rows.raw("</small>");
}
