//! `weighbridge net check`: checks network profiles before they are run.

use std::{collections::BTreeSet, fmt::Display, path::Path};

use wb_net_profile::support::UnsupportedFeature;
use wb_net_profile::{NetProfile, ParsedProfile, ProfileCheck, Variables};

use crate::cli::net::NetCheckArgs;
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::print_text;

pub(super) fn check(args: &NetCheckArgs, console: &Console) -> Result<Exit, Error> {
    let mut exit = Exit::Success;
    for file in &args.files {
        let name = file.display();
        match check_file(file, &args.var) {
            Ok(ProfileCheck::Valid(ParsedProfile { notes, variables, .. })) => {
                print_text(&format!(
                    "{name}: valid\n{}{}",
                    format_notes(&notes),
                    format_notes(&unused_variables(&variables, &args.var))
                ))?;
            }
            Ok(ProfileCheck::Unsupported { parsed: ParsedProfile { notes, variables, .. }, unsupported: lacks }) => {
                let lacks: String = lacks.iter().map(describe_unsupported).collect();
                let notes = [format_notes(&notes), format_notes(&unused_variables(&variables, &args.var))].concat();
                print_text(&format!("{name}: not fully supported by this kernel\n{lacks}{notes}"))?;
                exit = if exit == Exit::Success { Exit::Incomplete } else { exit };
            }
            Ok(ProfileCheck::Invalid(faults)) => {
                Error::Profile(faults).report(console);
                exit = Exit::Error;
            }
            Err(error) => {
                error.report(console);
                exit = Exit::Error;
            }
        }
    }
    Ok(exit)
}

fn describe_unsupported(lack: &UnsupportedFeature) -> String {
    let places: Vec<String> = lack.flowops.iter().map(ToString::to_string).collect();
    let help = lack.help.as_ref().map(|help| format!("  help: {help}\n")).unwrap_or_default();
    format!("  {lack} ({})\n{help}", places.join(", "))
}

fn format_notes<N: Display>(notes: &[N]) -> String {
    notes.iter().map(|note| format!("  note: {note}\n")).collect()
}

fn check_file(file: &Path, vars: &[(String, String)]) -> Result<ProfileCheck, Error> {
    let name = file.display().to_string();
    let bytes = std::fs::read(file).map_err(Error::file("read", file))?;
    let text = wb_net_profile::decode_text(&name, &bytes)?;
    Ok(wb_net_profile::check(&name, text, &parse_variables(vars)))
}

/// Notes about variables that the profile does not use, which may be misspelt.
fn unused_variables(used: &BTreeSet<String>, set: &[(String, String)]) -> Vec<String> {
    let uses = match used.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => "it uses none".to_owned(),
        some => format!("it uses {}", some.join(", ")),
    };
    let unused = set.iter().filter(|(name, _)| !used.contains(name));
    unused.map(|(name, _)| format!("the profile has no variable `{name}`; {uses}")).collect()
}

fn parse_variables(vars: &[(String, String)]) -> Variables {
    let mut variables = Variables::from_environment();
    for (name, value) in vars {
        variables.set(name, value);
    }
    variables
}

/// Reads a profile to be run, with notes about it.
pub(super) fn load_profile(file: &Path, vars: &[(String, String)]) -> Result<(NetProfile, Vec<String>), Error> {
    match check_file(file, vars)? {
        ProfileCheck::Valid(ParsedProfile { profile, notes, variables }) => {
            let notes = notes.iter().map(ToString::to_string).chain(unused_variables(&variables, vars));
            Ok((profile, notes.collect()))
        }
        ProfileCheck::Invalid(faults) => Err(faults.into()),
        ProfileCheck::Unsupported { unsupported: lacks, .. } => {
            let features: Vec<String> = lacks.iter().map(ToString::to_string).collect();
            let help = lacks.iter().find_map(|lack| lack.help.clone());
            Err(Error::Incomplete {
                what: format!("`{}`: {}", file.display(), features.join("; ")),
                help: help.unwrap_or_else(|| "run it on a kernel that supports this".to_owned()),
            })
        }
    }
}
