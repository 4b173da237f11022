//! `weighbridge net` between two processes on this machine.

mod errors;
mod files;
mod first_use;
pub(crate) mod place;
mod presets;
mod profiles;
mod results;
