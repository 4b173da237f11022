//! An SVG element, as text that needs no further care: everything put in is escaped.

use std::fmt;

/// An element with its attributes and what is in it.
#[derive(Debug, Clone)]
pub(crate) struct Element {
    name: &'static str,
    attributes: Vec<(&'static str, String)>,
    children: Vec<Node>,
}

#[derive(Debug, Clone)]
enum Node {
    Element(Element),
    Text(String),
}

impl Element {
    /// An empty one.
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, attributes: Vec::new(), children: Vec::new() }
    }

    /// A line from one point to another.
    pub(crate) fn line(class: &'static str, from: (f64, f64), to: (f64, f64)) -> Self {
        let ends = [("x1", from.0), ("y1", from.1), ("x2", to.0), ("y2", to.1)];
        ends.into_iter()
            .fold(Self::new("line").with_attribute("class", class), |line, (name, at)| line.with_coordinate(name, at))
    }

    /// A rectangle between two corners, in whichever order.
    pub(crate) fn rect(class: &'static str, one: (f64, f64), other: (f64, f64)) -> Self {
        let sides = [("x", one.0.min(other.0)), ("y", one.1.min(other.1))];
        let sizes = [("width", (one.0 - other.0).abs()), ("height", (one.1 - other.1).abs())];
        sides
            .into_iter()
            .chain(sizes)
            .fold(Self::new("rect").with_attribute("class", class), |rect, (name, at)| rect.with_coordinate(name, at))
    }

    /// A text whose baseline starts, is centred or ends at a point.
    pub(crate) fn text(anchor: &'static str, at: (f64, f64), text: &str) -> Self {
        let empty = Self::new("text").with_coordinate("x", at.0).with_coordinate("y", at.1);
        let placed = if anchor == "start" { empty } else { empty.with_attribute("text-anchor", anchor) };
        placed.with_text(text)
    }

    /// The same with an attribute.
    pub(crate) fn with_attribute(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.attributes.push((name, value.into()));
        self
    }

    /// The same with a coordinate, to a tenth of a pixel.
    pub(crate) fn with_coordinate(self, name: &'static str, value: f64) -> Self {
        let text = format_pixels(value);
        self.with_attribute(name, text)
    }

    /// The same with a text in it.
    pub(crate) fn with_text(mut self, text: &str) -> Self {
        self.children.push(Node::Text(text.to_owned()));
        self
    }

    /// The same with elements in it.
    pub(crate) fn with_children(mut self, elements: impl IntoIterator<Item = Self>) -> Self {
        self.children.extend(elements.into_iter().map(Node::Element));
        self
    }

    /// The same with what a pointer resting on it is told.
    pub(crate) fn with_title(self, text: &str) -> Self {
        self.with_children([Self::new("title").with_text(text)])
    }
}

/// A coordinate, to a tenth of a pixel; what is no number is drawn at 0 rather than breaking the chart.
pub(crate) fn format_pixels(value: f64) -> String {
    let rounded = if value.is_finite() { (value * 10.0).round() / 10.0 + 0.0 } else { 0.0 };
    rounded.to_string()
}

fn escape(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for c in text.chars() {
        match c {
            '<' => f.write_str("&lt;")?,
            '>' => f.write_str("&gt;")?,
            '&' => f.write_str("&amp;")?,
            '"' => f.write_str("&quot;")?,
            c if c.is_control() => f.write_str(" ")?,
            c => write!(f, "{c}")?,
        }
    }
    Ok(())
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}", self.name)?;
        for (name, value) in &self.attributes {
            write!(f, " {name}=\"")?;
            escape(value, f)?;
            f.write_str("\"")?;
        }
        if self.children.is_empty() {
            return f.write_str("/>");
        }
        f.write_str(">")?;
        for child in &self.children {
            match child {
                Node::Element(element) => write!(f, "{element}")?,
                Node::Text(text) => escape(text, f)?,
            }
        }
        write!(f, "</{}>", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_put_in_stays_text() {
        let element =
            Element::text("end", (1.0, 2.04), "<b>&\u{1b}").with_attribute("class", "a\"b").with_title("x < y");
        let drawn =
            r#"<text x="1" y="2" text-anchor="end" class="a&quot;b">&lt;b&gt;&amp; <title>x &lt; y</title></text>"#;
        assert_eq!(element.to_string(), drawn);
    }

    #[test]
    fn a_coordinate_that_is_no_number_does_not_break_the_chart() {
        assert_eq!(
            (format_pixels(f64::NAN), format_pixels(-0.01), format_pixels(1.25)),
            ("0".into(), "0".into(), "1.3".into())
        );
    }
}
