//! The run folder and the journal
