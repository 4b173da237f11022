//! Parsers of the files of `/proc` that are read for several purposes, one for each file; the counters that only
//! telemetry reads are in [`crate::telemetry`], `/proc/PID/stat` is in [`crate::process::tree`].
//!
//! They take the text of a file, which may come from a fake root or from another machine, and ignore what they do not
//! know: a kernel may add lines and columns, and a container may hide some. The crate `procfs-core` (0.18) is not used:
//! it fails for the whole file when one field is missing, as in containers (meminfo, pressure, stat), or one line is
//! unusual (mountinfo), panics on a line that is cut (PID/stat), returns mount options without their order and CPU
//! times without the numbers of the CPUs, some of which may be offline, and allocates a map of all counters for each
//! reading of vmstat.

pub mod cgroup;
pub mod cpuinfo;
pub mod meminfo;
pub mod mountinfo;
pub mod pressure;
pub mod swaps;

/// Decodes the octal escapes of a name, such as `\040` for a space.
pub fn unescape(name: &str) -> String {
    let mut parts = name.split('\\');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code =
            part.split_at_checked(3).and_then(|(digits, rest)| Some((u8::from_str_radix(digits, 8).ok()?, rest)));
        let (character, rest) = code.map_or(('\\', part), |(byte, rest)| (char::from(byte), rest));
        text.push(character);
        text += rest;
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escaped_names_are_decoded() {
        assert_eq!(unescape("/my\\040swap\\134file"), "/my swap\\file");
        assert_eq!(unescape("a\\134040"), "a\\040");
        assert_eq!(unescape("/odd\\9"), "/odd\\9");
    }

    proptest! {
        #[test]
        fn arbitrary_input_does_not_panic_any_parser(text in "\\PC{0,80}|([0-9/a-z:,=\\\\-]{0,6}[ :\n]){0,20}") {
            let _ = unescape(&text);
            let _ = cgroup::memberships(&text).flat_map(cgroup::CgroupMembership::ancestors).count();
            let _ = (meminfo::sizes(&text).count(), mountinfo::mounts(&text).count(), swaps::areas(&text).count());
            let _ = pressure::value::<u64>(&text, pressure::StallKind::Some, "total");
        }
    }
}
