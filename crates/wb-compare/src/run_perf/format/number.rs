//! Numbers in pbench's format: as numbers, as text, or missing.

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};
use serde_json::Value;

use crate::build::MeasuredValue;

/// A number of a file. Anything but a finite number is an invalid value, not a malformed file.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct PbenchNumber(pub(crate) MeasuredValue);

impl PbenchNumber {
    pub(crate) fn is_missing(&self) -> bool {
        self.0 == MeasuredValue::Missing
    }
}

/// Written so that the same number is read again.
impl Serialize for PbenchNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            MeasuredValue::Known(value) => serializer.serialize_f64(value),
            MeasuredValue::Invalid => serializer.serialize_str("invalid"),
            MeasuredValue::Missing => serializer.serialize_none(),
        }
    }
}

impl<'de> Deserialize<'de> for PbenchNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match Value::deserialize(deserializer)? {
            Value::Null => MeasuredValue::Missing,
            Value::Number(number) => number.as_f64().map_or(MeasuredValue::Invalid, MeasuredValue::from),
            Value::String(text) => text.trim().parse::<f64>().map_or(MeasuredValue::Invalid, MeasuredValue::from),
            Value::Bool(_) | Value::Array(_) | Value::Object(_) => MeasuredValue::Invalid,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anything_but_a_finite_number_is_invalid() {
        let read = |text: &str| serde_json::from_str::<PbenchNumber>(text).unwrap().0;
        assert_eq!(read("1.5"), MeasuredValue::Known(1.5));
        assert_eq!(read("-3"), MeasuredValue::Known(-3.0));
        assert_eq!(read("\" 2.5\""), MeasuredValue::Known(2.5));
        assert_eq!(read("null"), MeasuredValue::Missing);
        for invalid in ["\"nan\"", "\"inf\"", "\"odd\"", "true", "[1, 2]", "{\"a\": 1}"] {
            assert_eq!(read(invalid), MeasuredValue::Invalid, "{invalid}");
        }
    }
}
