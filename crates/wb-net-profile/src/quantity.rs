//! Parsers of quantities in profiles: sizes, durations, rates and counts.

use wb_diagnostics::Diagnostic;

use std::ops::RangeInclusive;
use std::time::Duration;

/// A quantity, and a note if its notation is ambiguous.
pub(super) type WithNote<T> = (T, Option<String>);

const GIB: u128 = 1 << 30;
const SECOND: u128 = 1_000_000_000;
const MAX_DURATION: u128 = 366 * 24 * 3600 * SECOND;
/// The range of rates, per second: their intervals can be represented in nanoseconds.
const RATE_RANGE: RangeInclusive<f64> = 1e-6..=1e9;

/// Parses a size in bytes: a number with `b`, `k`, `m` or `g`, in powers of 1024; from 1 byte to 1 GiB.
pub(super) fn parse_size(text: &str) -> Result<u32, Diagnostic> {
    let help = "expected a number of bytes, with k, m or g for powers of 1024: 64, 1.5k, 8k, 1m";
    let invalid = || Diagnostic::labelled(format!("invalid size `{text}`"), "not a size").with_help(help);
    let number = Number::split(text).ok_or_else(invalid)?;
    let bytes = number.scaled_by(binary_prefix(number.suffix).ok_or_else(invalid)?);
    let in_range = (1..=GIB).contains(&bytes);
    in_range.then_some(bytes as u32).ok_or_else(|| {
        Diagnostic::labelled(format!("size `{text}` out of range"), "out of range")
            .with_help("expected at least 1 byte and at most 1 GiB")
    })
}

fn binary_prefix(suffix: &str) -> Option<u128> {
    match suffix.to_ascii_lowercase().as_str() {
        "" | "b" => Some(1),
        "k" | "kb" | "kib" => Some(1 << 10),
        "m" | "mb" | "mib" => Some(1 << 20),
        "g" | "gb" | "gib" => Some(1 << 30),
        _ => None,
    }
}

/// Parses a duration: a number with `ns`, `us`, `ms`, `s` or `min`, by default seconds. A lone `m` means milliseconds.
pub(super) fn parse_duration(text: &str) -> Result<WithNote<Duration>, Diagnostic> {
    let help = "expected a number of seconds, or one with ns, us, ms, s or min: 500us, 10ms, 1.5s, 30";
    let invalid = || Diagnostic::labelled(format!("invalid duration `{text}`"), "not a duration").with_help(help);
    let number = Number::split(text).ok_or_else(invalid)?;
    let unit = match number.suffix.to_ascii_lowercase().as_str() {
        "n" | "ns" | "nsec" | "nsecs" | "nanosecond" | "nanoseconds" => 1,
        "u" | "us" | "µs" | "usec" | "usecs" | "microsecond" | "microseconds" => 1_000,
        "m" | "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => 1_000_000,
        "" | "s" | "sec" | "secs" | "second" | "seconds" => SECOND,
        "min" | "mins" | "minute" | "minutes" => 60 * SECOND,
        _ => return Err(invalid()),
    };
    let nanoseconds = number.scaled_by(unit);
    if nanoseconds == 0 {
        return Err(Diagnostic::labelled(format!("invalid duration `{text}`"), "must be more than 0").with_help(help));
    }
    if nanoseconds > MAX_DURATION {
        return Err(Diagnostic::labelled(format!("duration `{text}` out of range"), "out of range")
            .with_help("expected at most one year"));
    }
    let digits = number.digits;
    let note = number
        .suffix
        .eq_ignore_ascii_case("m")
        .then(|| format!("`{text}` means {digits} milliseconds, as in uperf: write {digits}ms or {digits}min"));
    Ok((Duration::from_nanos(nanoseconds as u64), note))
}

