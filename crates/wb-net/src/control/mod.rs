//! The control connection between `weighbridge net run` and `weighbridge net serve`.

mod frame;
mod text;

pub use frame::{FrameError, FrameReader, FrameWriter};
