//! Fetching: what has come stays until it is whole, and is worth nothing until its hash is right.

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

/// How long a connection may take to be made, name and TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Less than this within the time for stalls is a stall, in bytes.
const MIN_THROUGHPUT: u64 = 64 << 10;
/// The longest list of hashes.
const MAX_LIST_SIZE: u64 = 4 << 20;
/// What is read at once.
const BUFFER_SIZE: usize = 256 << 10;
/// How an error begins that is about a name.
const NO_ADDRESS: &str = "failed to lookup address information";
/// How often a connection that breaks is taken up again where it brought something.
const MAX_RETRIES: usize = 5;

/// What is to be fetched, and what it has to be.
pub(super) struct ExpectedFile<'a> {
    pub(super) url: &'a str,
    pub(super) kind: HashKind,
    /// In lower case.
    pub(super) digits: &'a str,
}

/// Fetches over HTTP and HTTPS, as the environment has proxies and the system its roots of trust.
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

    /// Whether a server gives what is asked for, of which nothing is read.
    pub(super) fn check_available(&self, url: &str) -> Result<(), ImageFailure> {
        require_status(url, &self.get(url, 0)?, StatusCode::OK)
    }

    /// A short text.
    pub(super) fn text(&self, url: &str) -> Result<String, ImageFailure> {
        let response = self.get(url, 0)?;
        require_status(url, &response, StatusCode::OK)?;
        let mut bytes = Vec::new();
        let read = response.into_body().into_reader().take(MAX_LIST_SIZE).read_to_end(&mut bytes);
        read.map_err(|error| self.failure(url, error.into(), Bytes(0)))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A file, gone on with where a part of it is there; its SHA-256. What is not what was wanted is removed.
    pub(super) fn file(
        &self,
        wanted: &ExpectedFile,
        to: &Path,
        teller: &mut ProgressWriter,
    ) -> Result<String, ImageFailure> {
        let mut tries = 0;
        let mut part = loop {
            let mut part = PartialDownload::open(to)?;
            let before = part.length;
            match self.resume(wanted.url, &mut part, teller) {
                Ok(()) => break part,
                Err(ImageFailure::Unreachable { .. }) if part.length > before && tries < MAX_RETRIES => tries += 1,
                Err(failure) => return Err(failure),
            }
        };
        part.file.flush().and_then(|()| part.file.sync_all()).map_err(|error| ImageFailure::file(to, &error))?;
        let (sha256, found) = part.hashes(wanted.kind);
        if found == wanted.digits {
            return Ok(sha256);
        }
        remove_all(to)?;
        let (url, expected) = (wanted.url.to_owned(), wanted.digits.to_owned());
        Err(ImageFailure::Hash { url, kind: wanted.kind, expected, found })
    }

    /// Fetches what is not there yet.
    fn resume(&self, url: &str, part: &mut PartialDownload, teller: &mut ProgressWriter) -> Result<(), ImageFailure> {
        let mut response = self.get(url, part.length)?;
        if part.length > 0 && !is_resumed(&response, part.length) {
            // It does not know of parts, or has another one than was asked for.
            part.restart()?;
            if response.status() != StatusCode::OK {
                response = self.get(url, 0)?;
            }
        }
        require_status(url, &response, if part.length > 0 { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK })?;
        let rest = response.body().content_length();
        let of = rest.map(|rest| Bytes(part.length + rest));
        if let Some(rest) = rest {
            tools::require_space(url, part.folder(), Bytes(rest))?;
        }
        let mut reader = response.into_body().into_reader();
        let mut piece = vec![0; BUFFER_SIZE];
        let mut window = ThroughputWindow { since: Instant::now(), bytes: 0 };
        loop {
            let (so_far, fetching) =
                (Bytes(part.length), |got| ImageProgress::Fetching { url: url.to_owned(), got, of });
            teller.report_throttled(|| fetching(so_far));
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
        match of {
            Some(of) if part.length < of.0 => Err(ImageFailure::Unreachable {
                url: url.to_owned(),
                why: format!("it ended after {} of {of} bytes, which are kept", part.length),
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
        let unreachable = |why: String| ImageFailure::Unreachable { url: url.to_owned(), why };
        match error {
            ureq::Error::HostNotFound => ImageFailure::HostUnknown { url: url.to_owned() },
            // The library of the language has no kind of its own for it.
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
        ImageFailure::Stalled { url: url.to_owned(), least: Bytes(MIN_THROUGHPUT), within: nanos(self.stall), got }
    }
}

fn nanos(duration: Duration) -> Nanos {
    Nanos(duration.as_nanos().try_into().unwrap_or(u64::MAX))
}

/// Whether what is answered follows what is there.
fn is_resumed(response: &Response<Body>, from: u64) -> bool {
    let range = response.headers().get(header::CONTENT_RANGE).and_then(|range| range.to_str().ok());
    let begins = range.is_some_and(|range| range.starts_with(&format!("bytes {from}-")));
    response.status() == StatusCode::PARTIAL_CONTENT && begins
}

fn require_status(url: &str, response: &Response<Body>, status: StatusCode) -> Result<(), ImageFailure> {
    if response.status() == status {
        return Ok(());
    }
    Err(ImageFailure::Status { url: url.to_owned(), status: response.status().as_u16() })
}

/// What came lately.
struct ThroughputWindow {
    since: Instant,
    bytes: u64,
}

impl ThroughputWindow {
    /// Counts, and says whether enough comes.
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

/// What is there of a file, and the hashes of it.
struct PartialDownload<'a> {
    path: &'a Path,
    file: File,
    length: u64,
    sha256: Sha256,
    sha512: Sha512,
}

impl<'a> PartialDownload<'a> {
    /// What is there, read through.
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

    /// The SHA-256, and the hash of the kind that is asked for.
    fn hashes(&mut self, kind: HashKind) -> (String, String) {
        let digits = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let sha256 = digits(&self.sha256.clone().finalize());
        let wanted = match kind {
            HashKind::Sha256 => sha256.clone(),
            HashKind::Sha512 => digits(&self.sha512.clone().finalize()),
        };
        (sha256, wanted)
    }
}
