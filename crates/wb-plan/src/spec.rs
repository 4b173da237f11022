//! Tests as they are typed on the command line.
//!
//! ```text
//! TEST[:GROUP[:GROUP…]]      GROUP is  name=value,name=value  or a JSON object
//! ```
//! A value is bare text (up to `,` `:` or `]`), text in double quotes (with JSON's escapes), or a list
//! `[a,b,"c"]`. The first group holds the test's parameters, further ones the properties of later
//! stages. `id=` in any group pins the name of the serial.

use std::ops::Range;

use wb_model::{TestName, Value};

use crate::request::{Form, Written};
use crate::{Given, PlanError, Request, Source};

/// Reads one test.
pub fn parse(text: &str) -> Result<Request, PlanError> {
    let source = Source::new("command line", text);
    let mut cursor = Cursor { source: &source, text, at: 0 };
    let test = cursor.take_while(|c| c != ':');
    if test.is_empty() {
        return Err(cursor.wrong(0..text.len(), "no test is named", "`TEST[:name=value,…]` is expected"));
    }
    let mut groups = Vec::new();
    while cursor.eat(':') {
        groups.push(cursor.group()?);
    }
    if !cursor.is_done() {
        return Err(cursor.wrong(cursor.at..text.len(), "this does not belong here", "a `:` or the end is expected"));
    }
    let id = take_id(&source, &mut groups)?;
    let mut groups = groups.into_iter();
    Ok(Request {
        test: text[test.clone()].to_owned(),
        test_at: test,
        id,
        given: groups.next().unwrap_or_default(),
        stages: groups.collect(),
        tools: Vec::new(),
        source,
    })
}

/// Takes `id=` out of whichever group has it.
fn take_id(source: &Source, groups: &mut [Vec<Given>]) -> Result<Option<TestName>, PlanError> {
    let mut found = None;
    for group in groups {
        for given in group.extract_if(.., |given| given.name == "id") {
            found = Some(pinned(source, &given.value)?);
        }
    }
    Ok(found)
}

/// The id that a value pins: a name that cannot be taken for a position.
pub(crate) fn pinned(source: &Source, value: &Written) -> Result<TestName, PlanError> {
    let text = value.value().to_string();
    let numeric = text.chars().all(|c| c.is_ascii_digit());
    match TestName::new(text) {
        Ok(name) if !numeric => Ok(name),
        Ok(_) => Err(PlanError::at(source, value.at.clone(), "an id needs a letter", "digits alone name a position")),
        Err(error) => Err(PlanError::at(source, value.at.clone(), error.to_string(), "")),
    }
}

struct Cursor<'a> {
    source: &'a Source,
    text: &'a str,
    at: usize,
}

impl Cursor<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn is_done(&self) -> bool {
        self.at == self.text.len()
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn take_while(&mut self, keep: impl Fn(char) -> bool) -> Range<usize> {
        let start = self.at;
        let length = self.text[start..].find(|c| !keep(c)).unwrap_or(self.text.len() - start);
        self.at = start + length;
        start..self.at
    }

    fn wrong(&self, span: Range<usize>, message: &str, label: &str) -> PlanError {
        PlanError::at(self.source, span, message, label)
            .with_help("parameters are written `name=value,name=[a,b]`; text with `,` `:` or `]` goes in double quotes")
    }

    /// One group, up to the next `:` or the end.
    fn group(&mut self) -> Result<Vec<Given>, PlanError> {
        if self.peek() == Some('{') {
            return self.json();
        }
        let mut given = Vec::new();
        while !self.is_done() && self.peek() != Some(':') {
            given.push(self.given()?);
            if !self.eat(',') {
                break;
            }
        }
        Ok(given)
    }

    fn given(&mut self) -> Result<Given, PlanError> {
        let name_at = self.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
        let name = self.text[name_at.clone()].to_owned();
        if name.is_empty() {
            let end = self.at + self.peek().map_or(0, char::len_utf8);
            return Err(self.wrong(self.at..end, "a parameter's name is missing", "here"));
        }
        if !self.eat('=') {
            return Err(self.wrong(name_at, &format!("`{name}` has no value"), "`=value` is expected after it"));
        }
        Ok(Given { name, name_at, value: self.value()? })
    }

