//! Sets knobs of a made machine, or puts them back: `tune ROOT apply KNOB[@TARGET]=VALUE…`, `tune ROOT revert`.
//!
//! It is what the tests kill at every step.

use std::error::Error;

use wb_knobs::KnobSet;
use wb_knobs::tune::{KnobSetting, apply};
use wb_sys::{SysRoot, UndoLog};

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (root, doing) = words.next().zip(words.next()).ok_or("tune ROOT apply|revert [KNOB[@TARGET]=VALUE…]")?;
    let mut log = UndoLog::open(&SysRoot::at(&root), &doing)?;
    if doing == "revert" {
        for (change, how) in log.revert()? {
            println!("{}: {how}", change.step.description());
        }
        return Ok(());
    }
    let wanted = words.map(|word| {
        let (key, value) = word.split_once('=').ok_or("a knob is KNOB=VALUE")?;
        KnobSetting::new(key, value.to_owned())
    });
    let set = KnobSet { name: doing, summary: String::new(), knobs: wanted.collect::<Result<_, _>>()? };
    for tuned in apply(&SysRoot::at(&root), &set, &mut log)? {
        println!("{}@{}: {:?}", tuned.knob, tuned.target, tuned.outcome);
    }
    Ok(())
}
