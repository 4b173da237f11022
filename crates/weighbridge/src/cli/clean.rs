use std::path::PathBuf;

use clap::Args;
use wb_model::Nanos;
use wb_session::HostSelection;

pub(crate) const AFTER_HELP: &str = "Without --images, --programs, --logs and --parameters, all four are removed.\n\n\
    exit status: 0 everything selected was removed (or shown, with --dry-run), \
    3 something could not be removed, 4 nothing to remove";

/// `clean`
#[derive(Debug, Args)]
pub(crate) struct CleanArgs {
    /// Remove images
    #[arg(long)]
    pub(crate) images: bool,
    /// Remove programs: agent binaries that were copied to hosts
    #[arg(long)]
    pub(crate) programs: bool,
    /// Remove logs of deleted guests, which libvirt left
    #[arg(long)]
    pub(crate) logs: bool,
    /// Remove parameters that contention benches committed
    #[arg(long)]
    pub(crate) parameters: bool,
    /// Folder of contention benches, as with `run --dir` [default: /var/lib/weighbridge]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Remove only items not used for this long: a number with a unit, `36h`, `30d`, `8w`
    #[arg(long, value_name = "AGE", value_parser = parse_age)]
    pub(crate) older_than: Option<Nanos>,
    /// Show what would be removed, without removing it
    #[arg(long, short = 'n')]
    pub(crate) dry_run: bool,
    /// Remove without asking for confirmation
    #[arg(long, short, conflicts_with = "dry_run")]
    pub(crate) yes: bool,
    /// Machines to clean; last, because its help heading applies to all flags after it
    #[command(flatten)]
    pub(crate) hosts: HostSelection,
}

/// Parses a duration with a unit: a number alone would be seconds, of which nobody thinks when old items are removed.
fn parse_age(text: &str) -> Result<Nanos, String> {
    let with_unit = text.parse().ok().filter(|_| text.ends_with(|c: char| c.is_ascii_alphabetic()));
    with_unit.ok_or_else(|| "expected a number with a unit, such as 36h, 30d or 8w".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_accept_days_and_weeks() {
        assert_eq!(parse_age("2d"), Ok(Nanos(172_800_000_000_000)));
        assert_eq!(parse_age("1w"), parse_age("7d"));
        assert_eq!(parse_age("36h"), Ok(Nanos(129_600_000_000_000)));
        for text in ["soon", "99999999999999999999d", "5", "1.5", ""] {
            assert!(parse_age(text).is_err(), "{text}");
        }
    }
}
