//! Selection of a plan's cells by globs on their names.

use globset::{GlobBuilder, GlobMatcher};
use wb_diagnostics::Diagnostic;
use wb_model::CellId;

/// Globs that select and exclude cells. A glob matches the whole name `PROFILE/TEST/SERIAL:CASE`, or a part of it that
/// starts and ends at a `/` or `:`; `*` also matches those two.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    select: Vec<GlobMatcher>,
    ignore: Vec<GlobMatcher>,
}

impl Selection {
    /// Compiles the globs of `--select` and `--ignore`.
    pub fn new(select: &[String], ignore: &[String]) -> Result<Self, Diagnostic> {
        let all = |globs: &[String]| globs.iter().map(|glob| compile(glob)).collect::<Result<Vec<_>, _>>();
        Ok(Self { select: all(select)?, ignore: all(ignore)? })
    }

    /// Why this cell is skipped; `None` if it is selected. A cell of a matrix has a second name.
    pub fn skip_reason(&self, cell: &CellId, matrix_name: Option<&str>) -> Option<String> {
        let name = cell.to_string();
        let matches = |glob: &GlobMatcher| matches(glob, &name) || matrix_name.is_some_and(|name| glob.is_match(name));
        if let Some(glob) = self.ignore.iter().find(|glob| matches(glob)) {
            return Some(format!("ignored by `{}`", glob.glob()));
        }
        let selected = self.select.is_empty() || self.select.iter().any(matches);
        if selected { None } else { Some("not selected".to_owned()) }
    }

    /// The globs of `--select`, as written.
    pub fn select_patterns(&self) -> Vec<String> {
        self.select.iter().map(|glob| glob.glob().to_string()).collect()
    }
}

fn compile(glob: &str) -> Result<GlobMatcher, Diagnostic> {
    let built = GlobBuilder::new(glob).literal_separator(false).build();
    built.map(|glob| glob.compile_matcher()).map_err(|error| {
        Diagnostic::new(format!("invalid glob `{glob}`: {}", error.kind()))
            .with_help("`*` matches any text, `?` one character, `[ab]` one of these characters")
    })
}

fn matches(glob: &GlobMatcher, name: &str) -> bool {
    let starts = std::iter::once(0).chain(name.match_indices(['/', ':']).map(|(at, _)| at + 1));
    starts.into_iter().any(|start| {
        let rest = &name[start..];
        let ends = rest.match_indices(['/', ':']).map(|(at, _)| at).chain(std::iter::once(rest.len()));
        ends.into_iter().any(|end| glob.is_match(&rest[..end]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_selected(select: &[&str], ignore: &[&str]) -> bool {
        is_named_selected(select, ignore, None)
    }

    fn is_named_selected(select: &[&str], ignore: &[&str], name: Option<&str>) -> bool {
        let to_owned = |globs: &[&str]| globs.iter().map(|glob| glob.to_string()).collect::<Vec<_>>();
        let cell = "Localhost/fio/0000:block-size=4k,rw=read".parse().unwrap();
        Selection::new(&to_owned(select), &to_owned(ignore)).unwrap().skip_reason(&cell, name).is_none()
    }

    #[test]
    fn a_glob_matches_the_whole_or_a_part() {
        for glob in ["fio", "*rw=read*", "Localhost/*", "fio/0000*", "*", "block-size=4k,*", "0000"] {
            assert!(is_selected(&[glob], &[]), "{glob}");
        }
        for glob in ["fi", "himeno", "*rw=write*", "Local"] {
            assert!(!is_selected(&[glob], &[]), "{glob}");
        }
    }

    #[test]
    fn a_cell_of_a_matrix_is_selected_by_its_name_too() {
        let name = Some("rust-v0.57 x go-v0.51 (tcp, noise, yamux)");
        for glob in ["rust-v0.57 x go-v0.51 (tcp, noise, yamux)", "rust* x *", "fio"] {
            assert!(is_named_selected(&[glob], &[], name), "{glob}");
            assert!(!is_named_selected(&[], &[glob], name), "{glob}");
        }
        assert!(!is_named_selected(&["rust"], &[], name));
    }

    #[test]
    fn ignore_wins_over_select() {
        assert!(!is_selected(&["fio"], &["*rw=read*"]));
        assert!(is_selected(&[], &["himeno"]));
    }
}
