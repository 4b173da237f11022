//! Programs without what only debuggers and linkers read.
//!
//! What runs of an ELF file are the segments that its program headers name; sections (symbols, debug information) serve
//! tools. In a program that a linker has written, debug information and symbols lie behind the last segment; so a copy
//! up to there, whose header names no sections, runs as the whole file does (System V ABI, chapter 4, Object Files).

use std::io::{self, Read, Seek, SeekFrom};

/// The length of the file header of 64-bit files.
const HEADER_SIZE: usize = 64;
/// The length of a program header.
const PROGRAM_HEADER_SIZE: u64 = 56;
/// What a 64-bit little-endian file begins with.
const MAGIC: [u8; 6] = [0x7f, b'E', b'L', b'F', 2, 1];
/// Where the header says how many sections there are, and where.
const SECTION_FIELDS: [std::ops::Range<usize>; 2] = [40..48, 60..64];

/// The part of a program that runs; none of a file that is no such program, or has nothing else.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn strip(file: &mut (impl Read + Seek)) -> io::Result<Option<Vec<u8>>> {
    let length = file.seek(SeekFrom::End(0))?;
    let Some(header) = read_range(file, 0, HEADER_SIZE as u64, length)? else { return Ok(None) };
    let count = u64::from(u16::from_le_bytes([header[56], header[57]]));
    let is_known = header.starts_with(&MAGIC) && header[54..56] == (PROGRAM_HEADER_SIZE as u16).to_le_bytes();
    if !is_known || count == 0 || count == u64::from(u16::MAX) {
        return Ok(None);
    }
    let first = read_u64(&header, 32);
    let Some(segments) = read_range(file, first, count * PROGRAM_HEADER_SIZE, length)? else { return Ok(None) };
    let ends = segments
        .chunks(PROGRAM_HEADER_SIZE as usize)
        .map(|segment| read_u64(segment, 8).checked_add(read_u64(segment, 32)));
    let Some(end) = ends.chain([Some(first + count * PROGRAM_HEADER_SIZE)]).collect::<Option<Vec<u64>>>() else {
        return Ok(None);
    };
    let end = end.into_iter().max().unwrap_or(length);
    if end >= length {
        return Ok(None);
    }
    let mut stripped = read_range(file, 0, end, length)?;
    if let Some(stripped) = &mut stripped {
        SECTION_FIELDS.into_iter().for_each(|fields| stripped[fields].fill(0));
    }
    Ok(stripped)
}

/// Some bytes of a file; none where it has not so many.
fn read_range(file: &mut (impl Read + Seek), start: u64, size: u64, length: u64) -> io::Result<Option<Vec<u8>>> {
    if start.checked_add(size).is_none_or(|end| end > length) {
        return Ok(None);
    }
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(size).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 == size).then_some(bytes))
}

fn read_u64(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_program_loses_what_does_not_run_and_a_script_nothing() {
        let mut own = File::open("/proc/self/exe").unwrap();
        let whole = own.metadata().unwrap().len();
        let stripped = strip(&mut own).unwrap().unwrap();
        assert!((stripped.len() as u64) < whole / 2, "{} of {whole}", stripped.len());
        assert_eq!(super::strip(&mut Cursor::new(&stripped)).unwrap(), None, "nothing is left to lose");
        assert_eq!(super::strip(&mut Cursor::new(b"#!/bin/sh\n")).unwrap(), None);
    }

    proptest! {
        #[test]
        fn no_header_panics(mut bytes in proptest::collection::vec(any::<u8>(), 64..400), at in 0_u64..80, count in 0_u16..4) {
            bytes[..6].copy_from_slice(&MAGIC);
            bytes[32..40].copy_from_slice(&at.to_le_bytes());
            bytes[54..56].copy_from_slice(&56_u16.to_le_bytes());
            bytes[56..58].copy_from_slice(&count.to_le_bytes());
            let _ = strip(&mut Cursor::new(&bytes));
        }
    }
}
