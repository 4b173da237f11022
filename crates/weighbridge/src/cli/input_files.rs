use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::{ArgAction, ArgMatches, Command};

use super::{OutputPath, OutputPrefix};

/// The regular files that values of a command line name, without its outputs. Values may be lists, and have a name
/// before them: `new=R1,R2`.
pub(super) fn input_files(command: &Command, matches: &ArgMatches) -> BTreeSet<PathBuf> {
    let mut files = BTreeSet::new();
    for arg in command.get_arguments() {
        let id = arg.get_id().as_str();
        let is_output = matches.try_get_many::<OutputPath>(id).is_ok_and(|values| values.is_some())
            || matches.try_get_many::<OutputPrefix>(id).is_ok_and(|values| values.is_some());
        // A list of folders may be a pattern of the shell (`result*`) that matches the page of last time: files in it are
        // skipped.
        let is_list = arg.is_positional() && matches!(arg.get_action(), ArgAction::Append);
        let values = matches.try_get_raw(id).ok().flatten().filter(|_| !is_output && !is_list);
        files.extend(values.into_iter().flatten().flat_map(named_files));
    }
    if let Some((name, matches)) = matches.subcommand()
        && let Some(command) = command.find_subcommand(name)
    {
        files.extend(input_files(command, matches));
    }
    files
}

fn named_files(value: &OsStr) -> Vec<PathBuf> {
    let bytes = value.as_bytes();
    let behind_name =
        bytes.iter().position(|byte| *byte == b'=').map_or(&bytes[..0], |position| &bytes[position + 1..]);
    let parts = bytes.split(|byte| *byte == b',').chain(behind_name.split(|byte| *byte == b','));
    let candidates = [bytes, behind_name].into_iter().chain(parts).map(|part| Path::new(OsStr::from_bytes(part)));
    // What cannot be resolved is no file that exists.
    candidates.filter_map(|path| path.canonicalize().ok()).filter(|path| path.is_file()).collect()
}
