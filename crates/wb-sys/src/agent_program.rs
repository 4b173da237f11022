//! Where the program that runs on workers is installed: with the `weighbridge` that starts it.

use std::path::{Path, PathBuf};

pub const AGENT_PROGRAM: &str = "weighbridge-agent";

/// Beside the given `weighbridge`, or in the folder of programs that users do not call (`/usr/libexec` for `/usr/bin`).
pub fn places(weighbridge: &Path) -> Vec<PathBuf> {
    let folder = weighbridge.parent().unwrap_or(Path::new("/"));
    let is_bin = folder.file_name().is_some_and(|name| name == "bin");
    let libexec = is_bin.then(|| folder.with_file_name("libexec"));
    [Some(folder.to_owned()), libexec].into_iter().flatten().map(|folder| folder.join(AGENT_PROGRAM)).collect()
}

pub fn find(weighbridge: &Path) -> Option<PathBuf> {
    places(weighbridge).into_iter().find(|place| place.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_beside_the_program_or_in_libexec() {
        let texts = |program: &str| {
            places(Path::new(program)).iter().map(|place| place.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(texts("/usr/bin/weighbridge"), ["/usr/bin/weighbridge-agent", "/usr/libexec/weighbridge-agent"]);
        // What another user puts beside a folder of /tmp is not ours.
        assert_eq!(texts("/tmp/mine/weighbridge"), ["/tmp/mine/weighbridge-agent"]);
    }
}
