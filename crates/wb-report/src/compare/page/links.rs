//! Links in the metadata of builds.

use wb_results::comparison::{BuildSummary, RunSummary};

pub(super) use crate::links::Hyperlink;
use crate::links::{BASE_URL_KEYS, http_url, machine_url};

/// The link to a build: the URL of the first of its runs that has one.
pub(super) fn build_link(build: &BuildSummary) -> Hyperlink {
    let to = build.runs.iter().find_map(|run| http_url(run.metadata.get("url")?));
    Hyperlink { text: build.name.clone(), url: to }
}

pub(super) fn machine_links(build: &BuildSummary) -> Vec<Hyperlink> {
    let mut machines: Vec<Hyperlink> = build.runs.iter().flat_map(machines_of_run).collect();
    machines.dedup();
    machines
}

/// The machines of a run. Names and addresses are comma-separated lists; missing addresses are derived from a base URL.
fn machines_of_run(run: &RunSummary) -> Vec<Hyperlink> {
    let metadata = |name: &str| run.metadata.get(name).map(String::as_str);
    let Some(machines) = metadata("machine") else { return Vec::new() };
    let names: Vec<&str> = machines.split(',').map(str::trim).collect();
    let addresses: Vec<&str> = metadata("machine url").unwrap_or_default().split(',').map(str::trim).collect();
    let base = BASE_URL_KEYS.into_iter().find_map(metadata);
    let link = |(index, name): (usize, &&str)| {
        let explicit =
            addresses.get(index).filter(|_| addresses.len() == names.len()).and_then(|address| http_url(address));
        let to = explicit.or_else(|| http_url(&machine_url(base?, name)));
        Hyperlink { text: (*name).to_owned(), url: to }
    };
    names.iter().enumerate().map(link).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link_targets(pairs: &[(&str, &str)]) -> Vec<Option<String>> {
        let metadata = pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        machines_of_run(&RunSummary { metadata, ..RunSummary::default() }).into_iter().map(|link| link.url).collect()
    }

    #[test]
    fn machines_link_to_their_addresses_or_to_the_base_url() {
        let some = |to: &str| Some(to.to_owned());
        let pairs = [("machine", "a,b"), ("machine url", "https://x/a,https://x/b")];
        assert_eq!(link_targets(&pairs), [some("https://x/a"), some("https://x/b")]);
        let base = [("machine", "a"), ("machine_url_base", "https://x/%(machine)s/view")];
        assert_eq!(link_targets(&base), [some("https://x/a/view")]);
        assert_eq!(link_targets(&[("machine", "a,b"), ("machine url", "https://x/a")]), [None, None]);
        assert!(link_targets(&[]).is_empty());
    }
}
