//! Builds SVG elements; all texts and attribute values are escaped.

use std::fmt;

use crate::xml_chars::is_allowed;

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
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, attributes: Vec::new(), children: Vec::new() }
    }

    pub(crate) fn line(class: &'static str, from: (f64, f64), to: (f64, f64)) -> Self {
        let ends = [("x1", from.0), ("y1", from.1), ("x2", to.0), ("y2", to.1)];
        ends.into_iter().fold(Self::new("line").with_attribute("class", class), |line, (name, value)| {
            line.with_coordinate(name, value)
        })
    }

    /// Creates a rectangle between two opposite corners, in any order.
    pub(crate) fn rect(class: impl Into<String>, first: (f64, f64), second: (f64, f64)) -> Self {
        let origin = [("x", first.0.min(second.0)), ("y", first.1.min(second.1))];
        let sizes = [("width", (first.0 - second.0).abs()), ("height", (first.1 - second.1).abs())];
        origin.into_iter().chain(sizes).fold(Self::new("rect").with_attribute("class", class), |rect, (name, value)| {
            rect.with_coordinate(name, value)
        })
    }

    pub(crate) fn circle(class: impl Into<String>, (x, y): (f64, f64), radius: f64) -> Self {
        let circle = Self::new("circle").with_attribute("class", class).with_coordinate("cx", x);
        circle.with_coordinate("cy", y).with_coordinate("r", radius)
    }

    pub(crate) fn path(class: impl Into<String>, data: impl Into<String>) -> Self {
        Self::new("path").with_attribute("class", class).with_attribute("d", data)
    }

    /// Creates a text at a point; `anchor` is where on its baseline the point is: `start`, `middle` or `end`.
    pub(crate) fn text(anchor: &'static str, position: (f64, f64), text: &str) -> Self {
        let empty = Self::new("text").with_coordinate("x", position.0).with_coordinate("y", position.1);
        let anchored = if anchor == "start" { empty } else { empty.with_attribute("text-anchor", anchor) };
        anchored.with_text(text)
    }

    pub(crate) fn with_attribute(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.attributes.push((name, value.into()));
        self
    }

    /// Adds a coordinate, rounded to a tenth of a pixel.
    pub(crate) fn with_coordinate(self, name: &'static str, value: f64) -> Self {
        let text = format_pixels(value);
        self.with_attribute(name, text)
    }

    pub(crate) fn with_text(mut self, text: &str) -> Self {
        self.children.push(Node::Text(text.to_owned()));
        self
    }

    pub(crate) fn with_children(mut self, elements: impl IntoIterator<Item = Self>) -> Self {
        self.children.extend(elements.into_iter().map(Node::Element));
        self
    }

    /// Renders the element as a symbol of 12 by 12 pixels for a legend.
    pub(crate) fn into_legend_symbol(self) -> String {
        Self::new("svg")
            .with_attribute("class", "chart key")
            .with_attribute("aria-hidden", "true")
            .with_attribute("viewBox", "0 0 12 12")
            .with_coordinate("width", 12.0)
            .with_coordinate("height", 12.0)
            .with_children([self])
            .to_string()
    }

    pub(crate) fn with_title(self, text: &str) -> Self {
        self.with_children([Self::new("title").with_text(text)])
    }
}

/// Rounds a coordinate to a tenth of a pixel; values that are not finite become 0 so that the chart stays valid.
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
            c if c.is_control() || !is_allowed(c) => f.write_str(" ")?,
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
    fn texts_and_attributes_are_escaped() {
        let element =
            Element::text("end", (1.0, 2.04), "<b>&\u{1b}\u{ffff}").with_attribute("class", "a\"b").with_title("x < y");
        let expected =
            r#"<text x="1" y="2" text-anchor="end" class="a&quot;b">&lt;b&gt;&amp;  <title>x &lt; y</title></text>"#;
        assert_eq!(element.to_string(), expected);
    }

    #[test]
    fn non_finite_coordinates_do_not_break_the_chart() {
        assert_eq!(
            (format_pixels(f64::NAN), format_pixels(-0.01), format_pixels(1.25)),
            ("0".into(), "0".into(), "1.3".into())
        );
    }
}
