//! How each verdict is shown: word, symbol and CSS class.

use serde::Serialize;
use wb_compare::comparison::{FailOn, FinalVerdict};

use super::markup::HtmlWriter;

/// Display style of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct VerdictStyle {
    pub(super) word: &'static str,
    pub(super) symbol: &'static str,
    /// The CSS class.
    pub(super) class: &'static str,
    /// Whether it fails a build.
    pub(super) failed: bool,
    /// Whether it is listed by default: whatever is not equal.
    pub(super) is_change: bool,
}

impl VerdictStyle {
    /// Begins the table cell of a verdict with its symbol.
    pub(super) fn write(&self, rows: &mut HtmlWriter) {
        rows.raw("<td class=").figure(self.class).raw("><abbr title=\"").figure(self.word);
        rows.raw("\">").figure(self.symbol).raw("</abbr>");
    }
}

/// All styles, in the order of [`FinalVerdict::ALL`].
pub(super) fn verdict_styles(fail_on: FailOn) -> [VerdictStyle; FinalVerdict::ALL.len()] {
    FinalVerdict::ALL.map(|decided| verdict_style(decided, fail_on))
}

/// The style of a verdict.
pub(super) fn verdict_style(decided: FinalVerdict, fail_on: FailOn) -> VerdictStyle {
    let (symbol, class) = match decided {
        FinalVerdict::Gain => ("✔", "gain"),
        FinalVerdict::MinorGain => ("›", "minor-gain"),
        FinalVerdict::Equal => ("=", "equal"),
        FinalVerdict::MinorLoss => ("‹", "minor-loss"),
        FinalVerdict::Loss => ("✕", "loss"),
        FinalVerdict::Differs => ("≠", "differs"),
        FinalVerdict::Unconfirmed => ("≈", "unconfirmed"),
        FinalVerdict::Inconclusive => ("?", "inconclusive"),
        FinalVerdict::Missing => ("∅", "lacking"),
        FinalVerdict::Invalid => ("!", "lacking"),
        FinalVerdict::Incomparable => ("⊘", "lacking"),
    };
    let failed = fail_on.fails(decided);
    let is_change = failed || decided.is_notable();
    VerdictStyle { word: decided.as_str(), symbol, class, failed, is_change }
}
