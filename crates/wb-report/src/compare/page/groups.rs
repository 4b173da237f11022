//! Tables of groups: averages over related checks, in every build.

use minijinja::Value;
use serde::Serialize;
use wb_compare::comparison::BuildHistory;
use wb_compare::run_perf::tolerance::groups::ToleranceGroup;

use super::figures::{format_percent, format_value};
use super::markup::HtmlWriter;
use super::verdict_style::{VerdictStyle, VerdictStyles};
use crate::compare::figures::{describe_interval, readable_id};

/// Tables of changed and of other groups; the second is collapsible.
#[derive(Serialize)]
pub(super) struct GroupsView {
    /// Whether a group of several checks changed; one of a single check says nothing that the check does not.
    open: bool,
    decides: bool,
    changed: usize,
    others: usize,
    changed_rows: Value,
    other_rows: Value,
}

type NumberedGroup<'a> = (usize, &'a ToleranceGroup<'a>);

impl GroupsView {
    pub(super) fn new(history: &BuildHistory<'_>, styles: VerdictStyles) -> Self {
        let builds = 1..history.builds.list().len();
        let kind_in = |(index, _): NumberedGroup<'_>, build: usize| {
            Some(styles.of(history.group_verdict(index, build)?.final_verdict))
        };
        let is_changed = |group: &NumberedGroup<'_>| {
            let is_change = |kind: VerdictStyle| kind.is_change && kind.class != "lacking";
            builds.clone().any(|build| kind_in(*group, build).is_some_and(is_change))
        };
        let groups = history.tolerances.groups.iter().enumerate();
        let (changed, others): (Vec<NumberedGroup<'_>>, Vec<_>) = groups.partition(is_changed);
        let scored = |group: &ToleranceGroup<'_>| {
            builds.clone().filter_map(|build| group.cell(build)).map(|cell| cell.scored).max().unwrap_or_default()
        };
        let rows = |groups: &[NumberedGroup<'_>]| {
            let mut rows = HtmlWriter::default();
            for (index, group) in groups {
                rows.raw("<tr><th scope=\"row\" class=\"id\"><bdi>")
                    .text(&readable_id(&group.id.to_string()))
                    .raw("</bdi></th>");
                rows.raw("<td>").figure(scored(group)).raw("</td>");
                for build in builds.clone() {
                    write_cell(&mut rows, history, (*index, group), build, kind_in((*index, group), build));
                }
                rows.raw("</tr>");
            }
            rows.finish()
        };
        let open = changed.iter().any(|(_, group)| scored(group) > 1);
        let decides =
            |(_, group): &NumberedGroup<'_>| builds.clone().any(|build| history.affects_exit_code(group, build));
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
    (position, group): NumberedGroup<'_>,
    build: usize,
    kind: Option<VerdictStyle>,
) {
    let (Some(cell), Some(kind)) = (group.cell(build), kind) else {
        rows.raw("<td>–</td>");
        return;
    };
    let decides = history.affects_exit_code(group, build);
    if decides { kind } else { VerdictStyle { class: "undecisive", ..kind } }.write(rows);
    rows.raw(" ").figure(format_percent(cell.improvement.unwrap_or(cell.score)).trim_end_matches(" %"));
    rows.raw("<small>");
    if let Some(compared) = history.group_verdict(position, build).and_then(|judged| judged.compared) {
        rows.text(&describe_interval(compared.interval.into())).raw(", ");
    }
    rows.raw("tolerance ").figure(format_value(cell.tolerance)).raw("\u{a0}%");
    if !decides {
        rows.raw(", not decisive");
    }
    rows.raw("</small></td>");
}
