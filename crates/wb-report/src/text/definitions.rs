//! Renders definition lists.

use super::wrap::{sanitize, wrap};
use super::{Style, Tone};

pub(crate) fn definition_list<'a>(pairs: impl IntoIterator<Item = (&'a str, String)>, style: Style) -> String {
    let pairs: Vec<(&str, String)> = pairs.into_iter().filter(|(_, text)| !text.is_empty()).collect();
    let column = pairs.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).min(style.width / 3);
    let mut out = String::new();
    for (name, text) in pairs {
        let indent = column + 4;
        let wrapped = wrap(&sanitize(&text), style.width.saturating_sub(indent));
        for (index, line) in wrapped.iter().enumerate() {
            let name = if index == 0 { sanitize(name) } else { String::new() };
            out += format!("  {}  {line}", style.paint(&format!("{name:column$}"), Tone::Quiet)).trim_end();
            out.push('\n');
        }
    }
    out
}
