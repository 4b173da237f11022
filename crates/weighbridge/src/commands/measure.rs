//! Carrying out a plan in a folder, for every command that measures.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tokio::sync::watch;
use wb_model::secrets::{masked_arguments, masked_value, masked_words, without_passwords};
use wb_plan::{Plan, Workers, masked};
use wb_record::RunFolder;
use wb_run::{Job, Referee, RunEnd};
use wb_study::Study;

use super::crew::{Ready, close, made_ready};
use super::publish::{Publishing, State};
use super::what::Asked;
use super::{runtime, this_programs_hash};
use crate::cli::{HostFlags, IntoFlags, ReadyFlags};
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;
use crate::progress::Watcher;
use crate::secrets;

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
    /// What is done to machines first.
    ready: Ready,
    /// Whoever publishes it.
    publishing: Option<Publishing>,
    /// Whoever holds cells against each other meanwhile.
    pub(crate) referee: Option<&'a Referee>,
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
    /// What is published of it.
    pub(crate) published: State,
}

impl<'a> Measuring<'a> {
    /// Into the folder of the flags, or one named after the time.
    pub(crate) fn new(
        folder: &'a Path,
        flags: &IntoFlags,
        asked: &'a Asked,
        hosts: &'a HostFlags,
        ready: &ReadyFlags,
    ) -> Result<Self, Error> {
        secrets::declare_all(&flags.secret_from)?;
        let mut metadata: BTreeMap<String, String> = flags.metadata.iter().cloned().collect();
        let publishing = Publishing::asked(flags, asked.publish.as_deref(), &metadata);
        for (name, said) in [("distro", &hosts.distro), ("guest-distro", &hosts.guest_distro)] {
            if let Some(said) = said {
                metadata.entry(name.to_owned()).or_insert_with(|| said.clone());
            }
        }
        let ready = Ready::read(ready)?;
        Ok(Self { folder, named: flags.into.is_some(), asked, metadata, hosts, ready, publishing, referee: None })
    }

    /// Measures the plan that is made for this machine, records and studies it.
    pub(crate) fn carry_out(
        self,
        console: &Console,
        plan: impl FnOnce(&Workers) -> Result<Plan, Error>,
    ) -> Result<Measured, Error> {
        let program_sha256 = this_programs_hash()?;
        let (end, begun) = runtime()?.block_on(async {
            let cancel = cancelled_by_signals();
            let crew = made_ready(&self.ready, self.hosts, self.folder, console, cancel.clone()).await?;
            let plan = plan(&crew.workers())?;
            secrets::refuse_in_names(&plan)?;
            let publisher = Publishing::publisher(self.publishing.as_ref()).await?;
            let mut watcher = Watcher::new(console, self.folder);
            let closing = crew.clone();
            let job = Job {
                folder: self.folder,
                plan_name: masked_words(&self.asked.name),
                plan_text: self.asked.text.as_deref().map(masked::plan),
                command: masked_arguments(std::env::args()),
                seed: plan.sampling.seed.unwrap_or_else(rand::random),
                metadata: recorded(&self.metadata),
                version: env!("CARGO_PKG_VERSION"),
                program_sha256,
                registry: &self.asked.registry,
                crew,
                cancel,
                referee: self.referee,
                publisher: publisher.as_ref(),
                plan,
            };
            let end = wb_run::run(job, |progress| watcher.tell(&progress)).await;
            watcher.finish();
            if let Some(publisher) = publisher {
                publisher.close().await?;
            }
            let closed = close(closing).await;
            Ok::<_, Error>((end.map_err(Error::from).and_then(|end| Ok(closed.map(|()| end)?)), watcher.begun()))
        })?;
        if end.is_err() && begun {
            crate::console::tell!(
                "everything until here is kept in {}; the same line goes on from there",
                self.folder.display()
            );
        }
        let end = end?;
        let run = RunFolder::open(self.folder)?;
        let study = wb_study::study(&run, &self.asked.registry)?;
        wb_study::write_results(&run, &study)?;
        if end == RunEnd::Interrupted {
            let line = resume_line(self.folder, self.named);
            crate::console::tell!("interrupted; everything taken is kept. To go on:\n  {line}");
        }
        let published = match end {
            RunEnd::Interrupted => State::NotAsked,
            RunEnd::Finished | RunEnd::Complete => super::publish::at_end(self.publishing.as_ref(), self.folder)?,
        };
        Ok(Measured { end, study, published })
    }
}

/// What is recorded of what the user said of the run.
fn recorded(metadata: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let shown = |(name, value): (&String, &String)| (name.clone(), without_passwords(&masked_value(name, value)));
    metadata.iter().map(shown).collect()
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
            _ if self.short() > 0 || self.published == State::Behind => Some(Exit::FellShort),
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
pub(super) fn cancelled_by_signals() -> watch::Receiver<bool> {
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
