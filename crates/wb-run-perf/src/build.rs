//! Translates build arguments of run-perf.

use std::path::Path;

use wb_diagnostics::Diagnostic;

/// Skips files with a note: a pattern such as `result*` also matches the pages and models of an earlier comparison.
pub fn keep_folders<'a, T>(results: &'a [T], path: impl Fn(&T) -> &Path, notes: &mut Vec<String>) -> Vec<&'a T> {
    let (files, folders): (Vec<&T>, Vec<&T>) = results.iter().partition(|result| path(result).is_file());
    notes.extend(
        files.iter().map(|file| format!("`{}` is a file, not a results folder: skipped", path(file).display())),
    );
    folders
}

/// Translates a build of `compare-perf`, `[NAME:]FOLDER`; the part after the first colon is the folder if it exists.
/// Fails if neither exists, or the name or the folder cannot be written as an argument.
pub fn parse_named_build(text: &str) -> Result<String, Diagnostic> {
    match text.split_once(':') {
        Some((name, folder)) if Path::new(folder).exists() => {
            if name.is_empty() || name.contains(['/', '=']) {
                let what = format!("invalid name `{name}` of a build: expected a name without `/` and `=`");
                return Err(Diagnostic::new(what).with_help(format!("write `NAME:{folder}`")));
            }
            Ok(format!("{name}={}", require_single(folder)?))
        }
        Some((_, folder)) if !Path::new(text).exists() => {
            let message = format!("cannot read `{text}`: neither `{folder}` nor `{text}` exists");
            Err(Diagnostic::new(message).with_help("a build is written FOLDER or NAME:FOLDER"))
        }
        _ => folder_build(Path::new(text)),
    }
}

/// Translates a folder into a build argument. Fails if the path contains a comma.
pub fn folder_build(path: &Path) -> Result<String, Diagnostic> {
    let text = require_single(&path.display().to_string())?;
    // Text before a `=` would be taken for a name.
    let has_name = text.split('/').next().is_some_and(|first| first.contains('='));
    Ok(if has_name { format!("./{text}") } else { text })
}

/// Refuses a comma, which would separate several runs.
fn require_single(text: &str) -> Result<String, Diagnostic> {
    if text.contains(',') {
        Err(Diagnostic::new(format!("invalid folder `{text}`: commas separate runs of one build"))
            .with_help("rename it, or name a link to it"))
    } else {
        Ok(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colon_separates_a_name_if_a_folder_follows() {
        let dir = tempfile::tempdir().unwrap();
        let [plain, colon, equals] = ["plain", "with:colon", "a=b"].map(|name| {
            let path = dir.path().join(name);
            std::fs::create_dir(&path).unwrap();
            path.display().to_string()
        });
        assert_eq!(parse_named_build(&plain).unwrap(), plain);
        assert_eq!(parse_named_build(&format!("old:{plain}")).unwrap(), format!("old={plain}"));
        assert_eq!(parse_named_build(&colon).unwrap(), colon);
        // The `=` is in the last component of the path, not in the first.
        assert_eq!(parse_named_build(&equals).unwrap(), equals);
        assert_eq!(folder_build(Path::new("a=b")).unwrap(), "./a=b");
        assert!(
            parse_named_build("old:/no/such")
                .unwrap_err()
                .to_string()
                .contains("neither `/no/such` nor `old:/no/such`")
        );
        assert!(
            parse_named_build(&format!("a=b:{plain}")).is_err() && parse_named_build(&format!(":{plain}")).is_err()
        );
        assert!(folder_build(Path::new("a,b")).unwrap_err().to_string().contains("commas"));
    }
}
