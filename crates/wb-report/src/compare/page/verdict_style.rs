//! What checks come to, as the page shows it: a word, a shape and a colour.

use serde::Serialize;
use wb_compare::comparison::FinalVerdict;

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct VerdictStyle {
    pub(super) word: &'static str,
    pub(super) symbol: &'static str,
    /// Its style's name.
    pub(super) class: &'static str,
    /// Whether it fails a build.
    pub(super) failed: bool,
    /// Whether it is listed before anything is asked for: what fails, and what got better.
    pub(super) is_change: bool,
}

/// All of them, in the order of [`Decided::ALL`].
pub(super) fn verdict_styles(fail_on_gain: bool) -> [VerdictStyle; FinalVerdict::ALL.len()] {
    FinalVerdict::ALL.map(|decided| verdict_style(decided, fail_on_gain))
}

/// One of them.
pub(super) fn verdict_style(decided: FinalVerdict, fail_on_gain: bool) -> VerdictStyle {
    let (symbol, class) = match decided {
        FinalVerdict::Gain => ("✔", "gain"),
        FinalVerdict::MinorGain => ("›", "minor-gain"),
        FinalVerdict::Equal => ("=", "equal"),
        FinalVerdict::MinorLoss => ("‹", "minor-loss"),
        FinalVerdict::Loss => ("✕", "loss"),
        FinalVerdict::Differs => ("≠", "differs"),
        FinalVerdict::Inconclusive => ("?", "inconclusive"),
        FinalVerdict::Missing => ("∅", "lacking"),
        FinalVerdict::Invalid => ("!", "lacking"),
        FinalVerdict::Incomparable => ("⊘", "lacking"),
    };
    let failed = decided.is_failure() || (fail_on_gain && decided == FinalVerdict::Gain);
    VerdictStyle { word: decided.as_str(), symbol, class, failed, is_change: failed || decided == FinalVerdict::Gain }
}
