//! Lines of JSON that workloads print once a period.

use serde::de::DeserializeOwned;
use wb_agent::{OutputStream, Process};

use super::ContentionError;

/// Parses the complete lines that a workload has printed since the offset `consumed`, and advances it past them.
pub(super) async fn read_new<R: DeserializeOwned>(
    program: &str,
    process: &Process,
    consumed: &mut usize,
) -> Result<Vec<R>, ContentionError> {
    let output = process.read_output_from(OutputStream::Stdout, *consumed).await?;
    *consumed += complete_lines(&output).len();
    parse(program, &output)
}

/// Parses the complete lines of the output of a workload; fails if one is invalid.
pub(super) fn parse<R: DeserializeOwned>(program: &str, output: &[u8]) -> Result<Vec<R>, ContentionError> {
    let lines = complete_lines(output).split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let parse_line = |line: &[u8]| {
        let text = || String::from_utf8_lossy(line).chars().take(200).collect::<String>();
        serde_json::from_slice(line).map_err(|error| ContentionError::output(program, format!("{error}: `{}`", text())))
    };
    lines.map(parse_line).collect()
}

/// Without a last line that the workload is writing, or was killed while it wrote.
fn complete_lines(output: &[u8]) -> &[u8] {
    let end = output.iter().rposition(|byte| *byte == b'\n').map_or(0, |position| position + 1);
    &output[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_truncated_last_line_is_left_out_and_any_other_is_an_error() {
        for (output, complete, reports) in [("1\n2\n34", "1\n2\n", &[1, 2][..]), ("1\n", "1\n", &[1]), ("", "", &[])] {
            assert_eq!(complete_lines(output.as_bytes()), complete.as_bytes());
            assert_eq!(parse::<u32>("hashd", output.as_bytes()).unwrap(), reports);
        }
        let error = parse::<u32>("hashd", b"1\n{\"rps\":\n2\n").unwrap_err().to_string();
        assert!(error.starts_with("invalid output of `hashd`:") && error.ends_with("`{\"rps\":`"), "{error}");
    }
}
