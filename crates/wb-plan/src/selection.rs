//! Selection of cells by globs on their names and by assignments of parameters.

use std::collections::{BTreeMap, BTreeSet};

use globset::{GlobBuilder, GlobMatcher};
use wb_diagnostics::{Diagnostic, help_with_suggestion, suggest};
use wb_model::{CellId, Declaration, Param, ParamKind, ParamValue, Params};

use crate::expand::KNOBS;
use crate::spec;

/// Maximum number of names or values listed in a message.
const MAX_LISTED: usize = 12;

/// Patterns that select and exclude cells.
///
/// A pattern is a glob or, as in a test specification, an assignment of parameters: `rw=randread,bs=[4k,64k]`, with the
/// test before it if necessary: `fio:bs=4k`. A glob matches the whole name `PROFILE/TEST/SERIAL:CASE`, or a part of it
/// that starts and ends at a `/` or `:`; `*` also matches those two. An assignment matches cells with these values, in
/// any order and by any name of a parameter.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    select: Vec<Pattern>,
    ignore: Vec<Pattern>,
}

/// A cell as selections see it: a name and parameters as text, since that is all a comparison has of a cell.
#[derive(Debug, Clone)]
pub struct SelectableCell<'a> {
    name: String,
    values: BTreeMap<String, String>,
    declaration: Option<&'a Declaration>,
    matrix_name: Option<&'a str>,
}

/// A parameter or a value of a pattern that no cell has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmatchedAssignment {
    pub message: String,
    /// What the cells have instead.
    pub help: String,
}

impl<'a> SelectableCell<'a> {
    /// Creates a cell from its effective parameters. Without the declaration of its test, parameters have no aliases.
    pub fn new(id: &CellId, params: &Params, declaration: Option<&'a Declaration>) -> Self {
        let texts = params.iter().map(|(name, value)| (name.clone(), value.to_string()));
        let axes = id.case.axes().map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self::from_texts(id.to_string(), texts.chain(axes), declaration)
    }

    pub fn from_texts(
        name: String,
        values: impl IntoIterator<Item = (String, String)>,
        declaration: Option<&'a Declaration>,
    ) -> Self {
        Self { name, values: values.into_iter().collect(), declaration, matrix_name: None }
    }

    pub fn with_matrix_name(self, matrix_name: Option<&'a str>) -> Self {
        Self { matrix_name, ..self }
    }

    /// The name without the case.
    fn scope(&self) -> &str {
        self.name.split_once(':').map_or(&self.name, |(scope, _)| scope)
    }

    fn param(&self, name: &str) -> Option<&'a Param> {
        self.declaration?.param(name)
    }

    /// The value of a parameter by any of its names; the prefix of knobs may be omitted.
    fn value(&self, name: &str) -> Option<&str> {
        let canonical = self.param(name).map_or(name, |param| &param.name);
        let value = self.values.get(canonical).or_else(|| self.values.get(&format!("{KNOBS}{name}")))?;
        Some(value)
    }

    fn param_names(&self) -> impl Iterator<Item = &str> {
        let aliases = |name: &str| self.param(name).map_or(&[][..], |param| &param.aliases);
        self.values.keys().flat_map(move |name| std::iter::once(name).chain(aliases(name))).map(String::as_str)
    }
}

impl Selection {
    /// Parses the patterns of `--select` and `--ignore`. Fails if one is neither a glob nor an assignment.
    pub fn new(select: &[String], ignore: &[String]) -> Result<Self, Diagnostic> {
        let all = |texts: &[String]| texts.iter().map(|text| Pattern::parse(text)).collect::<Result<Vec<_>, _>>();
        Ok(Self { select: all(select)?, ignore: all(ignore)? })
    }

    pub fn is_unrestricted(&self) -> bool {
        self.select.is_empty() && self.ignore.is_empty()
    }

