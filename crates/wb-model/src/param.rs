//! Parameters of tests: values, kinds, and declaration by a typed struct.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Deref;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::quantity::ParseQuantityError;
use crate::{Bytes, Count, Nanos, cpu_list};

/// Value of a parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ParamValue {
    /// A boolean.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// Any number.
    Number(f64),
    /// A text, a size (`4k`) or a time (`5s`).
    Text(String),
    /// A list.
    List(Vec<ParamValue>),
}

pub type Params = BTreeMap<String, ParamValue>;

impl fmt::Display for ParamValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Number(value) => write!(f, "{value}"),
            Self::Text(value) => write!(f, "{value}"),
            Self::List(values) => {
                let texts: Vec<String> = values.iter().map(ParamValue::to_string).collect();
                write!(f, "{}", texts.join("+"))
            }
        }
    }
}

pub fn differences(before: &Params, now: &Params) -> Vec<String> {
    let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let format = |params: &Params, name: &str| match params.get(name).map(ToString::to_string) {
        None => "unset".to_owned(),
        Some(value) if value.is_empty() => "empty".to_owned(),
        Some(value) => format!("`{value}`"),
    };
    let differs = |name: &&String| before.get(*name) != now.get(*name);
    let describe = |name: &String| format!("{name}: {} before, {} now", format(before, name), format(now, name));
    names.into_iter().filter(differs).map(describe).collect()
}

/// Kind of a parameter, with its constraints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ParamKind {
    /// `true` or `false`.
    Bool,
    /// A whole number.
    Integer {
        /// Minimum.
        min: Option<i64>,
        /// Maximum.
        max: Option<i64>,
    },
    /// Any number.
    Number {
        /// Minimum.
        min: Option<f64>,
        /// Maximum.
        max: Option<f64>,
    },
    /// A size.
    Bytes {
        /// Minimum, in bytes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<Bytes>,
    },
    /// A time.
    Duration {
        /// Minimum.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<Nanos>,
    },
    /// Amount of work: `auto`, or a whole number above 0.
    Count,
    /// One of several values.
    Choice {
        /// The allowed values.
        values: Vec<String>,
    },
    /// Any text.
    Text,
    /// A list of values of one kind.
    List {
        /// Kind of the elements.
        of: Box<ParamKind>,
    },
}

/// A declared parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Param {
    /// Its name, in kebab-case.
    pub name: String,
    /// Alternative names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Help text.
    pub help: String,
    /// Its kind.
    #[serde(flatten)]
    pub kind: ParamKind,
    /// Default value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<ParamValue>,
    /// Description of how its default is derived from the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_from: Option<String>,
    /// Whether it is an axis: its value is always part of the case name.
    #[serde(default)]
    pub axis: bool,
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct InvalidValue {
    pub message: String,
    /// The valid values, if they can be listed.
    pub allowed: Vec<String>,
}

