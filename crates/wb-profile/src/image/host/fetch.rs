//! Downloads files, resuming partial downloads, and verifies their hashes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256, Sha512};
use ureq::http::{Response, StatusCode, header};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body, Timeout};
use wb_model::{Bytes, Nanos};

use crate::image::ImageFailure;
use crate::image::checksums::HashKind;
use crate::image::request::ImageProgress;

use super::ProgressWriter;
use super::store::remove_all;
use super::tools;

/// Time limit for connecting, including name resolution and TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Fewer bytes than this within the stall time count as a stall.
const MIN_THROUGHPUT: u64 = 64 << 10;
/// Maximum size of a list of hashes in bytes.
const MAX_LIST_SIZE: u64 = 4 << 20;
const BUFFER_SIZE: usize = 256 << 10;
/// The beginning of the standard library's error for an unresolvable name.
const NO_ADDRESS: &str = "failed to lookup address information";
/// Maximum number of retries after connections that broke but made progress.
const MAX_RETRIES: usize = 5;

/// A file to download, and its expected hash.
pub(super) struct ExpectedFile<'a> {
    pub(super) url: &'a str,
    pub(super) kind: HashKind,
    /// In lower-case hexadecimal digits.
    pub(super) digits: &'a str,
}

/// Downloads over HTTP and HTTPS, with the environment's proxies and the system's root certificates.
pub(super) struct Fetcher {
    agent: Agent,
    stall: Duration,
}

impl Fetcher {
    pub(super) fn new(stall: Duration) -> Self {
        let roots = rustls_native_certs::load_native_certs().certs;
        let roots: Vec<_> = roots.iter().map(|root| Certificate::from_der(root).to_owned()).collect();
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::Specific(Arc::new(roots)))
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .build();
        let config = Agent::config_builder()
            .tls_config(tls)
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_recv_response(Some(stall))
            .timeout_per_read(Some(stall))
            .user_agent(concat!("weighbridge/", env!("CARGO_PKG_VERSION")));
        Self { agent: config.build().new_agent(), stall }
    }

    /// Checks that a server has a file, without reading it.
    pub(super) fn check_available(&self, url: &str) -> Result<(), ImageFailure> {
        require_status(url, &self.get(url, 0)?, StatusCode::OK)
    }

    pub(super) fn text(&self, url: &str) -> Result<String, ImageFailure> {
        let response = self.get(url, 0)?;
        require_status(url, &response, StatusCode::OK)?;
        let mut bytes = Vec::new();
        let read = response.into_body().into_reader().take(MAX_LIST_SIZE).read_to_end(&mut bytes);
        read.map_err(|error| self.failure(url, error.into(), Bytes(0)))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Downloads a file, resuming a partial download; returns its SHA-256. A file with the wrong hash is removed.
    pub(super) fn file(
        &self,
        expected_file: &ExpectedFile,
        to: &Path,
        writer: &mut ProgressWriter,
    ) -> Result<String, ImageFailure> {
        let mut tries = 0;
        let mut part = loop {
            let mut part = PartialDownload::open(to)?;
            let before = part.length;
            match self.resume(expected_file.url, &mut part, writer) {
                Ok(()) => break part,
                Err(ImageFailure::Unreachable { .. }) if part.length > before && tries < MAX_RETRIES => tries += 1,
                Err(failure) => return Err(failure),
            }
        };
        part.file.flush().and_then(|()| part.file.sync_all()).map_err(|error| ImageFailure::file(to, &error))?;
        let (sha256, found) = part.hashes(expected_file.kind);
        if found == expected_file.digits {
            return Ok(sha256);
        }
        remove_all(to)?;
        let (url, expected) = (expected_file.url.to_owned(), expected_file.digits.to_owned());
        Err(ImageFailure::Hash { url, kind: expected_file.kind, expected, found })
    }

    fn resume(&self, url: &str, part: &mut PartialDownload, writer: &mut ProgressWriter) -> Result<(), ImageFailure> {
        let mut response = self.get(url, part.length)?;
        if part.length > 0 && !is_resumed(&response, part.length) {
            // The server does not support ranges, or sends another one than requested.
            part.restart()?;
            if response.status() != StatusCode::OK {
                response = self.get(url, 0)?;
            }
        }
        require_status(url, &response, if part.length > 0 { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK })?;
        let rest = response.body().content_length();
        let total = rest.map(|rest| Bytes(part.length + rest));
        if let Some(rest) = rest {
            tools::require_space(url, part.folder(), Bytes(rest))?;
        }
        let mut reader = response.into_body().into_reader();
        let mut piece = vec![0; BUFFER_SIZE];
        let mut window = ThroughputWindow { since: Instant::now(), bytes: 0 };
        loop {
            let (so_far, fetching) =
                (Bytes(part.length), |got| ImageProgress::Fetching { url: url.to_owned(), received: got, total });
            writer.report_throttled(|| fetching(so_far));
            match reader.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => {
                    part.add(&piece[..read])?;
                    if !window.is_moving(read as u64, self.stall) {
                        return Err(self.stalled(url, Bytes(part.length)));
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failure(url, error.into(), so_far)),
            }
        }
        match total {
            Some(total) if part.length < total.0 => Err(ImageFailure::Unreachable {
                url: url.to_owned(),
                reason: format!("connection closed after {} of {total} bytes, which are kept", part.length),
            }),
            _ => Ok(()),
        }
    }

    fn get(&self, url: &str, from: u64) -> Result<Response<Body>, ImageFailure> {
        let request = self.agent.get(url);
        let request = if from > 0 { request.header(header::RANGE, format!("bytes={from}-")) } else { request };
        request.call().map_err(|error| self.failure(url, error, Bytes(from)))
    }

    fn failure(&self, url: &str, error: ureq::Error, got: Bytes) -> ImageFailure {
        let unreachable = |reason: String| ImageFailure::Unreachable { url: url.to_owned(), reason };
        match error {
            ureq::Error::HostNotFound => ImageFailure::HostUnknown { url: url.to_owned() },
            // The standard library has no error kind for it.
            ureq::Error::Io(error) if error.to_string().starts_with(NO_ADDRESS) => {
                ImageFailure::HostUnknown { url: url.to_owned() }
            }
            ureq::Error::Timeout(Timeout::Connect | Timeout::Resolve) => {
                unreachable(format!("no connection within {}", nanos(CONNECT_TIMEOUT)))
            }
            ureq::Error::Timeout(_) => self.stalled(url, got),
            other => unreachable(other.to_string()),
        }
    }

    fn stalled(&self, url: &str, got: Bytes) -> ImageFailure {
        ImageFailure::Stalled {
            url: url.to_owned(),
            minimum: Bytes(MIN_THROUGHPUT),
            within: nanos(self.stall),
            received: got,
        }
    }
}