/// Parses a rate per second: a number, with `k` or `m` in powers of 1024, as in uperf.
pub(super) fn parse_rate(text: &str) -> Result<WithNote<f64>, Diagnostic> {
    let help = "expected a number per second, more than 0";
    let invalid = || Diagnostic::labelled(format!("invalid rate `{text}`"), "not a rate").with_help(help);
    let number = Number::split(text).ok_or_else(invalid)?;
    let factor = match number.suffix.to_ascii_lowercase().as_str() {
        "" => 1.0,
        "k" => 1024.0,
        "m" => 1024.0 * 1024.0,
        _ => return Err(invalid()),
    };
    let rate = number.digits.parse::<f64>().map_err(|_| invalid())? * factor;
    if rate <= 0.0 {
        return Err(invalid());
    }
    if !RATE_RANGE.contains(&rate) {
        let help = "expected at least one per million seconds and at most one per nanosecond";
        return Err(Diagnostic::labelled(format!("rate `{text}` out of range"), "out of range").with_help(help));
    }
    let note = (factor > 1.0).then(|| format!("a rate of `{text}` means {rate} per second, as in uperf"));
    Ok((rate, note))
}

/// Parses an integer. `10k` is rejected here, because uperf does not read it as 10240 everywhere.
pub(super) fn parse_integer(text: &str, range: RangeInclusive<u64>) -> Result<u64, Diagnostic> {
    check_range(text, text.trim().parse().ok().filter(|_| text.trim().starts_with(|c: char| c.is_ascii_digit())), range)
}

/// Parses a type of service or traffic class: a byte in decimal, hexadecimal (0x…) or octal (0…), as iperf3 and ping do.
pub fn parse_type_of_service(text: &str) -> Option<u8> {
    let text = text.trim();
    let parsed = match (text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")), text.strip_prefix('0')) {
        (Some(hex), _) => u8::from_str_radix(hex, 16),
        (None, Some(octal)) if !octal.is_empty() => u8::from_str_radix(octal, 8),
        _ => text.parse(),
    };
    parsed.ok().filter(|_| !text.contains('+'))
}

/// Parses an integer, with `k` or `m` for powers of 1024 where uperf accepts them.
pub(super) fn parse_scaled_integer(text: &str, range: RangeInclusive<u64>) -> Result<u64, Diagnostic> {
    let number = || {
        let number = Number::split(text)?;
        let factor = match number.suffix.to_ascii_lowercase().as_str() {
            "" => 1,
            "k" => 1 << 10,
            "m" => 1 << 20,
            _ => return None,
        };
        number.digits.parse::<u64>().ok()?.checked_mul(factor)
    };
    check_range(text, number(), range)
}

fn check_range(text: &str, number: Option<u64>, range: RangeInclusive<u64>) -> Result<u64, Diagnostic> {
    let (min, max) = (range.start(), range.end());
    let help = match *max {
        u64::MAX => format!("expected an integer of at least {min}"),
        max => format!("expected an integer from {min} to {max}"),
    };
    match number {
        None => Err(Diagnostic::labelled(format!("invalid integer `{text}`"), "not an integer").with_help(help)),
        Some(number) if range.contains(&number) => Ok(number),
        Some(_) => Err(Diagnostic::labelled(format!("integer `{text}` out of range"), "out of range").with_help(help)),
    }
}

/// A number split into digits, perhaps with a decimal point, and a suffix.
struct Number<'a> {
    digits: &'a str,
    suffix: &'a str,
}

impl<'a> Number<'a> {
    fn split(text: &'a str) -> Option<Self> {
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (digits, suffix) = text.split_at(end);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let has_digits = !whole.is_empty() || !fraction.is_empty();
        (has_digits && !fraction.contains('.')).then_some(Self { digits, suffix })
    }

