//! Targets of symbolic links in archives.

/// Maximum number of links that are followed for one target, as on Linux. A loop of links never ends.
const MAX_LINKS: usize = 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind<'a> {
    File,
    Folder,
    Link(&'a str),
}

/// The file or folder that the link `path` resolves to, following other links as the kernel does; `None` if that is
/// outside of the archive, its root or nothing, or if the links form a loop. `entry` looks up a path of the archive.
pub(crate) fn resolve_link<'a>(
    path: &str,
    target: &'a str,
    entry: impl Fn(&str) -> Option<EntryKind<'a>>,
) -> Option<String> {
    let mut resolved: Vec<&str> = path.split('/').collect();
    resolved.pop();
    if target.is_empty() || target.starts_with('/') {
        return None;
    }
    let mut rest: Vec<&str> = target.split('/').rev().collect();
    let mut links = 1;
    while let Some(name) = rest.pop() {
        match name {
            "" | "." => {}
            ".." => drop(resolved.pop()?),
            name => {
                let found = entry(&[&resolved[..], &[name]].concat().join("/"))?;
                match found {
                    EntryKind::Folder => resolved.push(name),
                    EntryKind::File if rest.is_empty() => resolved.push(name),
                    EntryKind::File => return None,
                    EntryKind::Link(target) if links == MAX_LINKS || target.starts_with('/') => return None,
                    EntryKind::Link(target) => {
                        links += 1;
                        rest.extend(target.split('/').rev());
                    }
                }
            }
        }
    }
    (!resolved.is_empty()).then(|| resolved.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str) -> Option<EntryKind<'static>> {
        Some(match path {
            "a" | "a/b" => EntryKind::Folder,
            "a/b/file" | "file" => EntryKind::File,
            "chain" => EntryKind::Link("./a/link"),
            "a/link" => EntryKind::Link("b"),
            "loop" => EntryKind::Link("a/loop"),
            "a/loop" => EntryKind::Link("../loop"),
            "out" => EntryKind::Link("/etc"),
            _ => return None,
        })
    }

    #[test]
    fn targets_are_resolved_within_the_archive() {
        for (target, resolved) in [
            ("file", "a/b/file"),
            ("./file", "a/b/file"),
            ("../../file", "file"),
            ("../../chain", "a/b"),
            ("../../chain/file", "a/b/file"),
            ("../../chain/../../file", "file"),
            ("../", "a"),
        ] {
            assert_eq!(resolve_link("a/b/l", target, entry).as_deref(), Some(resolved), "{target}");
        }
        for target in
            ["../../../file", "/file", "../..", "", "nosuch", "file/", "file/..", "../../loop", "../../out", "../loop"]
        {
            assert_eq!(resolve_link("a/b/l", target, entry), None, "{target}");
        }
    }
}
