//! `weighbridge net check`: what is to be known of profiles before they are run.

use std::{collections::BTreeSet, fmt::Display, path::Path};

use wb_net::language::{self, NetProfile, ProfileCheck, Variables};
use wb_net::support::UnsupportedFeature;

use super::super::print_text;
use crate::cli::net::NetCheckArgs;
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;

/// Checks each.
pub(super) fn check(args: &NetCheckArgs, console: &Console) -> Result<Exit, Error> {
    let mut exit = Exit::Success;
    for file in &args.files {
        let name = file.display();
        match check_file(file, &args.var) {
            Ok(ProfileCheck::Valid { notes, variables, .. }) => {
                print_text(&format!(
                    "{name}: fine\n{}{}",
                    format_notes(&notes),
                    format_notes(&unused_variables(&variables, &args.var))
                ))?;
            }
            Ok(ProfileCheck::Unsupported { notes, lacks, variables, .. }) => {
                let lacks: String = lacks.iter().map(describe_unsupported).collect();
                let notes = [format_notes(&notes), format_notes(&unused_variables(&variables, &args.var))].concat();
                print_text(&format!("{name}: this kernel cannot do all of it\n{lacks}{notes}"))?;
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
    let bytes = std::fs::read(file).map_err(|source| Error::File { path: name.clone(), source })?;
    let text = language::decode_text(&name, &bytes)?;
    Ok(language::check(&name, text, &parse_variables(vars)))
}

/// Variables that the profile does not use: perhaps misspelt ones.
fn unused_variables(used: &BTreeSet<String>, given: &[(String, String)]) -> Vec<String> {
    let uses = match used.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => "it uses none".to_owned(),
        some => format!("it uses {}", some.join(", ")),
    };
    let unused = given.iter().filter(|(name, _)| !used.contains(name));
    unused.map(|(name, _)| format!("the profile has no variable `{name}`; {uses}")).collect()
}

fn parse_variables(given: &[(String, String)]) -> Variables {
    let mut variables = Variables::from_environment();
    for (name, value) in given {
        variables.set(name, value);
    }
    variables
}

/// A profile that is to be run, and what is to be known of it.
pub(super) fn load_profile(file: &Path, vars: &[(String, String)]) -> Result<(NetProfile, Vec<String>), Error> {
    match check_file(file, vars)? {
        ProfileCheck::Valid { profile, notes, variables } => {
            let notes = notes.iter().map(ToString::to_string).chain(unused_variables(&variables, vars));
            Ok((profile, notes.collect()))
        }
        ProfileCheck::Invalid(faults) => Err(faults.into()),
        ProfileCheck::Unsupported { lacks, .. } => {
            let what: Vec<String> = lacks.iter().map(ToString::to_string).collect();
            let way_out = lacks.iter().find_map(|lack| lack.help.clone());
            Err(Error::Incomplete {
                what: format!("`{}`: {}", file.display(), what.join("; ")),
                help: way_out.unwrap_or_else(|| "run it where the kernel can do this".to_owned()),
            })
        }
    }
}
