//! `weighbridge run`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tokio::sync::watch;
use wb_model::secrets::masked_words;
use wb_model::{Sha256, Unit, counted};
use wb_record::RunFolder;
use wb_run::{Job, RunEnd};

use super::what::{asked, local};
use super::{print_json, print_text, runtime, this_program};
use crate::cli::RunArgs;
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;
use crate::progress::Watcher;

/// Measures, records, studies, and shows the summary.
pub(crate) fn run(args: RunArgs, console: &Console) -> Result<Exit, Error> {
    let asked = asked(&args.what)?;
    let folder = args.into.clone().unwrap_or_else(new_folder);
    let program = this_program()?;
    let hashed = std::fs::File::open(&program).and_then(Sha256::of_all);
    let unreadable = |source| Error::File { path: program.display().to_string(), source };
    let program_sha256 = hashed.map_err(unreadable)?.as_str().to_owned();
    let (end, begun) = runtime()?.block_on(async {
        let (worker, facts) = local().await?;
        let plan = asked.plan(Some(&facts))?;
        let cancel = cancelled_by_signals();
        let mut watcher = Watcher::new(console, &folder);
        let closing = worker.clone();
        let job = Job {
            folder: &folder,
            plan_name: asked.name.clone(),
            plan_text: asked.text.clone(),
            command: std::env::args().map(|word| masked_words(&word)).collect(),
            seed: plan.sampling.seed.unwrap_or_else(rand::random),
            metadata: args.metadata.iter().cloned().collect::<BTreeMap<_, _>>(),
            version: env!("CARGO_PKG_VERSION"),
            program_sha256,
            registry: &asked.registry,
            worker,
            facts,
            cancel,
            plan,
        };
        let end = wb_run::run(job, |progress| watcher.tell(&progress)).await;
        watcher.finish();
        let closed = closing.close().await;
        if closed.is_err() {
            // What an agent that was killed left is removed by the next one.
            if let Ok((next, _)) = local().await {
                next.close().await?;
            }
        }
        Ok::<_, Error>((end.map_err(Error::from).and_then(|end| Ok(closed.map(|()| end)?)), watcher.begun()))
    })?;
    if end.is_err() && begun {
        eprintln!("everything until here is kept in {}; the same line goes on from there", folder.display());
    }
    let end = end?;
    let run = RunFolder::open(&folder)?;
    let study = wb_study::study(&run, &asked.registry)?;
    wb_study::write_results(&run, &study)?;
    if args.json {
        print_json(&study)?;
    } else {
        print_text(&wb_report::text::summary(&study, console.out))?;
        print_text(&format!("\nrun folder: {}\n", folder.display()))?;
    }
    let short = study.cells.iter().filter(|cell| cell.outcome.falls_short()).count();
    match end {
        RunEnd::Interrupted => {
            let line = resume_line(&folder, args.into.is_some());
            eprintln!("interrupted; everything taken is kept. To go on:\n  {line}");
            Ok(Exit::Interrupted)
        }
        RunEnd::Complete if short > 0 => {
            eprintln!("nothing more can be done: {} fell short, as told above", counted(short, "cell"));
            Ok(Exit::FellShort)
        }
        RunEnd::Complete => {
            eprintln!("nothing to do: every cell of {} is complete", folder.display());
            Ok(Exit::Nothing)
        }
        RunEnd::Finished if short > 0 => Ok(Exit::FellShort),
        RunEnd::Finished => Ok(Exit::Fine),
    }
}

/// A folder named after the time, which does not exist yet.
fn new_folder() -> PathBuf {
    let name = jiff::Timestamp::now().strftime("weighbridge-%Y%m%d-%H%M%S").to_string();
    let numbered = |number: u32| if number == 0 { name.clone() } else { format!("{name}-{number}") };
    (0..).map(|number| PathBuf::from(numbered(number))).find(|path| !path.exists()).unwrap_or_default()
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
        words.extend(["--into".to_owned(), folder.display().to_string()]);
    }
    shell_words::join(words)
}

/// A time for people.
pub(crate) fn lasting(seconds: f64) -> String {
    match seconds {
        s if s < 100.0 => Unit::new("s").figure(s).to_string(),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}
