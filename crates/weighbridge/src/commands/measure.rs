//! Carrying out a plan in a folder, for every command that measures.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tokio::sync::watch;
use wb_model::secrets::masked_words;
use wb_plan::{Plan, Workers};
use wb_profile::Named;
use wb_record::RunFolder;
use wb_run::{Job, Referee, RunEnd};
use wb_study::Study;

use super::crew::{State, close, hosts, profiles, put};
use super::what::Asked;
use super::{runtime, this_programs_hash};
use crate::cli::{HostFlags, IntoFlags};
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;
use crate::progress::Watcher;

/// What is measured, and where it is recorded.
pub(crate) struct Measuring<'a> {
    /// The run folder.
    pub(crate) folder: &'a Path,
    /// Whether it was named, rather than made up.
    pub(crate) named: bool,
    /// What was asked for.
    pub(crate) asked: &'a Asked,
    /// What the user says of it.
    pub(crate) metadata: BTreeMap<String, String>,
    /// Where it is measured.
    pub(crate) hosts: &'a HostFlags,
    /// Whoever holds cells against each other meanwhile.
    pub(crate) referee: Option<&'a Referee>,
    /// The command, where it measures in one profile only.
    pub(crate) one_state: Option<&'static str>,
}

/// Refuses a folder in which something else was measured: samples of both would not have been taken in turns.
pub(crate) fn require_same(folder: &Path, asked: &Asked) -> Result<(), Error> {
    if !folder.join("run.json").is_file() {
        return Ok(());
    }
    let entries = RunFolder::open(folder)?.run_file()?.entries;
    let name = masked_words(&asked.name);
    let Some(other) = entries.iter().find(|entry| entry.plan != name) else { return Ok(()) };
    Err(Error::Usage {
        what: format!("{} is of something else: `{}`, not `{name}`", folder.display(), other.plan),
        help: "choose another folder with --into; what is asked is settled before the first sample".to_owned(),
    })
}

/// What came of it.
pub(crate) struct Measured {
    /// How it ended.
    pub(crate) end: RunEnd,
    /// All that the folder has now.
    pub(crate) study: Study,
    /// How many profiles could not be applied, or not be brought back from.
    unmet: usize,
}

impl<'a> Measuring<'a> {
    /// Into the folder of the flags, or one named after the time.
    pub(crate) fn new(folder: &'a Path, flags: &IntoFlags, asked: &'a Asked, hosts: &'a HostFlags) -> Self {
        let metadata = flags.metadata.iter().cloned().collect();
        Self { folder, named: flags.into.is_some(), asked, metadata, hosts, referee: None, one_state: None }
    }

    /// Measures the plans that are made for the machines in each profile, records and studies them.
    pub(crate) fn carry_out(
        self,
        console: &Console,
        mut plan: impl FnMut(&Workers, &Named) -> Result<Plan, Error>,
    ) -> Result<Measured, Error> {
        let profiles = profiles(self.hosts)?;
        if let Some(command) = self.one_state.filter(|_| profiles.len() > 1) {
            let what = format!("`{command}` measures in one profile, and {} were named", profiles.len());
            return Err(Error::Usage { what, help: format!("name one, and `{command}` once for each") });
        }
        let program_sha256 = this_programs_hash()?;
        let (end, begun) = runtime()?.block_on(async {
            let hosts = hosts(self.hosts, console).await?;
            let cancel = cancelled_by_signals();
            let mut begun = false;
            let mut ends = Ends::default();
            let mut result = Ok(());
            for named in &profiles {
                let state = match in_time(put(named, &hosts, self.hosts, console), cancel.clone()).await {
                    None => {
                        ends.add(RunEnd::Interrupted);
                        break;
                    }
                    Some(Ok(state)) => state,
                    Some(Err(error)) if profiles.len() > 1 => {
                        error.warn();
                        ends.unmet += 1;
                        continue;
                    }
                    Some(Err(error)) => {
                        result = Err(error);
                        break;
                    }
                };
                let planned = plan(&state.crew.workers(), named);
                let measured = match planned {
                    Err(error) => Err(error),
                    Ok(plan) => {
                        let mut watcher = Watcher::new(console, self.folder);
                        let job = self.job(plan, &state, &program_sha256, cancel.clone());
                        let end = wb_run::run(job, |progress| watcher.tell(&progress)).await;
                        watcher.finish();
                        begun |= watcher.begun();
                        end.map_err(Error::from)
                    }
                };
                if !state.revert().await {
                    ends.unmet += 1;
                }
                match measured {
                    Ok(end) => ends.add(end),
                    Err(error) => {
                        result = Err(error);
                        break;
                    }
                }
                if ends.end == Some(RunEnd::Interrupted) {
                    break;
                }
            }
            let closed = close(hosts).await;
            let ends = result.and_then(|()| Ok(closed.map(|()| ends)?));
            Ok::<_, Error>((ends, begun))
        })?;
        if end.is_err() && begun {
            crate::console::tell!(
                "everything until here is kept in {}; the same line goes on from there",
                self.folder.display()
            );
        }
        let Ends { end, unmet } = end?;
        let end = end.ok_or_else(|| Error::FellShort {
            what: "no profile could be applied".to_owned(),
            help: "the warnings above say why".to_owned(),
        })?;
        let run = RunFolder::open(self.folder)?;
        let study = wb_study::study(&run, &self.asked.registry)?;
        wb_study::write_results(&run, &study)?;
        if end == RunEnd::Interrupted {
            let line = resume_line(self.folder, self.named);
            crate::console::tell!("interrupted; everything taken is kept. To go on:\n  {line}");
        }
        Ok(Measured { end, study, unmet })
    }

