//! Links that were given with the builds.

use wb_compare::comparison::{BuildSummary, RunSummary};

pub(super) use crate::links::Hyperlink;
use crate::links::{BASE_URL_KEYS, http_url, machine_url};

/// Where each build can be seen: the first of its runs that says so.
pub(super) fn build_link(build: &BuildSummary) -> Hyperlink {
    let to = build.runs.iter().find_map(|run| http_url(run.metadata.get("url")?));
    Hyperlink { text: build.name.clone(), url: to }
}

/// The machines of a build, each once.
pub(super) fn machine_links(build: &BuildSummary) -> Vec<Hyperlink> {
    let mut machines: Vec<Hyperlink> = build.runs.iter().flat_map(machines_of_run).collect();
    machines.dedup();
    machines
}

/// Machines and their addresses are lists with commas; where there are no addresses, they are made from a base.
fn machines_of_run(run: &RunSummary) -> Vec<Hyperlink> {
    let said = |name: &str| run.metadata.get(name).map(String::as_str);
    let Some(machines) = said("machine") else { return Vec::new() };
    let names: Vec<&str> = machines.split(',').map(str::trim).collect();
    let addresses: Vec<&str> = said("machine url").unwrap_or_default().split(',').map(str::trim).collect();
    let base = BASE_URL_KEYS.into_iter().find_map(said);
    let link = |(at, name): (usize, &&str)| {
        let own = addresses.get(at).filter(|_| addresses.len() == names.len()).and_then(|address| http_url(address));
        let to = own.or_else(|| http_url(&machine_url(base?, name)));
        Hyperlink { text: (*name).to_owned(), url: to }
    };
    names.iter().enumerate().map(link).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Vec<Option<String>> {
        let metadata = pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        machines_of_run(&RunSummary { metadata, ..RunSummary::default() }).into_iter().map(|link| link.url).collect()
    }

    #[test]
    fn machines_lead_to_their_own_addresses_or_to_what_a_base_makes() {
        let some = |to: &str| Some(to.to_owned());
        let pairs = [("machine", "a,b"), ("machine url", "https://x/a,https://x/b")];
        assert_eq!(of(&pairs), [some("https://x/a"), some("https://x/b")]);
        let base = [("machine", "a"), ("machine_url_base", "https://x/%(machine)s/view")];
        assert_eq!(of(&base), [some("https://x/a/view")]);
        assert_eq!(of(&[("machine", "a,b"), ("machine url", "https://x/a")]), [None, None]);
        assert!(of(&[]).is_empty());
    }
}
