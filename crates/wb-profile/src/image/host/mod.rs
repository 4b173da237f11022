//! Executes image requests on a host, in a process of its own.

mod debian;
mod fetch;
mod listing;
mod prepare;
mod store;
mod tools;
mod users;

use std::io::{self, Write};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::request::{ImageEvent, ImageProgress, ImageRequest};

use store::ImageStore;

/// Minimum interval between progress messages.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// Executes a request and writes progress and result as lines, each an [`ImageEvent`]. Fails if they cannot be written:
/// then nobody waits for the image either.
pub fn execute(order: &ImageRequest, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = ProgressWriter { out, last: None };
    let event = match order {
        ImageRequest::Prepare { image, stall } => {
            let result = ImageStore::open().and_then(|folder| {
                let result = prepare::prepare(&folder, image, (*stall).into(), &mut writer);
                result.inspect_err(|_| folder.remove_if_empty())
            });
            result.map(done)
        }
        ImageRequest::Check { image, stall } => {
            ImageStore::find().and_then(|folder| prepare::check(&folder, image, (*stall).into())).map(done)
        }
        ImageRequest::List => ImageStore::find().and_then(|folder| listing::list(&folder)).map(done),
        ImageRequest::Remove { names } => {
            ImageStore::find().and_then(|folder| listing::remove(&folder, names)).map(done)
        }
    };
    writer.write_line(&event.unwrap_or_else(ImageEvent::Failed))
}

fn done(result: impl Serialize) -> ImageEvent {
    ImageEvent::Done(serde_json::to_value(result).expect("plain data has a JSON form"))
}

/// Writes events as lines, with progress at a limited rate.
struct ProgressWriter<'a> {
    out: &'a mut dyn Write,
    last: Option<Instant>,
}

impl ProgressWriter<'_> {
    fn report_step(&mut self, step: impl Into<String>) {
        self.report(ImageProgress::Step { description: step.into() });
    }

    fn report(&mut self, progress: ImageProgress) {
        self.last = Some(Instant::now());
        // A controller that no longer reads also ends this process.
        let _ = self.write_line(&ImageEvent::Progress(progress));
    }

    /// Reports progress, unless that was done within the last interval.
    fn report_throttled(&mut self, progress: impl FnOnce() -> ImageProgress) {
        if self.last.is_none_or(|last| last.elapsed() >= PROGRESS_INTERVAL) {
            self.report(progress());
        }
    }

    fn write_line(&mut self, event: &ImageEvent) -> io::Result<()> {
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        self.out.write_all(&line)?;
        self.out.flush()
    }
}
