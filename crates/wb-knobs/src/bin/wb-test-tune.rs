//! Test helper: sets knobs of a fake machine, or reverts them: `wb-test-tune ROOT apply KNOB[@TARGET]=VALUE…`,
//! `wb-test-tune ROOT revert`. The tests kill it at every step.

#![forbid(unsafe_code)]

use std::error::Error;

use wb_knobs::KnobSet;
use wb_knobs::tune::{KnobSetting, apply};
use wb_sys::{SysRoot, UndoLog};

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args_os().skip(1).filter_map(|word| word.into_string().ok());
    let (root, command) = words.next().zip(words.next()).ok_or("expected ROOT apply|revert [KNOB[@TARGET]=VALUE…]")?;
    let mut log = UndoLog::open(&SysRoot::at(&root), &command)?;
    if command == "revert" {
        for (change, how) in log.revert()? {
            println!("{}: {how}", change.resource.description());
        }
        return Ok(());
    }
    let settings = words.map(|word| {
        let (key, value) = word.split_once('=').ok_or("invalid knob: expected KNOB[@TARGET]=VALUE")?;
        KnobSetting::new(key, value.to_owned())
    });
    let set = KnobSet { name: command, summary: String::new(), knobs: settings.collect::<Result<_, _>>()? };
    for tuned in apply(&SysRoot::at(&root), &set, &mut log)? {
        println!("{}@{}: {:?}", tuned.knob, tuned.target, tuned.outcome);
    }
    Ok(())
}
