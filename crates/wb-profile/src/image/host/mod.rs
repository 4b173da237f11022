//! The host's side: carries out an order, in a process of its own there.

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

/// How often progress is told.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// Carries out an order and tells what comes of it, a line a [`Word`].
///
/// # Errors
/// When nobody takes the lines: then nobody waits for the image either.
pub fn execute(order: &ImageRequest, out: &mut dyn Write) -> io::Result<()> {
    let mut teller = ProgressWriter { out, last: None };
    let word = match order {
        ImageRequest::Prepare { image, stall } => {
            let ready = ImageStore::open().and_then(|folder| {
                let ready = prepare::prepare(&folder, image, (*stall).into(), &mut teller);
                ready.inspect_err(|_| folder.remove_if_empty())
            });
            ready.map(done)
        }
        ImageRequest::Check { image, stall } => {
            ImageStore::find().and_then(|folder| prepare::check(&folder, image, (*stall).into())).map(done)
        }
        ImageRequest::List => ImageStore::find().and_then(|folder| listing::list(&folder)).map(done),
        ImageRequest::Remove { names } => {
            ImageStore::find().and_then(|folder| listing::remove(&folder, names)).map(done)
        }
    };
    teller.write_line(&word.unwrap_or_else(ImageEvent::Failed))
}

fn done(done: impl Serialize) -> ImageEvent {
    ImageEvent::Done(serde_json::to_value(done).unwrap_or_default())
}

/// Tells how far it is, not too often.
struct ProgressWriter<'a> {
    out: &'a mut dyn Write,
    last: Option<Instant>,
}

impl ProgressWriter<'_> {
    /// That something else is done now.
    fn report_step(&mut self, what: impl Into<String>) {
        self.report(ImageProgress::Doing { what: what.into() });
    }

    fn report(&mut self, progress: ImageProgress) {
        self.last = Some(Instant::now());
        // Whoever does not listen any more ends this process.
        let _ = self.write_line(&ImageEvent::Progress(progress));
    }

    /// That it goes on, if that was not said just now.
    fn report_throttled(&mut self, progress: impl FnOnce() -> ImageProgress) {
        if self.last.is_none_or(|last| last.elapsed() >= PROGRESS_INTERVAL) {
            self.report(progress());
        }
    }

    fn write_line(&mut self, word: &ImageEvent) -> io::Result<()> {
        let mut line = serde_json::to_vec(word)?;
        line.push(b'\n');
        self.out.write_all(&line)?;
        self.out.flush()
    }
}