    pub fn skip_reason(&self, cell: &SelectableCell<'_>) -> Option<String> {
        if let Some(pattern) = self.ignore.iter().find(|pattern| pattern.matches(cell)) {
            return Some(format!("ignored by `{}`", pattern.text));
        }
        let selected = self.select.is_empty() || self.select.iter().any(|pattern| pattern.matches(cell));
        if selected { None } else { Some("not selected".to_owned()) }
    }

    pub fn select_patterns(&self) -> Vec<String> {
        self.select.iter().map(|pattern| pattern.text.clone()).collect()
    }

    /// The patterns of `--select` that match none of all cells, as written.
    pub fn unmatched_patterns(&self, cells: &[SelectableCell<'_>]) -> Vec<&str> {
        let is_unmatched = |pattern: &&Pattern| !cells.iter().any(|cell| pattern.matches(cell));
        self.select.iter().filter(is_unmatched).map(|pattern| pattern.text.as_str()).collect()
    }

    /// The first assignment that names a parameter or a value which none of all cells has.
    pub fn find_unmatched(&self, cells: &[SelectableCell<'_>]) -> Option<UnmatchedAssignment> {
        let flags = [("--select", &self.select), ("--ignore", &self.ignore)];
        flags
            .into_iter()
            .find_map(|(flag, patterns)| patterns.iter().find_map(|pattern| pattern.find_unmatched(flag, cells)))
    }
}

/// A pattern: always a glob, and an assignment if it can be parsed as one.
#[derive(Debug, Clone)]
struct Pattern {
    text: String,
    /// `None` if the text is an assignment only.
    glob: Option<GlobMatcher>,
    /// The part before the parameters: `fio`, `Localhost/fio`.
    scope: Option<GlobMatcher>,
    assignments: Vec<Assignment>,
}

#[derive(Debug, Clone)]
struct Assignment {
    name: String,
    value: ParamValue,
}

impl Pattern {
    fn parse(text: &str) -> Result<Self, Diagnostic> {
        // Always a glob, also where it can be parsed as an assignment (`block-size=4k*`): that selects what it did
        // before.
        let glob = compile(text);
        let (scope, assignments) = parse_assignments(text).unwrap_or_default();
        match glob {
            Err(error) if assignments.is_empty() => Err(error),
            glob => Ok(Self { text: text.to_owned(), glob: glob.ok(), scope, assignments }),
        }
    }

    fn matches(&self, cell: &SelectableCell<'_>) -> bool {
        let matches_assignments = || {
            !self.assignments.is_empty() && self.is_in_scope(cell) && self.assignments.iter().all(|it| it.matches(cell))
        };
        self.matches_name(cell) || matches_assignments()
    }

    fn matches_name(&self, cell: &SelectableCell<'_>) -> bool {
        self.glob
            .as_ref()
            .is_some_and(|glob| matches(glob, &cell.name) || cell.matrix_name.is_some_and(|name| glob.is_match(name)))
    }

    fn is_in_scope(&self, cell: &SelectableCell<'_>) -> bool {
        self.scope.as_ref().is_none_or(|scope| matches(scope, cell.scope()))
    }

    fn find_unmatched(&self, flag: &str, cells: &[SelectableCell<'_>]) -> Option<UnmatchedAssignment> {
        if cells.iter().any(|cell| self.matches_name(cell)) {
            return None;
        }
        let cells: Vec<&SelectableCell<'_>> = cells.iter().filter(|cell| self.is_in_scope(cell)).collect();
        let unmatched = |it: &&Assignment| !cells.iter().any(|cell| it.matches(cell));
        let Assignment { name, value } = self.assignments.iter().find(unmatched)?;
        let values: BTreeSet<&str> = cells.iter().filter_map(|cell| cell.value(name)).collect();
        if values.is_empty() {
            let names: BTreeSet<&str> = cells.iter().flat_map(|cell| cell.param_names()).collect();
            let scope = self.scope.as_ref().map(|scope| scope.glob().glob().to_owned());
            return Some(match (scope, names.is_empty()) {
                (Some(scope), true) => UnmatchedAssignment {
                    message: format!("no cell matches `{scope}` of `{flag} {}`", self.text),
                    help: "the part before `:` is a test, or a glob on `PROFILE/TEST/SERIAL`".to_owned(),
                },
                _ => UnmatchedAssignment {
                    message: format!("unknown parameter `{name}` in `{flag} {}`", self.text),
                    help: help_with_suggestion(
                        suggest(name, &names).as_ref(),
                        &format!("the cells have {}", list(names.into_iter())),
                    ),
                },
            });
        }
        let nearest = suggest(&value.to_string(), &values);
        Some(UnmatchedAssignment {
            message: format!("no cell has `{name}={value}`, which `{flag} {}` names", self.text),
            help: help_with_suggestion(
                nearest.as_ref(),
                &format!("`{name}` is {} in these cells", list(values.into_iter())),
            ),
        })
    }
}

impl Assignment {
    fn matches(&self, cell: &SelectableCell<'_>) -> bool {
        let Some(actual) = cell.value(&self.name) else { return false };
        let kind = cell.param(&self.name).map(|param| &param.kind);
        let is_list = matches!(kind, Some(ParamKind::List { .. }));
        let is_nested = |list: &[ParamValue]| list.iter().any(|value| matches!(value, ParamValue::List(_)));
        let is_one = |value: &ParamValue| {
            let text = value.to_string();
            let is_normal =
                || kind.and_then(|kind| kind.normalise(value).ok()).is_some_and(|value| value.to_string() == actual);
            let is_glob = || text.contains(['*', '?']) && compile(&text).is_ok_and(|glob| glob.is_match(actual));
            text == actual || is_normal() || is_glob()
        };
        match &self.value {
            // As in a test specification: a list of values, or the value of a parameter that is a list.
            ParamValue::List(list) if !is_list || is_nested(list) => list.iter().any(is_one),
            value => is_one(value),
        }
    }
}

/// Parses `[SCOPE:]name=value,…`; `None` if the text has another form.
fn parse_assignments(text: &str) -> Option<(Option<GlobMatcher>, Vec<Assignment>)> {
    let scope = text.split_once(':').map(|(scope, _)| scope).filter(|scope| !scope.contains('='));
    let request = match scope {
        Some(_) => spec::parse(text).ok()?,
        // Any test stands for all.
        None => spec::parse(&format!("*:{text}")).ok()?,
    };
    if request.id.is_some() || !request.stages.is_empty() || request.params.is_empty() {
        return None;
    }
    let scope = scope.map(|scope| compile(scope.trim()).ok()).map_or(Some(None), |glob| glob.map(Some))?;
    let assignment = |given: &crate::SpannedParam| Assignment { name: given.name.clone(), value: given.value.value() };
    Some((scope, request.params.iter().map(assignment).collect()))
}

fn list<'a>(all: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = all.len().saturating_sub(MAX_LISTED);
    let listed: Vec<&str> = all.take(MAX_LISTED).collect();
    match more {
        0 => listed.join(", "),
        more => format!("{} and {more} more", listed.join(", ")),
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
    let starts = std::iter::once(0).chain(name.match_indices(['/', ':']).map(|(position, _)| position + 1));
    starts.into_iter().any(|start| {
        let rest = &name[start..];
        let ends = rest.match_indices(['/', ':']).map(|(position, _)| position).chain(std::iter::once(rest.len()));
        ends.into_iter().any(|end| glob.is_match(&rest[..end]))
    })
}

#[cfg(test)]
mod tests {
    use wb_model::{Scope, TestName};

    use super::*;

    fn is_selected(select: &[&str], ignore: &[&str]) -> bool {
        is_named_selected(select, ignore, None)
    }

    fn is_named_selected(select: &[&str], ignore: &[&str], name: Option<&str>) -> bool {
        let to_owned = |globs: &[&str]| globs.iter().map(|glob| glob.to_string()).collect::<Vec<_>>();
        let cell: CellId = "Localhost/fio/0000:block-size=4k,rw=read".parse().unwrap();
        let cell = SelectableCell::new(&cell, &Params::new(), None).with_matrix_name(name);
        Selection::new(&to_owned(select), &to_owned(ignore)).unwrap().skip_reason(&cell).is_none()
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

    fn declaration() -> Declaration {
        let param = |name: &str, alias: &str, kind| Param {
            name: name.to_owned(),
            aliases: vec![alias.to_owned()],
            help: String::new(),
            kind,
            default: None,
            resolved_from: None,
            axis: true,
        };
        let integer = || ParamKind::Integer { min: None, max: None };
        Declaration {
            name: TestName::new("fio").unwrap(),
            summary: String::new(),
            version: 1,
            params: vec![
                param("test-types", "rw", ParamKind::Choice { values: vec!["read".into(), "randread".into()] }),
                param("block-sizes", "bs", ParamKind::Bytes { min: None }),
                param("cpus", "pin", ParamKind::List { of: Box::new(integer()) }),
            ],
            scope: Scope::Cell,
            requires: Vec::new(),
        }
    }

    /// The numbers of those cells that a pattern selects, or the error.
    fn selected(pattern: &str) -> Result<Vec<usize>, String> {
        let declaration = declaration();
        let mut params =
            Params::from([("cpus".to_owned(), ParamValue::List([0, 1].map(ParamValue::Integer).to_vec()))]);
        params.insert("runtime".to_owned(), ParamValue::Text("30s".to_owned()));
        let names = [
            "test-types=read,block-sizes=4k",
            "test-types=randread,block-sizes=4k",
            "test-types=randread,block-sizes=64k",
        ];
        let cells: Vec<SelectableCell<'_>> = names
            .iter()
            .map(|case| {
                let id: CellId = format!("Localhost/fio/0000:{case}").parse().unwrap();
                SelectableCell::new(&id, &params, Some(&declaration))
            })
            .collect();
        let selection = Selection::new(&[pattern.to_owned()], &[]).unwrap();
        if let Some(UnmatchedAssignment { message, help }) = selection.find_unmatched(&cells) {
            return Err(format!("{message} ({help})"));
        }
        Ok((0..cells.len()).filter(|&index| selection.skip_reason(&cells[index]).is_none()).collect())
    }

    #[test]
    fn an_assignment_selects_by_any_name_in_any_order() {
        for (pattern, expected) in [
            ("rw=randread,bs=4k", &[1][..]),
            ("bs=4096,test-types=randread", &[1]),
            ("rw=rand*", &[1, 2]),
            ("bs=[4k,64k],rw=[read]", &[0]),
            ("fio:bs=64k", &[2]),
            ("Localhost/f*:bs=\"64k\"", &[2]),
            ("pin=0-1", &[0, 1, 2]),
            ("cpus=[0,1],runtime=30s", &[0, 1, 2]),
            ("rw=read,bs=64k", &[]),
            ("block-sizes=4k,test-types=read", &[0]),
            ("*read*", &[0, 1, 2]),
        ] {
            assert_eq!(selected(pattern).as_deref(), Ok(expected), "{pattern}");
        }
    }

    #[test]
    fn a_name_or_value_that_no_cell_has_is_an_error_with_the_near_ones() {
        let errors = ["rww=read", "rw=rndread", "bs=8k,rw=read", "himeno:bs=4k", "fio:zzz=1"]
            .map(|pattern| selected(pattern).expect_err(pattern));
        insta::assert_snapshot!(errors.join("\n"), @r"
        unknown parameter `rww` in `--select rww=read` (did you mean `rw`? the cells have block-sizes, bs, cpus, pin, runtime, rw, test-types)
        no cell has `rw=rndread`, which `--select rw=rndread` names (did you mean `randread`? `rw` is randread, read in these cells)
        no cell has `bs=8k`, which `--select bs=8k,rw=read` names (did you mean `4k`? `bs` is 4k, 64k in these cells)
        no cell matches `himeno` of `--select himeno:bs=4k` (the part before `:` is a test, or a glob on `PROFILE/TEST/SERIAL`)
        unknown parameter `zzz` in `--select fio:zzz=1` (the cells have block-sizes, bs, cpus, pin, runtime, rw, test-types)
        ");
    }
}
