//! fio-libblkio: qemu-storage-daemon exports an image, file or block device over vhost-user-blk on the worker, and
//! fio's libblkio engine drives it as a guest's virtio-blk driver would.
//!
//! Sources: fio's `engines/libblkio.c`; qemu's `docs/tools/qemu-storage-daemon.rst`; run-perf's `libblkio.fio`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use wb_model::Requirement;

use crate::fio::job::FioJob;
use crate::fio_export::ExportTest;
use crate::fio_export::params::ExportParams;
use crate::fio_export::server::{ExportPaths, ServerCommand};

/// Debian's packages of qemu-storage-daemon: the first in Debian 12, the second in Debian 13.
const PACKAGES: &str = "qemu-system-common qemu-utils";
/// Sector size of a virtio-blk device in bytes.
const SECTOR: u64 = 512;

/// fio through a private vhost-user-blk export.
pub struct FioLibblkio;

/// How an fio-libblkio cell is measured
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct LibblkioParams {
    #[serde(flatten)]
    export: ExportParams,
    /// File or block device to export; a folder or a path that does not exist: a scratch file there, removed
    /// afterwards; empty: a scratch file on a disk of the worker
    #[schemars(extend("x-aliases" = ["targets"]))]
    target: String,
    /// Allow the target's data to be overwritten; required for a block device
    allow_destroy: bool,
    /// Whether the server bypasses the page cache (O_DIRECT)
    direct: bool,
    /// Whether fio polls for completions (poll queues) instead of being notified
    hipri: bool,
    /// Operations in flight per job
    #[schemars(range(min = 1))]
    iodepth: u32,
    /// Jobs, each a thread with its own queue
    #[schemars(range(min = 1))]
    numjobs: u32,
}

impl Default for LibblkioParams {
    fn default() -> Self {
        Self {
            export: ExportParams::default(),
            target: String::new(),
            allow_destroy: false,
            direct: true,
            hipri: false,
            iodepth: 1,
            numjobs: 1,
        }
    }
}

impl AsRef<ExportParams> for LibblkioParams {
    fn as_ref(&self) -> &ExportParams {
        &self.export
    }
}

impl ExportTest for FioLibblkio {
    type Params = LibblkioParams;

    const NAME: &'static str = "fio-libblkio";
    const SUMMARY: &'static str =
        "a virtio block device: fio and libblkio through qemu-storage-daemon on the same worker";
    const ENGINE: &'static str = "libblkio";

    fn server_programs() -> Vec<Requirement> {
        vec![Requirement::new("qemu-storage-daemon", PACKAGES, &["--version"])]
    }

    fn server(params: &LibblkioParams, paths: &ExportPaths<'_>) -> ServerCommand {
        let driver = if paths.is_device { "host_device" } else { "file" };
        let node = json!({
            "driver": driver, "node-name": "target", "filename": paths.target, "cache": { "direct": params.direct },
        });
        let export = json!({
            "type": "vhost-user-blk", "id": "export", "node-name": "target", "iothread": "iothread0", "writable": true,
            "num-queues": params.numjobs, "addr": { "type": "unix", "path": paths.socket },
        });
        let argv = [
            "qemu-storage-daemon",
            "--blockdev",
            &node.to_string(),
            "--object",
            "iothread,id=iothread0",
            "--export",
            &export.to_string(),
            // Written once all of the above is set up.
            "--pidfile",
            paths.ready,
        ];
        ServerCommand {
            argv: argv.map(str::to_owned).into(),
            probe: ["test", "-s", paths.ready].map(str::to_owned).into(),
        }
    }

    fn target(params: &LibblkioParams) -> Option<&str> {
        Some(params.target.as_str()).filter(|target| !target.is_empty())
    }

    fn allow_destroy(params: &LibblkioParams) -> bool {
        params.allow_destroy
    }

    fn job(params: &LibblkioParams, socket: &str) -> FioJob {
        let LibblkioParams { export, direct, iodepth, numjobs, hipri, .. } = params;
        let connection = vec![
            ("libblkio_driver", "virtio-blk-vhost-user".to_owned()),
            ("libblkio_path", socket.to_owned()),
            ("hipri", u8::from(*hipri).to_string()),
            // A vhost-user socket serves one connection at a time; threads can share it, processes cannot.
            ("thread", "1".to_owned()),
        ];
        let job = export.job(Self::ENGINE, connection);
        FioJob { direct: *direct, iodepth: *iodepth, numjobs: *numjobs, ..job }
    }

    fn contradiction(params: &LibblkioParams) -> Option<String> {
        let block = params.export.block_sizes?;
        (!block.0.is_multiple_of(SECTOR))
            .then(|| format!("invalid block-sizes {block}: a virtio block device has sectors of {SECTOR} bytes"))
    }
}

#[cfg(test)]
mod tests {
    use wb_model::{Facts, Placement};

    use super::*;
    use crate::fio_export::Export;
    use wb_test::TypedTest;

    fn params(json: &str) -> LibblkioParams {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_job_connects_to_the_socket_with_one_thread_per_queue() {
        let params = params(r#"{"block-sizes": "4k", "numjobs": 2, "hipri": true, "runtime": "1s", "ramptime": 0}"#);
        assert_eq!(
            FioLibblkio::job(&params, "/run/x.sock").render(),
            "[global]\nrw=read\nbs=4096\nsize=268435456\nioengine=libblkio\niodepth=1\nnumjobs=2\ndirect=1\nsync=0\n\
             runtime=1000ms\nramp_time=0ms\ntime_based=1\nlibblkio_driver=virtio-blk-vhost-user\nlibblkio_path=/run/x.sock\n\
             hipri=1\nthread=1\nwrite_hist_log=hist\nlog_hist_msec=100\n\n[job-1]\nfilename=export\n"
        );
    }

    #[test]
    fn the_server_exports_a_file_or_a_device_with_one_queue_per_job() {
        let options = |json: &str, target, is_device| {
            let paths = ExportPaths { target, is_device, socket: "/p/s", ready: "/p/r" };
            let argv = FioLibblkio::server(&params(json), &paths).argv;
            let [_, _, node, _, _, _, export, _, _] = argv.as_slice() else { panic!("{argv:?}") };
            [node, export].map(|json| serde_json::from_str::<serde_json::Value>(json).unwrap())
        };
        let [node, export] = options(r#"{"numjobs": 4}"#, "/srv/a,b", false);
        assert_eq!((&node["driver"], &node["filename"]), (&"file".into(), &"/srv/a,b".into()));
        assert_eq!((&node["cache"]["direct"], &export["num-queues"]), (&true.into(), &4.into()));
        assert_eq!(export["addr"]["path"], "/p/s");
        let [node, _] = options(r#"{"direct": false}"#, "/dev/vdb", true);
        assert_eq!((&node["driver"], &node["cache"]["direct"]), (&"host_device".into(), &false.into()));
    }

    #[test]
    fn unsupported_parameters_have_a_reason() {
        let unsupported = |json: &str| {
            TypedTest::unsupported(&Export(FioLibblkio), &params(json), &Placement::default(), &Facts::default())
        };
        assert_eq!(unsupported("{}"), None);
        assert!(unsupported(r#"{"block-sizes": 1000, "direct": false}"#).unwrap().contains("sectors of 512 bytes"));
        assert!(unsupported(r#"{"block-sizes": "1m", "file-size": "64k"}"#).unwrap().contains("invalid file-size 64k"));
        let unknown = serde_json::from_str::<LibblkioParams>(r#"{"job-file": "x"}"#).unwrap_err();
        assert!(unknown.to_string().contains("unknown field `job-file`"), "{unknown}");
    }
}
