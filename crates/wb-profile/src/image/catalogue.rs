//! Distributions' cloud images by name: data, in `images/catalogue.toml`.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

use super::checksums::HashKind;

/// An image of the catalogue for one architecture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogueImage {
    /// Where it is.
    pub url: String,
    /// Where the list with its hash is.
    pub list: String,
    /// Which hash that is.
    pub kind: HashKind,
}

/// One name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CatalogueEntry {
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

/// All names, in order.
pub fn names() -> impl Iterator<Item = &'static str> {
    catalogue().keys().map(String::as_str)
}

/// What a name is on machines of an architecture, as `uname -m` says it.
pub fn find(name: &str, architecture: &str) -> Option<CatalogueImage> {
    let entry = catalogue().get(name)?;
    let ImageLocation { url, list } = match architecture {
        "x86_64" => &entry.x86_64,
        "aarch64" => &entry.aarch64,
        _ => return None,
    };
    Some(CatalogueImage { url: url.clone(), list: list.clone(), kind: entry.kind })
}

fn catalogue() -> &'static BTreeMap<String, CatalogueEntry> {
    static CATALOGUE: OnceLock<BTreeMap<String, CatalogueEntry>> = OnceLock::new();
    let read = || toml::from_str(include_str!("../../images/catalogue.toml"));
    CATALOGUE.get_or_init(|| read().expect("a test reads it"))
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
                let CatalogueImage { url, list, .. } = find(name, architecture).unwrap();
                assert!(url.ends_with(".qcow2") || url.ends_with(".img"), "{url}");
                assert!(url.contains(architecture) || url.contains(debian), "{url}");
                // A list that somebody on the way could change would be worth nothing.
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
    fn names_of_the_releases_that_people_ask_for_are_there() {
        for name in ["debian-12", "debian-13", "ubuntu-24.04", "centos-stream-10", "rocky-9", "opensuse-leap-15.6"] {
            assert!(names().any(|known| known == name), "{name}");
        }
    }
}
