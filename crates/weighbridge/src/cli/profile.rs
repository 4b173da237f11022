//! `weighbridge profile`.

use clap::{Args, Subcommand};
use wb_model::Nanos;

use super::HostSelectionFlags;
use super::hosts::parse_existing_folder;

/// What to do with profiles
#[derive(Debug, Subcommand)]
pub(crate) enum ProfileCommand {
    /// List the profiles there are
    List(CatalogFlags),
    /// Print a profile as a file has it; a copy under another name is one of your own
    Show(ProfileShowArgs),
    /// Have an image lie in the cache of hosts, so that no run has to wait for it
    Image(ImageArgs),
    /// Bring hosts back from what runs that were killed have left there, and say what became of it
    #[command(
        after_help = "A run does so by itself at its end and when it is killed; where its agent was killed too, \
        the next run on the host does. exit status: 0 as it was, 1 where a run that \
        is under way holds a host, 3 where not all could be put back"
    )]
    Revert(ProfileRevertArgs),
}

/// Where profiles of one's own are
#[derive(Debug, Args)]
pub(crate) struct CatalogFlags {
    /// Folders with a profiles.d of one's own, beside ~/.config/weighbridge
    #[arg(long, value_name = "DIR", value_parser = parse_existing_folder)]
    pub(crate) paths: Vec<std::path::PathBuf>,
}

/// `profile show`
#[derive(Debug, Args)]
pub(crate) struct ProfileShowArgs {
    /// Which
    pub(crate) name: String,
    /// Where profiles are
    #[command(flatten)]
    pub(crate) catalog: CatalogFlags,
}

/// `profile image`
#[derive(Debug, Args)]
pub(crate) struct ImageArgs {
    /// Which: a name of the catalogue, `built:bookworm`, `URL#sha256=…`, or JSON: `{"built":"bookworm","packages":["fio"]}`
    pub(crate) image: String,
    /// On which machines; without, this one
    #[command(flatten)]
    pub(crate) hosts: HostSelectionFlags,
}

/// `profile revert`
#[derive(Debug, Args)]
pub(crate) struct ProfileRevertArgs {
    /// Which machines; without, this one
    #[command(flatten)]
    pub(crate) hosts: HostSelectionFlags,
    /// How long a reboot may take, where a kernel still has arguments of a profile
    #[arg(long, value_name = "TIME", default_value = "10min")]
    pub(crate) reboot_limit: Nanos,
}
