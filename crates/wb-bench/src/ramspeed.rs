//! Triad on one and two threads against peers that are packaged in Debian.
//!
//! Peers count bytes differently; all figures are converted to STREAM's, which we use: 24 bytes for each element of a
//! triad, one MB is 10⁶ bytes.
//! - likwid-bench counts the same. Its `stream` stores through the caches, its `stream_mem` bypasses them: each is
//!   compared with our same kind of store. Each side uses its fastest vector width on this machine.
//! - hpcc's StarSTREAM reports GB/s (10⁹) per process as the mean over all processes; it is multiplied by their number.
//!   The size of its arrays follows from its linpack matrix, ours have the same size.
//! - stress-ng counts MB of 2²⁰ bytes, reads and writes separately, as the geometric mean of copy,
//!   scale, add and triad; the figure is the sum of both in MB of 10⁶ bytes, for all instances.

use crate::bench_env::{BenchEnv, require_tool};
use crate::pairs::{BenchSide, PairedBenchmark, json_figure};
use std::fs;
use wb_kernels::ramspeed::{Config, Mode, WordType};
use wb_kernels::{HugePagePolicy, Isa, Work, cpus};

/// Bytes of each array: more than four times the last-level cache of common machines.
const BYTES: u64 = 160_000_000;
/// Order of hpcc's matrix; its arrays are a third of that matrix.
const ORDER: u64 = 4000;

pub(crate) fn rows(env: &BenchEnv) -> Vec<PairedBenchmark<'_>> {
    let mut rows = Vec::new();
    for threads in [1, 2] {
        let name =
            |peer: &str| format!("ramspeed triad {threads} thread{}, {peer}", if threads == 1 { "" } else { "s" });
        for non_temporal in [true, false] {
            let stores = if non_temporal { "non-temporal" } else { "ordinary stores" };
            rows.push(PairedBenchmark::new(name(&format!("{stores}, likwid-bench")), "MB/s", move || {
                likwid_sides(env, threads, non_temporal)
            }));
        }
        rows.push(PairedBenchmark::new(name("hpcc StarSTREAM"), "MB/s", move || hpcc_sides(env, threads)));
        rows.push(PairedBenchmark::new(name("stress-ng"), "MB/s", move || stress_ng_sides(env, threads)));
    }
    rows
}

fn our_side(env: &BenchEnv, threads: usize, non_temporal: bool, bytes: u64, isa: Isa) -> Result<BenchSide, String> {
    let allowed = cpus::allowed();
    let cpus = allowed
        .get(..threads)
        .ok_or_else(|| format!("{threads} threads required, {} CPUs available", allowed.len()))?;
    let config = Config {
        mode: Mode::Triad,
        kind: WordType::Floating,
        non_temporal,
        bytes,
        cpus: cpus.to_vec(),
        isa,
        huge_pages: HugePagePolicy::Inherit,
        work: Work::Seconds(env.seconds),
    };
    Ok(BenchSide::new(&format!("weighbridge {isa}"), env.kernel_command("ramspeed", &config)?, json_figure("mb-per-s")))
}

/// The fastest of our vector widths against the fastest kernel of likwid-bench.
fn likwid_sides(env: &BenchEnv, threads: usize, non_temporal: bool) -> Result<(BenchSide, BenchSide), String> {
    require_tool("likwid-bench")?;
    let mut isas = Isa::available();
    isas.retain(|isa| *isa != Isa::Scalar);
    let candidates = isas.iter().map(|&isa| our_side(env, threads, non_temporal, BYTES, isa));
    let weighbridge = BenchSide::fastest(candidates.collect::<Result<Vec<_>, _>>()?.into_iter().map(Ok).collect())?;
    let kernels = likwid_kernels(non_temporal).filter(|(isa, _)| isas.contains(isa));
    let peer = |(_, kernel): (Isa, String)| {
        let work = format!("N:{}kB:{threads}", 3 * BYTES / 1000);
        let command = ["likwid-bench", "-t", &kernel, "-s", &format!("{:.0}", env.seconds.max(1.0)), "-W", &work];
        Ok(BenchSide::new(&kernel, command.map(str::to_owned).to_vec(), |out| figure_after(out, "MByte/s:")))
    };
    Ok((weighbridge, BenchSide::fastest(kernels.map(peer).collect())?))
}

