//! What checks come to, as the page shows it: a word, a shape and a colour.

use serde::Serialize;
use wb_compare::outcome::Decided;

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Kind {
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
pub(super) fn kinds(fail_on_gain: bool) -> [Kind; Decided::ALL.len()] {
    Decided::ALL.map(|decided| kind(decided, fail_on_gain))
}

/// One of them.
pub(super) fn kind(decided: Decided, fail_on_gain: bool) -> Kind {
    let (symbol, class) = match decided {
        Decided::Gain => ("✔", "gain"),
        Decided::MinorGain => ("›", "minor-gain"),
        Decided::Equal => ("=", "equal"),
        Decided::MinorLoss => ("‹", "minor-loss"),
        Decided::Loss => ("✕", "loss"),
        Decided::Differs => ("≠", "differs"),
        Decided::Inconclusive => ("?", "inconclusive"),
        Decided::Missing => ("∅", "lacking"),
        Decided::Invalid => ("!", "lacking"),
        Decided::Incomparable => ("⊘", "lacking"),
    };
    let failed = decided.is_failure() || (fail_on_gain && decided == Decided::Gain);
    Kind { word: decided.as_str(), symbol, class, failed, is_change: failed || decided == Decided::Gain }
}
