//! Numbers that other programs write as text.

/// Parses a finite number, with a point or a comma before its decimals.
///
/// # Errors
/// Why it is no number: also if a comma may separate thousands.
pub(crate) fn parse_number(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let decimals = text.split_once(',').map(|(_, rest)| rest.bytes().take_while(u8::is_ascii_digit).count());
    if decimals == Some(3) {
        return Err(format!("`{text}` is ambiguous: expected no comma before three digits"));
    }
    let number = text.replacen(',', ".", 1).parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| format!("invalid number `{text}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_is_decimal_unless_it_may_separate_thousands() {
        for (text, expected) in [("12,5", 12.5), (" 12.5 ", 12.5), ("0,1234", 0.1234), ("-1,25e2", -125.0), ("7", 7.0)]
        {
            assert_eq!(parse_number(text), Ok(expected));
        }
        for text in ["1,234", "0,125", "1,234,567", "1,234.5"] {
            assert_eq!(
                parse_number(text),
                Err(format!("`{text}` is ambiguous: expected no comma before three digits"))
            );
        }
        for text in ["", "x", "NaN", "inf", "1.234,5", "1,2,3"] {
            assert_eq!(parse_number(text), Err(format!("invalid number `{text}`")));
        }
    }
}
