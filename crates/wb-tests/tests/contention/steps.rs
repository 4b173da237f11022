//! What is measured in the guest, and what must be true of it.

use wb_agent::{Command, Worker};
use wb_hashd::{HashdConfig, HashdParams};
use wb_model::{Bytes, Nanos};
use wb_tests::contention::enforcement::{self, EnforcementConfig};
use wb_tests::contention::io_latency::{IoLatencySeries, LatencyWatch};
use wb_tests::contention::iocost_params::{self, IocostParams, IocostParamsConfig, IocostParamsProgress};
use wb_sys::cgroup::io_cost::IocostQos;
use wb_tests::contention::iocost_qos::{self, StageConfig, StageRecord};
use wb_tests::contention::protection::{self, ProtectionConfig, ProtectionRecord, TuneConfig, TuneRecord};
use wb_tests::contention::storage::{self, StorageConfig, StorageRecord};
use wb_tests::contention::protection_study::ProtectionResult;
use wb_tests::contention::{
    BlockDevice, ContentionError, IoControl, MemoryProfile, MemoryShare, Needs, Preparation, PreparedWorker,
    Requirement, SystemInfo,
};

use crate::guest::FOLDER;
use crate::sizing;

const SECOND: u64 = 1_000_000_000;
const MIB: u64 = 1 << 20;

fn preparation(needs: Needs) -> Preparation {
    Preparation::new(FOLDER, needs)
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
    let failed = PreparedWorker::new(worker, &preparation(Needs::Everything)).await.unwrap_err();
    let ContentionError::Unmet(report) = failed else { panic!("{failed}") };
    let missed: Vec<Requirement> = report.missed.keys().copied().collect();
    assert_eq!(missed, [Requirement::Swap, Requirement::SwapOnDevice], "{report:?}");
    let forced = Preparation { force: true, ..preparation(Needs::Everything) };
    let prepared = PreparedWorker::new(worker, &forced).await.unwrap();
    assert_eq!(prepared.requirements(), &report);
    let memory = MemoryShare::new(MemoryProfile::try_from(1).ok(), Bytes(1 << 30)).unwrap();
    let info = SystemInfo::read(&prepared, memory).await.unwrap();
    println!("{}", serde_json::to_string_pretty(&info).unwrap());
    assert_eq!((info.device.name.as_str(), info.device.model.as_str()), ("nvme0n1", "QEMU NVMe Ctrl"));
    assert_eq!((info.device.scheduler.as_str(), info.device.wbt_microseconds, info.iocost), ("none", 0, false));
    assert!(settings(worker).await != before);
    prepared.finish().await.unwrap();
    assert_eq!(settings(worker).await, before);
    run(worker, "swapon /mnt/measured/swap").await;
    let device = BlockDevice::of_folder(worker, FOLDER).await.unwrap();
    assert_eq!(device.size, Bytes(6 << 30));
    PreparedWorker::new(worker, &preparation(Needs::Everything)).await.unwrap().finish().await.unwrap();
}

/// The model has the limits of the disk.
pub(crate) async fn params(worker: &Worker) -> IocostParams {
    let config = IocostParamsConfig {
        runtime: Nanos(3 * SECOND),
        file_size: Bytes(256 * MIB),
        sequential_block: Bytes(16 * MIB),
        iodepth: 64,
        jobs: Some(1),
    };
    let prepared = PreparedWorker::new(worker, &preparation(Needs::Device)).await.unwrap();
    let mut progress = IocostParamsProgress::default();
    let mut checkpoints = 0;
    let params = iocost_params::measure(&prepared, &config, &mut progress, |_| checkpoints += 1).await.unwrap();
    prepared.finish().await.unwrap();
    println!("{params:?}");
    assert_eq!(checkpoints, 8);
    params
}

pub(crate) fn dev_params() -> IocostParams {
    serde_json::from_str(&std::env::var("WB_PARAMS").unwrap()).unwrap()
}

/// Two readers share the device as their weights say.
pub(crate) async fn enforcement(worker: &Worker, params: &IocostParams) {
    let config = EnforcementConfig { runtime: Nanos(15 * SECOND), file_size: Bytes(256 * MIB), ..Default::default() };
    let mut preparation = preparation(Needs::Everything);
    // The controller plans for periods of twice this latency: each must have several requests of the lower weight.
    let qos = IocostQos { rlat: 50_000, wlat: 50_000, min: 75.0, max: 75.0, ..params.qos };
    preparation.io_control = IoControl::On(params.model, qos);
    preparation.slices = config.slices();
    let prepared = PreparedWorker::new(worker, &preparation).await.unwrap();
    let result = enforcement::measure(&prepared, &config).await.unwrap();
    prepared.finish().await.unwrap();
    println!("{result:?}");
    assert!((result.ratio / result.expected - 1.0).abs() <= 0.2, "{result:?}");
}

/// The latencies of a known number of requests are counted, and the triggers leave nothing.
pub(crate) async fn latency(worker: &Worker) {
    let before = settings(worker).await;
    let prepared = PreparedWorker::new(worker, &preparation(Needs::Device)).await.unwrap();
    let watch = LatencyWatch::start(&prepared).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let fio = "cd /mnt/measured && fio --name=known --size=32m --bs=4k --rw=randread --direct=1 --ioengine=libaio \
        --iodepth=4 --output-format=terse && rm known*";
    run(worker, fio).await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let reports = watch.finish().await.unwrap();
    let series = IoLatencySeries::new(reports);
    let reads: u64 = series.reads.iter().map(|second| second.count()).sum();
    println!("{reads} {} {:?}", series.seconds_without_reads, series.reads.last().map(|one| one.percentile(50.0)));
    println!("{}", serde_json::to_string(&series).unwrap().chars().take(600).collect::<String>());
    prepared.finish().await.unwrap();
    assert!(reads >= 8192 - series.missing, "{reads} {}", series.missing);
    assert!(series.seconds_without_reads >= 1);
    assert_eq!(settings(worker).await, before);
}

