use std::io;
use std::path::Path;

use rustix::fs::listxattr;
use rustix::io::Errno;

/// Maximum size in bytes of the list of a file's attributes, and of a value (XATTR_LIST_MAX, XATTR_SIZE_MAX in
/// the kernel's limits.h).
pub(crate) const MAX_ATTRIBUTE_SIZE: usize = 65536;

/// The names of a file's attributes; none where its file system has no attributes.
pub(crate) fn attribute_names(path: &Path) -> io::Result<Vec<Vec<u8>>> {
    let mut names = vec![0; MAX_ATTRIBUTE_SIZE];
    let length = match listxattr(path, &mut names[..]) {
        Err(Errno::NOTSUP) => 0,
        length => length?,
    };
    Ok(names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect())
}
