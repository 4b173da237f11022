//! The checksum of a line of the journal: `,"crc32":"01234567"}` at its end. Without it, a flipped bit turned a
//! disturbed sample into an undisturbed one in silence.

/// What precedes the digits.
const FIELD: &[u8] = br#","crc32":""#;
/// What follows the digits.
const END: &[u8] = br#""}"#;
const DIGITS: usize = 8;

/// Adds the checksum to a JSON object and ends the line.
pub(crate) fn seal(mut object: Vec<u8>) -> Vec<u8> {
    debug_assert_eq!(object.last(), Some(&b'}'), "a line is an object");
    object.pop();
    let digits = digits(&object);
    object.extend([FIELD, digits.as_bytes(), END, b"\n"].concat());
    object
}

/// Whether the checksum of a line is right; `None` if it has none. The line is without its line feed.
pub(crate) fn verify(line: &[u8]) -> Option<bool> {
    let (object, recorded) = line.strip_suffix(END)?.split_last_chunk::<DIGITS>()?;
    let object = object.strip_suffix(FIELD)?;
    Some(digits(object).as_bytes() == recorded)
}

fn digits(text: &[u8]) -> String {
    format!("{:0DIGITS$x}", crc32fast::hash(text))
}
