//! Where a bench works: a temporary folder, compiled peers, tools on the path.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;

/// What subjects need to say which rows there are.
pub(crate) struct BenchEnv {
    folder: TempDir,
    program: PathBuf,
    /// Seconds that one figure should take.
    pub(crate) seconds: f64,
}

impl BenchEnv {
    pub(crate) fn new(seconds: f64) -> io::Result<Self> {
        Ok(Self { folder: tempfile::tempdir()?, program: env::current_exe()?, seconds })
    }

    /// A folder of this run, gone after it.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The command that runs one of our kernels in its own process.
    pub(crate) fn kernel_command(&self, kernel: &str, config: &impl serde::Serialize) -> Result<Vec<String>, String> {
        let config = serde_json::to_string(config).map_err(|error| error.to_string())?;
        Ok(vec![self.program.display().to_string(), "exec".into(), kernel.into(), config])
    }

    /// The command that runs a server and its client.
    pub(crate) fn client_server_command(&self, both: &crate::net::ClientServer) -> Result<Vec<String>, String> {
        let both = serde_json::to_string(both).map_err(|error| error.to_string())?;
        Ok(vec![self.program.display().to_string(), "both".into(), both])
    }

    /// The program that users start, built beside this one.
    pub(crate) fn weighbridge_program(&self) -> Result<PathBuf, String> {
        let program = self.program.with_file_name("weighbridge");
        if program.is_file() { Ok(program) } else { Err(format!("{} is not built", program.display())) }
    }

    /// Compiles a peer by gcc; returns the program.
    pub(crate) fn compile(&self, name: &str, source: &str, flags: &[String]) -> Result<PathBuf, String> {
        let file = self.folder().join(format!("{name}.c"));
        let program = self.folder().join(name);
        fs::write(&file, source).map_err(|error| format!("{}: {error}", file.display()))?;
        let output = Command::new("gcc").args(flags).arg(&file).arg("-o").arg(&program).output();
        match output {
            Ok(output) if output.status.success() => Ok(program),
            Ok(output) => Err(format!("gcc: {}", String::from_utf8_lossy(&output.stderr).trim())),
            Err(error) => Err(format!("gcc: {error}")),
        }
    }
}

/// Whether a tool is on the path.
pub(crate) fn require_tool(name: &str) -> Result<(), String> {
    let found = env::split_paths(&env::var_os("PATH").unwrap_or_default()).any(|folder| folder.join(name).is_file());
    found.then_some(()).ok_or_else(|| format!("{name} is not installed"))
}
