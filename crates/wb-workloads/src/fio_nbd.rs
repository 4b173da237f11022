//! fio-nbd: a scratch image is exported by qemu-nbd on the worker and accessed by fio's nbd engine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Requirement;

use crate::fio::job::FioJob;
use crate::fio_export::ExportTest;
use crate::fio_export::params::ExportParams;
use crate::fio_export::server::{ExportPaths, ServerCommand};

/// fio through a private network block device.
pub struct FioNbd;

/// How an fio-nbd cell is measured
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct NbdParams {
    #[serde(flatten)]
    export: ExportParams,
    /// Operations in flight per job
    #[schemars(range(min = 1))]
    iodepth: u32,
    /// Jobs, each with its own connection
    #[schemars(range(min = 1))]
    numjobs: u32,
}

impl Default for NbdParams {
    fn default() -> Self {
        Self { export: ExportParams::default(), iodepth: 32, numjobs: 4 }
    }
}

impl AsRef<ExportParams> for NbdParams {
    fn as_ref(&self) -> &ExportParams {
        &self.export
    }
}

fn uri(socket: &str) -> String {
    format!("nbd+unix:///?socket={socket}")
}

impl ExportTest for FioNbd {
    type Params = NbdParams;

    const NAME: &'static str = "fio-nbd";
    const SUMMARY: &'static str = "a network block device: fio through qemu-nbd on the same worker";
    const ENGINE: &'static str = "nbd";

    fn server_programs() -> Vec<Requirement> {
        ["qemu-nbd", "qemu-img"].map(|program| Requirement::new(program, "qemu-utils", &["--version"])).into()
    }

    fn server(params: &NbdParams, paths: &ExportPaths<'_>) -> ServerCommand {
        let shared = format!("--shared={}", params.numjobs.saturating_add(1));
        let socket = format!("--socket={}", paths.socket);
        let argv = ["qemu-nbd", "--persistent", &shared, "--format=raw", &socket, paths.target];
        let probe = ["qemu-img", "info", "--format=raw", &uri(paths.socket)];
        ServerCommand { argv: argv.map(str::to_owned).into(), probe: probe.map(str::to_owned).into() }
    }

    fn job(params: &NbdParams, socket: &str) -> FioJob {
        let NbdParams { export, iodepth, numjobs } = params;
        let job = export.job(Self::ENGINE, vec![("uri", uri(socket))]);
        FioJob { iodepth: *iodepth, numjobs: *numjobs, ..job }
    }
}
