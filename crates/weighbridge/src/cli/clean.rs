//! Arguments of `clean`.

use std::path::PathBuf;

use clap::Args;
use wb_model::Nanos;

use super::HostSelectionFlags;

/// Exit statuses of `clean`, printed after its help.
pub(crate) const AFTER_HELP: &str = "exit status: 0 everything selected was removed (or shown, with --dry-run), \
    3 something could not be removed, 4 nothing to remove";

/// `clean`
#[derive(Debug, Args)]
pub(crate) struct CleanArgs {
    /// Only images (default: images, programs, logs and parameters)
    #[arg(long)]
    pub(crate) images: bool,
    /// Only programs: agent binaries that were copied to hosts
    #[arg(long)]
    pub(crate) programs: bool,
    /// Only logs of deleted guests, left by libvirt
    #[arg(long)]
    pub(crate) logs: bool,
    /// Only parameters that contention benches committed
    #[arg(long)]
    pub(crate) parameters: bool,
    /// Folder of contention benches, as with `run --dir` [default: /var/lib/weighbridge]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Only items not used for this long: `36h`, `30d`, `8w`
    #[arg(long, value_name = "TIME", value_parser = parse_age)]
    pub(crate) older_than: Option<Nanos>,
    /// Show what would be removed, without removing it
    #[arg(long, short = 'n')]
    pub(crate) dry_run: bool,
    /// Remove without asking for confirmation
    #[arg(long, short, conflicts_with = "dry_run")]
    pub(crate) yes: bool,
    /// Machines to clean; last, because its help heading applies to all flags after it
    #[command(flatten)]
    pub(crate) hosts: HostSelectionFlags,
}

/// Parses a duration; days (`d`) and weeks (`w`) are accepted too.
fn parse_age(text: &str) -> Result<Nanos, String> {
    const HOUR: u64 = 3_600_000_000_000;
    let days =
        |text: &str, each: u64| text.trim().parse().ok().and_then(|count: u64| count.checked_mul(each * 24 * HOUR));
    let age = text.strip_suffix('d').and_then(|count| days(count, 1));
    let age = age.or_else(|| text.strip_suffix('w').and_then(|count| days(count, 7)));
    // A number alone would be seconds, of which nobody thinks when old items are removed.
    let with_unit = || text.parse().ok().filter(|_| text.ends_with(|c: char| c.is_ascii_alphabetic()));
    age.map(Nanos).or_else(with_unit).ok_or_else(|| "expected a number with a unit, such as 36h, 30d or 8w".to_owned())
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
