//! `clean`: what stays on machines, shown and removed.

use clap::Args;
use wb_model::Nanos;

use super::HostSelectionFlags;

/// What its exit statuses say
pub(crate) const AFTER_HELP: &str = "exit status: 0 what was asked for is removed (or shown, with --dry-run), \
    3 something of it is left, 4 nothing is there";

/// `clean`
#[derive(Debug, Args)]
pub(crate) struct CleanArgs {
    /// Only images; without --images, --programs and --logs, all of them
    #[arg(long)]
    pub(crate) images: bool,
    /// Only programs: what was put on hosts to be the agent there
    #[arg(long)]
    pub(crate) programs: bool,
    /// Only logs that libvirt has kept of guests that are gone
    #[arg(long)]
    pub(crate) logs: bool,
    /// Only what was not used for so long: `36h`, `30d`, `8w`
    #[arg(long, value_name = "TIME", value_parser = parse_age)]
    pub(crate) older_than: Option<Nanos>,
    /// Show it, and remove nothing
    #[arg(long, short = 'n')]
    pub(crate) dry_run: bool,
    /// Remove it without asking
    #[arg(long, short, conflicts_with = "dry_run")]
    pub(crate) yes: bool,
    /// On which machines; last, since its headings hold for all that follows
    #[command(flatten)]
    pub(crate) hosts: HostSelectionFlags,
}

/// A time, also in days and weeks.
fn parse_age(text: &str) -> Result<Nanos, String> {
    const HOUR: u64 = 3_600_000_000_000;
    let days =
        |text: &str, each: u64| text.trim().parse().ok().and_then(|count: u64| count.checked_mul(each * 24 * HOUR));
    let long = text.strip_suffix('d').and_then(|count| days(count, 1));
    let long = long.or_else(|| text.strip_suffix('w').and_then(|count| days(count, 7)));
    let other = || text.parse().map_err(|_| format!("`{text}` is not a time: write 36h, 30d or 8w"));
    long.map_or_else(other, |long| Ok(Nanos(long)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_given_in_days_and_weeks_too() {
        assert_eq!(parse_age("2d"), Ok(Nanos(172_800_000_000_000)));
        assert_eq!(parse_age("1w"), parse_age("7d"));
        assert_eq!(parse_age("36h"), Ok(Nanos(129_600_000_000_000)));
        assert!(parse_age("soon").is_err() && parse_age("99999999999999999999d").is_err());
    }
}
