//! Parses the lists of hashes that distributions publish beside their images.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Kind of a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HashKind {
    /// 64 hexadecimal digits.
    Sha256,
    /// 128 hexadecimal digits.
    Sha512,
}

impl HashKind {
    pub fn digits(self) -> usize {
        match self {
            Self::Sha256 => 64,
            Self::Sha512 => 128,
        }
    }
}

impl fmt::Display for HashKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sha256 => "SHA-256",
            Self::Sha512 => "SHA-512",
        })
    }
}

/// Finds the hash of a file in a list, in lower-case digits.
///
/// Lines may have the form of `sha256sum` (`DIGITS  FILE`) or of BSD (`SHA256 (FILE) = DIGITS`), which Fedora and
/// CentOS use. Other lines (signatures, comments) are skipped. If the list has a single hash, it is used whatever its
/// file name, which may be the name at build time.
pub fn find_hash(list: &str, kind: HashKind, file: &str) -> Option<String> {
    let listed = || list.lines().filter_map(|line| entry(line.trim_end(), kind));
    let named = listed().find(|(_, name)| *name == file);
    let (digits, _) = named.or_else(|| listed().next().filter(|_| listed().count() == 1))?;
    Some(digits.to_ascii_lowercase())
}

/// The digits and the file name in a line.
fn entry(line: &str, kind: HashKind) -> Option<(&str, &str)> {
    let prefix = match kind {
        HashKind::Sha256 => "SHA256 (",
        HashKind::Sha512 => "SHA512 (",
    };
    let (digits, file) = match line.strip_prefix(prefix) {
        Some(rest) => rest.rsplit_once(") = ").map(|(file, digits)| (digits, file))?,
        // A second space or a star marks text or binary mode.
        None => line.split_once(' ').map(|(digits, file)| (digits, file.strip_prefix([' ', '*']).unwrap_or(file)))?,
    };
    let is_hash = digits.len() == kind.digits() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let file = file.strip_prefix("./").unwrap_or(file);
    (is_hash && !file.is_empty()).then_some((digits, file))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB";

    #[test]
    fn sha256sum_format_is_parsed() {
        let list = format!("{A} *disk.img\n{B}  ./other.img\r\n");
        assert_eq!(find_hash(&list, HashKind::Sha256, "disk.img").as_deref(), Some(A));
        assert_eq!(find_hash(&list, HashKind::Sha256, "other.img"), Some(B.to_ascii_lowercase()));
        assert_eq!(find_hash(&list, HashKind::Sha256, "third.img"), None);
        assert_eq!(find_hash(&list, HashKind::Sha512, "disk.img"), None);
    }

    #[test]
    fn bsd_format_is_parsed_within_a_signature() {
        let list = format!(
            "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n# a.qcow2: 5 bytes\nSHA256 (a.qcow2) = {A}\n# b.qcow2: 5 bytes\n\
             SHA256 (b.qcow2) = {B}\n-----BEGIN PGP SIGNATURE-----\n\niQIz\n"
        );
        assert_eq!(find_hash(&list, HashKind::Sha256, "a.qcow2").as_deref(), Some(A));
        assert_eq!(find_hash(&list, HashKind::Sha256, "c.qcow2"), None);
    }

    #[test]
    fn single_hash_matches_any_file_name() {
        let list = format!("{A}  disk-15.6.0-Build16.qcow2\n");
        assert_eq!(find_hash(&list, HashKind::Sha256, "disk.qcow2").as_deref(), Some(A));
    }

    proptest! {
        #[test]
        fn exactly_the_listed_files_are_found(
            files in prop::collection::btree_map("[A-Za-z0-9][A-Za-z0-9 ()=._-]{0,20}[A-Za-z0-9]", "[0-9a-fA-F]{128}", 2..6),
            bsd in any::<bool>(),
        ) {
            let line = |(file, digits): (&String, &String)| if bsd { format!("SHA512 ({file}) = {digits}\n") } else { format!("{digits}  {file}\n") };
            let list: String = files.iter().map(line).collect();
            for (file, digits) in &files {
                prop_assert_eq!(find_hash(&list, HashKind::Sha512, file), Some(digits.to_ascii_lowercase()));
            }
            prop_assert_eq!(find_hash(&list, HashKind::Sha512, "!"), None);
        }

        #[test]
        fn any_text_is_parsed_and_yields_only_its_hashes(list in "(?s)(.{0,40}[ \n]){0,8}", junk in "(?s).{0,200}") {
            let list = format!("{list}{A}  x\n{junk}");
            for kind in [HashKind::Sha256, HashKind::Sha512] {
                if let Some(digits) = find_hash(&list, kind, "x") {
                    prop_assert_eq!(digits.len(), kind.digits());
                    prop_assert!(list.to_ascii_lowercase().contains(&digits));
                }
            }
        }
    }
}
