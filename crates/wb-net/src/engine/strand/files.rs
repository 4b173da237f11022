//! Transfer of files: sent by the kernel, selected by pseudo-random numbers that both sides compute.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Intent, StepResult, Strand, StrandContext, StrandOperation, connections};
use crate::engine::clock::{self, Nanos};
use crate::engine::plan::FlowopPlan;
use crate::engine::protocol::Side;
use crate::engine::random::RandomKey;
use wb_net_profile::{FileSizes, Files, Message, MessageSize, SyscallFamily};

/// A file to send, or the size of a file to receive.
#[derive(Debug)]
pub(super) struct SelectedFile {
    file: Option<File>,
    size: u64,
}

/// The files of a group's flowops, by the flowop's number. They are listed once, before the measurement.
pub(in crate::engine) type FileLists = Arc<BTreeMap<u32, Vec<(PathBuf, u64)>>>;

/// Lists the readable, non-empty regular files below a folder, sorted by path.
pub fn list(files: &Files) -> io::Result<Vec<(PathBuf, u64)>> {
    let mut found = Vec::new();
    collect_files(Path::new(&files.dir), &mut found)?;
    found.sort();
    if found.is_empty() {
        return Err(io::Error::new(ErrorKind::NotFound, format!("no readable, non-empty file in `{}`", files.dir)));
    }
    Ok(found)
}

fn collect_files(folder: &Path, found: &mut Vec<(PathBuf, u64)>) -> io::Result<()> {
    let add_path = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", folder.display()));
    for entry in std::fs::read_dir(folder).map_err(add_path)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            collect_files(&entry.path(), found)?;
        } else if kind.is_file() {
            let size = entry.metadata()?.len();
            if size > 0 && File::open(entry.path()).is_ok() {
                found.push((entry.path(), size));
            }
        }
    }
    Ok(())
}

impl Strand {
    pub(super) fn send_files(
        &mut self,
        flowop: &FlowopPlan,
        files: &Files,
        context: &mut StrandContext<'_>,
    ) -> StepResult {
        let (began, picks, offset) = match std::mem::replace(&mut self.operation, StrandOperation::Idle) {
            StrandOperation::File { began, picks, offset } => (began, picks, offset),
            _ => match self.open_files(flowop, files) {
                // What is timed begins with open files.
                Ok(picks) => (clock::now(), picks, 0),
                Err(error) => return StepResult::Failed(error),
            },
        };
        let chunk = files.chunk.filter(|_| files.count == 1);
        self.move_files(flowop, Side::Client, (began, picks, offset), chunk, context)
    }

    pub(super) fn receive_files(
        &mut self,
        flowop: &FlowopPlan,
        sizes: &FileSizes,
        context: &mut StrandContext<'_>,
    ) -> StepResult {
        let (began, picks, offset) = match std::mem::replace(&mut self.operation, StrandOperation::Idle) {
            StrandOperation::File { began, picks, offset } => (began, picks, offset),
            _ => {
                let positions = self.select_files(flowop, sizes.count, sizes.sizes.len());
                let picks =
                    positions.map(|position| SelectedFile { file: None, size: sizes.sizes[position] }).collect();
                (self.now, picks, 0)
            }
        };
        self.move_files(flowop, Side::Server, (began, picks, offset), None, context)
    }

    fn move_files(
        &mut self,
        flowop: &FlowopPlan,
        side: Side,
        (began, picks, mut offset): (Nanos, Vec<SelectedFile>, u64),
        chunk: Option<u32>,
        context: &mut StrandContext<'_>,
    ) -> StepResult {
        let file_message = FILE_MESSAGE;
        let total: u64 = picks.iter().map(|pick| pick.size).sum();
        let Some(open) = connections::find_connection(&mut self.open, flowop) else {
            return self.connection_not_open(flowop);
        };
        while offset < total {
            let (pick, within) = locate(&picks, offset);
            let left = pick.size - within;
            let length = chunk.map_or(left, |chunk| left.min(u64::from(chunk))) as usize;
            let (moved, intent) = match &pick.file {
                Some(file) => (open.transport.send_file(file, within, length, &file_message), Intent::Send),
                None => {
                    let room = length.min(context.buffer.len());
                    (open.transport.receive(&mut context.buffer[..room], &file_message), Intent::Receive)
                }
            };
            match moved {
                Ok(0) => {
                    let message = "the connection or the file ended prematurely";
                    return StepResult::Failed(super::io_error(ErrorKind::UnexpectedEof, message));
                }
                Ok(moved) if intent == Intent::Send => {
                    open.sent += moved as u64;
                    offset += moved as u64;
                }
                Ok(moved) => {
                    open.received += moved as u64;
                    offset += moved as u64;
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    let wait = open.transport.wait_condition(intent);
                    let done = self.signals.finish.load(std::sync::atomic::Ordering::Relaxed);
                    self.now = clock::now();
                    if self.is_over() || (done && intent == Intent::Send) {
                        return StepResult::TransactionOver;
                    }
                    self.operation = StrandOperation::File { began, picks, offset };
                    return StepResult::Wait(wait);
                }
                Err(error) => return StepResult::Failed(error),
            }
        }
        let (sent, received) = if side == Side::Client { (total, 0) } else { (0, total) };
        StepResult::Done { messages: 1, began, intended: None, sent, received }
    }

    fn open_files(&self, flowop: &FlowopPlan, files: &Files) -> io::Result<Vec<SelectedFile>> {
        let found = self.files.get(&flowop.id).map_or(&[][..], Vec::as_slice);
        self.select_files(flowop, files.count, found.len())
            .map(|position| {
                let (path, size) = &found[position];
                let add_path = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
                Ok(SelectedFile { file: Some(File::open(path).map_err(add_path)?), size: *size })
            })
            .collect()
    }

    fn select_files(&self, flowop: &FlowopPlan, count: u32, available: usize) -> impl Iterator<Item = usize> {
        let executions = flowop.flowop.executions();
        let execution = self.position.round.wrapping_mul(executions).wrapping_add(self.position.execution);
        let (seed, group, strand, id) = (self.seed, self.plan.index, self.index, flowop.id);
        (0..u64::from(count)).map(move |index| {
            let execution = execution.wrapping_mul(u64::from(count)).wrapping_add(index);
            RandomKey { seed, group, strand, flowop: id, execution }.uniform(0, available as u64 - 1) as usize
        })
    }
}

/// Finds the file at an offset into the concatenation of all files, and the offset within it.
fn locate(picks: &[SelectedFile], offset: u64) -> (&SelectedFile, u64) {
    let mut rest = offset;
    let mut file = &picks[0];
    for next in picks {
        file = next;
        if rest < next.size {
            break;
        }
        rest -= next.size;
    }
    (file, rest)
}

const FILE_MESSAGE: Message = Message::new(MessageSize::Fixed(1), SyscallFamily::SendRecv);
