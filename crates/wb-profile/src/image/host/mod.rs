//! The host's side: carries out an order, in a process of its own there.

mod debian;
mod fetch;
mod folder;
mod listing;
mod make;
mod tools;
mod users;

use std::io::{self, Write};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::order::{Order, Progress, Word};

use folder::Folder;

/// How often progress is told.
const OFTEN: Duration = Duration::from_secs(1);

/// Carries out an order and tells what comes of it, a line a [`Word`].
///
/// # Errors
/// When nobody takes the lines: then nobody waits for the image either.
pub fn carry_out(order: &Order, out: &mut dyn Write) -> io::Result<()> {
    let mut teller = Teller { out, last: None };
    let word = match order {
        Order::Ready { image, stall } => {
            let ready = Folder::open().and_then(|folder| {
                let ready = make::ready(&folder, image, (*stall).into(), &mut teller);
                ready.inspect_err(|_| folder.leave())
            });
            ready.map(value)
        }
        Order::Check { image, stall } => {
            Folder::find().and_then(|folder| make::check(&folder, image, (*stall).into())).map(value)
        }
        Order::List => Folder::find().and_then(|folder| listing::list(&folder)).map(value),
        Order::Remove { names } => Folder::find().and_then(|folder| listing::remove(&folder, names)).map(value),
    };
    teller.say(&word.unwrap_or_else(Word::Failed))
}

fn value(done: impl Serialize) -> Word {
    Word::Done(serde_json::to_value(done).unwrap_or_default())
}

/// Tells how far it is, not too often.
struct Teller<'a> {
    out: &'a mut dyn Write,
    last: Option<Instant>,
}

impl Teller<'_> {
    /// That something else is done now.
    fn doing(&mut self, what: impl Into<String>) {
        self.tell(Progress::Doing { what: what.into() });
    }

    fn tell(&mut self, progress: Progress) {
        self.last = Some(Instant::now());
        // Whoever does not listen any more ends this process.
        let _ = self.say(&Word::Progress(progress));
    }

    /// That it goes on, if that was not said just now.
    fn tell_sometimes(&mut self, progress: impl FnOnce() -> Progress) {
        if self.last.is_none_or(|last| last.elapsed() >= OFTEN) {
            self.tell(progress());
        }
    }

    fn say(&mut self, word: &Word) -> io::Result<()> {
        let mut line = serde_json::to_vec(word)?;
        line.push(b'\n');
        self.out.write_all(&line)?;
        self.out.flush()
    }
}
