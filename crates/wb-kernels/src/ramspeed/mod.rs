//! Ramspeed: the bandwidth of memory and caches, by simple passes over arrays of 64-bit words.
//!
//! [`run()`] measures one operation over arrays that exceed the caches: copy (c = a), scale (c = 3a), add (c = a + b) or
//! triad (c = a + 3b), on `i64` or `f64`, with ordinary or non-temporal stores. [`sweep`] reads or writes blocks of
//! increasing size, which shows the cache hierarchy as a curve.
//!
//! Bytes are counted as in STREAM (J. McCalpin): the arrays that the operation reads and writes by its definition, two
//! for copy and scale, three for add and triad. Lines that an ordinary store fetches before it writes them are not
//! counted; non-temporal stores avoid these fetches, hence their higher figures. One MB is 10⁶ bytes.
//!
//! Operands never change during a run and hold small integers, so that the result of any number of passes is exact in
//! both word types and every word of it is checked afterwards.

mod blocks;
mod operands;
mod pass;
mod run;
pub mod sweep;
mod words;

pub use run::{Config, Mode, RamspeedReport, ResultCheck, WordType, run};
