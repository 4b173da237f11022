//! `/proc/swaps` (proc_swaps(5)).

use wb_model::Bytes;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwapArea<'a> {
    /// Its path as the kernel writes it: see [`unescape`](super::unescape).
    pub name: &'a str,
    pub size: Bytes,
    /// Priority. Higher ones are used first; negative ones are assigned by the kernel in descending order.
    pub priority: i64,
}

/// The swap areas in the order of the file; the error is an invalid line.
pub fn areas(text: &str) -> impl Iterator<Item = Result<SwapArea<'_>, &str>> {
    text.lines().skip(1).map(|line| parse_line(line).ok_or(line))
}

fn parse_line(line: &str) -> Option<SwapArea<'_>> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [name, .., kilobytes, _, priority] = fields[..] else { return None };
    let kilobytes: u64 = kilobytes.parse().ok()?;
    Some(SwapArea { name, size: Bytes(kilobytes.saturating_mul(1024)), priority: priority.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_has_a_size_and_a_priority() {
        let text = "Filename\tType\tSize\tUsed\tPriority\n/dev/a   partition\t8\t0\t-2\n/b file 1 0 high\n";
        let found: Vec<_> = areas(text).collect();
        assert_eq!(found[0], Ok(SwapArea { name: "/dev/a", size: Bytes(8 << 10), priority: -2 }));
        assert_eq!(found[1], Err("/b file 1 0 high"));
    }
}
