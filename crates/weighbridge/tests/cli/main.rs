//! What a user sees of the program, and what becomes of a run whatever happens to it.

mod faults;
mod kills;
mod lab;
mod plan;
mod read;
mod run;
mod schemas;
