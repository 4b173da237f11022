//! Links that were given with the builds.

use serde::Serialize;
use wb_compare::outcome::{BuildTold, RunTold};

/// A text, and where it leads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Link {
    pub(super) text: String,
    pub(super) to: Option<String>,
}

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
    let base = said("machine_url_base").or(said("machine-url-base"));
    let link = |(at, name): (usize, &&str)| {
        let own = addresses.get(at).filter(|_| addresses.len() == names.len()).and_then(|address| web(address));
        let to = own.or_else(|| web(&base?.replace("%(machine)s", name)));
        Link { text: (*name).to_owned(), to }
    };
    names.iter().enumerate().map(link).collect()
}

/// An address of the web; anything else could be a script.
fn web(address: &str) -> Option<String> {
    let address = address.trim();
    let scheme = address.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    let sound = !address.contains(|c: char| c.is_whitespace() || c.is_control());
    (sound && matches!(scheme.as_deref(), Some("http" | "https"))).then(|| address.to_owned())
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

    #[test]
    fn only_the_web_is_linked_to() {
        assert_eq!(web(" HTTPS://x/y"), Some("HTTPS://x/y".to_owned()));
        for bad in ["javascript:alert(1)//://", "data:text/html,x", "file:///etc", "x.example", "https://a b", "//x"] {
            assert_eq!(web(bad), None, "{bad}");
        }
    }
}