impl ParamKind {
    /// Converts a value to its canonical form.
    pub fn normalise(&self, value: &ParamValue) -> Result<ParamValue, InvalidValue> {
        let invalid = |reason: String| InvalidValue { message: reason, allowed: Vec::new() };
        let text = value.to_string();
        match self {
            Self::Bool => match text.as_str() {
                "true" | "yes" | "on" | "1" => Ok(ParamValue::Bool(true)),
                "false" | "no" | "off" | "0" => Ok(ParamValue::Bool(false)),
                _ => Err(InvalidValue {
                    message: format!("invalid boolean `{text}`: expected true or false"),
                    allowed: vec!["true".into(), "false".into()],
                }),
            },
            Self::Integer { min, max } => {
                let number = parse_integer(&text, *max).map_err(invalid)?;
                check_bounds(&number, min.as_ref(), max.as_ref()).map_err(invalid)?;
                Ok(ParamValue::Integer(number))
            }
            Self::Number { min, max } => {
                let number: f64 =
                    text.parse().map_err(|_| invalid(format!("invalid value `{text}`: expected a number")))?;
                if !number.is_finite() {
                    return Err(invalid(format!("invalid value `{text}`: expected a finite number")));
                }
                check_bounds(&number, min.as_ref(), max.as_ref()).map_err(invalid)?;
                Ok(ParamValue::Number(number))
            }
            Self::Bytes { min } => {
                let size: Bytes = text.parse().map_err(|error: ParseQuantityError| invalid(error.to_string()))?;
                check_bounds(&size, min.as_ref(), None).map_err(invalid)?;
                Ok(ParamValue::Text(size.to_string()))
            }
            Self::Duration { min } => {
                let time: Nanos = text.parse().map_err(|error: ParseQuantityError| invalid(error.to_string()))?;
                check_bounds(&time, min.as_ref(), None).map_err(invalid)?;
                Ok(ParamValue::Text(time.to_string()))
            }
            Self::Count => match (text.as_str(), text.parse::<Count>()) {
                ("auto", _) => Ok(ParamValue::Text(text)),
                (_, Ok(count)) if count.0 > 0 => Ok(ParamValue::Text(count.to_string())),
                (_, Err(error @ ParseQuantityError::LargeCount(_))) => Err(invalid(error.to_string())),
                _ => Err(invalid(format!("invalid count `{text}`: expected `auto` or a whole number above 0"))),
            },
            Self::Choice { values } => match values.iter().find(|allowed| allowed.eq_ignore_ascii_case(&text)) {
                Some(allowed) => Ok(ParamValue::Text(allowed.clone())),
                None => Err(InvalidValue { message: format!("invalid value `{text}`"), allowed: values.clone() }),
            },
            Self::Text => match value {
                ParamValue::List(_) => Err(invalid("invalid value: expected a single text".to_owned())),
                _ => Ok(ParamValue::Text(text)),
            },
            Self::List { of } => {
                let elements = match value {
                    ParamValue::List(values) => values.iter().flat_map(|value| of.elements(value)).collect(),
                    one => of.elements(one),
                };
                elements.iter().map(|element| of.normalise(element)).collect::<Result<_, _>>().map(ParamValue::List)
            }
        }
    }

    /// Text in the kernel's CPU list format, `0-3,8`, gives several whole numbers.
    fn elements(&self, value: &ParamValue) -> Vec<ParamValue> {
        let numbers = match (self, value) {
            (Self::Integer { .. }, ParamValue::Text(text)) => {
                cpu_list::parse(text).filter(|numbers| !numbers.is_empty())
            }
            _ => None,
        };
        match numbers {
            Some(numbers) => numbers.into_iter().map(|number| ParamValue::Integer(number.into())).collect(),
            None => vec![value.clone()],
        }
    }

    pub fn may_have_commas(&self) -> bool {
        match self {
            Self::Text => true,
            Self::Choice { values } => values.iter().any(|value| value.contains(',')),
            Self::List { of } => of.may_have_commas(),
            Self::Bool
            | Self::Integer { .. }
            | Self::Number { .. }
            | Self::Bytes { .. }
            | Self::Duration { .. }
            | Self::Count => false,
        }
    }

    /// Describes the expected value for messages: the kind with its article.
    pub fn expected(&self) -> String {
        let article = match self {
            Self::Bool | Self::Count | Self::Choice { .. } | Self::Text => "",
            Self::Integer { .. }
            | Self::Number { .. }
            | Self::Bytes { .. }
            | Self::Duration { .. }
            | Self::List { .. } => "a ",
        };
        format!("{article}{}", self.describe())
    }

    /// Describes the kind by a word or by the list of its values, for tables.
    pub fn describe(&self) -> String {
        self.describe_with_ending("")
    }

    /// Describes the kind by a noun with this ending: `s` for several values.
    fn describe_with_ending(&self, s: &str) -> String {
        match self {
            Self::Bool => "true|false".to_owned(),
            Self::Integer { min, max } => {
                // The maximum of a type is no limit that a user meets.
                let max = max.filter(|max| ![u32::MAX.into(), i32::MAX.into()].contains(max));
                format!("whole number{s}{}", format_bounds(min.as_ref(), max.as_ref()))
            }
            Self::Number { min, max } => format!("number{s}{}", format_bounds(min.as_ref(), max.as_ref())),
            Self::Bytes { min } => format!("size{s}{}", format_bounds(min.as_ref(), None)),
            Self::Duration { min } => format!("time{s}{}", format_bounds(min.as_ref(), None)),
            Self::Count => "auto or a whole number".to_owned(),
            Self::Choice { values } => values.join("|"),
            Self::Text => "text".to_owned(),
            Self::List { of } => format!("list{s} of {}", of.describe_with_ending("s")),
        }
    }
}

