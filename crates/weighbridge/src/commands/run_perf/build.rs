//! Builds as run-perf's users name them.

use std::path::Path;

use crate::error::Error;

/// Leaves out what is a file: a pattern such as `result*` matches the pages and models of an earlier comparison as well.
/// Each is noted.
pub(super) fn keep_folders<'a, T>(results: &'a [T], path: impl Fn(&T) -> &Path, notes: &mut Vec<String>) -> Vec<&'a T> {
    let (files, folders): (Vec<&T>, Vec<&T>) = results.iter().partition(|result| path(result).is_file());
    notes.extend(
        files.iter().map(|file| format!("`{}` is a file, not a folder of results: left out", path(file).display())),
    );
    folders
}

/// A build of `compare-perf`, `[NAME:]FOLDER`: what follows the first colon is the folder where there is such a one.
pub(super) fn parse_named_build(text: &str) -> Result<String, Error> {
    match text.split_once(':') {
        Some((name, folder)) if Path::new(folder).exists() => {
            if name.is_empty() || name.contains(['/', '=']) {
                let what = format!("invalid name `{name}` of a build: expected a name without `/` and `=`");
                return Err(Error::Usage { what, help: format!("write `NAME:{folder}`") });
            }
            Ok(format!("{name}={}", require_single(folder)?))
        }
        Some((_, folder)) if !Path::new(text).exists() => Err(Error::Usage {
            what: format!("cannot read `{text}`: neither `{folder}` nor `{text}` exists"),
            help: "a build is written FOLDER or NAME:FOLDER".to_owned(),
        }),
        _ => folder_build(Path::new(text)),
    }
}

/// A build that is one folder, as `compare` and its relatives take it.
pub(super) fn folder_build(path: &Path) -> Result<String, Error> {
    let text = require_single(&super::path_word(path))?;
    // What stands before a `=` would be a name.
    let has_name = text.split('/').next().is_some_and(|first| first.contains('='));
    Ok(if has_name { format!("./{text}") } else { text })
}

/// The path of one folder; commas separate several.
fn require_single(text: &str) -> Result<String, Error> {
    match text.contains(',') {
        false => Ok(text.to_owned()),
        true => Err(Error::Usage {
            what: format!("invalid folder `{text}`: commas separate runs of one build"),
            help: "rename it, or name a link to it".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colon_separates_a_name_where_a_folder_follows() {
        let lab = tempfile::tempdir().unwrap();
        let [plain, colon, equals] = ["plain", "with:colon", "a=b"].map(|name| {
            let path = lab.path().join(name);
            std::fs::create_dir(&path).unwrap();
            path.display().to_string()
        });
        assert_eq!(parse_named_build(&plain).unwrap(), plain);
        assert_eq!(parse_named_build(&format!("old:{plain}")).unwrap(), format!("old={plain}"));
        assert_eq!(parse_named_build(&colon).unwrap(), colon);
        // The name of the folder itself is no first part of the path.
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
