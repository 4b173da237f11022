//! Where the values of a TOML or YAML text are.

use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use wb_diagnostics::SourceText;

use super::entry_error::Step;

/// The place of a value, and those of what is in it.
pub(super) struct Places {
    span: Range<usize>,
    inner: Vec<(Step, Self)>,
}

impl Places {
    /// `None` if the text is not TOML.
    pub(super) fn from_toml(source: &SourceText) -> Option<Self> {
        let table = DeTable::parse(&source.text).ok()?;
        Some(Self { span: table.span(), inner: toml_table(table.get_ref()) })
    }

    /// `None` if the text is not YAML, or if a key is not a text.
    pub(super) fn from_yaml(source: &SourceText) -> Option<Self> {
        let value: serde_saphyr::Spanned<YamlValue> = serde_saphyr::from_str(&source.text).ok()?;
        Some(yaml_places(&value, source))
    }

    /// The place of a value; of the innermost value around it if the path leads to none.
    pub(super) fn find(&self, path: &[Step]) -> Range<usize> {
        let inner = path.split_first().and_then(|(step, rest)| {
            let (_, places) = self.inner.iter().find(|(own, _)| own == step)?;
            Some(places.find(rest))
        });
        inner.unwrap_or_else(|| self.span.clone())
    }
}

fn toml_table(table: &DeTable<'_>) -> Vec<(Step, Places)> {
    table.iter().map(|(key, value)| (Step::from(key.get_ref().as_ref()), toml_places(value))).collect()
}

fn toml_places(value: &Spanned<DeValue<'_>>) -> Places {
    let inner = match value.get_ref() {
        DeValue::Table(table) => toml_table(table),
        DeValue::Array(items) => {
            items.iter().enumerate().map(|(index, item)| (Step::Item(index), toml_places(item))).collect()
        }
        _ => Vec::new(),
    };
    Places { span: value.span(), inner }
}

enum YamlValue {
    Mapping(Vec<(String, serde_saphyr::Spanned<Self>)>),
    Sequence(Vec<serde_saphyr::Spanned<Self>>),
    Scalar,
}

fn yaml_places(value: &serde_saphyr::Spanned<YamlValue>, source: &SourceText) -> Places {
    let location = &value.referenced;
    let inner = match &value.value {
        YamlValue::Mapping(entries) => {
            entries.iter().map(|(key, value)| (Step::from(key.as_str()), yaml_places(value, source))).collect()
        }
        YamlValue::Sequence(items) => {
            items.iter().enumerate().map(|(index, item)| (Step::Item(index), yaml_places(item, source))).collect()
        }
        YamlValue::Scalar => Vec::new(),
    };
    Places { span: source.rest_of_line(location.line(), location.column()).unwrap_or(0..0), inner }
}

impl<'de> Deserialize<'de> for YamlValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(YamlVisitor)
    }
}

struct YamlVisitor;

impl<'de> Visitor<'de> for YamlVisitor {
    type Value = YamlValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<YamlValue, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(YamlValue::Mapping(entries))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<YamlValue, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = sequence.next_element()? {
            items.push(item);
        }
        Ok(YamlValue::Sequence(items))
    }

    fn visit_bool<E>(self, _: bool) -> Result<YamlValue, E> {
        Ok(YamlValue::Scalar)
    }

    fn visit_i64<E>(self, _: i64) -> Result<YamlValue, E> {
        Ok(YamlValue::Scalar)
    }

    fn visit_u64<E>(self, _: u64) -> Result<YamlValue, E> {
        Ok(YamlValue::Scalar)
    }

    fn visit_f64<E>(self, _: f64) -> Result<YamlValue, E> {
        Ok(YamlValue::Scalar)
    }

    fn visit_str<E>(self, _: &str) -> Result<YamlValue, E> {
        Ok(YamlValue::Scalar)
    }

    fn visit_unit<E>(self) -> Result<YamlValue, E> {
        Ok(YamlValue::Scalar)
    }

    fn visit_none<E>(self) -> Result<YamlValue, E> {
        Ok(YamlValue::Scalar)
    }

    fn visit_i128<E>(self, _: i128) -> Result<YamlValue, E> {
        Ok(YamlValue::Scalar)
    }

    fn visit_u128<E>(self, _: u128) -> Result<YamlValue, E> {
        Ok(YamlValue::Scalar)
    }

    fn visit_bytes<E>(self, _: &[u8]) -> Result<YamlValue, E> {
        Ok(YamlValue::Scalar)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<YamlValue, D::Error> {
        deserializer.deserialize_any(self)
    }
}
