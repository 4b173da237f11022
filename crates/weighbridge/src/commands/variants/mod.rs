//! One test against variants of itself, or against itself: `ab` and `calibrate`.

mod ab;
mod calibrate;
mod question;
mod referee;

pub(crate) use ab::ab;
pub(crate) use calibrate::calibrate;