fn nanos(duration: Duration) -> Nanos {
    Nanos(duration.as_nanos().try_into().unwrap_or(u64::MAX))
}

/// Whether a response continues the partial download.
fn is_resumed(response: &Response<Body>, from: u64) -> bool {
    let range = response.headers().get(header::CONTENT_RANGE).and_then(|range| range.to_str().ok());
    let is_next = range.is_some_and(|range| range.starts_with(&format!("bytes {from}-")));
    response.status() == StatusCode::PARTIAL_CONTENT && is_next
}

fn require_status(url: &str, response: &Response<Body>, status: StatusCode) -> Result<(), ImageFailure> {
    if response.status() == status {
        return Ok(());
    }
    Err(ImageFailure::Status { url: url.to_owned(), status: response.status().as_u16() })
}

struct ThroughputWindow {
    since: Instant,
    bytes: u64,
}

impl ThroughputWindow {
    /// Adds received bytes; returns whether the throughput is sufficient.
    fn is_moving(&mut self, read: u64, within: Duration) -> bool {
        self.bytes += read;
        if self.since.elapsed() < within {
            return true;
        }
        let moves = self.bytes >= MIN_THROUGHPUT;
        *self = Self { since: Instant::now(), bytes: 0 };
        moves
    }
}

struct PartialDownload<'a> {
    path: &'a Path,
    file: File,
    length: u64,
    sha256: Sha256,
    sha512: Sha512,
}

impl<'a> PartialDownload<'a> {
    /// Opens the file and hashes what it contains.
    fn open(path: &'a Path) -> Result<Self, ImageFailure> {
        let failed = |error: io::Error| ImageFailure::file(path, &error);
        let open = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path);
        let mut part =
            Self { path, file: open.map_err(failed)?, length: 0, sha256: Sha256::new(), sha512: Sha512::new() };
        let mut piece = vec![0; BUFFER_SIZE];
        loop {
            match part.file.read(&mut piece).map_err(failed)? {
                0 => return Ok(part),
                read => part.count(&piece[..read]),
            }
        }
    }

    fn restart(&mut self) -> Result<(), ImageFailure> {
        fs::File::set_len(&self.file, 0).map_err(|error| ImageFailure::file(self.path, &error))?;
        *self = Self::open(self.path)?;
        Ok(())
    }

    fn add(&mut self, piece: &[u8]) -> Result<(), ImageFailure> {
        match self.file.write_all(piece) {
            Ok(()) => {
                self.count(piece);
                Ok(())
            }
            Err(error) if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
                let free = tools::free(self.folder()).unwrap_or_default();
                Err(tools::no_space(&self.path.display().to_string(), self.folder(), Bytes(piece.len() as u64), free))
            }
            Err(error) => Err(ImageFailure::file(self.path, &error)),
        }
    }

    fn count(&mut self, piece: &[u8]) {
        self.length += piece.len() as u64;
        self.sha256.update(piece);
        self.sha512.update(piece);
    }

    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(self.path)
    }

    /// The SHA-256, and the hash of the requested kind.
    fn hashes(&mut self, kind: HashKind) -> (String, String) {
        let digits = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let sha256 = digits(&self.sha256.clone().finalize());
        let requested = match kind {
            HashKind::Sha256 => sha256.clone(),
            HashKind::Sha512 => digits(&self.sha512.clone().finalize()),
        };
        (sha256, requested)
    }
}
