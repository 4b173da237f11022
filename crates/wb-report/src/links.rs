//! Hyperlinks in the metadata of runs.

use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Hyperlink {
    pub(crate) text: String,
    pub(crate) url: Option<String>,
}

const MACHINE_PLACEHOLDER: &str = "%(machine)s";

pub(crate) const BASE_URL_KEYS: [&str; 2] = ["machine_url_base", "machine-url-base"];

impl Hyperlink {
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), url: None }
    }

    /// Links to the address if it is an HTTP or HTTPS URL.
    pub(crate) fn new(text: impl Into<String>, address: Option<&str>) -> Self {
        Self { text: text.into(), url: address.and_then(http_url) }
    }
}

/// A machine's URL from a base URL: its name replaces the placeholder, or is appended.
pub(crate) fn machine_url(base: &str, name: &str) -> String {
    if base.contains(MACHINE_PLACEHOLDER) { base.replace(MACHINE_PLACEHOLDER, name) } else { format!("{base}{name}") }
}

/// Accepts an HTTP or HTTPS URL; others could be scripts.
pub(crate) fn http_url(address: &str) -> Option<String> {
    let address = address.trim();
    let scheme = address.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    let is_clean = !address.contains(|c: char| c.is_whitespace() || c.is_control());
    (is_clean && matches!(scheme.as_deref(), Some("http" | "https"))).then(|| address.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_http_urls_are_linked() {
        assert_eq!(http_url(" HTTPS://x/y"), Some("HTTPS://x/y".to_owned()));
        for bad in ["javascript:alert(1)//://", "data:text/html,x", "file:///etc", "x.example", "https://a b", "//x"] {
            assert_eq!(http_url(bad), None, "{bad}");
        }
    }

    #[test]
    fn machine_name_replaces_the_placeholder_or_is_appended() {
        assert_eq!(machine_url("https://x/%(machine)s/view", "a"), "https://x/a/view");
        assert_eq!(machine_url("https://x/", "a"), "https://x/a");
    }
}
