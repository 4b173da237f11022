//! Requested tests, whether from the command line or a plan file.

use std::collections::BTreeMap;
use std::ops::Range;

use wb_diagnostics::SourceText;
use wb_model::{ParamValue, TestName};

use crate::RequestCriteria;

/// A parameter as written, with its position in the source.
#[derive(Debug, Clone, PartialEq)]
pub struct SpannedParam {
    pub name: String,
    /// The span of the name.
    pub name_span: Range<usize>,
    /// The value as written; a list makes an axis unless the parameter itself is a list.
    pub value: SpannedValue,
}

/// A value as written, with its position in the source.
#[derive(Debug, Clone, PartialEq)]
pub struct SpannedValue {
    pub form: ValueForm,
    /// The span of the value.
    pub span: Range<usize>,
}

/// A single value or a list.
#[derive(Debug, Clone, PartialEq)]
pub enum ValueForm {
    Single(ParamValue),
    List(Vec<SpannedValue>),
}

impl SpannedValue {
    /// A single value at this span.
    pub fn one(value: ParamValue, span: Range<usize>) -> Self {
        Self { form: ValueForm::Single(value), span }
    }

    /// The value without its spans.
    pub fn value(&self) -> ParamValue {
        match &self.form {
            ValueForm::Single(value) => value.clone(),
            ValueForm::List(list) => ParamValue::List(list.iter().map(SpannedValue::value).collect()),
        }
    }
}

/// Splits a text at commas and trims each part.
pub fn split_commas(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim)
}

/// A group of properties: the parameters of one stage.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PropertyGroup {
    /// The span of the group, including its leading colon.
    pub at: Range<usize>,
    /// The parameters of the group.
    pub params: Vec<SpannedParam>,
}

/// A requested test.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The text that it was parsed from.
    pub source: SourceText,
    /// The test's name as written.
    pub test: String,
    /// The span of the test's name.
    pub test_span: Range<usize>,
    /// The name used as its serial instead of its position.
    pub id: Option<TestName>,
    /// Its parameters.
    pub params: Vec<SpannedParam>,
    /// Property groups of later stages, for staged tests.
    pub stages: Vec<PropertyGroup>,
    /// User tools that run around its samples, each a command line.
    pub tools: Vec<String>,
    /// What decides about its cells.
    pub criteria: RequestCriteria,
    /// Files that replace programs of the search path, by program name.
    pub programs: BTreeMap<String, String>,
    /// The plan's `on`: the workers that measure it unless the test has an `on` of its own.
    pub default_on: Option<SpannedParam>,
}
