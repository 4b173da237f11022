//! Flags for the placement of measured processes.

use clap::Args;
use clap::builder::TypedValueParser;
use wb_model::HugePages;

use super::{KeyValueParser, enum_parser};

/// Placement of measured processes
#[derive(Debug, Args)]
#[command(next_help_heading = "Placement of measured processes")]
pub(crate) struct PlacementFlags {
    /// Restrict measured processes to these CPUs: `0-3,8`
    #[arg(long, value_name = "LIST", value_parser = parse_number_list)]
    pub(crate) cpus: Option<NumberList>,
    /// Allocate memory only on these NUMA nodes
    #[arg(long, value_name = "LIST", value_parser = parse_number_list)]
    pub(crate) memory_nodes: Option<NumberList>,
    /// Transparent huge pages of measured processes
    #[arg(long, value_name = "POLICY", value_parser = enum_parser::<HugePages, 3>(HUGE_PAGES))]
    pub(crate) huge_pages: Option<HugePages>,
    /// Disable address-space layout randomisation
    #[arg(long)]
    pub(crate) no_aslr: bool,
    /// Use this file as a program in all cells that need it: `redis-server=./src/redis-server`; may be given more than
    /// once
    #[arg(long, value_name = "PROGRAM=PATH", value_parser = KeyValueParser.try_map(absolute_path))]
    pub(crate) program: Vec<(String, String)>,
}

/// A list of CPU or NUMA node numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NumberList(pub Vec<u32>);

const HUGE_PAGES: [(&str, &str); 3] = [
    ("inherit", "as the system is set"),
    ("always", "asked for, whatever the system's default; a test's parameter `huge-pages` also takes `try`"),
    ("never", "switched off for the process"),
];

fn absolute_path((name, path): (String, String)) -> Result<(String, String), std::io::Error> {
    let path = std::path::absolute(path)?;
    Ok((name, path.display().to_string()))
}

pub(crate) fn parse_number_list(text: &str) -> Result<NumberList, String> {
    let range = |part: &str| -> Option<Vec<u32>> {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let (low, high): (u32, u32) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
        (low <= high && high < 65_536).then(|| (low..=high).collect())
    };
    let all: Option<Vec<Vec<u32>>> = text.split(',').map(range).collect();
    all.map(|parts| NumberList(parts.concat())).ok_or_else(|| "expected numbers and ranges, such as `0-3,8`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_ranges_and_numbers() {
        assert_eq!(parse_number_list("0-2,5").unwrap().0, [0, 1, 2, 5]);
        assert!(
            parse_number_list("2-0").is_err()
                && parse_number_list("x").is_err()
                && parse_number_list("0-4000000000").is_err()
        );
    }
}
