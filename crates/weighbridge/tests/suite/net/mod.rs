//! `weighbridge net` between two processes on this machine.

mod errors;
mod files;
pub(crate) mod place;
mod presets;
mod profiles;
mod results;
