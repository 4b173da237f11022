//! Image specifications of users, as a string or a JSON object.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wb_diagnostics::humanize_serde_error;
use wb_model::Bytes;

use super::catalog;

/// Specification of an image.
///
/// As a string: a name in the catalog, `built` or `built:RELEASE`, `URL#sha256=DIGITS`, or the path of a file on the
/// host. As an object: with one of the keys `name`, `url`, `file` or `built`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Value", into = "ImageObject")]
#[schemars(with = "ImageSchema")]
pub enum ImageSpec {
    /// A distribution's cloud image, by its name in the catalog.
    Named(CatalogName),
    /// An image downloaded from a URL.
    Remote(RemoteImage),
    /// An existing file on the host.
    File(LocalImage),
    /// A Debian image built on the host from packages.
    Built(BuiltImage),
}

/// A distribution's cloud image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CatalogName {
    /// Its name in the catalog: `debian-12`.
    pub name: String,
}

/// An image at a URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RemoteImage {
    /// Its HTTP or HTTPS URL.
    pub url: String,
    /// Its required SHA-256, in hexadecimal digits.
    pub sha256: String,
}

/// An image file of the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LocalImage {
    /// Its path on the host; the format is qcow2 or raw.
    pub file: String,
    /// The kernel to boot, if its disk has no boot loader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The kernel's initial RAM file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initrd: Option<String>,
    /// The kernel's parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
}

/// A Debian image built from packages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BuiltImage {
    /// Code name of the release: `bookworm`.
    pub built: String,
    /// Packages to install in addition to the minimum for booting and ssh.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<String>,
    /// Size of its disk.
    #[serde(default = "disk_size", skip_serializing_if = "is_disk_size")]
    #[schemars(with = "String")]
    pub size: Bytes,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseImageError {
    #[error(
        "unknown image `{}`: expected one of {}, a release such as `built:bookworm`, a path with `/`, or a URL with its SHA-256",
        .0,
        catalog::names().collect::<Vec<_>>().join(", ")
    )]
    Unknown(String),
    #[error("missing SHA-256 of `{0}`: expected `{0}#sha256=DIGITS`, or {{\"url\": …, \"sha256\": …}}")]
    NoHash(String),
    #[error("invalid SHA-256 `{0}`: expected 64 hexadecimal digits")]
    Hash(String),
    #[error("invalid URL `{0}`: expected http:// or https:// and a host")]
    Url(String),
    #[error("`{0}` is compressed: expected an image in qcow2 (which has its own compression) or raw format")]
    Compressed(String),
    #[error("invalid path `{0}`: expected an absolute path on the host")]
    Relative(String),
    #[error("invalid release `{0}`: expected a code name such as `bookworm` or `trixie`")]
    Release(String),
    #[error("invalid package name `{0}`")]
    Package(String),
    #[error("invalid size {0} of a built image: expected 1g to 16t")]
    Size(Bytes),
    #[error("`kernel`, `initrd` and `arguments` must be given together or not at all")]
    IncompleteKernel,
    #[error("invalid image: expected a string, or an object with `name`, `url` and `sha256`, `file`, or `built`: {0}")]
    Shape(String),
}

const DEFAULT_RELEASE: &str = "bookworm";

fn disk_size() -> Bytes {
    Bytes(4 << 30)
}

fn is_disk_size(size: &Bytes) -> bool {
    *size == disk_size()
}

/// The accepted forms of an image, for the schema.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum ImageSchema {
    /// As a string.
    Text(String),
    /// As an object.
    Object(ImageObject),
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum ImageObject {
    Named(CatalogName),
    Remote(RemoteImage),
    File(LocalImage),
    Built(BuiltImage),
}

impl From<ImageSpec> for ImageObject {
    fn from(image: ImageSpec) -> Self {
        match image {
            ImageSpec::Named(named) => Self::Named(named),
            ImageSpec::Remote(remote) => Self::Remote(remote),
            ImageSpec::File(file) => Self::File(file),
            ImageSpec::Built(built) => Self::Built(built),
        }
    }
}

impl FromStr for ImageSpec {
    type Err = ParseImageError;

