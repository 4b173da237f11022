//! What was asked for, wherever it was written: on the command line or in a plan file.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use wb_model::{ParamValue, TestName};

/// The text that something was read from, for messages that point into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceText {
    /// A file's path, or `command line`.
    pub name: Arc<str>,
    /// All of it.
    pub text: Arc<str>,
}

impl SourceText {
    /// A source of this name and text.
    pub fn new(name: &str, text: &str) -> Self {
        Self { name: name.into(), text: text.into() }
    }
}

/// One parameter as it was given.
#[derive(Debug, Clone, PartialEq)]
pub struct SpannedParam {
    /// The name as written.
    pub name: String,
    /// Where the name stands.
    pub name_span: Range<usize>,
    /// The value as written; a list makes an axis unless the parameter itself is a list.
    pub value: SpannedValue,
}

/// A value as it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct SpannedValue {
    /// What was written.
    pub form: ValueForm,
    /// Where it stands.
    pub span: Range<usize>,
}

/// One value, or several.
#[derive(Debug, Clone, PartialEq)]
pub enum ValueForm {
    /// One.
    Single(ParamValue),
    /// A list.
    List(Vec<SpannedValue>),
}

impl SpannedValue {
    /// One value.
    pub fn one(value: ParamValue, span: Range<usize>) -> Self {
        Self { form: ValueForm::Single(value), span }
    }

    /// The value without its places.
    pub fn value(&self) -> ParamValue {
        match &self.form {
            ValueForm::Single(value) => value.clone(),
            ValueForm::List(list) => ParamValue::List(list.iter().map(SpannedValue::value).collect()),
        }
    }
}

/// The parts of a text that has commas between them, without the blanks around each.
pub fn split_commas(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim)
}

/// A group of properties.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PropertyGroup {
    /// Where it stands, with the colon before it.
    pub at: Range<usize>,
    /// What it says.
    pub params: Vec<SpannedParam>,
}

/// A test that was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Where it was written.
    pub source: SourceText,
    /// The test's name as written.
    pub test: String,
    /// Where that stands.
    pub test_span: Range<usize>,
    /// The name that pins its serial.
    pub id: Option<TestName>,
    /// Its parameters.
    pub given: Vec<SpannedParam>,
    /// Property groups of later stages, for staged tests.
    pub stages: Vec<PropertyGroup>,
    /// User tools around its samples, each a command line.
    pub tools: Vec<String>,
    /// Files that are programs in the place of those that the path has, by the programs' names.
    pub programs: BTreeMap<String, String>,
    /// The plan's `on`: the workers that measure it where it names none itself.
    pub default_on: Option<SpannedParam>,
}
