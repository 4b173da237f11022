//! Numbers as other programs write them: also as text, or invalid.

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny};

/// Parses a finite number, with a point or a comma before its decimals. Refuses a comma that may separate thousands.
pub fn parse_number(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let decimals = text.split_once(',').map(|(_, rest)| rest.bytes().take_while(u8::is_ascii_digit).count());
    if decimals == Some(3) {
        return Err(format!("`{text}` is ambiguous: expected no comma before three digits"));
    }
    let number = text.replacen(',', ".", 1).parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| format!("invalid number `{text}`"))
}

/// A finite number, also in quotes ([`parse_number`]); `None` for any other value, and by default for a missing one.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LenientNumber(pub Option<f64>);

impl<'de> Deserialize<'de> for LenientNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(f64),
            Text(String),
            Other(IgnoredAny),
        }
        let number = match Written::deserialize(deserializer)? {
            Written::Number(number) => Some(number),
            Written::Text(text) => parse_number(&text).ok(),
            Written::Other(_) => None,
        };
        Ok(Self(number.filter(|number| number.is_finite())))
    }
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

    #[test]
    fn numbers_may_be_in_quotes() {
        let parse = |text: &str| serde_json::from_str::<LenientNumber>(text).unwrap().0;
        assert_eq!(
            [parse("1"), parse("\" 1.5 \""), parse("\"odd\""), parse("null")],
            [Some(1.0), Some(1.5), None, None]
        );
        assert_eq!([parse("[1]"), parse("\"inf\"")], [None, None]);
    }
}
