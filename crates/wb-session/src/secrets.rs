//! Secrets declared by the user, read from files or environment variables, since other users can see the command line.

use wb_model::secrets::{MASK, MIN_SECRET_LENGTH, contains_declared, declare, mask_param};
use wb_plan::Plan;

#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error("--secret-from: environment variable `{0}` is not set")]
    NoVariable(String),
    #[error("--secret-from: cannot read `{path}`: {source}")]
    File { path: String, source: std::io::Error },
    /// It contains no line that is long enough to be masked.
    #[error("--secret-from {0}: no line has at least {MIN_SECRET_LENGTH} characters")]
    TooShort(String),
    #[error("a declared secret is part of a cell name of `{0}`")]
    InName(String),
    #[error("`{axis}` of `{test}` appears to contain a secret, and its value is part of cell names")]
    LikelyInName { test: String, axis: String },
}

impl SecretError {
    pub(crate) fn help(&self) -> &'static str {
        match self {
            Self::NoVariable { .. } | Self::File { .. } => "expected FILE, or env:NAME for an environment variable",
            Self::TooShort { .. } => "a shorter secret would also mask parts of other words",
            Self::LikelyInName { .. } => {
                r#"pass it in a variable: `env=["DB_PASSWORD=…"]` and `--password $DB_PASSWORD`; or use a script that reads it from a file"#
            }
            Self::InName { .. } => "pass it in a file or a variable: cell names cannot be masked",
        }
    }
}

/// Declares every line of these files and variables (`env:NAME`) as a secret.
pub fn declare_all(from: &[String]) -> Result<(), SecretError> {
    for from in from {
        let text = match from.strip_prefix("env:") {
            Some(name) => std::env::var(name).map_err(|_| SecretError::NoVariable(name.to_owned()))?,
            None => std::fs::read(from)
                .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
                .map_err(|source| SecretError::File { path: from.clone(), source })?,
        };
        // A key has several lines, and programs may print one of them.
        if text.lines().filter(|line| declare(line).is_ok()).count() == 0 {
            return Err(SecretError::TooShort(from.clone()));
        }
    }
    Ok(())
}

/// Refuses a plan with a secret in a cell name, which cannot be masked, because cells are identified by their names.
pub(crate) fn refuse_secret_names(plan: &Plan) -> Result<(), SecretError> {
    for cell in &plan.cells {
        let test = cell.id.test.to_string();
        if contains_declared(&cell.id.to_string()) || cell.id.case.axes().any(|(_, value)| contains_declared(value)) {
            return Err(SecretError::InName(test));
        }
        if let Some((axis, _)) = cell.id.case.axes().find(|(axis, value)| contains_literal_secret(axis, value)) {
            return Err(SecretError::LikelyInName { test, axis: axis.to_owned() });
        }
    }
    Ok(())
}

/// Whether the value of a parameter contains a secret itself, rather than a variable that holds it.
fn contains_literal_secret(param: &str, value: &str) -> bool {
    // Quotes around a variable are not part of it, and masking removes some of them.
    let value = mask_variables(value).replace(['"', '\''], "");
    mask_param(param, &value) != value
}

/// Replaces each `$NAME` and `${NAME}` in a command line by the mask.
fn mask_variables(line: &str) -> String {
    let mut parts = line.split('$');
    let mut masked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let inner = part.strip_prefix('{').unwrap_or(part);
        let end = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inner.len());
        let (name, rest) = inner.split_at(end);
        let rest = if inner.len() < part.len() { rest.strip_prefix('}') } else { Some(rest) };
        match rest.filter(|_| name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')) {
            Some(rest) => masked.extend([MASK, rest]),
            None => masked.extend(["$", part]),
        }
    }
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_not_secrets() {
        for (value, expected) in [
            ("true --password abc -u joe:abc", true),
            ("true --password $PASSWORD -u joe:${PASSWORD} --token=\"$A\"", false),
            ("curl -H \"Authorization: Bearer $TOKEN\" x", false),
            ("curl -H 'Authorization: Bearer abc' || true", true),
            ("true --password ${PASSWORD", true),
            ("true --password $1", true),
            ("sync; echo 3 > /proc/sys/vm/drop_caches", false),
            ("R:R", false),
            ("4k", false),
        ] {
            assert_eq!(contains_literal_secret("before", value), expected, "{value}");
        }
        assert!(!contains_literal_secret("mode", "--token abc"), "other parameters are what they are");
    }
}