/// Parses a whole number: `-1`, `8`, `10M` or `1e7`.
fn parse_integer(text: &str, max: Option<i64>) -> Result<i64, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let (sign, magnitude) = text.strip_prefix('-').map_or((1, text), |magnitude| (-1, magnitude));
    let number = match magnitude.parse::<Count>() {
        Ok(Count(number)) => i64::try_from(number).ok(),
        Err(ParseQuantityError::LargeCount(_)) => None,
        Err(_) => return Err(format!("invalid value `{text}`: expected a whole number")),
    };
    match (number, sign) {
        (Some(number), sign) => Ok(sign * number),
        (None, -1) => Err(format!("invalid value {text}: expected at least {}", i64::MIN)),
        (None, _) => Err(format!("invalid value {text}: expected at most {}", max.unwrap_or(i64::MAX))),
    }
}

fn check_bounds<T: PartialOrd + fmt::Display>(value: &T, min: Option<&T>, max: Option<&T>) -> Result<(), String> {
    match (min, max) {
        (Some(min), _) if value < min => Err(format!("invalid value {value}: expected at least {min}")),
        (_, Some(max)) if value > max => Err(format!("invalid value {value}: expected at most {max}")),
        _ => Ok(()),
    }
}

fn format_bounds<T: fmt::Display>(min: Option<&T>, max: Option<&T>) -> String {
    match (min, max) {
        (None, None) => String::new(),
        (Some(min), None) => format!(" from {min}"),
        (None, Some(max)) => format!(" up to {max}"),
        (Some(min), Some(max)) => format!(" {min} to {max}"),
    }
}

/// Wrapper of a parameter whose value is always part of the case name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Axis<T>(pub T);

impl<T> Deref for Axis<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: JsonSchema> JsonSchema for Axis<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = T::json_schema(generator);
        schema.insert("x-axis".to_owned(), true.into());
        schema
    }
}

impl Param {
    /// Derives the parameters from the JSON Schema of a struct. Besides the standard keywords, `#[schemars(extend(…))]`
    /// sets `x-axis` (see [`Axis`]), `x-aliases` (a list) and `x-default` (a default that is not one value, in words:
    /// `one per CPU`).
    pub fn from_schema<T: JsonSchema>() -> Vec<Self> {
        let mut settings = schemars::generate::SchemaSettings::draft2020_12();
        settings.inline_subschemas = true;
        let schema = settings.into_generator().into_root_schema_for::<T>();
        let properties = schema.get("properties").and_then(|p| p.as_object());
        properties.into_iter().flatten().map(|(name, property)| Self::from_property(name, property)).collect()
    }

    fn from_property(name: &str, property: &serde_json::Value) -> Self {
        let text = |key: &str| property.get(key).and_then(|v| v.as_str()).map(str::to_owned);
        let aliases = property.get("x-aliases").and_then(|v| v.as_array());
        let default = property.get("default").filter(|v| !v.is_null());
        let kind = kind_from_schema(property);
        let default = default
            .and_then(|v| serde_json::from_value::<ParamValue>(v.clone()).ok())
            .map(|value| kind.normalise(&value).unwrap_or(value));
        Self {
            name: name.to_owned(),
            aliases: aliases.into_iter().flatten().filter_map(|v| v.as_str().map(str::to_owned)).collect(),
            help: text("description").unwrap_or_default().replace('\n', " "),
            kind,
            default,
            resolved_from: text("x-default"),
            axis: property.get("x-axis").and_then(|v| v.as_bool()).unwrap_or(false),
        }
    }
}

/// Determines the kind from the schema of a property; `null` alternatives (of an `Option`) are ignored.
fn kind_from_schema(property: &serde_json::Value) -> ParamKind {
    if let Some(values) = enum_values(property) {
        return ParamKind::Choice { values };
    }
    if let Some(alternatives) = property.get("anyOf").and_then(|v| v.as_array()) {
        let non_null = alternatives.iter().find(|v| v.get("type").and_then(|t| t.as_str()) != Some("null"));
        return non_null.map_or(ParamKind::Text, kind_from_schema);
    }
    let minimum = property.get("minimum").and_then(|v| v.as_u64());
    match property.get("format").and_then(|v| v.as_str()) {
        Some("bytes") => return ParamKind::Bytes { min: minimum.map(Bytes) },
        Some("duration") => return ParamKind::Duration { min: minimum.map(Nanos) },
        Some("count") => return ParamKind::Count,
        _ => {}
    }
    let types: Vec<&str> = match property.get("type") {
        Some(serde_json::Value::String(one)) => vec![one.as_str()],
        Some(serde_json::Value::Array(many)) => many.iter().filter_map(|v| v.as_str()).collect(),
        _ => Vec::new(),
    };
    let bound = |key: &str| property.get(key);
    if types.contains(&"boolean") {
        ParamKind::Bool
    } else if types.contains(&"integer") {
        let whole = |key| bound(key).and_then(|v| v.as_i64().or_else(|| v.as_f64().map(|f| f as i64)));
        let (lowest, highest) = type_bounds(property);
        ParamKind::Integer { min: whole("minimum").or(lowest), max: whole("maximum").or(highest) }
    } else if types.contains(&"number") {
        let number = |key| bound(key).and_then(|v| v.as_f64());
        ParamKind::Number { min: number("minimum"), max: number("maximum") }
    } else if types.contains(&"array") {
        ParamKind::List { of: Box::new(property.get("items").map_or(ParamKind::Text, kind_from_schema)) }
    } else {
        ParamKind::Text
    }
}

