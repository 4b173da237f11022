//! Links that were given with runs.

use serde::Serialize;

/// A text, and where it leads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Hyperlink {
    pub(crate) text: String,
    pub(crate) url: Option<String>,
}

/// What stands for a machine's name in a base of addresses, as run-perf writes it.
const MACHINE_PLACEHOLDER: &str = "%(machine)s";

/// The names under which a base of machines' addresses is given.
pub(crate) const BASE_URL_KEYS: [&str; 2] = ["machine_url_base", "machine-url-base"];

impl Hyperlink {
    /// A text that leads nowhere.
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), url: None }
    }

    /// A text, and the address where it leads if that is one of the web.
    pub(crate) fn new(text: impl Into<String>, address: Option<&str>) -> Self {
        Self { text: text.into(), url: address.and_then(http_url) }
    }
}

/// A machine's address by a base: its name in the place for it, or after all.
pub(crate) fn machine_url(base: &str, name: &str) -> String {
    if base.contains(MACHINE_PLACEHOLDER) { base.replace(MACHINE_PLACEHOLDER, name) } else { format!("{base}{name}") }
}

/// An address of the web; anything else could be a script.
pub(crate) fn http_url(address: &str) -> Option<String> {
    let address = address.trim();
    let scheme = address.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    let sound = !address.contains(|c: char| c.is_whitespace() || c.is_control());
    (sound && matches!(scheme.as_deref(), Some("http" | "https"))).then(|| address.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_web_is_linked_to() {
        assert_eq!(http_url(" HTTPS://x/y"), Some("HTTPS://x/y".to_owned()));
        for bad in ["javascript:alert(1)//://", "data:text/html,x", "file:///etc", "x.example", "https://a b", "//x"] {
            assert_eq!(http_url(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_machine_stands_where_the_base_has_a_place_for_it_or_after_it() {
        assert_eq!(machine_url("https://x/%(machine)s/view", "a"), "https://x/a/view");
        assert_eq!(machine_url("https://x/", "a"), "https://x/a");
    }
}
