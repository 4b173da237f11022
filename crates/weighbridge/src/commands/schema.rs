//! `weighbridge schema`: the JSON Schemas of files and outputs, made from the types.

use schemars::{Schema, schema_for};
use wb_plan::nearest::nearest;

use super::{print_json, print_text};
use crate::error::Error;
use crate::exit::Exit;

/// Name and schema of every file and output.
pub(crate) fn all() -> Vec<(&'static str, Schema)> {
    vec![
        ("run", schema_for!(wb_record::RunFile)),
        ("definition", schema_for!(wb_record::Definitions)),
        ("journal-line", schema_for!(wb_record::Line)),
        ("result", schema_for!(wb_study::run::SerialResult)),
        ("study", schema_for!(wb_study::Study)),
        ("plan", schema_for!(wb_plan::Plan)),
        ("declaration", schema_for!(wb_model::Declaration)),
        ("environment", schema_for!(wb_sys::environment::Environment)),
        ("telemetry", schema_for!(wb_sys::telemetry::Telemetry)),
        ("doctor", schema_for!(wb_knobs::Diagnosis)),
    ]
}

/// Prints one, or the names.
pub(crate) fn schema(name: Option<&str>) -> Result<Exit, Error> {
    let all = all();
    let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    match name {
        None => print_text(&format!("{}\n", names.join("\n")))?,
        Some(name) => match all.iter().find(|(known, _)| *known == name) {
            Some((_, schema)) => print_json(schema)?,
            None => {
                let near = nearest(name, names.iter().copied()).map(|near| format!("did you mean `{near}`? "));
                return Err(Error::Usage {
                    what: format!("there is no schema `{name}`"),
                    help: format!("{}there are {}", near.unwrap_or_default(), names.join(", ")),
                });
            }
        },
    }
    Ok(Exit::Fine)
}
