use wb_results::net::RunResult;

/// Artefact name of the client's output, which is the result.
pub const CLIENT_NAME: &str = "client";

/// Parses the output of `net run`, or of a preset with a single combination: one result.
pub fn parse_result(stdout: &[u8]) -> Result<RunResult, String> {
    let is_list = stdout.trim_ascii_start().starts_with(b"[");
    let results = if is_list {
        serde_json::from_slice(stdout)
    } else {
        serde_json::from_slice(stdout).map(|result| vec![result])
    };
    let mut results: Vec<RunResult> = results.map_err(|error| error.to_string())?;
    match (results.len(), results.pop()) {
        (1, Some(result)) => Ok(result),
        (count, _) => Err(format!("expected one result, found {count}")),
    }
}
