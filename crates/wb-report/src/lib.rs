//! Renders results as tables, charts and pages.
//!
//! All human-readable output of a study is rendered here: terminal tables ([`text`]), files for other programs
//! ([`csv`]), charts ([`chart`]), the HTML page ([`page`]), results of network workloads ([`net`]), of matrices of
//! implementations ([`peers`]), comparisons ([`compare`]) and contention benches ([`contention`]), and runs in the
//! layout of run-perf ([`run_perf`]). The crate computes no figures and is independent of how they are measured,
//! compared or stored; it reads no file and no clock.
//!
//! Start with [`text::summary`], then [`page::html`]; `groups` and `phrasing` are shared by both.

#![forbid(unsafe_code)]

pub mod chart;
pub mod compare;
pub mod contention;
pub mod csv;
mod findings;
mod groups;
mod links;
mod markdown;
pub mod net;
pub mod page;
pub mod peers;
mod phrasing;
pub mod run_perf;
mod systems;
pub mod text;
mod xml_chars;
