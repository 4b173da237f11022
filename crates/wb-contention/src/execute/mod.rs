//! Executes sequences: runs what is missing, keeps every result as it comes, and applies the answers.

mod error;
mod executor;
mod progress;
mod results;

use std::path::PathBuf;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use wb_model::{Bytes, Sha256};
use wb_record::RunFolder;
use wb_results::contention::{BenchResult, IocostParameters, QosOverride, SystemInfo, TimeScale};

use crate::Parameters;
use crate::parameters::ParametersFile;
use crate::runner::Runners;
use crate::sequence::{Job, JobContext};
use crate::spec::BenchSpec;

pub use error::SequenceError;
pub use executor::require_runners;
pub(crate) use executor::write_result;
pub use progress::{AfterFailure, SequenceProgress};
pub use results::{StudyRequest, read_results, result_files, solve_results, study_results};

#[derive(Debug, Clone)]
pub struct SequenceRequest {
    pub specs: Vec<BenchSpec>,
    pub options: SequenceOptions,
    pub system: SystemInfo,
    /// The parameters in force before: committed, or those of the system.
    pub parameters: Parameters,
    /// A run keeps its first one.
    pub seed: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SequenceOptions {
    /// Folder of hashd's files and of committed parameters.
    pub dir: PathBuf,
    /// `None`: the storage device of the folder.
    pub dev: Option<String>,
    /// Memory of the emulated machine, in GiB; `None`: all memory is used.
    pub mem_profile: Option<u32>,
    pub mem_avail: Option<Bytes>,
    /// Changes to the QoS that benches start from.
    pub iocost_qos: QosOverride,
    /// `vm.swappiness` during benches.
    pub swappiness: u32,
    /// Whether benches run although requirements are not met.
    pub force: bool,
    /// Whether to start from the parameters that io.cost has on this machine, instead of refusing them.
    pub iocost_from_sys: bool,
    pub time_scale: Option<TimeScale>,
}

impl SequenceOptions {
    pub fn parameters_file(&self) -> ParametersFile {
        ParametersFile::in_folder(&self.dir)
    }
}

impl SequenceRequest {
    pub(crate) fn initial_parameters(&self) -> Parameters {
        Parameters { iocost: self.parameters.iocost.map(|iocost| self.changed(iocost)), ..self.parameters }
    }

    /// Parameters of io.cost with the user's changes.
    pub(crate) fn changed(&self, iocost: IocostParameters) -> IocostParameters {
        IocostParameters { qos: self.options.iocost_qos.apply(iocost.qos), ..iocost }
    }

    /// What the stages of a bench depend on. The random number depends on the seed and the bench's name alone.
    pub(crate) fn job_context(&self, job: &Job, parameters: Parameters) -> JobContext<'_> {
        let name = Sha256::digest(format!("{}:{}", self.seed, job.instance).as_bytes());
        let bytes: Vec<u8> = name.as_str().bytes().take(32).collect();
        let seed = <[u8; 32]>::try_from(bytes).unwrap_or_default();
        let random = ChaCha8Rng::from_seed(seed).random_range(0.0..1.0);
        let SequenceOptions { mem_profile, time_scale, .. } = self.options;
        JobContext { system: &self.system, mem_profile, parameters, random, time_scale }
    }
}

/// Executes a sequence in a run folder that is open for writing and has an invocation for it. Fails at the first stage
/// that fails, unless its bench tolerates it; everything that ended before is kept, and the same request goes on there.
pub async fn execute(
    mut request: SequenceRequest,
    run: &RunFolder,
    runners: &mut dyn Runners,
    progress: &mut dyn FnMut(SequenceProgress<'_>),
) -> Result<Vec<BenchResult>, SequenceError> {
    let journal = crate::record::SequenceJournal::open(run)?;
    request.seed = journal.history().seed().unwrap_or(request.seed);
    executor::Executor::new(&request, run, journal, runners, progress).run().await
}
