//! Results of other programs, imported and then read as any run is.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod compare;
mod extend;
mod formats;
mod hostile;
mod lab;
