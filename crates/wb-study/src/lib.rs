//! From raw artefacts to values, gates, summaries and answers.
//!
//! A study reads a run folder and needs no live system: it can be repeated with a newer program on old
//! artefacts. It draws nothing and compares nothing.
//!
//! Start with [`result`], what a study yields.

pub mod result;
