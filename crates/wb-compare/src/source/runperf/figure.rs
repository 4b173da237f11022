//! Numbers as pbench writes them: as numbers, as text, or not at all.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::build::Value;

/// A number of a file; whatever is no finite number is an invalid value, not a malformed file.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Figure(pub(crate) Value);

impl Figure {
    pub(crate) fn is_missing(&self) -> bool {
        self.0 == Value::Missing
    }
}

/// A number is written so that the same one is read again.
impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Known(value) => serializer.serialize_f64(value),
            Value::Invalid => serializer.serialize_str("invalid"),
            Value::Missing => serializer.serialize_none(),
        }
    }
}

impl<'de> Deserialize<'de> for Figure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FigureVisitor)
    }
}

struct FigureVisitor;

impl<'de> Visitor<'de> for FigureVisitor {
    type Value = Figure;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_f64<E>(self, value: f64) -> Result<Figure, E> {
        Ok(Figure(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Figure, E> {
        Ok(Figure((value as f64).into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Figure, E> {
        Ok(Figure((value as f64).into()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Figure, E> {
        Ok(Figure(text.trim().parse::<f64>().map_or(Value::Invalid, Value::from)))
    }

    fn visit_unit<E>(self) -> Result<Figure, E> {
        Ok(Figure(Value::Missing))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Figure, E> {
        Ok(Figure(Value::Invalid))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Figure, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Figure(Value::Invalid))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Figure, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Figure(Value::Invalid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_no_finite_number_is_invalid() {
        let read = |text: &str| serde_json::from_str::<Figure>(text).unwrap().0;
        assert_eq!(read("1.5"), Value::Known(1.5));
        assert_eq!(read("-3"), Value::Known(-3.0));
        assert_eq!(read("\" 2.5\""), Value::Known(2.5));
        assert_eq!(read("null"), Value::Missing);
        for invalid in ["\"nan\"", "\"inf\"", "\"odd\"", "true", "[1, 2]", "{\"a\": 1}"] {
            assert_eq!(read(invalid), Value::Invalid, "{invalid}");
        }
    }
}
