//! How each verdict is shown: word, symbol and CSS class.

use serde::Serialize;
use wb_compare::comparison::FailOn;
use wb_results::comparison::FinalVerdict;

use super::markup::HtmlWriter;
use crate::compare::wording::Wording;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct VerdictStyle {
    pub(super) word: &'static str,
    pub(super) symbol: &'static str,
    pub(super) class: &'static str,
    /// Whether it fails a build.
    pub(super) failed: bool,
    /// Whether it is listed by default: whatever is not equal.
    pub(super) is_change: bool,
    /// Whether checks of this comparison can have it.
    pub(super) is_possible: bool,
}

impl VerdictStyle {
    pub(super) fn write(&self, rows: &mut HtmlWriter) {
        rows.raw("<td class=\"").figure(self.class).raw("\"><abbr title=\"").figure(self.word);
        rows.raw("\">").figure(self.symbol).raw("</abbr>");
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct VerdictStyles {
    pub(super) fail_on: FailOn,
    pub(super) wording: Wording,
}

impl VerdictStyles {
    /// In the order of [`FinalVerdict::ALL`].
    pub(super) fn all(self) -> [VerdictStyle; FinalVerdict::ALL.len()] {
        FinalVerdict::ALL.map(|decided| self.of(decided))
    }

    pub(super) fn of(self, decided: FinalVerdict) -> VerdictStyle {
        let (symbol, class) = symbol_and_class(decided);
        let failed = self.fail_on.fails(decided);
        let is_change = failed || decided.is_notable();
        let is_possible = decided.is_possible(self.wording == Wording::Alternatives);
        VerdictStyle { word: decided.as_str(), symbol, class, failed, is_change, is_possible }
    }
}

fn symbol_and_class(decided: FinalVerdict) -> (&'static str, &'static str) {
    match decided {
        FinalVerdict::Improved | FinalVerdict::Faster | FinalVerdict::Better => ("✔", "improved"),
        FinalVerdict::MinorGain => ("›", "minor-gain"),
        FinalVerdict::Equivalent => ("=", "equivalent"),
        FinalVerdict::MinorLoss => ("‹", "minor-loss"),
        FinalVerdict::Regressed | FinalVerdict::Slower | FinalVerdict::Worse => ("✕", "regressed"),
        FinalVerdict::Differs => ("≠", "differs"),
        FinalVerdict::Unconfirmed => ("≈", "unconfirmed"),
        FinalVerdict::Inconclusive => ("?", "inconclusive"),
        FinalVerdict::New => ("+", "new"),
        FinalVerdict::Missing => ("∅", "lacking"),
        FinalVerdict::Invalid => ("!", "lacking"),
        FinalVerdict::Incomparable => ("⊘", "lacking"),
    }
}
