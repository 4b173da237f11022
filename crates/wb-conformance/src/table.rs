/// What came out of the cases of a program.
pub(crate) struct Row {
    name: &'static str,
    /// Its version; `None` if it is not there.
    pub(crate) version: Option<String>,
    absence: &'static str,
    pub(crate) cases: usize,
    /// Cases whose options the program itself refused.
    pub(crate) refused: usize,
    pub(crate) figures: usize,
    pub(crate) differences: Vec<String>,
}

impl Row {
    pub(crate) fn new(name: &'static str, version: Option<String>, absence: &'static str) -> Self {
        Self { name, version, absence, cases: 0, refused: 0, figures: 0, differences: Vec::new() }
    }
}

pub(crate) fn render(rows: &[Row]) -> String {
    let heads = ["program", "version", "cases", "refused by it", "figures", "differences"].map(str::to_owned);
    let cells = |row: &Row| {
        let counts = [row.cases, row.refused, row.figures, row.differences.len()].map(|count| count.to_string());
        let [cases, refused, figures, differences] = counts;
        let version = row.version.clone().unwrap_or_else(|| row.absence.to_owned());
        [row.name.to_owned(), version, cases, refused, figures, differences]
    };
    let lines: Vec<[String; 6]> = std::iter::once(heads).chain(rows.iter().map(cells)).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or_default();
    let render_line = |line: &[String; 6]| {
        let padded = line.iter().enumerate().map(|(column, text)| match column {
            0 | 1 => format!("{text:<width$}", width = width(column)),
            _ => format!("{text:>width$}", width = width(column)),
        });
        format!("{}\n", padded.collect::<Vec<_>>().join("  "))
    };
    lines.iter().map(render_line).collect()
}
