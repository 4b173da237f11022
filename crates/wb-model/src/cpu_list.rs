//! Lists of CPUs or nodes in the kernel's format: `0-3,8,10-11`.

/// Limit of CPU numbers, far above the largest number of CPUs that a kernel can be built for.
const MAX_CPUS: u32 = 1 << 16;

/// Parses a list to sorted numbers without duplicates; `None` if it is invalid. The empty list is valid, and so are
/// strides: `0-8:1/2` (one of every two).
pub fn parse(text: &str) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for part in text.trim().split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (range, stride) = part.split_once(':').map_or((part, None), |(range, stride)| (range, Some(stride)));
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if last < first || last >= MAX_CPUS {
            return None;
        }
        let (used, group) = match stride {
            Some(stride) => {
                let (used, group) = stride.split_once('/')?;
                (used.parse().ok()?, group.parse().ok().filter(|group| *group > 0)?)
            }
            None => (1, 1),
        };
        numbers.extend((first..=last).filter(|number| (number - first) % group < used));
    }
    numbers.sort_unstable();
    numbers.dedup();
    Some(numbers)
}

/// Formats numbers as a list in the kernel's format: `0-3,8`. The inverse of [`parse`].
pub fn format(numbers: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let words =
        ranges.iter().map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") });
    words.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_strides_and_single_numbers_are_parsed() {
        assert_eq!(parse("0-3,8\n").unwrap(), [0, 1, 2, 3, 8]);
        assert_eq!(parse("0-7:1/2").unwrap(), [0, 2, 4, 6]);
        assert_eq!(parse("").unwrap(), [0u32; 0]);
        for bad in ["a", "3-1", "-", "0-4294967295", "0-7:1/0", "0-7:x"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn lists_survive_a_round_trip(numbers in proptest::collection::btree_set(0u32..5000, 0..50)) {
            let numbers: Vec<u32> = numbers.into_iter().collect();
            prop_assert_eq!(parse(&format(&numbers)).unwrap(), numbers);
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = parse(&text);
        }
    }
}