/// The minimum and the maximum of an integer's type, from its `format`; none where the type has every value of ours.
fn type_bounds(property: &serde_json::Value) -> (Option<i64>, Option<i64>) {
    match property.get("format").and_then(|format| format.as_str()) {
        Some("uint8") => (Some(0), Some(u8::MAX.into())),
        Some("uint16") => (Some(0), Some(u16::MAX.into())),
        Some("uint32") => (Some(0), Some(u32::MAX.into())),
        Some("uint64" | "uint") => (Some(0), None),
        Some("int8") => (Some(i8::MIN.into()), Some(i8::MAX.into())),
        Some("int16") => (Some(i16::MIN.into()), Some(i16::MAX.into())),
        Some("int32") => (Some(i32::MIN.into()), Some(i32::MAX.into())),
        _ => (None, None),
    }
}

/// Returns the values from the schema of an enum, whether its variants have descriptions or not.
fn enum_values(property: &serde_json::Value) -> Option<Vec<String>> {
    let texts = |values: &Vec<serde_json::Value>| -> Vec<String> {
        values.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect()
    };
    if let Some(values) = property.get("enum").and_then(|v| v.as_array()) {
        return Some(texts(values));
    }
    let alternatives = property.get("oneOf").and_then(|v| v.as_array())?;
    let all =
        alternatives.iter().flat_map(|one| match (one.get("const"), one.get("enum").and_then(|v| v.as_array())) {
            (Some(value), _) => value.as_str().map(str::to_owned).into_iter().collect(),
            (None, Some(values)) => texts(values),
            (None, None) => Vec::new(),
        });
    Some(all.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Rw {
        /// Reads
        #[default]
        Read,
        /// Writes
        RandWrite,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
    struct Example {
        /// What is done
        #[schemars(extend("x-aliases" = ["rw"]))]
        test_types: Axis<Rw>,
        /// How much at once
        block_size: Axis<Bytes>,
        /// How long
        runtime: Nanos,
        /// Requests in flight
        #[schemars(range(min = 1))]
        iodepth: u32,
        /// Threads
        #[schemars(extend("x-default" = "one per CPU"))]
        threads: Option<u32>,
        cpus: Vec<u32>,
        direct: bool,
        kind: Option<Rw>,
    }

    impl Default for Example {
        fn default() -> Self {
            Self {
                test_types: Axis(Rw::Read),
                block_size: Axis(Bytes(4096)),
                runtime: Nanos(180_000_000_000),
                iodepth: 1,
                threads: None,
                cpus: Vec::new(),
                direct: true,
                kind: None,
            }
        }
    }

    #[test]
    fn a_struct_declares_its_parameters() {
        let params = Param::from_schema::<Example>();
        let param = |name: &str| params.iter().find(|p| p.name == name).unwrap();
        assert_eq!(param("test-types").aliases, ["rw"]);
        assert!(param("test-types").axis);
        assert_eq!(param("test-types").kind, ParamKind::Choice { values: vec!["read".into(), "randwrite".into()] });
        assert_eq!(param("test-types").default, Some(ParamValue::Text("read".into())));
        assert_eq!(param("block-size").default, Some(ParamValue::Text("4k".into())));
        assert_eq!(param("runtime").default, Some(ParamValue::Text("3min".into())));
        assert_eq!(param("iodepth").kind, ParamKind::Integer { min: Some(1), max: Some(u32::MAX.into()) });
        assert_eq!(param("threads").default, None);
        assert_eq!(param("threads").resolved_from.as_deref(), Some("one per CPU"));
        assert!(matches!(param("cpus").kind, ParamKind::List { .. }));
        assert_eq!(param("direct").kind, ParamKind::Bool);
        assert_eq!(param("kind").kind, ParamKind::Choice { values: vec!["read".into(), "randwrite".into()] });
        assert_eq!(param("block-size").help, "How much at once");
    }

    #[test]
    fn a_list_of_whole_numbers_accepts_ranges() {
        let cpus = ParamKind::List { of: Box::new(ParamKind::Integer { min: Some(0), max: Some(7) }) };
        let numbers =
            |numbers: &[i64]| ParamValue::List(numbers.iter().map(|number| ParamValue::Integer(*number)).collect());
        let text = |text: &str| ParamValue::Text(text.to_owned());
        assert_eq!(cpus.normalise(&text("0-1")).unwrap(), numbers(&[0, 1]));
        assert_eq!(cpus.normalise(&text("0-2,5")).unwrap(), numbers(&[0, 1, 2, 5]));
        assert_eq!(
            cpus.normalise(&ParamValue::List(vec![text("4-5"), ParamValue::Integer(1)])).unwrap(),
            numbers(&[4, 5, 1])
        );
        assert_eq!(cpus.normalise(&text("6-8")).unwrap_err().message, "invalid value 8: expected at most 7");
        for bad in ["2-1", "a", "", "-1"] {
            assert!(cpus.normalise(&text(bad)).is_err(), "{bad}");
        }
        let texts = ParamKind::List { of: Box::new(ParamKind::Text) };
        assert_eq!(texts.normalise(&text("0-1")).unwrap(), ParamValue::List(vec![text("0-1")]));
    }

    #[test]
    fn equal_values_have_the_same_canonical_form() {
        assert_eq!(
            ParamKind::Bytes { min: None }.normalise(&ParamValue::Integer(4096)).unwrap(),
            ParamValue::Text("4k".into())
        );
        assert_eq!(
            ParamKind::Duration { min: None }.normalise(&ParamValue::Number(0.5)).unwrap(),
            ParamValue::Text("500ms".into())
        );
        assert_eq!(ParamKind::Bool.normalise(&ParamValue::Integer(1)).unwrap(), ParamValue::Bool(true));
        let bad =
            ParamKind::Choice { values: vec!["read".into()] }.normalise(&ParamValue::Text("reed".into())).unwrap_err();
        assert_eq!(bad.allowed, ["read"]);
        assert!(ParamKind::Integer { min: Some(1), max: None }.normalise(&ParamValue::Integer(0)).is_err());
    }

    #[test]
    fn a_number_out_of_range_is_refused_with_the_range() {
        let iodepth = ParamKind::Integer { min: Some(1), max: Some(u32::MAX.into()) };
        let refused = |kind: &ParamKind, text: &str| kind.normalise(&ParamValue::Text(text.to_owned())).unwrap_err();
        for (text, message) in [
            ("99999999999", "invalid value 99999999999: expected at most 4294967295"),
            ("99999999999999999999", "invalid value 99999999999999999999: expected at most 4294967295"),
            ("1e30", "invalid value 1e30: expected at most 4294967295"),
            ("-99999999999999999999", "invalid value -99999999999999999999: expected at least -9223372036854775808"),
            ("-1", "invalid value -1: expected at least 1"),
            ("1.5", "invalid value `1.5`: expected a whole number"),
            ("--1", "invalid value `--1`: expected a whole number"),
        ] {
            assert_eq!(refused(&iodepth, text).message, message);
        }
        assert_eq!(iodepth.describe(), "whole number from 1");
        assert_eq!(
            refused(&ParamKind::Count, "1e20").message,
            "invalid number `1e20`: expected at most 18446744073709551615"
        );
        let read =
            |text: &str| ParamKind::Integer { min: None, max: None }.normalise(&ParamValue::Text(text.to_owned()));
        assert_eq!(read("-2k"), Ok(ParamValue::Integer(-2000)));
        assert_eq!(read("-9223372036854775808"), Ok(ParamValue::Integer(i64::MIN)));
    }

    #[test]
    fn the_values_of_a_list_are_described_in_the_plural() {
        let list = |of| ParamKind::List { of: Box::new(of) };
        let whole = ParamKind::Integer { min: Some(0), max: None };
        assert_eq!(list(whole.clone()).describe(), "list of whole numbers from 0");
        assert_eq!(
            (whole.describe(), list(ParamKind::Text).describe()),
            ("whole number from 0".into(), "list of text".into())
        );
    }
}
