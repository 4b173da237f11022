//! What was asked for, wherever it was written: on the command line or in a plan file.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use wb_model::{TestName, Value};

/// The text that something was read from, for messages that point into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// A file's path, or `command line`.
    pub name: Arc<str>,
    /// All of it.
    pub text: Arc<str>,
}

impl Source {
    /// A source of this name and text.
    pub fn new(name: &str, text: &str) -> Self {
        Self { name: name.into(), text: text.into() }
    }
}

/// One parameter as it was given.
#[derive(Debug, Clone, PartialEq)]
pub struct Given {
    /// The name as written.
    pub name: String,
    /// Where the name stands.
    pub name_at: Range<usize>,
    /// The value as written; a list makes an axis unless the parameter itself is a list.
    pub value: Written,
}

/// A value as it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// What was written.
    pub form: Form,
    /// Where it stands.
    pub at: Range<usize>,
}

/// One value, or several.
#[derive(Debug, Clone, PartialEq)]
pub enum Form {
    /// One.
    One(Value),
    /// A list.
    Many(Vec<Written>),
}

impl Written {
    /// One value.
    pub fn one(value: Value, at: Range<usize>) -> Self {
        Self { form: Form::One(value), at }
    }

    /// The value without its places.
    pub fn value(&self) -> Value {
        match &self.form {
            Form::One(value) => value.clone(),
            Form::Many(list) => Value::List(list.iter().map(Written::value).collect()),
        }
    }
}

/// The parts of a text that has commas between them, without the blanks around each.
pub fn comma_parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim)
}

/// A group of properties.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stage {
    /// Where it stands, with the colon before it.
    pub at: Range<usize>,
    /// What it says.
    pub given: Vec<Given>,
}

/// A test that was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Where it was written.
    pub source: Source,
    /// The test's name as written.
    pub test: String,
    /// Where that stands.
    pub test_at: Range<usize>,
    /// The name that pins its serial.
    pub id: Option<TestName>,
    /// Its parameters.
    pub given: Vec<Given>,
    /// Property groups of later stages, for staged tests.
    pub stages: Vec<Stage>,
    /// User tools around its samples, each a command line.
    pub tools: Vec<String>,
    /// Files that are programs in the place of those that the path has, by the programs' names.
    pub programs: BTreeMap<String, String>,
    /// The plan's `on`: the workers that measure it where it names none itself.
    pub on_of_plan: Option<Given>,
}
