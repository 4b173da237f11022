//! Catalog of distributions' cloud images by name, read from `images/catalog.toml`.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

use super::checksums::HashKind;

/// An image of the catalog for one architecture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogImage {
    pub url: String,
    /// The URL of the list with its hash.
    pub list: String,
    pub kind: HashKind,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CatalogEntry {
    kind: HashKind,
    x86_64: ImageLocation,
    aarch64: ImageLocation,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ImageLocation {
    url: String,
    list: String,
}

/// All names, sorted.
pub fn names() -> impl Iterator<Item = &'static str> {
    catalog().keys().map(String::as_str)
}

/// The image of a name for an architecture, as printed by `uname -m`.
pub fn find(name: &str, architecture: &str) -> Option<CatalogImage> {
    let entry = catalog().get(name)?;
    let ImageLocation { url, list } = match architecture {
        "x86_64" => &entry.x86_64,
        "aarch64" => &entry.aarch64,
        _ => return None,
    };
    Some(CatalogImage { url: url.clone(), list: list.clone(), kind: entry.kind })
}

fn catalog() -> &'static BTreeMap<String, CatalogEntry> {
    static CATALOG: OnceLock<BTreeMap<String, CatalogEntry>> = OnceLock::new();
    let read = || toml::from_str(include_str!("../../images/catalog.toml"));
    CATALOG.get_or_init(|| read().expect("a test reads it"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::image::ImageSpec;

    #[test]
    fn every_entry_is_well_formed() {
        let mut urls = BTreeSet::new();
        for name in names() {
            assert!(matches!(name.parse(), Ok(ImageSpec::Named(_))), "{name}");
            for (architecture, debian) in [("x86_64", "amd64"), ("aarch64", "arm64")] {
                let CatalogImage { url, list, .. } = find(name, architecture).unwrap();
                assert!(url.ends_with(".qcow2") || url.ends_with(".img"), "{url}");
                assert!(url.contains(architecture) || url.contains(debian), "{url}");
                // The hash list must be protected against modification in transit.
                assert!(url.starts_with("https://") && list.starts_with("https://"), "{name}");
                let folder =
                    |url: &str| url.rsplit_once('/').unwrap().0.split_once(".org").map(|(_, path)| path.to_owned());
                assert_eq!(folder(&url), folder(&list), "{name}");
                assert!(urls.insert(url), "{name}");
            }
            assert_eq!(find(name, "riscv64"), None);
        }
        assert!(names().count() >= 13);
    }

    #[test]
    fn common_releases_are_listed() {
        for name in ["debian-12", "debian-13", "ubuntu-24.04", "centos-stream-10", "rocky-9", "opensuse-leap-15.6"] {
            assert!(names().any(|listed| listed == name), "{name}");
        }
    }
}
