//! Strips symbols and debug information from ELF programs. Only the segments named by the program headers are loaded;
//! sections (symbols, debug information) serve tools, and linkers place them after the last segment. So a copy up to
//! there whose header names no sections runs like the complete file (System V ABI, chapter 4, Object Files).

use std::io::{self, Read, Seek, SeekFrom};

/// Length of the file header of 64-bit files, in bytes.
const HEADER_SIZE: usize = 64;
/// Length of a program header, in bytes.
const PROGRAM_HEADER_SIZE: u64 = 56;
/// Magic bytes of a 64-bit little-endian file.
const MAGIC: [u8; 6] = [0x7f, b'E', b'L', b'F', 2, 1];
/// Ranges of the header that hold the offset and the number of the sections.
const SECTION_FIELDS: [std::ops::Range<usize>; 2] = [40..48, 60..64];

/// A stripped copy of a program; none if the file is not an ELF program, or has nothing to strip.
pub(crate) fn strip(file: &mut (impl Read + Seek)) -> io::Result<Option<Vec<u8>>> {
    let length = file.seek(SeekFrom::End(0))?;
    let Some(header) = read_range(file, 0, HEADER_SIZE as u64, length)? else { return Ok(None) };
    let count = u64::from(u16::from_le_bytes([header[56], header[57]]));
    let is_supported = header.starts_with(&MAGIC) && header[54..56] == (PROGRAM_HEADER_SIZE as u16).to_le_bytes();
    if !is_supported || count == 0 || count == u64::from(u16::MAX) {
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

/// Reads a range of a file; none if the file is shorter.
fn read_range(file: &mut (impl Read + Seek), start: u64, size: u64, length: u64) -> io::Result<Option<Vec<u8>>> {
    if start.checked_add(size).is_none_or(|end| end > length) {
        return Ok(None);
    }
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(size).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 == size).then_some(bytes))
}

fn read_u64(bytes: &[u8], position: usize) -> u64 {
    bytes[position..position + 8].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_program_is_stripped_and_a_script_is_not() {
        let mut own = File::open("/proc/self/exe").unwrap();
        let size = own.metadata().unwrap().len();
        let stripped = strip(&mut own).unwrap().unwrap();
        assert!((stripped.len() as u64) < size, "{} of {size}", stripped.len());
        assert_eq!(super::strip(&mut Cursor::new(&stripped)).unwrap(), None, "nothing is left to strip");
        assert_eq!(super::strip(&mut Cursor::new(b"#!/bin/sh\n")).unwrap(), None);
    }

    proptest! {
        #[test]
        fn no_header_panics(mut bytes in proptest::collection::vec(any::<u8>(), 64..400), position in 0_u64..80, count in 0_u16..4) {
            bytes[..6].copy_from_slice(&MAGIC);
            bytes[32..40].copy_from_slice(&position.to_le_bytes());
            bytes[54..56].copy_from_slice(&56_u16.to_le_bytes());
            bytes[56..58].copy_from_slice(&count.to_le_bytes());
            let _ = strip(&mut Cursor::new(&bytes));
        }
    }
}