    fn from_str(text: &str) -> Result<Self, ParseImageError> {
        let text = text.trim();
        if text.starts_with('{') {
            let value: Value = serde_json::from_str(text)
                .map_err(|error| ParseImageError::Shape(humanize_serde_error(&error.to_string())))?;
            return Self::try_from(value);
        }
        let image = if text == "built" || text.starts_with("built:") {
            let release = text.strip_prefix("built:").unwrap_or(DEFAULT_RELEASE);
            Self::Built(BuiltImage { built: release.to_owned(), packages: Vec::new(), size: disk_size() })
        } else if text.contains("://") {
            let (url, sha256) = text.split_once("#sha256=").ok_or_else(|| ParseImageError::NoHash(text.to_owned()))?;
            Self::Remote(RemoteImage { url: url.to_owned(), sha256: sha256.to_owned() })
        } else if text.contains('/') {
            Self::File(LocalImage { file: text.to_owned(), kernel: None, initrd: None, arguments: None })
        } else {
            Self::Named(CatalogName { name: text.to_owned() })
        };
        image.validated()
    }
}

impl TryFrom<Value> for ImageSpec {
    type Error = ParseImageError;

    fn try_from(value: Value) -> Result<Self, ParseImageError> {
        let object = match value {
            Value::String(text) => return text.parse(),
            Value::Object(object) => object,
            other => return Err(ParseImageError::Shape(format!("`{other}` is neither"))),
        };
        let has = |key: &str| object.contains_key(key);
        let (name, url, file, built) = (has("name"), has("url"), has("file"), has("built"));
        let object = Value::Object(object);
        let image = match (name, url, file, built) {
            (true, ..) => serde_json::from_value(object).map(Self::Named),
            (_, true, ..) => serde_json::from_value(object).map(Self::Remote),
            (_, _, true, _) => serde_json::from_value(object).map(Self::File),
            (.., true) => serde_json::from_value(object).map(Self::Built),
            _ => return Err(ParseImageError::Shape(format!("`{object}` has none of them"))),
        };
        image.map_err(|error| ParseImageError::Shape(humanize_serde_error(&error.to_string())))?.validated()
    }
}

impl ImageSpec {
    /// Whether its disk has a boot loader. Otherwise guests boot a kernel from outside of it.
    pub fn has_boot_loader(&self) -> bool {
        match self {
            Self::Named(_) | Self::Remote(_) => true,
            Self::File(file) => file.kernel.is_none(),
            Self::Built(_) => false,
        }
    }

    /// Returns the image, normalised, if it is valid.
    fn validated(mut self) -> Result<Self, ParseImageError> {
        match &mut self {
            Self::Named(CatalogName { name }) if catalog::names().all(|listed| listed != name.as_str()) => {
                return Err(ParseImageError::Unknown(name.clone()));
            }
            Self::Named(_) => {}
            Self::Remote(RemoteImage { url, sha256 }) => {
                require_url(url)?;
                sha256.make_ascii_lowercase();
                if !is_sha256(sha256) {
                    return Err(ParseImageError::Hash(sha256.clone()));
                }
            }
            Self::File(file) => require_file(file)?,
            Self::Built(built) => require_built(built)?,
        }
        Ok(self)
    }
}

impl fmt::Display for ImageSpec {
    /// Formats it for people: without hashes, with the packages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(CatalogName { name }) => f.write_str(name),
            Self::Remote(RemoteImage { url, .. }) => f.write_str(url),
            Self::File(LocalImage { file, .. }) => f.write_str(file),
            Self::Built(BuiltImage { built, packages, size }) => {
                write!(f, "built:{built}")?;
                if !is_disk_size(size) {
                    write!(f, " of {size}")?;
                }
                if packages.is_empty() { Ok(()) } else { write!(f, " with {}", packages.join(", ")) }
            }
        }
    }
}

fn is_sha256(digits: &str) -> bool {
    digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn require_url(url: &str) -> Result<(), ParseImageError> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let has_host = rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['/', '?', '#', ':']));
    if !has_host || url.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(ParseImageError::Url(url.to_owned()));
    }
    require_uncompressed(url)
}

fn require_uncompressed(name: &str) -> Result<(), ParseImageError> {
    let is_compressed = [".xz", ".gz", ".zst", ".bz2", ".zip", ".tar"].iter().any(|end| name.ends_with(end));
    if is_compressed { Err(ParseImageError::Compressed(name.to_owned())) } else { Ok(()) }
}

