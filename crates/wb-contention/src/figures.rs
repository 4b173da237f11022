//! Figures of the tables: four characters and a unit, as resctl-bench writes them, so that its users read both alike.
//!
//! Elsewhere figures have three significant digits (`wb_model::Unit`).

/// Powers of 1024.
const SIZES: [&str; 5] = ["K", "M", "G", "T", "P"];
/// Times: length in nanoseconds, the number from which the next is used, and the unit; M, H, D, Y: minutes to years.
const TIMES: [(f64, f64, &str); 8] = [
    (1.0, 1000.0, "n"),
    (1e3, 1000.0, "u"),
    (1e6, 1000.0, "m"),
    (1e9, 60.0, "s"),
    (60e9, 60.0, "M"),
    (3600e9, 24.0, "H"),
    (86_400e9, 365.0, "D"),
    (31_536_000e9, 1000.0, "Y"),
];
/// Values from here have no decimal: with one, they would be rounded to 100.0.
const NO_DECIMAL: f64 = 99.95;

/// A number with its unit: one decimal below 100.
fn short(value: f64, unit: &str) -> String {
    if value < NO_DECIMAL { format!("{:.1}{unit}", value.max(0.1)) } else { format!("{value:.0}{unit}") }
}

/// A size in bytes: `11.0G`, `477G`; plain bytes below 9999.
pub fn size(bytes: f64) -> String {
    if bytes < 9999.0 {
        return format!("{:.0}", bytes.max(0.0));
    }
    let mut value = bytes;
    for unit in SIZES {
        value /= 1024.0;
        if value < 1024.0 {
            return short(value, unit);
        }
    }
    short(value, SIZES[SIZES.len() - 1])
}

/// A time in nanoseconds: `5.0u`, `155u`, `12.5m`; `0` for none.
pub fn duration(nanoseconds: f64) -> String {
    let nanoseconds = nanoseconds.round();
    if nanoseconds <= 0.0 {
        return "0".to_owned();
    }
    let fits = |(length, most, _): &(f64, f64, &str)| nanoseconds / length < *most;
    let (length, _, unit) = TIMES.into_iter().find(fits).unwrap_or(TIMES[TIMES.len() - 1]);
    short(nanoseconds / length, unit)
}

/// A ratio in percent without its sign: `9.10`, `100.0`, `2848`; `0` for none.
pub fn percent(ratio: f64) -> String {
    let percent = ratio * 100.0;
    if percent == 0.0 {
        "0".to_owned()
    } else if percent.abs() < 99.995 {
        format!("{percent:.2}")
    } else if percent.abs() < 999.95 {
        format!("{percent:.1}")
    } else {
        format!("{percent:.0}")
    }
}

pub fn underlined(title: &str, line: char) -> String {
    format!("{title}\n{}\n", line.to_string().repeat(title.chars().count()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_one_decimal_below_100() {
        let gib = f64::from(1 << 30);
        assert_eq!([size(0.0), size(9998.0), size(11.0 * gib)], ["0", "9998", "11.0G"]);
        assert_eq!([size(477.3 * gib), size(99.96 * gib), size(1024.0 * gib)], ["477G", "100G", "1.0T"]);
    }

    #[test]
    fn times_have_the_largest_unit_that_gives_at_least_one() {
        let figures = [5e3, 99.94e3, 99.95e3, 1.5e6, 250e6, 2e9, 90e9].map(duration);
        assert_eq!(figures, ["5.0u", "99.9u", "100u", "1.5m", "250m", "2.0s", "1.5M"]);
        assert_eq!([duration(0.0), duration(0.4), duration(1.0)], ["0", "0", "1.0n"]);
    }

    #[test]
    fn percentages_lose_decimals_as_they_grow() {
        assert_eq!(
            [0.0, 0.0910, 0.99994, 0.99996, 1.219, 28.48].map(percent),
            ["0", "9.10", "99.99", "100.0", "121.9", "2848"]
        );
    }
}
