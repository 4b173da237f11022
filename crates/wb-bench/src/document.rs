//! A Markdown document of results: rows of its tables are replaced by new results, all other text is kept.
//!
//! A table begins with `<!-- rows: PREFIX | PREFIX -->` and ends with `<!-- end -->`. A result belongs to the table with
//! a prefix of its name, where it replaces the row of the same name. The other rows keep the date, the commit and the
//! machine of their own measurement. `<!-- machines -->` begins the numbered list of the machines.

use std::fs;
use std::ops::Range;
use std::path::Path;

pub(crate) struct DocumentRow {
    /// Its name; unique in the document.
    pub(crate) name: String,
    pub(crate) result: String,
    /// The verdict on the figures, such as `ok`; empty if there is none.
    pub(crate) verdict: String,
    /// The number of repetitions, such as `21 pairs`; empty if it is fixed.
    pub(crate) repetitions: String,
}

/// When, with what and where results were measured.
pub(crate) struct Provenance {
    /// The date, such as `2026-11-24`.
    pub(crate) date: String,
    pub(crate) commit: String,
    pub(crate) machine: String,
}

/// Writes results into the document. Fails if it has no table for one of them.
pub(crate) fn update_file(path: &Path, rows: &[DocumentRow], provenance: &Provenance) -> Result<(), String> {
    let with_path = |error: String| format!("{}: {error}", path.display());
    let text = fs::read_to_string(path).map_err(|error| with_path(error.to_string()))?;
    let mut document = Document { lines: text.lines().map(str::to_owned).collect() };
    document.update(rows, provenance).map_err(with_path)?;
    fs::write(path, document.lines.join("\n") + "\n").map_err(|error| with_path(error.to_string()))
}

struct Document {
    lines: Vec<String>,
}

impl Document {
    fn update(&mut self, rows: &[DocumentRow], provenance: &Provenance) -> Result<(), String> {
        for DocumentRow { name, result, verdict, repetitions } in rows {
            let machine = self.add_machine(&provenance.machine)?;
            let parts = [&provenance.date, &provenance.commit, &format!("machine {machine}"), repetitions];
            let parts: Vec<&str> = parts.into_iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
            let line = format!("| {name} | {result} | {verdict} | {} |", parts.join(", "));
            self.replace_row(name, line)?;
        }
        Ok(())
    }

    /// Replaces the row with this name, or appends it to its table.
    fn replace_row(&mut self, name: &str, line: String) -> Result<(), String> {
        let has_prefix_of_name = |marker: &str| {
            let prefixes = marker.strip_prefix("<!-- rows: ").and_then(|rest| rest.strip_suffix(" -->"));
            prefixes.is_some_and(|prefixes| prefixes.split(" | ").any(|prefix| name.starts_with(prefix)))
        };
        let table = self
            .find_block(has_prefix_of_name)
            .ok_or_else(|| format!("missing table for `{name}`: expected `<!-- rows: PREFIX -->`"))?;
        let row_start = format!("| {name} | ");
        if table.is_empty() {
            let new_table = ["", "| benchmark | result | verdict | provenance |", "|---|---|---|---|", &line, ""];
            self.lines.splice(table, new_table.map(str::to_owned));
        } else if let Some(row) = self.lines[table.clone()].iter_mut().find(|row| row.starts_with(&row_start)) {
            *row = line;
        } else {
            // Before the empty line that ends the table.
            self.lines.insert(table.end - 1, line);
        }
        Ok(())
    }

    /// Adds a machine to the list of machines unless it is in it; returns its number.
    fn add_machine(&mut self, machine: &str) -> Result<usize, String> {
        let list = self.find_block(|marker| marker == "<!-- machines -->").ok_or("missing list `<!-- machines -->`")?;
        let machines: Vec<&str> = self.lines[list.clone()]
            .iter()
            .filter_map(|line| line.split_once(". "))
            .map(|(_, machine)| machine)
            .collect();
        if let Some(position) = machines.iter().position(|listed| *listed == machine) {
            return Ok(position + 1);
        }
        let number = machines.len() + 1;
        let line = format!("{number}. {machine}");
        if list.is_empty() {
            self.lines.splice(list, [String::new(), line, String::new()]);
        } else {
            self.lines.insert(list.end - 1, line);
        }
        Ok(number)
    }

    /// The range of the lines between a marker and `<!-- end -->`; `None` if one of them is missing.
    fn find_block(&self, is_marker: impl Fn(&str) -> bool) -> Option<Range<usize>> {
        let start = self.lines.iter().position(|line| is_marker(line))? + 1;
        let length = self.lines[start..].iter().position(|line| line == "<!-- end -->")?;
        Some(start..start + length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str =
        "# Figures\n\n<!-- rows: himeno | linpack -->\n<!-- end -->\n\nText.\n\n<!-- machines -->\n<!-- end -->";

    fn document(text: &str) -> Document {
        Document { lines: text.lines().map(str::to_owned).collect() }
    }

    fn row(name: &str, result: &str) -> DocumentRow {
        DocumentRow { name: name.into(), result: result.into(), verdict: "ok".into(), repetitions: "6 pairs".into() }
    }

    fn provenance(date: &str, machine: &str) -> Provenance {
        Provenance { date: date.into(), commit: "abc".into(), machine: machine.into() }
    }

    #[test]
    fn a_row_is_replaced_with_its_occasion_and_others_stay() {
        let mut document = document(EMPTY);
        document
            .update(&[row("himeno S", "1.0"), row("linpack 4000", "1.1")], &provenance("2026-11-23", "old"))
            .unwrap();
        document.update(&[row("himeno S", "1.2"), row("himeno M", "1.3")], &provenance("2026-11-24", "new")).unwrap();
        let expected = "\
# Figures

<!-- rows: himeno | linpack -->

| benchmark | result | verdict | provenance |
|---|---|---|---|
| himeno S | 1.2 | ok | 2026-11-24, abc, machine 2, 6 pairs |
| linpack 4000 | 1.1 | ok | 2026-11-23, abc, machine 1, 6 pairs |
| himeno M | 1.3 | ok | 2026-11-24, abc, machine 2, 6 pairs |

<!-- end -->

Text.

<!-- machines -->

1. old
2. new

<!-- end -->";
        assert_eq!(document.lines.join("\n"), expected);
    }

    #[test]
    fn without_results_nothing_changes() {
        let mut document = document(EMPTY);
        document.update(&[], &provenance("2026-11-24", "new")).unwrap();
        assert_eq!(document.lines.join("\n"), EMPTY);
    }

    #[test]
    fn a_result_without_a_table_is_an_error() {
        let error = document(EMPTY).update(&[row("net tcp", "1.0")], &provenance("2026-11-24", "new")).unwrap_err();
        assert_eq!(error, "missing table for `net tcp`: expected `<!-- rows: PREFIX -->`");
    }
}