    fn value(&mut self) -> Result<Written, PlanError> {
        let start = self.at;
        match self.peek() {
            Some('[') => {
                self.eat('[');
                let mut list = Vec::new();
                while !self.eat(']') {
                    if self.is_done() {
                        return Err(self.wrong(start..self.at, "the list is not closed", "a `]` is missing"));
                    }
                    list.push(self.value()?);
                    if !self.eat(',') && self.peek() != Some(']') {
                        return Err(self.wrong(start..self.at, "the list is not closed", "a `]` is missing"));
                    }
                }
                Ok(Written { form: Form::Many(list), at: start..self.at })
            }
            Some('"') => {
                let mut values = serde_json::Deserializer::from_str(&self.text[start..]).into_iter::<String>();
                match values.next() {
                    Some(Ok(text)) => {
                        self.at = start + values.byte_offset();
                        Ok(Written::one(Value::Text(text), start..self.at))
                    }
                    _ => Err(self.wrong(start..self.text.len(), "the quoted text is not closed", "from here")),
                }
            }
            _ => {
                let at = self.take_while(|c| !matches!(c, ',' | ':' | ']'));
                Ok(Written::one(bare(&self.text[at.clone()]), at))
            }
        }
    }

    /// A JSON object. Its values have the object's place, since JSON's parser keeps none of its own.
    fn json(&mut self) -> Result<Vec<Given>, PlanError> {
        let start = self.at;
        let text = &self.text[start..];
        let mut objects = serde_json::Deserializer::from_str(text).into_iter::<serde_json::Map<_, _>>();
        let object = match objects.next() {
            Some(Ok(object)) => object,
            Some(Err(error)) => {
                let at = start + error.column().saturating_sub(1).min(text.len());
                return Err(self.wrong(at..(at + 1).min(self.text.len()), &format!("not JSON: {error}"), "here"));
            }
            None => return Err(self.wrong(start..self.text.len(), "not JSON", "an object is expected")),
        };
        self.at = start + objects.byte_offset();
        let span = start..self.at;
        object
            .into_iter()
            .map(|(name, value)| {
                let quoted = format!("\"{name}\"");
                let name_at = text.find(&quoted).map_or(span.clone(), |at| start + at + 1..start + at + 1 + name.len());
                let value = written(&value, span.clone()).ok_or_else(|| {
                    self.wrong(span.clone(), &format!("`{name}` has no usable value"), "in this object")
                })?;
                Ok(Given { name, name_at, value })
            })
            .collect()
    }
}

/// A JSON value as a written one.
fn written(json: &serde_json::Value, at: Range<usize>) -> Option<Written> {
    let form = match json {
        serde_json::Value::Array(list) => {
            Form::Many(list.iter().map(|value| written(value, at.clone())).collect::<Option<_>>()?)
        }
        serde_json::Value::Object(_) | serde_json::Value::Null => return None,
        other => Form::One(serde_json::from_value(other.clone()).ok()?),
    };
    Some(Written { form, at })
}

/// A bare word as the plainest value that it can be.
fn bare(text: &str) -> Value {
    match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        text => text.parse().map_or_else(|_| Value::Text(text.to_owned()), Value::Integer),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values(text: &str) -> Vec<(String, Value)> {
        parse(text).unwrap().given.iter().map(|given| (given.name.clone(), given.value.value())).collect()
    }

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    #[test]
    fn a_test_alone_has_no_parameters() {
        let request = parse("fio").unwrap();
        assert_eq!((request.test.as_str(), request.given.len()), ("fio", 0));
    }

    #[test]
    fn both_ways_of_writing_say_the_same() {
        let plain = values("fio:rw=[read,randwrite],bs=4k,iodepth=8,direct=true");
        let json = values(r#"fio:{"rw":["read","randwrite"],"bs":"4k","iodepth":8,"direct":true}"#);
        assert_eq!(plain, json);
        assert_eq!(plain[0].1, Value::List(vec![text("read"), text("randwrite")]));
    }

    #[test]
    fn quotes_keep_what_would_divide() {
        assert_eq!(values(r#"fio:targets="/dev/a:b,c]",x=1"#)[0].1, text("/dev/a:b,c]"));
        assert_eq!(values(r#"t:x=["a,b",c]"#)[0].1, Value::List(vec![text("a,b"), text("c")]));
        assert_eq!(values(r#"t:x="say \"hi\"""#)[0].1, text("say \"hi\""));
    }

    #[test]
    fn an_id_survives_whatever_follows() {
        let request = parse("t:id=night,a=1:b=2:c=3").unwrap();
        assert_eq!(request.id.unwrap().as_str(), "night");
        assert_eq!(request.given.len(), 1);
        assert_eq!(request.stages.len(), 2);
        assert_eq!(parse("t::id=x").unwrap().id.unwrap().as_str(), "x");
        assert!(parse("t:id=0001").is_err());
    }

    #[test]
    fn mistakes_are_found() {
        for bad in ["", ":x=1", "t:x", "t:=1", "t:x=[1", "t:x=\"a", "t:{\"x\":}", "t:{\"x\":{}}", "t:x=[1]y"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text: String) {
            let _ = parse(&text);
        }

        #[test]
        fn nothing_made_of_the_grammar_panics(text in "[a-z:=,\\[\\]{}\"\\\\ 0-9é]{0,40}") {
            let _ = parse(&text);
        }
    }
}
