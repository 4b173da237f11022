//! A count of operations per sample: fixed, or as many as fill the sample's time.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use wb_model::Count;

/// Number of operations in one sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AutoCount {
    /// As many as fill the sample's time: calibrated once, then the same in every sample.
    #[default]
    Auto,
    Fixed(u64),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid count `{0}`: expected `auto` or a whole number above 0")]
pub struct ParseCountError(String);

impl FromStr for AutoCount {
    type Err = ParseCountError;

    fn from_str(text: &str) -> Result<Self, ParseCountError> {
        match text {
            "auto" => Ok(Self::Auto),
            number => match number.parse::<Count>() {
                Ok(Count(count)) if count > 0 => Ok(Self::Fixed(count)),
                _ => Err(ParseCountError(text.to_owned())),
            },
        }
    }
}

impl fmt::Display for AutoCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.pad("auto"),
            Self::Fixed(count) => write!(f, "{count}"),
        }
    }
}

impl Serialize for AutoCount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AutoCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for AutoCount {
    fn schema_name() -> Cow<'static, str> {
        "Count".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "count", "pattern": "^(auto|[0-9.]+([eE][+-]?[0-9]+)? ?[kmgtKMGT]?)$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_a_number_or_auto() {
        assert_eq!("auto".parse(), Ok(AutoCount::Auto));
        assert_eq!("10000000".parse(), Ok(AutoCount::Fixed(10_000_000)));
        for text in ["10M", "1e7", "10000k"] {
            assert_eq!(text.parse(), Ok(AutoCount::Fixed(10_000_000)), "{text}");
        }
        for text in ["0", "-1", "", "1.5", "many", "0k"] {
            assert!(text.parse::<AutoCount>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_test_names_the_parameter_with_an_invalid_count() {
        use wb_test::Test;
        let params = [("requests", "abc"), ("command", "set")];
        let params = params.map(|(name, value)| (name.to_owned(), wb_model::ParamValue::Text(value.to_owned()))).into();
        assert_eq!(
            std::sync::Arc::new(crate::redis::Redis).cell(&params).err().unwrap().to_string(),
            "`requests`: invalid count `abc`: expected `auto` or a whole number above 0"
        );
    }

    #[test]
    fn a_count_round_trips_through_json() {
        for count in [AutoCount::Auto, AutoCount::Fixed(7)] {
            let json = serde_json::to_string(&count).unwrap();
            assert_eq!(serde_json::from_str::<AutoCount>(&json).unwrap(), count);
        }
    }
}
