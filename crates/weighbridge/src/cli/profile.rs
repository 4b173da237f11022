use clap::{Args, Subcommand};
use wb_model::Nanos;
use wb_session::HostSelection;
use wb_session::options::parse_existing_folder;

/// `profile`
#[derive(Debug, Subcommand)]
pub(crate) enum ProfileCommand {
    /// List the available profiles
    List(CatalogFlags),
    /// Print the definition of a profile; save a copy under another name to make your own
    Show(ProfileShowArgs),
    /// Put an image into the cache of hosts, so that no run has to wait for it
    Image(ImageArgs),
    /// Revert what killed runs left on hosts, and report the result
    #[command(
        after_help = "A run reverts its profile at its end and when it is killed; if its agent was killed too, the \
        next run on the host does.\n\n\
        exit status: 0 hosts are in their original state, 1 a run in progress holds a host, 3 something could not be \
        reverted"
    )]
    Revert(ProfileRevertArgs),
}

/// Folders of custom profiles
#[derive(Debug, Args)]
pub(crate) struct CatalogFlags {
    /// Folder with a profiles.d of custom profiles, besides ~/.config/weighbridge; may be given more than once
    #[arg(long, value_name = "DIR", value_parser = parse_existing_folder)]
    pub(crate) paths: Vec<std::path::PathBuf>,
}

/// `profile show`
#[derive(Debug, Args)]
pub(crate) struct ProfileShowArgs {
    /// Name of the profile
    pub(crate) name: String,
    /// Folders of custom profiles
    #[command(flatten)]
    pub(crate) catalog: CatalogFlags,
}

/// `profile image`
#[derive(Debug, Args)]
pub(crate) struct ImageArgs {
    /// Image: a name of the catalog, `built:bookworm`, `URL#sha256=…`, or JSON:
    /// `{"built":"bookworm","packages":["fio"]}`
    pub(crate) image: String,
    /// Hosts that cache the image; this machine by default
    #[command(flatten)]
    pub(crate) hosts: HostSelection,
}

/// `profile revert`
#[derive(Debug, Args)]
pub(crate) struct ProfileRevertArgs {
    /// Hosts to revert; this machine by default
    #[command(flatten)]
    pub(crate) hosts: HostSelection,
    /// Time limit for a reboot, needed if a kernel still has arguments of a profile
    #[arg(long, value_name = "TIME", default_value = "10min")]
    pub(crate) reboot_limit: Nanos,
}