/// A workload whose requests touch pages everywhere, so that none of its memory is cold.
fn hashd(memory: u64, rps_max: f64) -> HashdConfig {
    let params = HashdParams {
        rps_max: Some(rps_max),
        mem_frac: 1.0,
        lat_target: Nanos(SECOND / 2),
        file_size_mean: Bytes(64 << 10),
        file_addr_stdev: 10.0,
        anon_size_ratio: 4.0,
        anon_addr_stdev: 10.0,
        chunk_pages: 4,
        cpu_ratio: 0.01,
        sleep_mean: Nanos(SECOND / 100),
        log_bps: Bytes(1000),
        ..HashdParams::default()
    };
    HashdConfig { params, dir: Some(FOLDER.into()), memory: Some(Bytes(memory)), ..HashdConfig::default() }
}

/// hashd beside a hog that takes more than all memory, and reads it again and again.
fn disturbed(memory: Bytes, target: f64) -> ProtectionConfig {
    ProtectionConfig {
        loops: 1,
        hog_growth: 256 * MIB,
        hog_max: Some(memory),
        hog_reads: true,
        baseline: Nanos(30 * SECOND),
        hog_time: Nanos(30 * SECOND),
        warm_up: Nanos(90 * SECOND),
        ..ProtectionConfig::new(hashd(200 * MIB, target), 0)
    }
}

async fn protect(worker: &Worker, params: &IocostParams, low: Option<Bytes>) -> ProtectionResult {
    let memory = worker.facts().await.unwrap().memory;
    let config = disturbed(memory, 40.0);
    let mut preparation = preparation(Needs::Everything);
    preparation.io_control = IoControl::On(params.model, params.qos);
    preparation.slices = protection::slices(low);
    let prepared = PreparedWorker::new(worker, &preparation).await.unwrap();
    let mut record = ProtectionRecord::default();
    let result = protection::measure(&prepared, &config, &mut record, |_| ()).await.unwrap();
    prepared.finish().await.unwrap();
    let run = &record.runs[0];
    for report in record.baseline.iter().chain(&run.hashd) { println!("{:.1} {:.1} {:?} res={}", report.time, report.rps, report.latency.map(|l| l.control), report.resident_bytes >> 20); }
    println!(
        "protected {low:?}: isolation {:.3}, 10th percentile {:.3}, work conservation {:.3}, hog {:?}, {:?}",
        result.mean_isolation(),
        result.isolation_percentile(10.0),
        result.work_conservation,
        run.hog.last(),
        result.io,
    );
    result
}

/// With protection, the hog hurts far less than without.
pub(crate) async fn protection(worker: &Worker, params: &IocostParams) {
    let without = protect(worker, params, None).await.mean_isolation();
    let with = protect(worker, params, Some(Bytes(300 * MIB))).await.mean_isolation();
    assert!(1.0 - with < (1.0 - without) / 2.0, "isolation {without:.3} without protection, {with:.3} with it");
}

/// Memory of the smallest profile.
async fn memory_share(worker: &Worker) -> MemoryShare {
    let mut preparation = preparation(Needs::Memory);
    preparation.slices = storage::slices();
    let prepared = PreparedWorker::new(worker, &preparation).await.unwrap();
    let avail = storage::probe_available_memory(&prepared).await.unwrap();
    prepared.finish().await.unwrap();
    println!("available memory: {avail}");
    MemoryShare::new(MemoryProfile::try_from(1).ok(), avail).unwrap()
}

/// One stage of `iocost-qos`: with swap, more than the memory can be served.
pub(crate) async fn stage(worker: &Worker, params: &IocostParams) {
    const RATE: f64 = 10.0;
    let memory = memory_share(worker).await;
    let target = memory.target;
    let mut hashd = hashd(0, RATE);
    hashd.params.anon_addr_stdev = 0.2;
    hashd.params.file_addr_stdev = 0.2;
    let config = StageConfig {
        model: params.model,
        qos: Some(IocostQos { min: 75.0, max: 75.0, ..params.qos }),
        storage: StorageConfig { loops: 1, ..StorageConfig::default() },
        protection: ProtectionConfig {
            hog_time: Nanos(15 * SECOND),
            baseline: Nanos(10 * SECOND),
            hashd: hashd.clone(),
            ..disturbed(Bytes(memory.avail.0), RATE)
        },
        tune: TuneConfig {
            size_max: Bytes(0),
            size_min: Bytes(0),
            intervals: 1,
            isolation_percentile: 1.0,
            isolation_threshold: 0.0,
        },
    };
    let mut record = StageRecord {
        storage: StorageRecord::new(memory),
        protection: TuneRecord::default(),
        latency: IoLatencySeries::default(),
    };
    let size = async |prepared: &PreparedWorker| sizing::size(prepared, &hashd, RATE, target).await;
    let mut checkpoints = 0;
    let base = preparation(Needs::Everything);
    let result = iocost_qos::measure(worker, &base, &config, &mut record, size, |_| checkpoints += 1).await.unwrap();
    println!("{result:?}, tried {:?}, {} seconds with reads", record.protection.tried, record.latency.reads.len());
    assert!(result.mem_offload_factor > 1.0, "{result:?}");
    assert_eq!((record.protection.tried.len(), checkpoints), (1, 3));
    assert!(!record.latency.reads.is_empty() && !record.latency.writes.is_empty());
}
