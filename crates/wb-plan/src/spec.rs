//! Tests as they are typed on the command line.
//!
//! ```text
//! TEST[:GROUP[:GROUP…]]      GROUP is  name=value,name=value  or a JSON object
//! ```
//! A name is bare or in double quotes; that of a knob may have a target: `knobs.hugetlb@2048kB`. A value is bare text (up
//! to `,` `:` or `]`), text in double quotes (with JSON's escapes), or a list `[a,b,"c"]`. The first group holds the test's
//! parameters, further ones the properties of later stages. `id=` in any group pins the name of the serial. Blanks around names and values mean nothing.

use std::collections::BTreeMap;
use std::ops::Range;

use wb_model::{ParamValue, TestName};

use crate::request::{PropertyGroup, SpannedValue, ValueForm};
use crate::{PlanError, Request, SourceText, SpannedParam};

/// Reads one test.
pub fn parse(text: &str) -> Result<Request, PlanError> {
    let source = SourceText::new("command line", text);
    let mut cursor = Cursor { source: &source, text, at: 0 };
    let test = cursor.word(|c| c != ':');
    if test.is_empty() {
        return Err(cursor.error(0..text.len(), "no test is named", "`TEST[:name=value,…]` is expected"));
    }
    let mut groups = Vec::new();
    while cursor.peek() == Some(':') {
        groups.push(cursor.group()?);
    }
    if !cursor.is_done() {
        return Err(cursor.error(cursor.at..text.len(), "this does not belong here", "a `:` or the end is expected"));
    }
    let id = take_id(&source, &mut groups)?;
    let mut groups = groups.into_iter();
    Ok(Request {
        test: text[test.clone()].to_owned(),
        test_span: test,
        id,
        given: groups.next().unwrap_or_default().params,
        stages: groups.collect(),
        tools: Vec::new(),
        programs: BTreeMap::new(),
        default_on: None,
        source,
    })
}

/// Takes `id=` out of whichever group has it; a group that held nothing else goes with it.
fn take_id(source: &SourceText, groups: &mut Vec<PropertyGroup>) -> Result<Option<TestName>, PlanError> {
    let ids: Vec<SpannedParam> =
        groups.iter_mut().flat_map(|group| group.params.extract_if(.., |given| given.name == "id")).collect();
    groups.retain(|group| !group.params.is_empty() || ids.iter().all(|id| !group.at.contains(&id.name_span.start)));
    match ids.as_slice() {
        [] => Ok(None),
        [id] => parse_id(source, &id.value).map(Some),
        [_, again, ..] => Err(PlanError::at(source, again.name_span.clone(), "`id` is given twice", "here again")),
    }
}

/// The id that a value pins: a name that cannot be taken for a position.
pub(crate) fn parse_id(source: &SourceText, value: &SpannedValue) -> Result<TestName, PlanError> {
    let wrong = |message: &str, label: &str| {
        PlanError::at(source, value.span.clone(), message, label)
            .with_help("`id` pins the name of a test's place in the plan, so that inserting a test renumbers nothing")
    };
    let ValueForm::Single(name) = &value.form else {
        return Err(wrong("an id is one name", "not a list"));
    };
    let text = name.to_string();
    match TestName::new(&text) {
        Ok(name) if text.chars().any(|c| !c.is_ascii_digit()) => Ok(name),
        Ok(_) => Err(wrong("an id needs a letter", "digits alone name a position")),
        Err(_) if text.is_empty() => Err(wrong("`id` has no value", "a name is expected")),
        Err(_) => Err(wrong(&format!("`{text}` is no id"), "letters, digits, `_`, `.` and `-` make a name")),
    }
}