    fn job<'b>(&'b self, plan: Plan, state: &State, program_sha256: &str, cancel: watch::Receiver<bool>) -> Job<'b> {
        let states = state.standings.iter().map(|standing| serde_json::to_value(standing).unwrap_or_default());
        Job {
            folder: self.folder,
            plan_name: masked_words(&self.asked.name),
            plan_text: self.asked.text.clone(),
            command: std::env::args().map(|word| masked_words(&word)).collect(),
            seed: plan.sampling.seed.unwrap_or_else(rand::random),
            metadata: self.metadata.clone(),
            version: env!("CARGO_PKG_VERSION"),
            program_sha256: program_sha256.to_owned(),
            registry: &self.asked.registry,
            crew: state.crew.clone(),
            states: states.collect(),
            cancel,
            referee: self.referee,
            plan,
        }
    }
}

/// How the runs in all profiles ended.
#[derive(Default)]
struct Ends {
    /// All of them together; none where there was none.
    end: Option<RunEnd>,
    /// How many profiles could not be applied, or not be brought back from.
    unmet: usize,
}

impl Ends {
    fn add(&mut self, next: RunEnd) {
        self.end = Some(match (self.end, next) {
            (Some(RunEnd::Interrupted), _) | (_, RunEnd::Interrupted) => RunEnd::Interrupted,
            (None | Some(RunEnd::Complete), RunEnd::Complete) => RunEnd::Complete,
            _ => RunEnd::Finished,
        });
    }
}

/// Waits for something, unless the user wants to end before.
async fn in_time<T>(wanted: impl Future<Output = T>, mut cancel: watch::Receiver<bool>) -> Option<T> {
    tokio::select! {
        done = wanted => Some(done),
        _ = cancel.wait_for(|cancelled| *cancelled) => None,
    }
}

impl Measured {
    /// How many cells are not what was asked for.
    pub(crate) fn short(&self) -> usize {
        self.study.cells.iter().filter(|cell| cell.outcome.falls_short()).count()
    }

    /// The exit status where something fell short or the user ended it; none where all is well.
    pub(crate) fn exit(&self) -> Option<Exit> {
        match self.end {
            RunEnd::Interrupted => Some(Exit::Interrupted),
            _ if self.short() + self.unmet > 0 => Some(Exit::FellShort),
            _ => None,
        }
    }
}

/// The folder of the flags, or one that does not exist yet, named after a word and the time.
pub(crate) fn folder(flags: &IntoFlags, word: &str) -> PathBuf {
    let new = || {
        let name = jiff::Timestamp::now().strftime(&format!("{word}-%Y%m%d-%H%M%S")).to_string();
        let numbered = |number: u32| if number == 0 { name.clone() } else { format!("{name}-{number}") };
        (0..).map(|number| PathBuf::from(numbered(number))).find(|path| !path.exists()).unwrap_or_default()
    };
    flags.into.clone().unwrap_or_else(new)
}

/// Becomes true at the first SIGINT, SIGTERM or SIGHUP.
fn cancelled_by_signals() -> watch::Receiver<bool> {
    use tokio::signal::unix::{SignalKind, signal};
    let (sender, receiver) = watch::channel(false);
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        let Ok(mut signals) = signal(kind) else { continue };
        let sender = sender.clone();
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                // Nobody listens any more once the run is over.
                let _ = sender.send(true);
            }
        });
    }
    receiver
}

/// The line that goes on with this run: what was typed, into its folder, which may have been `named`.
fn resume_line(folder: &Path, named: bool) -> String {
    let mut words: Vec<String> = std::env::args().collect();
    if !named {
        // Before the variants, which end a line that has some.
        let at = words.iter().position(|word| word == "--").unwrap_or(words.len());
        words.splice(at..at, ["--into".to_owned(), folder.display().to_string()]);
    }
    shell_words::join(words)
}
