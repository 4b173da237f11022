//! Links that were given with the builds.

use wb_compare::outcome::{BuildTold, RunTold};

pub(super) use crate::links::Link;
use crate::links::{BASES, machine, web};

/// Where each build can be seen: the first of its runs that says so.
pub(super) fn build(build: &BuildTold) -> Link {
    let to = build.runs.iter().find_map(|run| web(run.metadata.get("url")?));
    Link { text: build.name.clone(), to }
}

/// The machines of a build, each once.
pub(super) fn machines(build: &BuildTold) -> Vec<Link> {
    let mut machines: Vec<Link> = build.runs.iter().flat_map(machines_of).collect();
    machines.dedup();
    machines
}

/// Machines and their addresses are lists with commas; where there are no addresses, they are made from a base.
fn machines_of(run: &RunTold) -> Vec<Link> {
    let said = |name: &str| run.metadata.get(name).map(String::as_str);
    let Some(machines) = said("machine") else { return Vec::new() };
    let names: Vec<&str> = machines.split(',').map(str::trim).collect();
    let addresses: Vec<&str> = said("machine url").unwrap_or_default().split(',').map(str::trim).collect();
    let base = BASES.into_iter().find_map(said);
    let link = |(at, name): (usize, &&str)| {
        let own = addresses.get(at).filter(|_| addresses.len() == names.len()).and_then(|address| web(address));
        let to = own.or_else(|| web(&machine(base?, name)));
        Link { text: (*name).to_owned(), to }
    };
    names.iter().enumerate().map(link).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Vec<Option<String>> {
        let metadata = pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        machines_of(&RunTold { metadata, ..RunTold::default() }).into_iter().map(|link| link.to).collect()
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
