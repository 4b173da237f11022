//! The environment of the benchmarks: a temporary folder, compiled peers, tools in `PATH`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};
use tempfile::TempDir;

pub(crate) struct BenchEnv {
    folder: TempDir,
    program: PathBuf,
    weighbridge: PathBuf,
    /// Seconds that one figure should take.
    pub(crate) seconds: f64,
}

impl BenchEnv {
    /// Measures the commands of `weighbridge`, by default of the program next to this one.
    pub(crate) fn new(seconds: f64, weighbridge: Option<PathBuf>) -> io::Result<Self> {
        let program = env::current_exe()?;
        let weighbridge = match weighbridge {
            Some(given) => std::path::absolute(given)?,
            None => program.with_file_name("weighbridge"),
        };
        Ok(Self { folder: tempfile::tempdir()?, program, weighbridge, seconds })
    }

    /// The temporary folder, removed at the end.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn kernel_command(&self, kernel: &str, config: &impl serde::Serialize) -> Result<Vec<String>, String> {
        let config = serde_json::to_string(config).map_err(|error| error.to_string())?;
        Ok(vec![self.program.display().to_string(), "exec".into(), kernel.into(), config])
    }

    pub(crate) fn client_server_command(&self, both: &crate::net::ClientServer) -> Result<Vec<String>, String> {
        let both = serde_json::to_string(both).map_err(|error| error.to_string())?;
        Ok(vec![self.program.display().to_string(), "client-server".into(), both])
    }

    pub(crate) fn weighbridge_program(&self) -> Result<PathBuf, String> {
        require_file(self.weighbridge.clone())
    }

    pub(crate) fn agent_program(&self) -> Result<PathBuf, String> {
        require_file(wb_sys::agent_program::find(&self.weighbridge).unwrap_or_else(|| "weighbridge-agent".into()))
    }

    /// The commit of the `weighbridge` program, with a mark if it was modified.
    pub(crate) fn commit(&self) -> Result<String, String> {
        let program = self.weighbridge_program()?;
        let output = Command::new(&program).arg("--version").output();
        let output = output.map_err(|error| format!("{}: {error}", program.display()))?;
        let version = String::from_utf8_lossy(&output.stdout);
        let details = version.split_once('(').map_or("", |(_, details)| details);
        let commit = details.split_whitespace().next().unwrap_or("unknown commit");
        let mark = if details.contains(", modified") { " modified" } else { "" };
        Ok(format!("{commit}{mark}"))
    }

    /// Compiles a peer with gcc.
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

pub(crate) fn require_tool(name: &str) -> Result<(), String> {
    let is_installed =
        env::split_paths(&env::var_os("PATH").unwrap_or_default()).any(|folder| folder.join(name).is_file());
    is_installed.then_some(()).ok_or_else(|| format!("{name} is not installed"))
}

fn require_file(path: PathBuf) -> Result<PathBuf, String> {
    if path.is_file() { Ok(path) } else { Err(format!("missing program {}: build it first", path.display())) }
}