struct Cursor<'a> {
    source: &'a SourceText,
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

    fn skip_whitespace(&mut self) {
        self.take_while(char::is_whitespace);
    }

    /// What is kept, without the blanks around it.
    fn word(&mut self, keep: impl Fn(char) -> bool) -> Range<usize> {
        self.skip_whitespace();
        let taken = self.take_while(keep);
        self.skip_whitespace();
        taken.start..taken.start + self.text[taken].trim_end().len()
    }

    fn error(&self, span: Range<usize>, message: &str, label: &str) -> PlanError {
        PlanError::at(self.source, span, message, label)
            .with_help("parameters are written `name=value,name=[a,b]`; text with `,` `:` or `]` goes in double quotes")
    }

    /// The next character, or the last one at the end: something that can be underlined.
    fn current_span(&self) -> Range<usize> {
        match self.text[self.at..].chars().next() {
            Some(next) => self.at..self.at + next.len_utf8(),
            None => self.at - self.text.chars().next_back().map_or(0, char::len_utf8)..self.at,
        }
    }

    /// One group with the colon before it, up to the next colon or the end.
    fn group(&mut self) -> Result<PropertyGroup, PlanError> {
        let start = self.at;
        self.eat(':');
        self.skip_whitespace();
        let mut given = Vec::new();
        if self.peek() == Some('{') {
            given = self.object()?;
        } else {
            while !self.is_done() && self.peek() != Some(':') {
                given.push(self.param()?);
                if !self.eat(',') {
                    break;
                }
                self.skip_whitespace();
            }
        }
        Ok(PropertyGroup { at: start..self.at, params: given })
    }

    fn param(&mut self) -> Result<SpannedParam, PlanError> {
        let (name, name_at) = self.name()?;
        if name.is_empty() {
            return Err(self.error(self.current_span(), "a parameter's name is missing", "here"));
        }
        if !self.eat('=') {
            return Err(self.error(name_at, &format!("`{name}` has no value"), "`=value` is expected after it"));
        }
        let asked = name_at.start..self.at;
        match self.value()? {
            Some(value) => Ok(SpannedParam { name, name_span: name_at, value }),
            None => Err(self.error(asked, &format!("`{name}` has no value"), "a value is expected after `=`")),
        }
    }

    /// A parameter's name and where it stands, without quotes.
    fn name(&mut self) -> Result<(String, Range<usize>), PlanError> {
        if self.peek() == Some('"') {
            let SpannedValue { span: at, form } = self.quoted()?;
            self.skip_whitespace();
            let ValueForm::Single(name) = form else { unreachable!("a quoted text is one value") };
            return Ok((name.to_string(), at.start + 1..at.end - 1));
        }
        // What follows `@` is named by the kernel: `node0/1048576kB`.
        let at = self.word(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@' | '/'));
        Ok((self.text[at.clone()].to_owned(), at))
    }

    /// A value and the blanks around it; nothing where there is none.
    fn value(&mut self) -> Result<Option<SpannedValue>, PlanError> {
        self.skip_whitespace();
        let value = match self.peek() {
            Some('[') => self.list(Self::value)?,
            Some('"') => self.quoted()?,
            _ => {
                let at = self.word(|c| !matches!(c, ',' | ':' | ']'));
                if at.is_empty() {
                    return Ok(None);
                }
                SpannedValue::one(bare(&self.text[at.clone()]), at)
            }
        };
        self.skip_whitespace();
        Ok(Some(value))
    }

    /// A list of what `element` reads.
    fn list(
        &mut self,
        element: impl Fn(&mut Self) -> Result<Option<SpannedValue>, PlanError>,
    ) -> Result<SpannedValue, PlanError> {
        let start = self.at;
        self.eat('[');
        self.skip_whitespace();
        let mut list = Vec::new();
        while !self.eat(']') {
            match element(self)? {
                Some(value) => list.push(value),
                None if self.is_done() => {}
                None => return Err(self.error(self.current_span(), "a value of this list is missing", "before this")),
            }
            if !self.eat(',') && self.peek() != Some(']') {
                return Err(self.error(start..self.at, "the list is not closed", "a `]` is missing"));
            }
            self.skip_whitespace();
        }
        Ok(SpannedValue { form: ValueForm::List(list), span: start..self.at })
    }

    /// A text in double quotes, with JSON's escapes.
    fn quoted(&mut self) -> Result<SpannedValue, PlanError> {
        let start = self.at;
        let mut values = serde_json::Deserializer::from_str(&self.text[start..]).into_iter::<String>();
        match values.next() {
            Some(Ok(text)) => {
                self.at = start + values.byte_offset();
                Ok(SpannedValue::one(ParamValue::Text(text), start..self.at))
            }
            _ => Err(self.error(start..self.text.len(), "the quoted text is not closed", "from here")),
        }
    }

    /// A JSON object, read here since what it says twice or wrongly is to be shown where it stands.
    fn object(&mut self) -> Result<Vec<SpannedParam>, PlanError> {
        let start = self.at;
        self.eat('{');
        self.skip_whitespace();
        let mut all = Vec::new();
        while !self.eat('}') {
            if self.peek() != Some('"') {
                return Err(self.error(
                    self.current_span(),
                    "not JSON",
                    "a name in double quotes, or a `}`, is expected",
                ));
            }
            let name = self.quoted()?;
            self.skip_whitespace();
            if !self.eat(':') {
                return Err(self.error(name.span, "not JSON", "`:` and a value are expected after it"));
            }
            let name_at = name.span.start + 1..name.span.end - 1;
            let value = self
                .json()?
                .ok_or_else(|| self.error(self.current_span(), "not JSON", "a value is expected before this"))?;
            all.push(SpannedParam { name: name.value().to_string(), name_span: name_at, value });
            if !self.eat(',') && self.peek() != Some('}') {
                return Err(self.error(start..self.at, "the object is not closed", "a `}` is missing"));
            }
            self.skip_whitespace();
        }
        self.skip_whitespace();
        Ok(all)
    }

    /// A value in JSON and the blanks around it; nothing where there is none.
    fn json(&mut self) -> Result<Option<SpannedValue>, PlanError> {
        self.skip_whitespace();
        let start = self.at;
        let value = match self.peek() {
            None | Some(',' | ']' | '}') => return Ok(None),
            Some('[') => self.list(Self::json)?,
            Some('"') => self.quoted()?,
            _ => {
                let at = self.word(|c| !matches!(c, ',' | ']' | '}'));
                let value = serde_json::from_str(&self.text[at]).map_err(|_| {
                    self.error(start..self.at, "not a value", "a text, a number, true, false or a list is expected")
                })?;
                SpannedValue::one(value, start..self.at)
            }
        };
        self.skip_whitespace();
        Ok(Some(value))
    }
}

