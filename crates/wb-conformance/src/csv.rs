use std::collections::BTreeMap;

/// The rows of a table, each by the names in its first row.
pub(crate) fn parse(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut rows = records(text).into_iter();
    let heads = rows.next().unwrap_or_default();
    rows.map(|row| heads.iter().cloned().zip(row).collect()).collect()
}

/// Fields in quotes may have commas, line breaks, and quotes as two of them.
fn records(text: &str) -> Vec<Vec<String>> {
    let (mut records, mut record, mut field) = (Vec::new(), Vec::new(), String::new());
    let mut is_quoted = false;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if is_quoted && characters.next_if_eq(&'"').is_some() => field.push('"'),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => record.push(std::mem::take(&mut field)),
            '\n' if !is_quoted => {
                record.push(std::mem::take(&mut field));
                records.push(std::mem::take(&mut record));
            }
            '\r' if !is_quoted => {}
            other => field.push(other),
        }
    }
    if !field.is_empty() || !record.is_empty() {
        record.push(field);
        records.push(record);
    }
    records
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_fields_may_have_anything() {
        let rows = parse("a,\"b,c\"\r\n1,\"x \"\"y\"\",\nz\"\n2,\n");
        assert_eq!((rows[0]["a"].as_str(), rows[0]["b,c"].as_str()), ("1", "x \"y\",\nz"));
        assert_eq!((rows.len(), rows[1]["b,c"].as_str()), (2, ""));
    }
}