/// likwid-bench's kernels for a kind of stores, with their instruction sets. No fused non-temporal one has 512 bits.
fn likwid_kernels(non_temporal: bool) -> impl Iterator<Item = (Isa, String)> {
    let widths = [(Isa::Sse2, "_sse"), (Isa::Avx2, "_avx"), (Isa::Avx2, "_avx_fma"), (Isa::Avx512, "_avx512")];
    let fused = (!non_temporal).then_some((Isa::Avx512, "_avx512_fma"));
    let name = if non_temporal { "stream_mem" } else { "stream" };
    widths.into_iter().chain(fused).map(move |(isa, width)| (isa, format!("{name}{width}")))
}

fn hpcc_sides(env: &BenchEnv, threads: usize) -> Result<(BenchSide, BenchSide), String> {
    require_tool("hpcc")?;
    require_tool("mpirun")?;
    let folder = env.folder().join(format!("hpcc-{threads}"));
    let write = |file: &str, text: &str| fs::write(folder.join(file), text).map_err(|error| format!("{file}: {error}"));
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    write("hpccinf.txt", &hpcc_input(threads))?;
    // Keep everything small except the matrix, which determines the size of STREAM's arrays.
    write("hpccmemf.txt", "Total=64\n")?;
    // hpcc appends to its output file, so remove it first.
    let script = format!(
        "rm -f hpccoutf.txt; mpirun --allow-run-as-root --bind-to core -np {threads} hpcc >&2 && cat hpccoutf.txt"
    );
    let command = ["sh", "-c", &script].map(str::to_owned).to_vec();
    let scale = threads as f64 * 1000.0;
    let peer =
        BenchSide::new("hpcc StarSTREAM", command, move |out| Some(figure_after(out, "StarSTREAM_Triad=")? * scale));
    Ok((our_side(env, threads, false, ORDER * ORDER / 3 * 8, Isa::widest())?, peer.in_folder(folder)))
}

/// The input file of hpcc: one matrix, one block size, no additional PTRANS.
fn hpcc_input(threads: usize) -> String {
    let title = "HPLinpack benchmark input file\nInnovative Computing Laboratory, University of Tennessee\nHPL.out";
    let values =
        format!("8 1 {ORDER} 1 80 0 1 1 {threads} 16.0 1 2 1 4 1 2 1 1 1 1 1 0 2 64 0 0 1 8 separator 0 1200 0 40");
    format!("{title}\n{}\n", values.replace(' ', "\n"))
}

fn stress_ng_sides(env: &BenchEnv, threads: usize) -> Result<(BenchSide, BenchSide), String> {
    require_tool("stress-ng")?;
    // stress-ng prints no figure for a run of less than a few seconds.
    let seconds = format!("{:.0}s", env.seconds.max(8.0));
    let instances = threads.to_string();
    let command = ["stress-ng", "--stream", &instances, "-t", &seconds, "--metrics-brief"];
    let scale = threads as f64 * 1.048_576;
    let peer = BenchSide::new("stress-ng --stream", command.map(str::to_owned).to_vec(), move |out| {
        let figure = |label: &str| {
            let line = out.lines().find(|line| line.contains(label))?;
            line.split(label).next()?.split_whitespace().next_back()?.parse::<f64>().ok()
        };
        Some((figure("memory read rate")? + figure("memory write rate")?) * scale)
    });
    Ok((our_side(env, threads, false, BYTES, Isa::widest())?, peer))
}

fn figure_after(output: &str, label: &str) -> Option<f64> {
    output.lines().find_map(|line| line.trim().strip_prefix(label)?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_found_after_its_label() {
        assert_eq!(figure_after("Time:\t1 sec\nMByte/s:\t\t5244.11\n", "MByte/s:"), Some(5244.11));
        assert_eq!(figure_after("StarSTREAM_Triad=10.5598\n", "StarSTREAM_Triad="), Some(10.5598));
        assert_eq!(figure_after("MByte/s: fast", "MByte/s:"), None);
    }

    #[test]
    fn non_temporal_kernels_bypass_the_caches() {
        let names = |non_temporal| likwid_kernels(non_temporal).map(|(_, name)| name).collect::<Vec<_>>();
        assert_eq!(names(true), ["stream_mem_sse", "stream_mem_avx", "stream_mem_avx_fma", "stream_mem_avx512"]);
        assert_eq!(names(false), ["stream_sse", "stream_avx", "stream_avx_fma", "stream_avx512", "stream_avx512_fma"]);
    }

    #[test]
    fn hpcc_finds_the_matrix_on_its_sixth_line() {
        assert_eq!(hpcc_input(2).lines().nth(5), Some("4000"));
        assert_eq!(hpcc_input(2).lines().nth(11), Some("2"));
    }
}
