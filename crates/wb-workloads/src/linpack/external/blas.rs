//! The BLAS library that a program uses, according to `ldd`.

use std::path::{Path, PathBuf};

/// Source of a program's linear algebra routines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Blas {
    Shared {
        /// Requested by the program, such as `libblas.so.3`.
        soname: String,
        /// With symbolic links resolved.
        file: PathBuf,
        family: BlasFamily,
    },
    /// The program requests a library that is missing.
    NotFound { soname: String },
    /// No shared BLAS: it is linked statically.
    BuiltIn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlasFamily {
    OpenBlas,
    Mkl,
    /// Including AMD's.
    Blis,
    Atlas,
    /// The Fortran reference of Netlib, slow by design.
    Reference,
    Unknown,
}

/// Names of libraries that define BLAS, without version and suffix.
const LIBRARIES: [&str; 12] = [
    "libblas",
    "libcblas",
    "libf77blas",
    "libopenblas",
    "libopenblas64",
    "libopenblasp",
    "libblis",
    "libblis-mt",
    "libatlas",
    "libsatlas",
    "libtatlas",
    "libmkl_rt",
];

/// Parses the output of `ldd`. Where several libraries define BLAS, the first wins, as it does for the dynamic linker.
/// `real_path` resolves symbolic links, or returns none if it cannot.
#[must_use]
pub fn resolve(ldd: &str, real_path: impl Fn(&Path) -> Option<PathBuf>) -> Blas {
    let Some((soname, target)) = ldd.lines().filter_map(parse_dependency).find(|(soname, _)| is_blas(soname)) else {
        return Blas::BuiltIn;
    };
    let soname = soname.to_owned();
    match target {
        None => Blas::NotFound { soname },
        Some(path) => {
            let file = real_path(path).unwrap_or_else(|| path.to_owned());
            let family = BlasFamily::detect(&file);
            Blas::Shared { soname, file, family }
        }
    }
}

/// Parses `libblas.so.3 => /lib/libblas.so.3 (0x00007f…)` or `libblas.so.3 => not found`.
fn parse_dependency(line: &str) -> Option<(&str, Option<&Path>)> {
    let (soname, target) = line.trim().split_once(" => ")?;
    let path = target.rsplit_once(" (").map_or(target, |(path, _)| path).trim();
    Some((soname, path.starts_with('/').then(|| Path::new(path))))
}

fn is_blas(soname: &str) -> bool {
    let name = soname.split(".so").next().unwrap_or(soname);
    LIBRARIES.contains(&name) || name.starts_with("libmkl_intel_")
}

impl BlasFamily {
    /// Detects the implementation by the names of the file and its folder: Debian installs `libblas.so.3` in a folder
    /// named after the implementation.
    #[must_use]
    pub fn detect(file: &Path) -> Self {
        let names: Vec<String> =
            file.iter().rev().take(2).map(|name| name.to_string_lossy().to_ascii_lowercase()).collect();
        let any = |part: &str| names.iter().any(|name| name.contains(part));
        match () {
            () if any("openblas") => Self::OpenBlas,
            () if any("mkl") => Self::Mkl,
            () if any("blis") => Self::Blis,
            () if any("atlas") => Self::Atlas,
            () if names.get(1).is_some_and(|folder| folder == "blas") => Self::Reference,
            () => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HPCC: &str = "\
\tlinux-vdso.so.1 (0x00007f9b890fb000)
\tlibblas.so.3 => /lib/x86_64-linux-gnu/libblas.so.3 (0x00007f9b88fef000)
\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f9b88f0f000)
\tlibopenblas.so.0 => /lib/x86_64-linux-gnu/libopenblas.so.0 (0x00007f9b86900000)
";

    #[test]
    fn the_first_blas_wins_and_links_are_resolved() {
        let folder = "/usr/lib/x86_64-linux-gnu/openblas-pthread/";
        let resolve_link = |path: &Path| Some(Path::new(folder).join(path.file_name()?));
        assert_eq!(
            resolve(HPCC, resolve_link),
            Blas::Shared {
                soname: "libblas.so.3".into(),
                file: PathBuf::from(folder).join("libblas.so.3"),
                family: BlasFamily::OpenBlas,
            }
        );
    }

    #[test]
    fn a_library_that_is_missing_is_named() {
        let ldd = "\tlibblas.so.3 => not found\n";
        assert_eq!(resolve(ldd, |_| None), Blas::NotFound { soname: "libblas.so.3".into() });
    }

    #[test]
    fn a_static_program_has_a_built_in_blas() {
        assert_eq!(resolve("\tnot a dynamic executable\n", |_| None), Blas::BuiltIn);
        assert_eq!(resolve("\tlibblasfeo.so => /lib/libblasfeo.so (0x1)\n", |_| None), Blas::BuiltIn);
    }

    #[test]
    fn implementations_are_detected_by_file_and_folder() {
        for (file, family) in [
            ("/usr/lib/x86_64-linux-gnu/blas/libblas.so.3.11.0", BlasFamily::Reference),
            ("/usr/lib/x86_64-linux-gnu/atlas/libblas.so.3.10.3", BlasFamily::Atlas),
            ("/usr/lib/x86_64-linux-gnu/blis-pthread/libblas.so.3", BlasFamily::Blis),
            ("/opt/intel/mkl/lib/libmkl_rt.so.2", BlasFamily::Mkl),
            ("/usr/lib64/libopenblasp-r0.3.21.so", BlasFamily::OpenBlas),
            ("/usr/local/lib/libblas.so.3", BlasFamily::Unknown),
        ] {
            assert_eq!(BlasFamily::detect(Path::new(file)), family, "{file}");
        }
    }

    proptest! {
        #[test]
        fn garbage_never_panics(text in ".*", line in "[ -~]{0,20}( => )?[ -~(]{0,20}") {
            let _ = resolve(&text, |_| None);
            let _ = resolve(&line, |path| Some(path.to_owned()));
        }
    }
}
