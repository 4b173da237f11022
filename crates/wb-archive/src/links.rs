//! Targets of symbolic links in archives.

/// Maximum number of links that are followed for one target, as on Linux. A circle of links has no end.
const MAX_LINKS: usize = 40;

/// What a path of an archive is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry<'a> {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link with this target.
    Link(&'a str),
}

/// The file or folder that the link `path` leads to, by way of other links as the kernel resolves them; `None` if it
/// leads out of the archive, to nothing or in a circle. `entry` looks up a path of the archive.
pub(crate) fn resolve_link<'a>(
    path: &str,
    target: &'a str,
    entry: impl Fn(&str) -> Option<Entry<'a>>,
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
                    Entry::Folder => resolved.push(name),
                    Entry::File if rest.is_empty() => resolved.push(name),
                    Entry::File => return None,
                    Entry::Link(target) if links == MAX_LINKS || target.starts_with('/') => return None,
                    Entry::Link(target) => {
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

    fn entry(path: &str) -> Option<Entry<'static>> {
        Some(match path {
            "a" | "a/b" => Entry::Folder,
            "a/b/file" | "file" => Entry::File,
            "chain" => Entry::Link("./a/link"),
            "a/link" => Entry::Link("b"),
            "circle" => Entry::Link("a/circle"),
            "a/circle" => Entry::Link("../circle"),
            "out" => Entry::Link("/etc"),
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
        for target in [
            "../../../file",
            "/file",
            "../..",
            "",
            "nosuch",
            "file/",
            "file/..",
            "../../circle",
            "../../out",
            "../circle",
        ] {
            assert_eq!(resolve_link("a/b/l", target, entry), None, "{target}");
        }
    }
}
