//! Short names of checks and cells for sentences.

use wb_model::unescape_lossy;
use wb_results::comparison::CheckId;

/// The test, the case and the metric of a check.
pub(super) fn short_name(id: &str) -> String {
    match CheckId::parse(id) {
        Ok(parsed) => format!("{} ({})", short_cell_name(id), parsed.metric),
        Err(_) => id.to_owned(),
    }
}

/// The test and the case of an error: `PROFILE/TEST/SERIAL`, with `:CASE` in a run of this program.
pub(super) fn short_location(location: &str) -> String {
    let mut parts = location.splitn(3, '/').skip(1);
    let (Some(test), cell) = (parts.next(), parts.next()) else { return location.to_owned() };
    match cell.and_then(|cell| cell.split_once(':')).map(|(_, case)| unescape_lossy(case)).as_deref() {
        None | Some("-") => test.to_owned(),
        Some(case) => format!("{test} {case}"),
    }
}

pub(super) fn cell_id(id: &str) -> &str {
    id.rsplitn(3, '/').nth(2).unwrap_or(id)
}

pub(super) fn short_cell_name(id: &str) -> String {
    let Ok(parsed) = CheckId::parse(id) else { return id.to_owned() };
    match unescape_lossy(parsed.case.trim_start_matches("./")).as_str() {
        "-" => parsed.test.to_owned(),
        case => format!("{} {case}", parsed.test),
    }
}
