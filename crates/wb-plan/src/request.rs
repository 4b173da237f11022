//! Requested tests, whether from the command line or a plan file.

use std::collections::BTreeMap;
use std::ops::Range;

use wb_diagnostics::SourceText;
use wb_model::{ParamValue, TestName};

use crate::RequestCriteria;

#[derive(Debug, Clone, PartialEq)]
pub struct SpannedParam {
    pub name: String,
    pub name_span: Range<usize>,
    /// A list makes an axis unless the parameter itself is a list.
    pub value: SpannedValue,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SpannedValue {
    pub form: ValueForm,
    pub span: Range<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ValueForm {
    Single(ParamValue),
    List(Vec<SpannedValue>),
}

impl SpannedValue {
    pub fn one(value: ParamValue, span: Range<usize>) -> Self {
        Self { form: ValueForm::Single(value), span }
    }

    pub fn value(&self) -> ParamValue {
        match &self.form {
            ValueForm::Single(value) => value.clone(),
            ValueForm::List(list) => ParamValue::List(list.iter().map(SpannedValue::value).collect()),
        }
    }
}

pub fn split_commas(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim)
}

/// The parameters of one stage of a test.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PropertyGroup {
    /// The span of the group, including its leading colon.
    pub at: Range<usize>,
    pub params: Vec<SpannedParam>,
}

/// A requested test.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The text that it was parsed from.
    pub source: SourceText,
    pub test: String,
    pub test_span: Range<usize>,
    /// The serial, instead of the position.
    pub id: Option<TestName>,
    pub params: Vec<SpannedParam>,
    /// Property groups of later stages, for staged tests.
    pub stages: Vec<PropertyGroup>,
    /// Command lines that run around its samples.
    pub tools: Vec<String>,
    pub criteria: RequestCriteria,
    /// Files that replace programs of the search path, by program name.
    pub programs: BTreeMap<String, String>,
    /// The `on` of the plan: the workers that measure it unless the test has an `on` of its own.
    pub default_on: Option<SpannedParam>,
}
