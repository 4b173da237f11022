//! Secrets that the user declares: read from where they are kept, never from the command line, which others see.

use wb_model::secrets::{MASK, MIN_SECRET_LENGTH, contains_declared, contains_secret, declare};
use wb_plan::Plan;

/// Why a secret cannot be kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SecretError {
    /// There is no such variable.
    #[error("--secret-from: there is no variable `{name}`")]
    NoVariable {
        /// Its name.
        name: String,
    },
    /// The file cannot be read.
    #[error("--secret-from: {path}: {source}")]
    File {
        /// Its path.
        path: String,
        /// The system's word.
        source: std::io::Error,
    },
    /// There is nothing in it that could be masked.
    #[error("--secret-from {from}: no line of it has {MIN_SECRET_LENGTH} characters")]
    TooShort {
        /// The file or variable.
        from: String,
    },
    /// It would be part of a name, by which everything is found again.
    #[error("a declared secret is a part of the name of a cell of `{test}`")]
    InName {
        /// The test.
        test: String,
    },
    /// A value that names cells looks as if it had one in it.
    #[error("`{axis}` of `{test}` looks like it has a secret in it, and its value is a part of the names of cells")]
    LikelyInName {
        /// The test.
        test: String,
        /// The parameter.
        axis: String,
    },
}

impl SecretError {
    /// The way out.
    pub(crate) fn help(&self) -> &'static str {
        match self {
            Self::NoVariable { .. } | Self::File { .. } => "FILE, or env:NAME for a variable, is expected",
            Self::TooShort { .. } => "shorter ones would be masked all over, as parts of other words",
            Self::LikelyInName { .. } => {
                r#"give it as a variable: `env=["DB_PASSWORD=…"]` and `--password $DB_PASSWORD`; or name a script that reads it from a file"#
            }
            Self::InName { .. } => "pass it by a file or a variable: what cells are called by is kept as it is",
        }
    }
}

/// Declares what is in these files and variables, each line of them.
pub(crate) fn declare_all(from: &[String]) -> Result<(), SecretError> {
    for from in from {
        let text = match from.strip_prefix("env:") {
            Some(name) => std::env::var(name).map_err(|_| SecretError::NoVariable { name: name.to_owned() })?,
            None => std::fs::read(from)
                .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
                .map_err(|source| SecretError::File { path: from.clone(), source })?,
        };
        // A key has several lines, and programs may say one of them.
        if text.lines().filter(|line| declare(line).is_ok()).count() == 0 {
            return Err(SecretError::TooShort { from: from.clone() });
        }
    }
    Ok(())
}

/// Refuses a plan with a secret in the name of a cell, which cannot be masked: cells are found again by their names.
pub(crate) fn refuse_secret_names(plan: &Plan) -> Result<(), SecretError> {
    for cell in &plan.cells {
        let test = cell.id.test.to_string();
        if contains_declared(&cell.id.to_string()) || cell.id.case.axes().any(|(_, value)| contains_declared(value)) {
            return Err(SecretError::InName { test });
        }
        if let Some((axis, _)) = cell.id.case.axes().find(|(_, value)| contains_literal_secret(value)) {
            return Err(SecretError::LikelyInName { test, axis: axis.to_owned() });
        }
    }
    Ok(())
}

/// Whether a secret itself stands in a value, rather than the variable that has it.
fn contains_literal_secret(value: &str) -> bool {
    // Quotes around a variable are no part of it, and masking takes some of them away.
    contains_secret(&mask_variables(value).replace(['"', '\''], ""))
}

/// A command line with what stands for a secret in the place of each `$NAME` and `${NAME}`.
fn mask_variables(line: &str) -> String {
    let mut parts = line.split('$');
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let inner = part.strip_prefix('{').unwrap_or(part);
        let end = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inner.len());
        let (name, rest) = inner.split_at(end);
        let rest = if inner.len() < part.len() { rest.strip_prefix('}') } else { Some(rest) };
        match rest.filter(|_| name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')) {
            Some(rest) => shown.extend([MASK, rest]),
            None => shown.extend(["$", part]),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_has_a_secret_is_none() {
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
            assert_eq!(contains_literal_secret(value), expected, "{value}");
        }
    }
}
