//! Which cells of a plan are meant: globs on their names.

use globset::{GlobBuilder, GlobMatcher};
use wb_model::CellId;

use crate::PlanError;

/// Globs that choose and leave out cells. A glob matches the whole name `PROFILE/TEST/SERIAL:CASE`, or a part of
/// it that ends or starts at a `/` or `:`; `*` passes over those too.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    select: Vec<GlobMatcher>,
    ignore: Vec<GlobMatcher>,
}

impl Selection {
    /// From the texts of `--select` and `--ignore`.
    pub fn new(select: &[String], ignore: &[String]) -> Result<Self, PlanError> {
        let all = |globs: &[String]| globs.iter().map(|glob| compile(glob)).collect::<Result<Vec<_>, _>>();
        Ok(Self { select: all(select)?, ignore: all(ignore)? })
    }

    /// Why this cell is not meant; nothing where it is.
    pub fn skip_reason(&self, cell: &CellId) -> Option<String> {
        let name = cell.to_string();
        if let Some(glob) = self.ignore.iter().find(|glob| matches(glob, &name)) {
            return Some(format!("ignored by `{}`", glob.glob()));
        }
        let chosen = self.select.is_empty() || self.select.iter().any(|glob| matches(glob, &name));
        if chosen { None } else { Some("not selected".to_owned()) }
    }

    /// The globs that choose, as they were written.
    pub fn select_patterns(&self) -> Vec<String> {
        self.select.iter().map(|glob| glob.glob().to_string()).collect()
    }
}

fn compile(glob: &str) -> Result<GlobMatcher, PlanError> {
    let built = GlobBuilder::new(glob).literal_separator(false).build();
    built.map(|glob| glob.compile_matcher()).map_err(|error| {
        PlanError::without_location(format!("`{glob}` is not a glob: {}", error.kind()))
            .with_help("`*` stands for any text, `?` for one character, `[ab]` for one of these")
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

    fn chosen(select: &[&str], ignore: &[&str]) -> bool {
        let own = |globs: &[&str]| globs.iter().map(|g| g.to_string()).collect::<Vec<_>>();
        let cell = "Localhost/fio/0000:block-size=4k,rw=read".parse().unwrap();
        Selection::new(&own(select), &own(ignore)).unwrap().skip_reason(&cell).is_none()
    }

    #[test]
    fn a_glob_matches_the_whole_or_a_part() {
        for glob in ["fio", "*rw=read*", "Localhost/*", "fio/0000*", "*", "block-size=4k,*", "0000"] {
            assert!(chosen(&[glob], &[]), "{glob}");
        }
        for glob in ["fi", "himeno", "*rw=write*", "Local"] {
            assert!(!chosen(&[glob], &[]), "{glob}");
        }
    }

    #[test]
    fn ignoring_wins() {
        assert!(!chosen(&["fio"], &["*rw=read*"]));
        assert!(chosen(&[], &["himeno"]));
    }
}
