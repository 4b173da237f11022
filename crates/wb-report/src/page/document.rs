//! What every page of this program has in common: its frame, its pieces, the style and the script.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, Value, context};
use serde::Serialize;

use crate::chart;

const COMMON: [(&str, &str); 2] = [
    ("base.html", include_str!("../../templates/base.html")),
    ("pieces.html", include_str!("../../templates/pieces.html")),
];
const CSS: &str = include_str!("../../templates/page.css");
const SCRIPT: &str = include_str!("../../templates/page.js");

/// What one kind of page adds to it.
pub(crate) struct Document<'a> {
    /// The template, which extends `base.html` and is given the view as `page`.
    pub(crate) template: &'a str,
    /// Style sheets after the common ones.
    pub(crate) styles: &'a [&'a str],
    /// Scripts after the common one, in this order; together they are one.
    pub(crate) scripts: &'a [&'a str],
}

/// A template that does not fit its view: a fault of this program.
#[derive(Debug, thiserror::Error)]
#[error("the page could not be drawn: {0:#}")]
pub struct PageError(#[from] minijinja::Error);

impl Document<'_> {
    /// The page of a view. Every text in it is escaped; only values that say they are safe are markup.
    pub(crate) fn render(&self, view: impl Serialize) -> Result<String, PageError> {
        let mut environment = Environment::new();
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
        Ok(environment.get_template("page.html")?.render(context! { page, css, script })?)
    }
}
