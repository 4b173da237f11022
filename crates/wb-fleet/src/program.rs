//! The program as it is put on hosts: what runs of it, and compressed on the way.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};

use flate2::Compression;
use flate2::write::GzEncoder;
use rustix::fs::{MemfdFlags, memfd_create};
use wb_model::Sha256;

use crate::elf;

/// The program that is put on hosts, read once.
#[derive(Debug, Clone)]
pub struct Program {
    path: PathBuf,
    content: Arc<Vec<u8>>,
    sha256: String,
    compressed: Arc<OnceLock<Vec<u8>>>,
}

impl Program {
    /// Reads a program, without its symbols and debug information where it runs without them.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(path: &Path) -> io::Result<Self> {
        let stripped = elf::strip(&mut File::open(path)?)?.filter(|program| is_runnable(program));
        let content = match stripped {
            Some(stripped) => stripped,
            None => std::fs::read(path)?,
        };
        let sha256 = Sha256::of(&content).as_str().to_owned();
        Ok(Self { path: path.to_owned(), content: Arc::new(content), sha256, compressed: Arc::default() })
    }

    /// Its file on this machine.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The SHA-256 of what is put on hosts, in hexadecimal digits.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// How much it takes there, in bytes.
    pub fn size(&self) -> u64 {
        self.content.len() as u64
    }

    /// As it is.
    pub(crate) fn uncompressed(&self) -> &[u8] {
        &self.content
    }

    /// As gzip writes it (RFC 1952), compressed once for all hosts.
    pub(crate) fn compressed(&self) -> io::Result<&[u8]> {
        if let Some(compressed) = self.compressed.get() {
            return Ok(compressed);
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::new(COMPRESSION_LEVEL));
        encoder.write_all(&self.content)?;
        let compressed = encoder.finish()?;
        Ok(self.compressed.get_or_init(|| compressed))
    }
}

/// The lowest that compresses: the next ones take half as long again and save a twentieth.
const COMPRESSION_LEVEL: u32 = 1;

/// Whether a copy of a program runs, in memory of its own: it says its version.
fn is_runnable(program: &[u8]) -> bool {
    let says_version = || -> io::Result<bool> {
        let mut file = File::from(memfd_create("weighbridge", MemfdFlags::CLOEXEC)?);
        file.write_all(program)?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let output = Command::new(path).arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output()?;
        Ok(output.status.success() && !output.stdout.is_empty())
    };
    // Where it cannot be tried, the whole program is sent: that runs.
    says_version().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn what_does_not_run_without_its_symbols_is_sent_whole() {
        // A test's own program knows no `--version`.
        let whole = std::fs::metadata("/proc/self/exe").unwrap().len();
        assert_eq!(Program::read(Path::new("/proc/self/exe")).unwrap().size(), whole);
        assert!(is_runnable(&std::fs::read("/bin/true").unwrap()), "it says the version of its package");
        assert!(!is_runnable(b"no program"));
    }

    #[test]
    fn what_is_compressed_is_the_program() {
        let program = Program::read(Path::new("/bin/true")).unwrap();
        let mut content = Vec::new();
        flate2::read::GzDecoder::new(program.compressed().unwrap()).read_to_end(&mut content).unwrap();
        assert_eq!(content, program.uncompressed());
        assert_eq!(program.sha256(), Sha256::of(&content).as_str());
    }
}
