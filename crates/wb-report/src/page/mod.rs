//! The page of a run: one file that needs no network, can be read without scripts and is better with.
//!
//! A page is a view (strings, and charts already drawn) put into templates. Every text is escaped by the template
//! engine; only charts come as markup, and they escape what they are given. `base.html`, `pieces.html`, the styles
//! and the script are not about runs and serve any page of this program.

mod cell;
mod extras;
mod group;
mod view;

pub use extras::{Command, Extras, Series};

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, context};
use wb_study::result::Study;

use crate::chart;

const TEMPLATES: [(&str, &str); 3] = [
    ("base.html", include_str!("../../templates/base.html")),
    ("pieces.html", include_str!("../../templates/pieces.html")),
    ("run.html", include_str!("../../templates/run.html")),
];
const CSS: &str = include_str!("../../templates/page.css");
const SCRIPT: &str = include_str!("../../templates/page.js");

/// The page of a study, with what the run folder has beside it.
pub fn html(study: &Study, extras: &Extras) -> Result<String, PageError> {
    let mut environment = Environment::new();
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    for (name, source) in TEMPLATES {
        environment.add_template(name, source)?;
    }
    let css = minijinja::Value::from_safe_string([&chart::variables(), CSS, chart::CSS].concat());
    let script = minijinja::Value::from_safe_string(SCRIPT.to_owned());
    let page = minijinja::Value::from(Serde(view::Page::new(study, extras)));
    Ok(environment.get_template("run.html")?.render(context! { page, css, script })?)
}

/// A template that does not fit its view: a fault of this program.
#[derive(Debug, thiserror::Error)]
#[error("the page could not be drawn: {0:#}")]
pub struct PageError(#[from] minijinja::Error);
