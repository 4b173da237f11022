//! What is measured in the guest, and what must be true of it.

use wb_agent::{Command, Worker};
use wb_contention_worker::enforcement::{self, EnforcementConfig};
use wb_contention_worker::io_latency::LatencyWatch;
use wb_contention_worker::iocost_params::{self, IocostParams, IocostParamsConfig, IocostParamsProgress, ParamStep};
use wb_contention_worker::protection::{self, ProtectionConfig, ProtectionRecord};
use wb_contention_worker::storage;
use wb_contention_worker::{
    Balloon, BlockDevice, ContentionError, Enforcement, IoControl, Needs, Preparation, PreparedWorker, Requirement,
    Slice, SliceSettings, system, vrate,
};
use wb_hashd::{HashdConfig, HashdParams, HashdReport};
use wb_model::{Bytes, IocostModel, IocostQos, Nanos};

use crate::guest::FOLDER;

const SECOND: u64 = 1_000_000_000;
const MIB: u64 = 1 << 20;

/// The disk of the guest has ext4, so that btrfs is missed wherever it is required.
fn preparation(needs: Needs) -> Preparation {
    Preparation { force: needs == Needs::Everything, ..Preparation::new(FOLDER, needs) }
}

async fn run(worker: &Worker, script: &str) -> String {
    let output = worker.run(Command::new(["sh", "-c", script]), Nanos(60 * SECOND)).await.unwrap();
    assert!(output.exit_reason.is_success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The settings that a bench may change.
pub(crate) async fn settings(worker: &Worker) -> String {
    run(
        worker,
        "cd /sys/fs/cgroup; ls -d weighbridge* 2>/dev/null; cat cgroup.subtree_control system.slice/memory.min; \
         grep -v enable=0 io.cost.qos; grep -v ctrl=auto io.cost.model; cat /proc/sys/vm/swappiness; \
         cat /sys/block/nvme0n1/queue/scheduler /sys/block/nvme0n1/queue/wbt_lat_usec \
         /sys/block/nvme0n1/queue/nomerges; ls /sys/kernel/tracing/instances; cat /sys/kernel/tracing/synthetic_events; \
         ls /mnt/measured; true",
    )
    .await
}

/// Requirements are listed by name, and recorded only with `force`.
pub(crate) async fn requirements(worker: &Worker) {
    let before = settings(worker).await;
    let unforced = |needs| Preparation { force: false, ..preparation(needs) };
    let failed = PreparedWorker::new(worker, &unforced(Needs::Everything)).await.unwrap_err();
    let ContentionError::MissedRequirements(report) = failed else { panic!("{failed}") };
    let missed: Vec<Requirement> = report.missed.keys().copied().collect();
    assert_eq!(missed, [Requirement::Btrfs, Requirement::Swap, Requirement::SwapOnDevice], "{report:?}");
    let found = PreparedWorker::new(worker, &preparation(Needs::Everything)).await.unwrap_err();
    assert!(matches!(found, ContentionError::Indispensable(_)), "nothing replaces swap: {found}");
    let prepared = PreparedWorker::new(worker, &unforced(Needs::Device)).await.unwrap();
    assert!(prepared.requirements().is_met());
    let device = BlockDevice::named(worker, &prepared.device().name).await.unwrap();
    println!("{device:?}");
    assert_eq!((device.name.as_str(), device.model.as_str()), ("nvme0n1", "QEMU NVMe Ctrl"));
    let iocost = system::iocost_state(worker, &device).await.unwrap();
    assert_eq!((device.scheduler.as_str(), device.wbt_microseconds), ("none", 0));
    assert!(iocost.is_none_or(|state| !state.enabled));
    assert!(settings(worker).await != before);
    prepared.finish().await.unwrap();
    assert_eq!(settings(worker).await, before);
    run(worker, "swapon /mnt/measured/swap").await;
    let device = BlockDevice::of_folder(worker, FOLDER).await.unwrap();
    assert_eq!(device.size, Bytes(6 << 30));
    PreparedWorker::new(worker, &unforced(Needs::Memory)).await.unwrap().finish().await.unwrap();
    let passive = Preparation { enforcement: Enforcement::NONE, ..preparation(Needs::Everything) };
    for (preparation, expected) in [
        (preparation(Needs::Everything), vec![Requirement::Btrfs]),
        (passive, vec![Requirement::Btrfs, Requirement::NoWbt, Requirement::HostCriticalServices]),
    ] {
        let forced = PreparedWorker::new(worker, &preparation).await.unwrap();
        let missed: Vec<Requirement> = forced.requirements().missed.keys().copied().collect();
        assert_eq!(missed, expected, "{:?}", forced.requirements());
        forced.finish().await.unwrap();
    }
    assert_eq!(settings(worker).await, before);
}

/// How long is measured.
pub(crate) struct Lengths {
    /// Each load of `iocost-params`.
    load: Nanos,
    readers: Nanos,
    hog: Nanos,
}

impl Lengths {
    pub(crate) const SHORT: Self =
        Self { load: Nanos(2 * SECOND), readers: Nanos(12 * SECOND), hog: Nanos(40 * SECOND) };
    pub(crate) const FULL: Self =
        Self { load: Nanos(60 * SECOND), readers: Nanos(60 * SECOND), hog: Nanos(180 * SECOND) };
}

/// The file that `iocost-params` reads and writes, which a power cut leaves.
pub(crate) const TEST_FILE: &str = "weighbridge-fio";

fn params_config(lengths: &Lengths) -> IocostParamsConfig {
    IocostParamsConfig {
        runtime: lengths.load,
        file_size: Bytes(256 * MIB),
        sequential_block: Bytes(16 * MIB),
        iodepth: 64,
        jobs: Some(1),
    }
}

/// Measures the device until the power is cut after some loads.
pub(crate) async fn params_until_power_cut(
    worker: &Worker,
    lengths: &Lengths,
    mut cut: impl FnMut(),
) -> IocostParamsProgress {
    let prepared = PreparedWorker::new(worker, &preparation(Needs::Device)).await.unwrap();
    let mut progress = IocostParamsProgress::default();
    let config = params_config(lengths);
    let measured = iocost_params::measure(&prepared, &config, &mut progress, |progress| {
        if progress.0.len() == 3 {
            cut();
        }
    });
    let lost = measured.await.unwrap_err();
    assert!(matches!(&lost, ContentionError::Worker(error) if error.is_lost()), "{lost}");
    assert_eq!(progress.next(), Some(ParamStep::Rseqiops));
    progress
}

/// Measures what is missing; the model has the limits of the disk.
pub(crate) async fn params(worker: &Worker, progress: &mut IocostParamsProgress, lengths: &Lengths) -> IocostParams {
    let prepared = PreparedWorker::new(worker, &preparation(Needs::Device)).await.unwrap();
    let mut loads = 0;
    let config = params_config(lengths);
    let measured = iocost_params::measure(&prepared, &config, progress, |_| loads += 1);
    let params = measured.await.unwrap();
    prepared.finish().await.unwrap();
    println!("{} {}", params.model, params.qos);
    assert_eq!(loads, 5);
    let IocostModel { rbps, rrandiops, wbps, wrandiops, .. } = params.model;
    for (bps, iops) in [(rbps, rrandiops), (wbps, wrandiops)] {
        // The disk is limited to 64 MiB/s and 2000 operations per second: a ratio of 8.2 pages.
        let ratio = bps as f64 / (iops * 4096) as f64;
        assert!((4.0..16.0).contains(&ratio), "{ratio}");
    }
    params
}

/// Two readers share the device as their weights say.
pub(crate) async fn enforcement(worker: &Worker, params: &IocostParams, lengths: &Lengths) {
    let config = EnforcementConfig { runtime: lengths.readers, file_size: Bytes(256 * MIB), ..Default::default() };
    let mut preparation = preparation(Needs::Everything);
    // The controller plans for periods of twice this latency: each must have several requests of the lower weight. The
    // rate is one that the emulation reaches on a busy machine, too.
    let qos = IocostQos { rlat: 100_000, wlat: 100_000, min: 25.0, max: 25.0, ..params.qos };
    preparation.io_control = IoControl::On(params.model, qos);
    preparation.slices = config.slices();
    let prepared = PreparedWorker::new(worker, &preparation).await.unwrap();
    let result = enforcement::measure(&prepared, &config).await.unwrap();
    prepared.finish().await.unwrap();
    println!("{result:?}");
    assert!((result.ratio / result.expected - 1.0).abs() <= 0.2, "{result:?}");
}

/// The kernel leaves an idle device at the vrate of the setting before, until it is waited for.
pub(crate) async fn vrate(worker: &Worker, params: &IocostParams) {
    let fixed = |vrate| IoControl::On(params.model, IocostQos { min: vrate, max: vrate, ..params.qos });
    let mut preparation = preparation(Needs::Everything);
    preparation.io_control = fixed(50.0);
    preparation.slices = storage::slices();
    let prepared = PreparedWorker::new(worker, &preparation).await.unwrap();
    for bounds in [49.0..=51.0, 9.0..=11.0, 89.0..=91.0] {
        let vrate = (bounds.start() + bounds.end()) / 2.0;
        prepared.set_io_control(fixed(vrate)).await.unwrap();
        let before = current_vrate(worker).await;
        vrate::settle(&prepared, &bounds).await.unwrap();
        let after = current_vrate(worker).await;
        println!("vrate of {vrate}: {before}, then {after}");
        assert!(!bounds.contains(&before), "{before} is where it should be at once, so that nothing is waited for");
        assert!(bounds.contains(&after), "{after} of {vrate}");
    }
    prepared.finish().await.unwrap();
}

async fn current_vrate(worker: &Worker) -> f64 {
    let text = run(worker, "sed -n 's/.*cost.vrate=\\([0-9.]*\\).*/\\1/p' /sys/fs/cgroup/io.stat").await;
    text.trim().parse().unwrap()
}

/// Memory that the balloon leaves to hashd and to the hog.
const MEMORY_OF_BOTH: u64 = 400 * MIB;
/// Memory of hashd.
const NEIGHBOUR: u64 = 160 * MIB;

/// Memory of the hog, part of which must be swapped out.
const HOG: u64 = 600 * MIB;

/// hashd, whose memory is seldom touched, and a hog that reads its own all the time: together more than there is. How
/// much of its memory hashd has at the end, relative to the time without the hog.
async fn resident_share_beside_hog(worker: &Worker, low: Option<Bytes>, lengths: &Lengths) -> f64 {
    let params = HashdParams {
        rps_max: Some(2.0),
        mem_frac: 1.0,
        lat_target: Nanos(SECOND),
        file_frac: 0.1,
        file_size_mean: Bytes(16 << 10),
        chunk_pages: 1,
        cpu_ratio: 0.01,
        log_bps: Bytes(1000),
        ..HashdParams::default()
    };
    let hashd =
        HashdConfig { params, dir: Some(FOLDER.into()), memory: Some(Bytes(NEIGHBOUR)), ..HashdConfig::default() };
    let config = ProtectionConfig {
        loops: 1,
        hog_growth: 256 * MIB,
        hog_max: Some(Bytes(HOG)),
        hog_reads: true,
        baseline: Nanos(10 * SECOND),
        hog_time: lengths.hog,
        warm_up: Nanos(90 * SECOND),
        ..ProtectionConfig::new(hashd, 0)
    };
    let mut preparation = preparation(Needs::Memory);
    preparation.slices = protection::slices(low);
    preparation.slices.push(storage::balloon_slice());
    let prepared = PreparedWorker::new(worker, &preparation).await.unwrap();
    let available = run(worker, "sed -n 's/^MemAvailable: *\\([0-9]*\\) kB/\\1/p' /proc/meminfo").await;
    let available = available.trim().parse::<u64>().unwrap() << 10;
    let balloon = Balloon::inflate(&prepared, Bytes(available.saturating_sub(MEMORY_OF_BOTH))).await.unwrap();
    let mut record = ProtectionRecord::default();
    protection::measure(&prepared, &config, &mut record, |_| ()).await.unwrap();
    balloon.deflate().await.unwrap();
    prepared.finish().await.unwrap();
    let resident = |reports: &[HashdReport]| reports.last().unwrap().resident_bytes as f64;
    let hog = &record.runs[0];
    println!(
        "protected {low:?}: {} MiB of {} MiB resident, hog {:?}, swap {:?}",
        resident(&hog.hashd) / MIB as f64,
        resident(&record.baseline) / MIB as f64,
        hog.hog.last(),
        hog.io.last().map(|usage| Bytes(usage.swap)),
    );
    resident(&hog.hashd) / resident(&record.baseline)
}

/// A hog takes the memory of a neighbour, unless it is protected.
pub(crate) async fn protection(worker: &Worker, lengths: &Lengths) {
    let without = resident_share_beside_hog(worker, None, lengths).await;
    let with = resident_share_beside_hog(worker, Some(Bytes(2 * NEIGHBOUR)), lengths).await;
    assert!(with > 0.97 && without < 0.8, "{without:.3} of its memory without protection, {with:.3} with it");
}

/// Parameters that another program has set are found before, and a change of ours at the end. What does not fit on the
/// disk is not begun.
pub(crate) async fn faults(worker: &Worker, params: &IocostParams) {
    const FOREIGN: &str = "echo '259:0 enable=1 ctrl=user min=42.00 max=42.00' > /sys/fs/cgroup/io.cost.qos";
    const OFF: &str = "echo '259:0 enable=0 ctrl=auto' > /sys/fs/cgroup/io.cost.qos";
    run(worker, FOREIGN).await;
    let failed = PreparedWorker::new(worker, &preparation(Needs::Device)).await.unwrap_err();
    let ContentionError::MissedRequirements(report) = failed else { panic!("{failed}") };
    assert_eq!(report.missed.keys().collect::<Vec<_>>(), [&Requirement::IocostUnused], "{report:?}");
    let accepted = Preparation { accept_iocost: true, ..preparation(Needs::Device) };
    PreparedWorker::new(worker, &accepted).await.unwrap().finish().await.unwrap();
    let restored = run(worker, "cat /sys/fs/cgroup/io.cost.qos").await;
    assert!(restored.contains("259:0 enable=1") && restored.contains("min=42.00"), "{restored}");
    run(worker, OFF).await;
    let mut controlled = preparation(Needs::Device);
    controlled.io_control = IoControl::On(params.model, params.qos);
    let prepared = PreparedWorker::new(worker, &controlled).await.unwrap();
    run(worker, FOREIGN).await;
    let changed = prepared.finish().await.unwrap_err();
    assert!(matches!(&changed, ContentionError::ForeignChange { what } if what.contains("QoS")), "{changed}");
    run(worker, OFF).await;

    let prepared = PreparedWorker::new(worker, &preparation(Needs::Device)).await.unwrap();
    let config = IocostParamsConfig::default();
    let full = iocost_params::measure(&prepared, &config, &mut IocostParamsProgress::default(), |_| ()).await;
    let full = full.unwrap_err();
    assert_eq!(full.to_string(), "no space left in `/mnt/measured` for 16 GiB");
    prepared.finish().await.unwrap();
}

/// A process that the kernel kills because memory runs out in its group is reported as that.
pub(crate) async fn out_of_memory(worker: &Worker) {
    let mut preparation = preparation(Needs::Memory);
    let limits =
        SliceSettings { memory_max: Some(Bytes(64 * MIB)), swap_max: Some(Bytes(0)), ..SliceSettings::default() };
    preparation.slices = vec![(Slice::Workload, limits)];
    let prepared = PreparedWorker::new(worker, &preparation).await.unwrap();
    let killed = storage::probe_available_memory(&prepared).await.unwrap_err();
    assert!(matches!(killed, ContentionError::OutOfMemory { .. }), "{killed}");
    prepared.finish().await.unwrap();
}

/// The latencies of a known number of requests are counted, and the triggers leave nothing.
pub(crate) async fn latency(worker: &Worker) {
    let before = settings(worker).await;
    let prepared = PreparedWorker::new(worker, &preparation(Needs::Device)).await.unwrap();
    let watch = LatencyWatch::start(&prepared).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let fio = "cd /mnt/measured && fio --name=counted --size=32m --bs=4k --rw=randread --direct=1 --ioengine=libaio \
        --iodepth=4 --output-format=terse && rm counted*";
    run(worker, fio).await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let reports = watch.finish().await.unwrap();
    let reads: u64 = reports.iter().map(|second| second.reads.count()).sum();
    let uncounted: u64 = reports.iter().map(|second| second.uncounted).sum();
    let seconds_without_reads = reports.iter().filter(|second| second.reads.is_empty()).count();
    println!("{reads} {uncounted} {seconds_without_reads}");
    prepared.finish().await.unwrap();
    assert!(reads >= 8192 - uncounted, "{reads} {uncounted}");
    assert!(seconds_without_reads >= 1);
    assert_eq!(settings(worker).await, before);
}
