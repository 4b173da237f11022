//! LAPACK libraries that linpack is compared with: Debian's OpenBLAS, the newest OpenBLAS and Intel's MKL.
//!
//! Each runs as well as it can: settings in the environment that hold a library to an older kernel are left out of its
//! commands, and each names the kernel that it chose for this CPU.

use crate::{
    pairs::{Candidate, Side},
    place::Place,
    wheels,
};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

const SOURCE: &str = include_str!("../peers/lapack_lu.c");

/// Variables by which a library is told to use another kernel than its best.
const LIMITS: [&str; 4] = ["OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS"];

/// A library that factors by dgetrf and solves by dgetrs.
struct Library {
    /// What the loader opens.
    path: PathBuf,
    /// What stands before the names of its functions.
    prefix: &'static str,
    /// Folders of libraries that it opens in turn.
    folders: Vec<PathBuf>,
}

/// Where a library comes from, and how it is found.
type Origin = (&'static str, fn(&Place) -> Result<Library, String>);

const ORIGINS: [Origin; 3] =
    [("OpenBLAS of this system", debian), ("newest OpenBLAS of PyPI", openblas), ("newest MKL of PyPI", mkl)];

fn debian(_: &Place) -> Result<Library, String> {
    Ok(Library { path: "libopenblas.so.0".into(), prefix: "", folders: Vec::new() })
}

fn openblas(place: &Place) -> Result<Library, String> {
    let folder = wheels::unpack(place, &["scipy-openblas32"])?;
    Ok(Library { path: wheels::find(&folder, "libscipy_openblas.so")?, prefix: "scipy_", folders: Vec::new() })
}

fn mkl(place: &Place) -> Result<Library, String> {
    let folder = wheels::unpack(place, &["mkl", "intel-openmp"])?;
    let path = wheels::find(&folder, "libmkl_rt.so")?;
    let beside = [path.clone(), wheels::find(&folder, "libiomp5.so")?];
    let folders = beside.iter().filter_map(|path| path.parent()).map(Path::to_owned).collect();
    Ok(Library { path, prefix: "", folders })
}

/// The fastest library on these CPUs, solving so many equations so many times.
///
/// # Errors
/// Where none can be measured.
pub(crate) fn fastest(place: &Place, n: usize, repeats: u64, cpus: &[usize]) -> Result<Side, String> {
    // Flags come before the source: without the second, some linkers would leave the libraries out.
    let flags = ["-O3", "-Wl,--no-as-needed", "-ldl", "-lm"].map(str::to_owned);
    let program = place.compile("lapack_lu", SOURCE, &flags)?;
    let side = |(origin, library): Origin| {
        let unavailable = |cause| Candidate::Unavailable { name: origin.to_owned(), cause };
        library(place).and_then(|library| library.side(&program, n, repeats, cpus)).map_err(unavailable)
    };
    Side::fastest(ORIGINS.into_iter().map(side).collect())
}

impl Library {
    fn side(&self, program: &Path, n: usize, repeats: u64, cpus: &[usize]) -> Result<Side, String> {
        let list = cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let numbers = [n.to_string(), n.to_string(), repeats.to_string(), list];
        let command = self.command(program).into_iter().chain(numbers).collect();
        let side = Side::new(&self.about(program)?, command, |printed| {
            let (gflops, residual) = printed.trim().split_once(" GFLOPS, residual ")?;
            wb_kernels::linpack::is_valid_residual(residual.parse().ok()?).then(|| gflops.parse().ok())?
        });
        let threads = cpus.len().to_string();
        let side =
            side.env("OPENBLAS_NUM_THREADS", &threads).env("MKL_NUM_THREADS", &threads).env("MKL_DYNAMIC", "FALSE");
        Ok(side.env("LD_LIBRARY_PATH", &self.search_path()).unset(&LIMITS))
    }

    /// Name, version and kernel.
    fn about(&self, program: &Path) -> Result<String, String> {
        let [program, arguments @ ..] = &self.command(program)[..] else { return Err("an empty command".to_owned()) };
        let mut command = Command::new(program);
        LIMITS.iter().for_each(|name| {
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
