//! Lines of JSON that workloads print once a period.

use serde::de::DeserializeOwned;

use super::ContentionError;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ReportLines<R> {
    /// From the complete lines.
    pub reports: Vec<R>,
    /// The workload is writing the last line, or was killed meanwhile.
    pub is_truncated: bool,
}

/// Parses the output of a workload; fails if a complete line is invalid.
pub(super) fn parse<R: DeserializeOwned>(program: &str, output: &[u8]) -> Result<ReportLines<R>, ContentionError> {
    let end = output.iter().rposition(|byte| *byte == b'\n').map_or(0, |position| position + 1);
    let lines = output[..end].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let parse_line = |line: &[u8]| {
        let text = || String::from_utf8_lossy(line).chars().take(200).collect::<String>();
        serde_json::from_slice(line).map_err(|error| ContentionError::output(program, format!("{error}: `{}`", text())))
    };
    Ok(ReportLines { reports: lines.map(parse_line).collect::<Result<_, _>>()?, is_truncated: end < output.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_truncated_last_line_is_left_out_and_any_other_is_an_error() {
        let lines: ReportLines<u32> = parse("hashd", b"1\n2\n34").unwrap();
        assert_eq!(lines, ReportLines { reports: vec![1, 2], is_truncated: true });
        let lines: ReportLines<u32> = parse("hashd", b"1\n").unwrap();
        assert_eq!(lines, ReportLines { reports: vec![1], is_truncated: false });
        assert!(parse::<u32>("hashd", b"").unwrap().reports.is_empty());
        let error = parse::<u32>("hashd", b"1\n{\"rps\":\n2\n").unwrap_err().to_string();
        assert!(error.starts_with("invalid output of `hashd`:") && error.ends_with("`{\"rps\":`"), "{error}");
    }
}
