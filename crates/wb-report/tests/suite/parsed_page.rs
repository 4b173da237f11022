//! A page that is parsed, for tests of its elements.

use roxmltree::{Document, Node, ParsingOptions};
use simplecss::{AttributeOperator, PseudoClass, Selector};

pub(crate) type Element<'a> = Node<'a, 'static>;

/// Elements without content, which HTML lets end in `/>` (section 13.1.2 of its standard).
const VOID_ELEMENTS: [&str; 13] =
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"];

/// A page as text and as elements.
pub(crate) struct Page {
    pub(crate) text: String,
    parsed: Document<'static>,
}

impl Page {
    /// Parses a page, with spaces inserted between adjacent cells. A page is also XML, but for its scripts, so that an element
    /// that is not closed, or an attribute or text that is not escaped, is an error that no browser shows.
    pub(crate) fn new(text: String) -> Self {
        let mut parts = text.split("<script");
        let first = parts.next().unwrap().to_owned();
        let without_code = parts.fold(first, |page, part| {
            let (tag, rest) = part.split_once('>').unwrap();
            let (code, rest) = rest.split_once("</script>").unwrap();
            let code = if tag.contains("type=\"module\"") { "" } else { code };
            page + "<script" + tag + ">" + code + "</script>" + rest
        });
        let spaced =
            ["<td", "<small", "<dd"].iter().fold(without_code, |text, tag| text.replace(tag, &format!(" {tag}")));
        let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
        // The elements refer to it until the test ends.
        let spaced: &'static str = spaced.leak();
        let parsed = Document::parse_with_options(spaced, options);
        let parsed = parsed.unwrap_or_else(|error| {
            let line = spaced.lines().nth(error.pos().row as usize - 1).unwrap_or_default();
            panic!("{error}: {line}")
        });
        for element in parsed.descendants().filter(Node::is_element) {
            let is_empty_tag = spaced[element.range()].ends_with("/>") && !element.has_children();
            let is_drawing = element.ancestors().any(|outer| outer.tag_name().name() == "svg");
            let name = element.tag_name().name();
            let is_closed_in_html = !is_empty_tag || is_drawing || VOID_ELEMENTS.contains(&name);
            assert!(is_closed_in_html, "a browser would leave it open: <{name}/>");
        }
        Self { text, parsed }
    }

    /// The elements that any of the selectors of a list matches.
    pub(crate) fn all(&self, selectors: &str) -> Vec<Element<'_>> {
        elements(self.parsed.root(), selectors)
    }

    pub(crate) fn count(&self, selectors: &str) -> usize {
        self.all(selectors).len()
    }

    /// The texts of the selected elements.
    pub(crate) fn texts(&self, selectors: &str) -> Vec<String> {
        self.all(selectors).into_iter().map(words).collect()
    }
}

/// The elements inside another that any of the selectors of a list matches.
pub(crate) fn elements<'a>(outer: Element<'a>, selectors: &str) -> Vec<Element<'a>> {
    let selectors: Vec<_> = selectors
        .split(',')
        .map(|selector| Selector::parse(selector).unwrap_or_else(|| panic!("cannot select {selector}")))
        .collect();
    let is_selected = |node: &Element<'_>| selectors.iter().any(|selector| selector.matches(&Selectable(*node)));
    outer.descendants().filter(Node::is_element).filter(is_selected).collect()
}

/// The words of an element, with single spaces between them.
pub(crate) fn words(element: Element<'_>) -> String {
    let texts = element.descendants().filter(Node::is_text).filter_map(|node| node.text());
    texts.collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
}

struct Selectable<'a>(Element<'a>);

impl simplecss::Element for Selectable<'_> {
    fn parent_element(&self) -> Option<Self> {
        self.0.parent_element().map(Selectable)
    }

    fn prev_sibling_element(&self) -> Option<Self> {
        self.0.prev_sibling_element().map(Selectable)
    }

    fn has_local_name(&self, name: &str) -> bool {
        self.0.tag_name().name() == name
    }

    fn attribute_matches(&self, name: &str, operator: AttributeOperator<'_>) -> bool {
        self.0.attribute(name).is_some_and(|value| operator.matches(value))
    }

    fn pseudo_class_matches(&self, class: PseudoClass<'_>) -> bool {
        matches!(class, PseudoClass::FirstChild) && self.prev_sibling_element().is_none()
    }
}
