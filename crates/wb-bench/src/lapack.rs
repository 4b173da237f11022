//! LAPACK libraries that linpack is compared with: Debian's OpenBLAS, the newest OpenBLAS and Intel's MKL.
//!
//! Each runs as well as it can: settings in the environment that hold a library to an older kernel are left out of its
//! commands, and each names the kernel that it chose for this CPU.

use crate::{
    bench_env::BenchEnv,
    pairs::{BenchSide, RejectedCandidate},
    pypi_wheels,
};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

const SOURCE: &str = include_str!("../peers/lapack_lu.c");

/// Variables by which a library is told to use another kernel than its best.
const LIMITING_VARIABLES: [&str; 4] = ["OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS"];

/// A library that factors by dgetrf and solves by dgetrs.
struct LapackLibrary {
    /// What the loader opens.
    path: PathBuf,
    /// What stands before the names of its functions.
    prefix: &'static str,
    /// Folders of libraries that it opens in turn.
    folders: Vec<PathBuf>,
}

/// Where a library comes from, and how it is found.
type LibrarySource = (&'static str, fn(&BenchEnv) -> Result<LapackLibrary, String>);

const SOURCES: [LibrarySource; 3] = [
    ("OpenBLAS of this system", debian_openblas),
    ("newest OpenBLAS of PyPI", pypi_openblas),
    ("newest MKL of PyPI", pypi_mkl),
];

fn debian_openblas(_: &BenchEnv) -> Result<LapackLibrary, String> {
    Ok(LapackLibrary { path: "libopenblas.so.0".into(), prefix: "", folders: Vec::new() })
}

fn pypi_openblas(place: &BenchEnv) -> Result<LapackLibrary, String> {
    let folder = pypi_wheels::unpack(place, &["scipy-openblas32"])?;
    Ok(LapackLibrary {
        path: pypi_wheels::find_file(&folder, "libscipy_openblas.so")?,
        prefix: "scipy_",
        folders: Vec::new(),
    })
}

fn pypi_mkl(place: &BenchEnv) -> Result<LapackLibrary, String> {
    let folder = pypi_wheels::unpack(place, &["mkl", "intel-openmp"])?;
    let path = pypi_wheels::find_file(&folder, "libmkl_rt.so")?;
    let beside = [path.clone(), pypi_wheels::find_file(&folder, "libiomp5.so")?];
    let folders = beside.iter().filter_map(|path| path.parent()).map(Path::to_owned).collect();
    Ok(LapackLibrary { path, prefix: "", folders })
}

/// The fastest library on these CPUs, solving so many equations so many times.
///
/// # Errors
/// Where none can be measured.
pub(crate) fn fastest_library(place: &BenchEnv, n: usize, repeats: u64, cpus: &[usize]) -> Result<BenchSide, String> {
    // Flags come before the source: without the second, some linkers would leave the libraries out.
    let flags = ["-O3", "-Wl,--no-as-needed", "-ldl", "-lm"].map(str::to_owned);
    let program = place.compile("lapack_lu", SOURCE, &flags)?;
    let side = |(origin, library): LibrarySource| {
        let unavailable = |cause| RejectedCandidate::Unavailable { name: origin.to_owned(), cause };
        library(place).and_then(|library| library.side(&program, n, repeats, cpus)).map_err(unavailable)
    };
    BenchSide::fastest(SOURCES.into_iter().map(side).collect())
}

impl LapackLibrary {
    fn side(&self, program: &Path, n: usize, repeats: u64, cpus: &[usize]) -> Result<BenchSide, String> {
        let list = cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let numbers = [n.to_string(), n.to_string(), repeats.to_string(), list];
        let command = self.command(program).into_iter().chain(numbers).collect();
        let side = BenchSide::new(&self.describe(program)?, command, |printed| {
            let (gflops, residual) = printed.trim().split_once(" GFLOPS, residual ")?;
            wb_kernels::linpack::is_valid_residual(residual.parse().ok()?).then(|| gflops.parse().ok())?
        });
        let threads = cpus.len().to_string();
        let side =
            side.env("OPENBLAS_NUM_THREADS", &threads).env("MKL_NUM_THREADS", &threads).env("MKL_DYNAMIC", "FALSE");
        Ok(side.env("LD_LIBRARY_PATH", &self.search_path()).unset(&LIMITING_VARIABLES))
    }

    /// Name, version and kernel.
    fn describe(&self, program: &Path) -> Result<String, String> {
        let [program, arguments @ ..] = &self.command(program)[..] else { return Err("an empty command".to_owned()) };
        let mut command = Command::new(program);
        LIMITING_VARIABLES.iter().for_each(|name| {
            command.env_remove(name);
        });
        let output = command.args(arguments).env("LD_LIBRARY_PATH", self.search_path()).output();
        let output = output.map_err(|error| format!("{program}: {error}"))?;
        let printed = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if output.status.success() { Ok(printed(&output.stdout)) } else { Err(printed(&output.stderr)) }
    }

    fn command(&self, program: &Path) -> Vec<String> {
        [program, &self.path].iter().map(|path| path.display().to_string()).chain([self.prefix.to_owned()]).collect()
    }

    fn search_path(&self) -> String {
        let inherited = std::env::var("LD_LIBRARY_PATH").ok().filter(|path| !path.is_empty());
        let folders = self.folders.iter().map(|folder| folder.display().to_string());
        folders.chain(inherited).collect::<Vec<_>>().join(":")
    }
}
