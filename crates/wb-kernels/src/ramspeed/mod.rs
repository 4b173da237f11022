//! Ramspeed: what memory and caches give, by plain passes over arrays of 64-bit words.
//!
//! [`run`] measures one operation over arrays that exceed the caches: copy (c = a), scale
//! (c = 3a), add (c = a + b) or triad (c = a + 3b), on `i64` or `f64`, with ordinary or
//! non-temporal stores. [`sweep`] reads or writes blocks of growing size: the cache hierarchy as a
//! curve.
//!
//! Bytes are counted as STREAM counts them (J. McCalpin): what the operation reads and writes by
//! its definition, two arrays for copy and scale, three for add and triad. Lines that an ordinary
//! store fetches before it writes them are not counted; non-temporal stores avoid them, hence
//! their higher figures. One MB is 10⁶ bytes.
//!
//! Operands never change during a run and hold small integers, so that the result of any number
//! of passes is exact in both kinds and every word of it is checked afterwards.

mod blocks;
mod operands;
mod pass;
mod run;
pub mod sweep;
mod words;

pub use run::{Config, Mode, Report, ResultCheck, WordType, run};
