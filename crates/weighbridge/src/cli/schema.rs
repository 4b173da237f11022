use clap::ValueEnum;

/// Files and outputs with a JSON Schema
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaName {
    /// run.json: the plan, versions and metadata of a run
    Run,
    /// definition.json: effective parameters, keys and provenance of a serial
    Definition,
    /// FILES.json: the files that a test's definition names
    DefinitionFiles,
    /// A line of journal.jsonl
    JournalLine,
    /// result.json: the values and outcomes of a serial
    Result,
    /// inputs.json: files outside of a run that it was measured with
    RunInputs,
    /// manifest.json: the members of an archive, with hashes
    ArchiveManifest,
    /// Output of `study --json`
    Study,
    /// Output of `plan --json`
    Plan,
    /// Output of `list TEST --json`
    Declaration,
    /// Output of `list BENCH --json`
    BenchDeclaration,
    /// State of a system before or after a run
    Environment,
    /// What a system did during a sample
    Telemetry,
    /// Output of `doctor --json`
    Doctor,
    /// Output of `ab --json`
    AbResult,
    /// Output of `calibrate --json`
    CalibrateResult,
    /// experiment.json: the result of `ab` or `calibrate`
    Experiment,
    /// Output of `bisect show --json`
    Bisection,
    /// Output of `tune apply --json`
    TuneResult,
    /// Output of `tune status --json`
    TuneStatus,
    /// Output of `tune revert --json`
    TuneRevertResult,
    /// A profile, in TOML
    Profile,
    /// The applied profiles of a run
    ProfileState,
    /// Output of `compare --json`
    Comparison,
    /// Figures of an imported sample
    ImportedSample,
    /// A noise model of `model`
    NoiseModel,
    /// Output of `net run --json`
    NetResult,
    /// Output of the presets of `net` with `--json`: a list of results
    NetResults,
    /// Output of `net sweep --json`
    NetSweep,
    /// The parameters file of `hashd`
    HashdParams,
    /// The configuration of `exec hashd`
    HashdConfig,
    /// A line of the output of `hashd --json`
    HashdReport,
    /// The configuration of `exec hashd-params`
    HashdSizing,
    /// A line of the output of `hashd --find-params --json`, and of its journal
    HashdSizingLine,
    /// Output of `peers list --json`
    PeersList,
    /// Output of `deps --json`
    Dependencies,
    /// result.json of a contention bench; the output of `summary --json` with benches is a list of these
    BenchResult,
    /// The event `sequence` of journal.jsonl
    SequenceEvent,
    /// Output of `plan --json` with contention benches
    SequencePlan,
}
