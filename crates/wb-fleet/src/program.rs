//! The program that is deployed to hosts: stripped, and compressed for the transfer.

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

/// The program that is deployed to hosts, read once.
#[derive(Debug, Clone)]
pub struct Program {
    path: PathBuf,
    content: Arc<Vec<u8>>,
    sha256: String,
    compressed: Arc<OnceLock<Vec<u8>>>,
}

impl Program {
    /// Reads a program and strips its symbols and debug information if it runs without them.
    pub fn read(path: &Path) -> io::Result<Self> {
        let stripped = elf::strip(&mut File::open(path)?)?.filter(|program| is_runnable(program));
        let content = match stripped {
            Some(stripped) => stripped,
            None => std::fs::read(path)?,
        };
        let sha256 = Sha256::digest(&content).as_str().to_owned();
        Ok(Self { path: path.to_owned(), content: Arc::new(content), sha256, compressed: Arc::default() })
    }

    /// Path of its file on this machine.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// SHA-256 of the deployed content, in hexadecimal digits.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// Size of the deployed content, in bytes.
    pub fn size(&self) -> u64 {
        self.content.len() as u64
    }

    pub fn uncompressed(&self) -> &[u8] {
        &self.content
    }

    /// The content compressed by gzip (RFC 1952), once for all hosts.
    pub fn compressed(&self) -> io::Result<&[u8]> {
        if let Some(compressed) = self.compressed.get() {
            return Ok(compressed);
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::new(COMPRESSION_LEVEL));
        encoder.write_all(&self.content)?;
        let compressed = encoder.finish()?;
        Ok(self.compressed.get_or_init(|| compressed))
    }
}

/// Compression level: the fastest. The next levels take 1.5 times as long and save 5 %.
const COMPRESSION_LEVEL: u32 = 1;

/// Whether a program runs from memory and prints its version.
fn is_runnable(program: &[u8]) -> bool {
    let prints_version = || -> io::Result<bool> {
        let mut file = File::from(memfd_create("weighbridge", MemfdFlags::CLOEXEC)?);
        file.write_all(program)?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let output = Command::new(path).arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output()?;
        Ok(output.status.success() && !output.stdout.is_empty())
    };
    // If that cannot be tried, the complete program is sent, which does run.
    prints_version().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_program_that_does_not_run_stripped_is_sent_unstripped() {
        // A test program does not support `--version`.
        let size = std::fs::metadata("/proc/self/exe").unwrap().len();
        assert_eq!(Program::read(Path::new("/proc/self/exe")).unwrap().size(), size);
        assert!(is_runnable(&std::fs::read("/bin/true").unwrap()), "it prints the version of its package");
        assert!(!is_runnable(b"not a program"));
    }

    #[test]
    fn the_compressed_content_is_the_program() {
        let program = Program::read(Path::new("/bin/true")).unwrap();
        let mut content = Vec::new();
        flate2::read::GzDecoder::new(program.compressed().unwrap()).read_to_end(&mut content).unwrap();
        assert_eq!(content, program.uncompressed());
        assert_eq!(program.sha256(), Sha256::digest(&content).as_str());
    }
}