    /// The integer part of its product with `unit`; `u128::MAX` if it is too long to be exact.
    fn scaled_by(&self, unit: u128) -> u128 {
        let (whole, fraction) = self.digits.split_once('.').unwrap_or((self.digits, ""));
        let fraction = &fraction[..fraction.len().min(18)];
        let scale = 10_u128.pow(fraction.len() as u32);
        let parsed = |digits: &str| if digits.is_empty() { Some(0) } else { digits.parse::<u128>().ok() };
        let whole = parsed(whole).and_then(|whole| whole.checked_mul(unit));
        let part = parsed(fraction).map(|part| part * unit / scale);
        whole.zip(part).and_then(|(whole, part)| whole.checked_add(part)).unwrap_or(u128::MAX)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_are_in_powers_of_1024() {
        let read = |text| parse_size(text).ok();
        assert_eq!(read("64"), Some(64));
        assert_eq!(read("1.5k"), Some(1536));
        assert_eq!(read("8K"), Some(8192));
        assert_eq!(read("1g"), Some(1 << 30));
        assert_eq!([read("0"), read("1.1g"), read("8q"), read("-1"), read(""), read("."), read("1e3")], [None; 7]);
    }

    #[test]
    fn durations_have_units() {
        let read = |text| parse_duration(text).ok().map(|(time, _)| time);
        assert_eq!(read("30"), Some(Duration::from_secs(30)));
        assert_eq!(read("1.5s"), Some(Duration::from_millis(1500)));
        assert_eq!(read("5msec"), Some(Duration::from_millis(5)));
        assert_eq!(read("5min"), Some(Duration::from_secs(300)));
        assert_eq!(read("20NS"), Some(Duration::from_nanos(20)));
        assert_eq!([read("0"), read("0.1ns"), read("5x"), read("5 parsecs"), read("9999999999999")], [None; 5]);
    }

    #[test]
    fn five_m_are_milliseconds_with_a_note() {
        let (five, note) = parse_duration("5m").expect("a time");
        assert_eq!(five, Duration::from_millis(5));
        assert_eq!(note.as_deref(), Some("`5m` means 5 milliseconds, as in uperf: write 5ms or 5min"));
    }

    #[test]
    fn rates_have_suffixes_in_powers_of_1024() {
        assert_eq!(parse_rate("2.5").map(|(rate, _)| rate), Ok(2.5));
        assert_eq!(parse_rate("1k"), Ok((1024.0, Some("a rate of `1k` means 1024 per second, as in uperf".into()))));
        assert!(parse_rate("0").is_err() && parse_rate("-1").is_err() && parse_rate("10ms").is_err());
    }

    #[test]
    fn a_type_of_service_may_be_hexadecimal_or_octal() {
        let texts = ["16", "0x10", "0X10", "020", " 0 ", "255", "0xff"].map(parse_type_of_service);
        assert_eq!(texts, [Some(16), Some(16), Some(16), Some(16), Some(0), Some(255), Some(255)]);
        assert_eq!(["256", "0x100", "08", "+1", "0x", "", "1k", "-1"].map(parse_type_of_service), [None; 8]);
    }

    proptest! {
        #[test]
        fn sizes_round_trip(bytes in 1_u32..=1 << 20) {
            prop_assert_eq!(parse_size(&bytes.to_string()), Ok(bytes));
            prop_assert_eq!(parse_size(&format!("{bytes}b")), Ok(bytes));
            let kibibytes = f64::from(bytes) / 1024.0;
            prop_assert_eq!(parse_size(&format!("{kibibytes}k")).ok(), Some(bytes).filter(|_| kibibytes >= 1.0 / 1024.0));
        }

        #[test]
        fn durations_round_trip(nanoseconds in 1_u64..=10_000_000_000_000_000) {
            let expected = Duration::from_nanos(nanoseconds);
            prop_assert_eq!(parse_duration(&format!("{nanoseconds}ns")), Ok((expected, None)));
            let (seconds, rest) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
            prop_assert_eq!(parse_duration(&format!("{seconds}.{rest:09}s")), Ok((expected, None)));
        }

        #[test]
        fn arbitrary_text_does_not_panic(text in "[0-9.]{0,40}[a-zµ]{0,3}") {
            let _ = (parse_size(&text), parse_duration(&text), parse_rate(&text), parse_integer(&text, 0..=9), parse_scaled_integer(&text, 0..=9));
        }
    }
}
