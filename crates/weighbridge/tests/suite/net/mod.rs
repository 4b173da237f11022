//! `weighbridge net`: what a user sees of runs between two processes of this machine.

mod errors;
mod files;
mod place;
mod presets;
mod profiles;
mod results;
