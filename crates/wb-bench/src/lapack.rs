//! The LAPACK libraries that linpack is compared with: Debian's OpenBLAS, the newest OpenBLAS and Intel's MKL.
//!
//! Each runs at its full speed: environment variables that restrict a library to an older kernel are removed from its
//! commands, and each library reports the kernel that it selected for this CPU.

use crate::bench_env::BenchEnv;
use crate::pairs::{BenchSide, RejectedCandidate};
use crate::pypi_wheels;
use std::path::{Path, PathBuf};
use std::process::Command;

const DRIVER_SOURCE: &str = include_str!("../peers/lapack_lu.c");

/// Environment variables that make a library use another kernel than its fastest.
const LIMITING_VARIABLES: [&str; 4] = ["OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS"];

/// A library that factors by dgetrf and solves by dgetrs.
struct LapackLibrary {
    /// The path that the loader opens.
    path: PathBuf,
    /// Of the names of its functions.
    prefix: &'static str,
    /// Folders of further libraries that it loads.
    folders: Vec<PathBuf>,
}

type LibraryCandidate = (&'static str, fn(&BenchEnv) -> Result<LapackLibrary, String>);

const CANDIDATES: [LibraryCandidate; 3] = [
    ("OpenBLAS of this system", debian_openblas),
    ("newest OpenBLAS of PyPI", pypi_openblas),
    ("newest MKL of PyPI", pypi_mkl),
];

fn debian_openblas(_: &BenchEnv) -> Result<LapackLibrary, String> {
    Ok(LapackLibrary { path: "libopenblas.so.0".into(), prefix: "", folders: Vec::new() })
}

fn pypi_openblas(env: &BenchEnv) -> Result<LapackLibrary, String> {
    let folder = pypi_wheels::unpack(env, &["scipy-openblas32"])?;
    Ok(LapackLibrary {
        path: pypi_wheels::find_file(&folder, "libscipy_openblas.so")?,
        prefix: "scipy_",
        folders: Vec::new(),
    })
}

fn pypi_mkl(env: &BenchEnv) -> Result<LapackLibrary, String> {
    let folder = pypi_wheels::unpack(env, &["mkl", "intel-openmp"])?;
    let path = pypi_wheels::find_file(&folder, "libmkl_rt.so")?;
    let libraries = [path.clone(), pypi_wheels::find_file(&folder, "libiomp5.so")?];
    let folders = libraries.iter().filter_map(|path| path.parent()).map(Path::to_owned).collect();
    Ok(LapackLibrary { path, prefix: "", folders })
}

/// The fastest library on these CPUs, solving `n` equations `repeats` times.
pub(crate) fn fastest_library(env: &BenchEnv, n: usize, repeats: u64, cpus: &[usize]) -> Result<BenchSide, String> {
    // Flags come before the source: without the second, some linkers would drop the libraries.
    let flags = ["-O3", "-Wl,--no-as-needed", "-ldl", "-lm"].map(str::to_owned);
    let program = env.compile("lapack_lu", DRIVER_SOURCE, &flags)?;
    let side = |(origin, library): LibraryCandidate| {
        let unavailable = |cause| RejectedCandidate::Unavailable { name: origin.to_owned(), cause };
        library(env).and_then(|library| library.side(&program, n, repeats, cpus)).map_err(unavailable)
    };
    BenchSide::fastest(CANDIDATES.into_iter().map(side).collect())
}

impl LapackLibrary {
    fn side(&self, program: &Path, n: usize, repeats: u64, cpus: &[usize]) -> Result<BenchSide, String> {
        let list = cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let numbers = [n.to_string(), n.to_string(), repeats.to_string(), list];
        let command = self.command(program).into_iter().chain(numbers).collect();
        let side = BenchSide::new(&self.describe(program)?, command, |output| {
            let (gflops, residual) = output.trim().split_once(" GFLOPS, residual ")?;
            wb_kernels::linpack::is_valid_residual(residual.parse().ok()?).then(|| gflops.parse().ok())?
        });
        let threads = cpus.len().to_string();
        let side =
            side.env("OPENBLAS_NUM_THREADS", &threads).env("MKL_NUM_THREADS", &threads).env("MKL_DYNAMIC", "FALSE");
        Ok(side.env("LD_LIBRARY_PATH", &self.search_path()).unset(&LIMITING_VARIABLES))
    }

    /// Name, version and kernel of the library.
    fn describe(&self, program: &Path) -> Result<String, String> {
        let [program, arguments @ ..] = &self.command(program)[..] else {
            return Err("the command is empty".to_owned());
        };
        let mut command = Command::new(program);
        LIMITING_VARIABLES.iter().for_each(|name| {
            command.env_remove(name);
        });
        let output = command.args(arguments).env("LD_LIBRARY_PATH", self.search_path()).output();
        let output = output.map_err(|error| format!("{program}: {error}"))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
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
