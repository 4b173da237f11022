//! Numbers in pbench's format: as numbers, as text, or missing.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

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
        deserializer.deserialize_any(PbenchNumberVisitor)
    }
}

struct PbenchNumberVisitor;

impl<'de> Visitor<'de> for PbenchNumberVisitor {
    type Value = PbenchNumber;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_f64<E>(self, value: f64) -> Result<PbenchNumber, E> {
        Ok(PbenchNumber(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<PbenchNumber, E> {
        Ok(PbenchNumber((value as f64).into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<PbenchNumber, E> {
        Ok(PbenchNumber((value as f64).into()))
    }

    fn visit_str<E>(self, text: &str) -> Result<PbenchNumber, E> {
        Ok(PbenchNumber(text.trim().parse::<f64>().map_or(MeasuredValue::Invalid, MeasuredValue::from)))
    }

    fn visit_unit<E>(self) -> Result<PbenchNumber, E> {
        Ok(PbenchNumber(MeasuredValue::Missing))
    }

    fn visit_bool<E>(self, _: bool) -> Result<PbenchNumber, E> {
        Ok(PbenchNumber(MeasuredValue::Invalid))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<PbenchNumber, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(PbenchNumber(MeasuredValue::Invalid))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PbenchNumber, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(PbenchNumber(MeasuredValue::Invalid))
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