/// A bare word as the plainest value that it can be.
fn bare(text: &str) -> ParamValue {
    match text {
        "true" => ParamValue::Bool(true),
        "false" => ParamValue::Bool(false),
        text => text.parse().map_or_else(|_| ParamValue::Text(text.to_owned()), ParamValue::Integer),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values(text: &str) -> Vec<(String, ParamValue)> {
        parse(text).unwrap().given.iter().map(|given| (given.name.clone(), given.value.value())).collect()
    }

    fn text(text: &str) -> ParamValue {
        ParamValue::Text(text.to_owned())
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
        assert_eq!(plain[0].1, ParamValue::List(vec![text("read"), text("randwrite")]));
    }

    #[test]
    fn quotes_keep_what_would_divide() {
        assert_eq!(values(r#"fio:targets="/dev/a:b,c]",x=1"#)[0].1, text("/dev/a:b,c]"));
        assert_eq!(values(r#"t:x=["a,b",c]"#)[0].1, ParamValue::List(vec![text("a,b"), text("c")]));
        assert_eq!(values(r#"t:x="say \"hi\"""#)[0].1, text("say \"hi\""));
    }

    #[test]
    fn a_name_may_have_the_target_of_a_knob_and_may_be_quoted() {
        let names = |text: &str| values(text).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names("t:knobs.hugetlb@2048kB=2,x=1"), ["knobs.hugetlb@2048kB", "x"]);
        assert_eq!(names("t:knobs.nr-hugepages@node0/1048576kB=[0,1]"), ["knobs.nr-hugepages@node0/1048576kB"]);
        assert_eq!(names(r#"t:"knobs.offloads@eth0:1" = off , x=1"#), ["knobs.offloads@eth0:1", "x"]);
        let request = parse(r#"t:"knobs.thp"=never"#).unwrap();
        assert_eq!(&request.source.text[request.given[0].name_span.clone()], "knobs.thp");
    }

    #[test]
    fn an_id_survives_whatever_follows() {
        let request = parse("t:id=night,a=1:b=2:c=3").unwrap();
        assert_eq!(request.id.unwrap().as_str(), "night");
        assert_eq!(request.given.len(), 1);
        assert_eq!(request.stages.len(), 2);
        assert_eq!(parse("t::id=x").unwrap().id.unwrap().as_str(), "x");
        assert!(parse("t:id=0001").is_err());
        assert_eq!(parse("t:a=1:id=x").unwrap().stages, []);
        assert_eq!(parse("t:id=x:a=1").unwrap().given.len(), 1);
    }

    #[test]
    fn blanks_around_names_and_values_mean_nothing() {
        assert_eq!(values(" t : x = 1 , y = [ a , b ] "), values("t:x=1,y=[a,b]"));
        assert_eq!(values(r#"t: { "x" : 1 , "y" : [ "a" , "b" ] } "#), values("t:x=1,y=[a,b]"));
    }

    #[test]
    fn a_mistake_is_shown_where_it_stands() {
        use miette::Diagnostic;
        let said = |text: &str| {
            let error = parse(text).unwrap_err();
            let label = error.labels().unwrap().next().unwrap();
            let place = &text[label.offset()..label.offset() + label.len()];
            format!("{error} | {place} | {}", label.label().unwrap_or_default())
        };
        let all = [
            "fio:rw=",
            "t:id=",
            "t:id=a/b",
            "t:id=[a,b]",
            "t:id=a,id=b",
            "t:x=[a,,b]",
            "t:x=[1",
            "t:x",
            "t:a=1,=2",
            "t:a=1:=",
            r#"t:{"x":nul}"#,
            r#"t:{"x":}"#,
            r#"t:{x:1}"#,
            r#"t:{"x" 1}"#,
            r#"t:{"x":1"#,
        ];
        let lines: Vec<String> = all.iter().map(|text| format!("{text}   {}", said(text))).collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        fio:rw=   `rw` has no value | rw= | a value is expected after `=`
        t:id=   `id` has no value | id= | a value is expected after `=`
        t:id=a/b   `a/b` is no id | a/b | letters, digits, `_`, `.` and `-` make a name
        t:id=[a,b]   an id is one name | [a,b] | not a list
        t:id=a,id=b   `id` is given twice | id | here again
        t:x=[a,,b]   a value of this list is missing | , | before this
        t:x=[1   the list is not closed | [1 | a `]` is missing
        t:x   `x` has no value | x | `=value` is expected after it
        t:a=1,=2   a parameter's name is missing | = | here
        t:a=1:=   a parameter's name is missing | = | here
        t:{"x":nul}   not a value | nul | a text, a number, true, false or a list is expected
        t:{"x":}   not JSON | } | a value is expected before this
        t:{x:1}   not JSON | x | a name in double quotes, or a `}`, is expected
        t:{"x" 1}   not JSON | "x" | `:` and a value are expected after it
        t:{"x":1   the object is not closed | {"x":1 | a `}` is missing
        "#);
    }

    #[test]
    fn an_object_keeps_the_places_of_its_values_and_what_it_says_twice() {
        let text = r#"fio:{"rw":["read","raed"],"rw":"write"}"#;
        let request = parse(text).unwrap();
        assert_eq!(request.given.len(), 2);
        let ValueForm::List(list) = &request.given[0].value.form else { panic!("a list was written") };
        assert_eq!(&text[list[1].span.clone()], "\"raed\"");
        assert_eq!(&text[request.given[1].name_span.clone()], "rw");
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
