//! Scheduling, sampling rule, attempts, resume
