//! Tables, charts and pages: draws finished results, computes none.
//!
//! Whatever a person reads of a study is made here: the tables of a terminal ([`text`]), files for other programs
//! ([`csv`]), charts ([`chart`]), the page ([`page`]), runs of network workloads
//! ([`net`]) and comparisons ([`compare`]). Every figure shown stands in the study already; it must not
//! know how one is measured, judged or stored, and it reads no file and no clock.
//!
//! Start with [`text::summary`], then [`page::html`]; `groups` and `words` are what both have in common.

pub mod chart;
pub mod compare;
pub mod csv;
mod groups;
mod links;
pub mod net;
pub mod page;
mod phrasing;
mod systems;
pub mod text;
