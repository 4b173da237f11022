//! A page that is parsed, for tests of its elements.

use scraper::{ElementRef, Html, Selector};

/// A page as text and as elements.
pub(crate) struct Page {
    pub(crate) text: String,
    parsed: Html,
}

impl Page {
    /// Parses a page, with spaces inserted between adjacent cells.
    pub(crate) fn new(text: String) -> Self {
        let spaced =
            ["<td", "<small", "<dd"].iter().fold(text.clone(), |text, tag| text.replace(tag, &format!(" {tag}")));
        Self { parsed: Html::parse_document(&spaced), text }
    }

    pub(crate) fn all(&self, selector: &str) -> Vec<ElementRef<'_>> {
        self.parsed.select(&Selector::parse(selector).unwrap()).collect()
    }

    pub(crate) fn count(&self, selector: &str) -> usize {
        self.all(selector).len()
    }

    /// The texts of the selected elements.
    pub(crate) fn texts(&self, selector: &str) -> Vec<String> {
        self.all(selector).into_iter().map(words).collect()
    }
}

/// The words of an element, with single spaces between them.
pub(crate) fn words(element: ElementRef<'_>) -> String {
    element.text().collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
}
