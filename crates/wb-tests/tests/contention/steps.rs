//! What is measured in the guest, and what must be true of it.

use wb_agent::{Command, Worker};
use wb_hashd::{HashdConfig, HashdParams};
use wb_model::{Bytes, Nanos};
use wb_tests::contention::enforcement::{self, EnforcementConfig};
use wb_tests::contention::io_latency::{IoLatencySeries, LatencyWatch};
use wb_tests::contention::iocost_params::{self, IocostParams, IocostParamsConfig, IocostParamsProgress};
use wb_tests::contention::protection::{self, ProtectionConfig, ProtectionRecord};
use wb_tests::contention::protection_study::ProtectionResult;
use wb_tests::contention::{
    BlockDevice, ContentionError, IoControl, MemoryProfile, MemoryShare, Needs, Preparation, PreparedWorker,
    Requirement, SystemInfo,
};

use crate::guest::FOLDER;

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
pub(crate) async fn enforcement(worker: &Worker, params: IocostParams) {
    let config = EnforcementConfig { runtime: Nanos(15 * SECOND), file_size: Bytes(256 * MIB), ..Default::default() };
    let mut preparation = preparation(Needs::Everything);
    preparation.io_control = IoControl::On(params.model, params.qos);
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

fn hashd(memory: u64, rps_max: f64) -> HashdConfig {
    let params = HashdParams {
        rps_max: Some(rps_max),
        mem_frac: 1.0,
        lat_target: Nanos(SECOND / 2),
        file_size_mean: Bytes(100_000),
        cpu_ratio: 0.1,
        ..HashdParams::default()
    };
    HashdConfig { params, dir: Some(FOLDER.into()), memory: Some(Bytes(memory)), ..HashdConfig::default() }
}

async fn protect(worker: &Worker, low: Option<Bytes>) -> ProtectionResult {
    let config = ProtectionConfig {
        loops: 1,
        hog_growth: 64 * MIB,
        hog_reads: true,
        baseline: Nanos(5 * SECOND),
        hog_time: Nanos(40 * SECOND),
        warm_up: Nanos(90 * SECOND),
        ..ProtectionConfig::new(hashd(400 * MIB, 20.0), 0)
    };
    let mut preparation = preparation(Needs::Everything);
    if let Ok(text) = std::env::var("WB_PARAMS") {
        let params: IocostParams = serde_json::from_str(&text).unwrap();
        preparation.io_control = IoControl::On(params.model, params.qos);
    }
    preparation.slices = protection::slices(low);
    let prepared = PreparedWorker::new(worker, &preparation).await.unwrap();
    let mut record = ProtectionRecord::default();
    let result = protection::measure(&prepared, &config, &mut record, |_| ()).await;
    let result = match result {
        Ok(r) => r,
        Err(e) => {
            println!("{e}");
            panic!("{e}")
        }
    };
    let last = &record.runs[0];
    println!("{:?}\n{:?}", last.hog.last(), last.io.last());
    for report in &record.baseline {
        println!(
            "B {:.1} {:.1} {:?} res={}",
            report.time,
            report.rps,
            report.latency.map(|l| l.control),
            report.resident_bytes >> 20
        );
    }
    for report in &last.hashd {
        println!(
            "{:.1} {:.1} {:?} res={}",
            report.time,
            report.rps,
            report.latency.map(|l| l.control),
            report.resident_bytes >> 20
        );
    }
    prepared.finish().await.unwrap();
    println!(
        "isolation {:.3} p25 {:.3} wc {:.3} {:?}",
        result.mean_isolation(),
        result.isolation_percentile(25.0),
        result.work_conservation,
        result.io
    );
    result
}

/// With protection the hog hurts far less than without.
pub(crate) async fn protection(worker: &Worker) {
    let without = protect(worker, None).await;
    let with = protect(worker, Some(Bytes(500 * MIB))).await;
    println!("{} {}", without.mean_isolation(), with.mean_isolation());
}

pub(crate) async fn storage(_: &Worker) {}
