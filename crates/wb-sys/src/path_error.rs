use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} `{}`: {source}", path.display())]
pub struct PathError {
    /// The operation, as a verb: `read`, `write`, `create`.
    pub operation: &'static str,
    pub path: PathBuf,
    pub source: io::Error,
}

impl PathError {
    /// For `map_err`: the error of an operation on `path`.
    pub fn new(operation: &'static str, path: &Path) -> impl Fn(io::Error) -> Self + Copy {
        move |source| Self { operation, path: path.to_owned(), source }
    }
}
