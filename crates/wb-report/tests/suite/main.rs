//! Tests of reports: text, CSV, charts, and pages in a browser.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod browser;
mod chromium;
mod comparison;
mod comparison_browser;
mod comparison_page;
mod comparison_parts;
mod comparison_text;
mod comparison_words;
mod csv;
mod matrix;
mod metric_charts;
mod page;
mod parsed_page;
mod peers;
mod plots;
mod specimen;
mod text;
mod variants;
