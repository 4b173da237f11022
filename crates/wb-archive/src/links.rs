//! Targets of symbolic links in archives.

/// The member that a link leads to; `None` if it leads out of the archive. `..` is only resolved at the beginning of the
/// target, where it means a folder of the archive: after the name of another link it would mean something else.
pub(crate) fn resolve_link(path: &str, target: &str) -> Option<String> {
    let mut folder: Vec<&str> = path.split('/').collect();
    folder.pop();
    let mut rest = target;
    while let Some(after) = rest.strip_prefix("../") {
        folder.pop()?;
        rest = after;
    }
    if rest.split('/').any(|name| matches!(name, "" | "." | "..")) {
        return None;
    }
    Some(folder.into_iter().chain(rest.split('/')).collect::<Vec<_>>().join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_resolved_within_the_archive() {
        assert_eq!(resolve_link("a/b/l", "x").as_deref(), Some("a/b/x"));
        assert_eq!(resolve_link("a/b/l", "../../x/y").as_deref(), Some("x/y"));
        assert_eq!(resolve_link("l", "x").as_deref(), Some("x"));
        for target in ["../../../x", "/x", "x/../y", "../..", ""] {
            assert_eq!(resolve_link("a/b/l", target), None, "{target}");
        }
    }
}
