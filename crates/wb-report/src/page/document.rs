//! Renders pages from the common frame, components, style and script.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior, Value, context};
use serde::Serialize;
use wb_model::is_unprintable;

use crate::chart;

const COMMON: [(&str, &str); 2] = [
    ("base.html", include_str!("../../templates/base.html")),
    ("pieces.html", include_str!("../../templates/pieces.html")),
];
const CSS: &str = include_str!("../../templates/page.css");
const SCRIPT: &str = include_str!("../../templates/page.js");

pub(crate) struct Document<'a> {
    /// Extends `base.html` and receives the view as `page`.
    pub(crate) template: &'a str,
    /// Style sheets after the common ones.
    pub(crate) styles: &'a [&'a str],
    /// Concatenated to the common script, in this order.
    pub(crate) scripts: &'a [&'a str],
}

/// A template does not match its view: a bug of this program.
#[derive(Debug, thiserror::Error)]
#[error("cannot render the page: {0:#}")]
pub struct PageError(#[from] minijinja::Error);

impl Document<'_> {
    /// Renders the page of a view. Every text is escaped; only values marked as safe are markup.
    pub(crate) fn render(&self, view: impl Serialize) -> Result<String, PageError> {
        let mut environment = Environment::new();
        // A name that the view lacks is an error, unless it is only tested.
        environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
        environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
        for (name, source) in COMMON {
            environment.add_template(name, source)?;
        }
        environment.add_template("page.html", self.template)?;
        let colours = chart::css_variables();
        let styles = [&colours, CSS, chart::CSS].into_iter().chain(self.styles.iter().copied());
        let scripts = std::iter::once(SCRIPT).chain(self.scripts.iter().copied());
        let css = Value::from_safe_string(styles.collect());
        let script = Value::from_safe_string(scripts.collect::<Vec<_>>().join("\n"));
        let page = Value::from(Serde(view));
        Ok(show_unprintable(environment.get_template("page.html")?.render(context! { page, css, script })?))
    }
}

/// Replaces characters that HTML does not allow, or that would disguise a name, by their numbers: `⟨U+202E⟩`. In the
/// data of scripts that is text, too.
fn show_unprintable(page: String) -> String {
    let is_replaced = |letter: char| is_unprintable(letter) && !matches!(letter, '\n' | '\t' | '\r');
    if !page.contains(is_replaced) {
        return page;
    }
    let mut shown = String::with_capacity(page.len());
    for letter in page.chars() {
        if is_replaced(letter) {
            shown.push_str(&format!("⟨U+{:04X}⟩", u32::from(letter)))
        } else {
            shown.push(letter)
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_in_names_are_shown_as_numbers() {
        let view = serde_json::json!({ "title": "a\0b\u{1b}]0;x\u{7} \u{202e}c\nd\te" });
        let page = Document { template: "{{ page.title }}", styles: &[], scripts: &[] }.render(view).unwrap();
        assert_eq!(page, "a⟨U+0000⟩b⟨U+001B⟩]0;x⟨U+0007⟩ ⟨U+202E⟩c\nd\te");
    }

    #[test]
    fn a_name_that_the_view_lacks_is_an_error_unless_it_is_only_tested() {
        let render = |template: &str| {
            Document { template, styles: &[], scripts: &[] }.render(serde_json::json!({ "title": "a & b" }))
        };
        assert_eq!(render("{{ page.title }}{% if page.absent %}x{% endif %}").unwrap(), "a &amp; b");
        for template in ["{{ page.absent }}", "{{ absent }}", "{% for item in page.absent %}{% endfor %}"] {
            assert!(render(template).is_err(), "{template}");
        }
    }
}
