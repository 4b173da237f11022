//! Installed packages and their versions.

use std::collections::BTreeMap;
use std::path::Path;

use super::command;
use crate::SysRoot;

/// The versions of all installed packages, by name. The databases of Debian, Alpine and Arch are read; RPM's is queried
/// with `rpm`, on the running system only.
pub fn packages(root: &SysRoot) -> BTreeMap<String, String> {
    if let Ok(text) = root.text("/var/lib/dpkg/status") {
        return debian(&text);
    }
    if let Ok(text) = root.text("/lib/apk/db/installed") {
        return alpine(&text);
    }
    if let Ok(names) = root.list("/var/lib/pacman/local") {
        return names.iter().filter_map(|name| arch(name)).collect();
    }
    let has_rpm = root.is_real() && (root.exists("/var/lib/rpm") || root.exists("/usr/lib/sysimage/rpm"));
    let list = has_rpm.then(|| {
        let format = "%{NAME}.%{ARCH}\\t%{VERSION}-%{RELEASE}\\n";
        command::output(Path::new("rpm"), &["-qa", "--queryformat", format])
    });
    list.and_then(Result::ok).map(|text| parse_tab_separated(&text)).unwrap_or_default()
}

/// Parses dpkg's status file. A package of a foreign architecture is named `name:arch`.
fn debian(status: &str) -> BTreeMap<String, String> {
    let packages: Vec<Package> = status.split("\n\n").filter_map(package).collect();
    let native = packages.iter().find(|package| package.name == "dpkg").map_or("", |package| package.arch);
    let name = |package: &Package| match package.arch {
        arch if arch == native || arch == "all" || arch.is_empty() => package.name.to_owned(),
        arch => format!("{}:{arch}", package.name),
    };
    packages.iter().map(|package| (name(package), package.version.to_owned())).collect()
}

struct Package<'a> {
    name: &'a str,
    version: &'a str,
    arch: &'a str,
}

/// States of a package, as in dpkg(1), in which its files are in use; a pending trigger changes nothing about that.
const IN_USE: [&str; 3] = ["installed", "triggers-awaited", "triggers-pending"];

/// Parses a paragraph of dpkg's status file; None where the package is not installed.
fn package(paragraph: &str) -> Option<Package<'_>> {
    let (mut name, mut status, mut version, mut arch) = (None, None, None, None);
    // In one pass: a system has tens of thousands of lines, and each run reads them twice.
    for line in paragraph.lines() {
        let (value, prefix) = match line.as_bytes().first() {
            Some(b'P') => (&mut name, "Package:"),
            Some(b'S') => (&mut status, "Status:"),
            Some(b'V') => (&mut version, "Version:"),
            Some(b'A') => (&mut arch, "Architecture:"),
            _ => continue,
        };
        if let Some(text) = line.strip_prefix(prefix) {
            *value = Some(text.trim());
        }
    }
    let installed = IN_USE.contains(&status?.rsplit(' ').next()?);
    let package = Package { name: name?, version: version?, arch: arch.unwrap_or("") };
    installed.then_some(package)
}

fn alpine(installed: &str) -> BTreeMap<String, String> {
    let field =
        |paragraph: &str, name: &str| paragraph.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
    installed.split("\n\n").filter_map(|text| Some((field(text, "P:")?, field(text, "V:")?))).collect()
}

/// Parses the folder name of an Arch package: `name-version-release`.
fn arch(folder: &str) -> Option<(String, String)> {
    let (rest, release) = folder.rsplit_once('-')?;
    let (name, version) = rest.rsplit_once('-')?;
    Some((name.to_owned(), format!("{version}-{release}")))
}

fn parse_tab_separated(text: &str) -> BTreeMap<String, String> {
    text.lines().filter_map(|line| line.split_once('\t')).map(|(name, version)| (name.into(), version.into())).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fake_root::FakeRoot;

    #[test]
    fn only_installed_debian_packages_are_listed() {
        let packages = debian(
            "Package: dpkg\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1.21\n\n\
             Package: libc6\nStatus: install ok installed\nArchitecture: i386\nVersion: 2.36\n\n\
             Package: gone\nStatus: deinstall ok config-files\nArchitecture: amd64\nVersion: 1\n\n\
             Package: tzdata\nStatus: hold ok installed\nDescription: x\n Version: no\nArchitecture: all\nVersion: 2024a\n\n\
             Package: man-db\nStatus: install ok triggers-pending\nArchitecture: amd64\nVersion: 2.11\n\n\
             Package: ca-certificates\nStatus: install ok triggers-awaited\nArchitecture: all\nVersion: 2023\n\n\
             Package: torn\nStatus: install reinstreq half-installed\nArchitecture: amd64\nVersion: 2\n",
        );
        let expected = [
            ("ca-certificates", "2023"),
            ("dpkg", "1.21"),
            ("libc6:i386", "2.36"),
            ("man-db", "2.11"),
            ("tzdata", "2024a"),
        ];
        assert_eq!(packages, expected.map(|(name, version)| (name.to_owned(), version.to_owned())).into());
    }

    #[test]
    fn alpine_and_arch_are_read() {
        let alpine = FakeRoot::new().file("/lib/apk/db/installed", "C:x\nP:musl\nV:1.2.4-r2\n\nP:busybox\nV:1.36\n");
        assert_eq!(packages(&alpine.root())["musl"], "1.2.4-r2");
        let arch = FakeRoot::new().file("/var/lib/pacman/local/gcc-libs-13.2.1-3/desc", "");
        assert_eq!(packages(&arch.root())["gcc-libs"], "13.2.1-3");
    }

    proptest! {
        #[test]
        fn arbitrary_input_does_not_panic(text: String) {
            let _ = (debian(&text), alpine(&text), arch(&text), parse_tab_separated(&text));
        }
    }
}