fn require_file(image: &LocalImage) -> Result<(), ParseImageError> {
    let paths = [Some(&image.file), image.kernel.as_ref(), image.initrd.as_ref()];
    if let Some(relative) = paths.into_iter().flatten().find(|path| !path.starts_with('/')) {
        return Err(ParseImageError::Relative(relative.clone()));
    }
    match (&image.kernel, &image.initrd, &image.arguments) {
        (None, None, None) | (Some(_), Some(_), Some(_)) => require_uncompressed(&image.file),
        _ => Err(ParseImageError::IncompleteKernel),
    }
}

fn require_built(image: &mut BuiltImage) -> Result<(), ParseImageError> {
    if image.built.is_empty() || !image.built.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Err(ParseImageError::Release(image.built.clone()));
    }
    // Debian policy, section 5.6.1.
    let is_package = |name: &&String| {
        name.len() > 1
            && name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
            && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'+' | b'-' | b'.'))
    };
    if let Some(invalid) = image.packages.iter().find(|name| !is_package(name)) {
        return Err(ParseImageError::Package(invalid.clone()));
    }
    // The order of packages makes no difference.
    image.packages.sort();
    image.packages.dedup();
    if !(1 << 30..=16 << 40).contains(&image.size.0) {
        return Err(ParseImageError::Size(image.size));
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use super::*;

    const HASH: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789ABCDEF";

    fn refused(text: &str) -> ParseImageError {
        text.parse::<ImageSpec>().unwrap_err()
    }

    #[test]
    fn image_is_parsed_from_a_string() {
        let image = |text: &str| text.parse::<ImageSpec>().unwrap();
        assert_eq!(image("debian-12"), ImageSpec::Named(CatalogName { name: "debian-12".to_owned() }));
        assert_eq!(image("built"), image("built:bookworm"));
        assert!(matches!(image("/srv/a.qcow2"), ImageSpec::File(LocalImage { kernel: None, .. })));
        let ImageSpec::Remote(remote) = image(&format!("https://host/a.qcow2#sha256={HASH}")) else { panic!() };
        assert_eq!((remote.url.as_str(), remote.sha256), ("https://host/a.qcow2", HASH.to_ascii_lowercase()));
        let built = image(r#"{"built": "trixie", "packages": ["redis-server", "fio", "fio"], "size": "8g"}"#);
        assert_eq!(built.to_string(), "built:trixie of 8g with fio, redis-server");
    }

    #[test]
    fn serialised_images_are_parsed_again() {
        let texts =
            ["debian-13", "built:trixie", "/a/b", r#"{"file":"/a","kernel":"/k","initrd":"/i","arguments":""}"#];
        for text in texts {
            let image: ImageSpec = text.parse().unwrap();
            let json = serde_json::to_value(&image).unwrap();
            assert_eq!(serde_json::from_value::<ImageSpec>(json).unwrap(), image);
        }
    }

    #[test]
    fn invalid_images_are_refused_with_the_right_error() {
        assert!(matches!(refused("debian-1"), ParseImageError::Unknown { .. }));
        assert!(matches!(refused("https://host/a.qcow2"), ParseImageError::NoHash { .. }));
        assert!(matches!(refused("https://host/a.qcow2#sha256=12"), ParseImageError::Hash { .. }));
        assert!(matches!(refused(&format!("ftp://host/a#sha256={HASH}")), ParseImageError::Url { .. }));
        assert!(matches!(refused(&format!("http:///a#sha256={HASH}")), ParseImageError::Url { .. }));
        assert!(matches!(refused(&format!("http://h/a.raw.xz#sha256={HASH}")), ParseImageError::Compressed { .. }));
        assert!(matches!(refused("images/a.qcow2"), ParseImageError::Relative { .. }));
        assert!(matches!(refused("built:Book worm"), ParseImageError::Release { .. }));
        assert!(matches!(refused(r#"{"built":"sid","packages":["-o"]}"#), ParseImageError::Package { .. }));
        assert!(matches!(refused(r#"{"built":"sid","size":"1m"}"#), ParseImageError::Size { .. }));
        assert!(matches!(refused(r#"{"file":"/a","kernel":"/k"}"#), ParseImageError::IncompleteKernel));
        assert!(matches!(refused(r#"{"built":"sid","url":"x"}"#), ParseImageError::Shape { .. }));
        assert!(matches!(refused("{"), ParseImageError::Shape { .. }));
        assert!(serde_json::from_str::<ImageSpec>("7").is_err());
    }
}
