//! Parser for test specifications, as given on the command line.
//!
//! ```text
//! TEST[:GROUP[:GROUP…]]      GROUP is  name=value,name=value  or a JSON object
//! ```
//! A name is bare or in double quotes; that of a knob may have a target: `knobs.hugetlb@2048kB`. A value is bare text
//! (up to `,` `:` or `]`), text in double quotes (with JSON's escapes), or a list `[a,b,"c"]`. The first group holds
//! the test's parameters, further ones the properties of later stages. `id=` in any group sets the serial: the name of the
//! test within its plan, instead of its number; `metrics=` the metrics that decide about its cells.
//! White space around names and values is ignored.

use std::collections::BTreeMap;
use std::ops::Range;

use wb_diagnostics::{Diagnostic, SourceText};
use wb_model::{ParamValue, TestName};

use crate::criteria::METRICS;
use crate::request::{PropertyGroup, SpannedValue, ValueForm};
use crate::{Request, RequestCriteria, SpannedParam};

pub fn parse(text: &str) -> Result<Request, Diagnostic> {
    let source = SourceText::new("command line", text);
    let mut cursor = Cursor { source: &source, text, at: 0, depth: 0, bare: None };
    let test = cursor.word(|c| c != ':');
    if test.is_empty() {
        return Err(cursor.error(0..text.len(), "missing test name", "expected `TEST[:name=value,…]`"));
    }
    let mut groups = Vec::new();
    while cursor.peek() == Some(':') {
        groups.push(cursor.group()?);
    }
    if !cursor.is_done() {
        return Err(cursor.error(cursor.at..text.len(), "unexpected text", "expected `:` or the end"));
    }
    let id = take_id(&source, &mut groups)?;
    let criteria = take_metrics(&source, &mut groups)?;
    let mut groups = groups.into_iter();
    Ok(Request {
        test: text[test.clone()].to_owned(),
        test_span: test,
        id,
        params: groups.next().unwrap_or_default().params,
        stages: groups.collect(),
        tools: Vec::new(),
        criteria,
        programs: BTreeMap::new(),
        default_on: None,
        source,
    })
}

fn take_id(source: &SourceText, groups: &mut Vec<PropertyGroup>) -> Result<Option<TestName>, Diagnostic> {
    take(source, groups, "id")?.map(|value| parse_id(source, &value)).transpose()
}

fn take_metrics(source: &SourceText, groups: &mut Vec<PropertyGroup>) -> Result<RequestCriteria, Diagnostic> {
    let mut criteria = RequestCriteria::default();
    if let Some(value) = take(source, groups, METRICS)? {
        criteria.add_metrics(source, &value)?;
    }
    Ok(criteria)
}

/// Removes `NAME=` from the group that has it, and the group too if nothing is left.
fn take(source: &SourceText, groups: &mut Vec<PropertyGroup>, name: &str) -> Result<Option<SpannedValue>, Diagnostic> {
    let given: Vec<SpannedParam> =
        groups.iter_mut().flat_map(|group| group.params.extract_if(.., |given| given.name == name)).collect();
    groups.retain(|group| {
        !group.params.is_empty() || given.iter().all(|param| !group.at.contains(&param.name_span.start))
    });
    match given.as_slice() {
        [] => Ok(None),
        [param] => Ok(Some(param.value.clone())),
        [_, again, ..] => {
            let message = format!("`{name}` is given twice");
            Err(Diagnostic::at(source, again.name_span.clone(), message, "here again"))
        }
    }
}

/// Parses an id: a name that cannot be mistaken for a position.
pub(crate) fn parse_id(source: &SourceText, value: &SpannedValue) -> Result<TestName, Diagnostic> {
    let invalid = |message: &str, label: &str| {
        Diagnostic::at(source, value.span.clone(), message, label)
            .with_help("`id` names a test's position in the plan, so that inserting another test does not renumber it")
    };
    let ValueForm::Single(name) = &value.form else {
        return Err(invalid("invalid id: expected a single name", "a list"));
    };
    let text = name.to_string();
    match TestName::new(&text) {
        Ok(name) if text.chars().any(|c| !c.is_ascii_digit()) => Ok(name),
        Ok(_) => Err(invalid(
            &format!("invalid id `{text}`: expected at least one letter"),
            "digits alone denote a position",
        )),
        Err(_) if text.is_empty() => Err(invalid("`id` has no value", "expected a name")),
        Err(_) => Err(invalid(&format!("invalid id `{text}`"), "expected letters, digits, `_`, `.` and `-`")),
    }
}

/// Maximum depth of nested lists: more than any parameter has, and little of the stack.
const MAX_DEPTH: usize = 32;

struct Cursor<'a> {
    source: &'a SourceText,
    text: &'a str,
    at: usize,
    depth: usize,
    /// The last value without quotes.
    bare: Option<Range<usize>>,
}

impl Cursor<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn is_done(&self) -> bool {
        self.at == self.text.len()
    }

    fn eat(&mut self, expected: char) -> bool {
        let is_next = self.peek() == Some(expected);
        if is_next {
            self.at += expected.len_utf8();
        }
        is_next
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

    /// Takes the characters that `keep` accepts, without surrounding white space.
    fn word(&mut self, keep: impl Fn(char) -> bool) -> Range<usize> {
        self.skip_whitespace();
        let taken = self.take_while(keep);
        self.skip_whitespace();
        taken.start..taken.start + self.text[taken].trim_end().len()
    }

    fn error(&self, span: Range<usize>, message: &str, label: &str) -> Diagnostic {
        Diagnostic::at(self.source, span, message, label)
            .with_help("write parameters as `name=value,name=[a,b]`, and text with `,` `:` or `]` in double quotes")
    }

    /// The span of the next character, or of the last one at the end: something that can be underlined.
    fn current_span(&self) -> Range<usize> {
        match self.text[self.at..].chars().next() {
            Some(next) => self.at..self.at + next.len_utf8(),
            None => self.at - self.text.chars().next_back().map_or(0, char::len_utf8)..self.at,
        }
    }

    /// Parses one group with the colon before it, up to the next colon or the end.
    fn group(&mut self) -> Result<PropertyGroup, Diagnostic> {
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

    fn param(&mut self) -> Result<SpannedParam, Diagnostic> {
        let (name, name_at) = self.name()?;
        if name.is_empty() {
            return Err(self.error(self.current_span(), "missing parameter name", "here"));
        }
        if !self.eat('=') {
            let error = self.error(name_at.clone(), &format!("`{name}` has no value"), "expected `=value` after it");
            return Err(match self.quoted_value(name_at.start) {
                Some(quoted) => error.with_help(quoted),
                None => error,
            });
        }
        let span = name_at.start..self.at;
        match self.value()? {
            Some(value) => Ok(SpannedParam { name, name_span: name_at, value }),
            None => Err(self.error(span, &format!("`{name}` has no value"), "expected a value after `=`")),
        }
    }

    /// How to quote the last value if the text at `start`, after a separator, was meant as a part of it: a shell
    /// removed the quotes, or there were none.
    fn quoted_value(&self, start: usize) -> Option<String> {
        let bare = self.bare.clone()?;
        let separator = self.text[bare.end..start].trim();
        let rest = &self.text[start..];
        // Up to the next parameter: `-k1,2,stable=true`.
        let mut ends = rest.match_indices([',', ':']).map(|(position, _)| start + position);
        let is_param = |position: &usize| {
            let next = &self.text[position + 1..];
            let next = &next[..next.find([',', ':']).unwrap_or(next.len())];
            next.contains('=')
        };
        let end = ends.find(is_param).unwrap_or(self.text.len());
        let value = serde_json::Value::from(self.text[bare.start..end].trim_end());
        let quoted = format!("'{}{value}{}'", &self.text[..bare.start], &self.text[end..]);
        Some(format!(
            "a value without quotes ends at `{separator}`; to keep it, write {quoted} with both pairs of quotes"
        ))
    }

    fn name(&mut self) -> Result<(String, Range<usize>), Diagnostic> {
        if self.peek() == Some('"') {
            let SpannedValue { span: at, form } = self.quoted()?;
            self.skip_whitespace();
            let ValueForm::Single(name) = form else { unreachable!("a quoted text is a single value") };
            return Ok((name.to_string(), at.start + 1..at.end - 1));
        }
        // The part after `@` is named by the kernel: `node0/1048576kB`.
        let at = self.word(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@' | '/'));
        Ok((self.text[at.clone()].to_owned(), at))
    }

    /// Parses a value and surrounding white space; `None` if there is no value.
    fn value(&mut self) -> Result<Option<SpannedValue>, Diagnostic> {
        self.skip_whitespace();
        let value = match self.peek() {
            Some('[') => self.list(Self::value)?,
            Some('"') => self.quoted()?,
            _ => {
                let span = self.word(|c| !matches!(c, ',' | ':' | ']'));
                if span.is_empty() {
                    return Ok(None);
                }
                self.bare = Some(span.clone());
                SpannedValue::one(parse_bare(&self.text[span.clone()]), span)
            }
        };
        self.skip_whitespace();
        Ok(Some(value))
    }

    fn list(
        &mut self,
        element: impl Fn(&mut Self) -> Result<Option<SpannedValue>, Diagnostic>,
    ) -> Result<SpannedValue, Diagnostic> {
        let start = self.at;
        self.eat('[');
        if self.depth == MAX_DEPTH {
            let label = format!("expected at most {MAX_DEPTH} lists within each other");
            return Err(self.error(start..self.at, "lists nested too deeply", &label));
        }
        self.depth += 1;
        self.skip_whitespace();
        let mut list = Vec::new();
        while !self.eat(']') {
            match element(self)? {
                Some(value) => list.push(value),
                None if self.is_done() => {}
                None => return Err(self.error(self.current_span(), "missing value in the list", "before this")),
            }
            if !self.eat(',') && self.peek() != Some(']') {
                return Err(self.error(start..self.at, "unclosed list", "missing `]`"));
            }
            self.skip_whitespace();
        }
        self.depth -= 1;
        Ok(SpannedValue { form: ValueForm::List(list), span: start..self.at })
    }

    /// Parses text in double quotes, with JSON's escapes.
    fn quoted(&mut self) -> Result<SpannedValue, Diagnostic> {
        let start = self.at;
        let mut values = serde_json::Deserializer::from_str(&self.text[start..]).into_iter::<String>();
        match values.next() {
            Some(Ok(text)) => {
                self.at = start + values.byte_offset();
                Ok(SpannedValue::one(ParamValue::Text(text), start..self.at))
            }
            _ => Err(self.error(start..self.text.len(), "unclosed quote", "from here")),
        }
    }

    /// Parses a JSON object, here so that duplicate and invalid entries can be shown at their positions.
    fn object(&mut self) -> Result<Vec<SpannedParam>, Diagnostic> {
        let start = self.at;
        self.eat('{');
        self.skip_whitespace();
        let mut all = Vec::new();
        while !self.eat('}') {
            if self.peek() != Some('"') {
                return Err(self.error(self.current_span(), "invalid JSON", "expected a name in double quotes or `}`"));
            }
            let name = self.quoted()?;
            self.skip_whitespace();
            if !self.eat(':') {
                return Err(self.error(name.span, "invalid JSON", "expected `:` and a value after it"));
            }
            let name_at = name.span.start + 1..name.span.end - 1;
            let value = self
                .json()?
                .ok_or_else(|| self.error(self.current_span(), "invalid JSON", "expected a value before this"))?;
            all.push(SpannedParam { name: name.value().to_string(), name_span: name_at, value });
            if !self.eat(',') && self.peek() != Some('}') {
                return Err(self.error(start..self.at, "unclosed object", "missing `}`"));
            }
            self.skip_whitespace();
        }
        self.skip_whitespace();
        Ok(all)
    }

    /// Parses a JSON value and surrounding white space; `None` if there is no value.
    fn json(&mut self) -> Result<Option<SpannedValue>, Diagnostic> {
        self.skip_whitespace();
        let start = self.at;
        let value = match self.peek() {
            None | Some(',' | ']' | '}') => return Ok(None),
            Some('[') => self.list(Self::json)?,
            Some('"') => self.quoted()?,
            _ => {
                let index = self.word(|c| !matches!(c, ',' | ']' | '}'));
                let value = serde_json::from_str(&self.text[index]).map_err(|_| {
                    self.error(start..self.at, "invalid value", "expected a string, a number, true, false or a list")
                })?;
                SpannedValue::one(value, start..self.at)
            }
        };
        self.skip_whitespace();
        Ok(Some(value))
    }
}

/// Parses a bare word as a boolean, an integer, or else a text.
fn parse_bare(text: &str) -> ParamValue {
    match text {
        "true" => ParamValue::Bool(true),
        "false" => ParamValue::Bool(false),
        // `007` and `+7` stay as typed: whether they are numbers depends on the parameter's kind.
        text => match text.parse::<i64>() {
            Ok(number) if number.to_string() == text => ParamValue::Integer(number),
            _ => ParamValue::Text(text.to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values(text: &str) -> Vec<(String, ParamValue)> {
        parse(text).unwrap().params.iter().map(|param| (param.name.clone(), param.value.value())).collect()
    }

    fn text(text: &str) -> ParamValue {
        ParamValue::Text(text.to_owned())
    }

    #[test]
    fn a_test_alone_has_no_parameters() {
        let request = parse("fio").unwrap();
        assert_eq!((request.test.as_str(), request.params.len()), ("fio", 0));
    }

    #[test]
    fn both_notations_parse_alike() {
        let plain = values("fio:rw=[read,randwrite],bs=4k,iodepth=8,direct=true");
        let json = values(r#"fio:{"rw":["read","randwrite"],"bs":"4k","iodepth":8,"direct":true}"#);
        assert_eq!(plain, json);
        assert_eq!(plain[0].1, ParamValue::List(vec![text("read"), text("randwrite")]));
    }

    #[test]
    fn quotes_protect_separators() {
        assert_eq!(values(r#"fio:targets="/dev/a:b,c]",x=1"#)[0].1, text("/dev/a:b,c]"));
        assert_eq!(values(r#"t:x=["a,b",c]"#)[0].1, ParamValue::List(vec![text("a,b"), text("c")]));
        assert_eq!(values(r#"t:x="say \"hi\"""#)[0].1, text("say \"hi\""));
    }

    #[test]
    fn digits_are_kept_as_typed() {
        for typed in ["007", "+7", "-0", "00", "-07", "9223372036854775808"] {
            assert_eq!(values(&format!("t:x={typed}"))[0].1, text(typed));
            assert_eq!(values(&format!("t:x=[{typed}]"))[0].1, ParamValue::List(vec![text(typed)]));
            let refused = parse(&format!("t:id={}", typed.trim_start_matches(['+', '-']))).unwrap_err().to_string();
            assert!(refused.contains(typed.trim_start_matches(['+', '-'])), "{refused}");
        }
        assert_eq!(values("t:x=-7")[0].1, ParamValue::Integer(-7));
    }

    #[test]
    fn a_name_may_have_a_knob_target_and_quotes() {
        let names = |text: &str| values(text).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names("t:knobs.hugetlb@2048kB=2,x=1"), ["knobs.hugetlb@2048kB", "x"]);
        assert_eq!(names("t:knobs.nr-hugepages@node0/1048576kB=[0,1]"), ["knobs.nr-hugepages@node0/1048576kB"]);
        assert_eq!(names(r#"t:"knobs.offloads@eth0:1" = off , x=1"#), ["knobs.offloads@eth0:1", "x"]);
        let request = parse(r#"t:"knobs.thp"=never"#).unwrap();
        assert_eq!(&request.source.text[request.params[0].name_span.clone()], "knobs.thp");
    }

    #[test]
    fn an_id_is_found_in_any_group() {
        let request = parse("t:id=night,a=1:b=2:c=3").unwrap();
        assert_eq!(request.id.unwrap().as_str(), "night");
        assert_eq!(request.params.len(), 1);
        assert_eq!(request.stages.len(), 2);
        assert_eq!(parse("t::id=x").unwrap().id.unwrap().as_str(), "x");
        assert!(parse("t:id=0001").is_err());
        assert_eq!(parse("t:a=1:id=x").unwrap().stages, []);
        assert_eq!(parse("t:id=x:a=1").unwrap().params.len(), 1);
    }

    #[test]
    fn white_space_around_names_and_values_is_ignored() {
        assert_eq!(values(" t : x = 1 , y = [ a , b ] "), values("t:x=1,y=[a,b]"));
        assert_eq!(values(r#"t: { "x" : 1 , "y" : [ "a" , "b" ] } "#), values("t:x=1,y=[a,b]"));
    }

    #[test]
    fn an_error_is_shown_at_its_position() {
        let rendered = |text: &str| {
            let error = parse(text).unwrap_err();
            format!("{error} | {} | {}", error.excerpt(), error.label())
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
        let lines: Vec<String> = all.iter().map(|text| format!("{text}   {}", rendered(text))).collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        fio:rw=   `rw` has no value | rw= | expected a value after `=`
        t:id=   `id` has no value | id= | expected a value after `=`
        t:id=a/b   invalid id `a/b` | a/b | expected letters, digits, `_`, `.` and `-`
        t:id=[a,b]   invalid id: expected a single name | [a,b] | a list
        t:id=a,id=b   `id` is given twice | id | here again
        t:x=[a,,b]   missing value in the list | , | before this
        t:x=[1   unclosed list | [1 | missing `]`
        t:x   `x` has no value | x | expected `=value` after it
        t:a=1,=2   missing parameter name | = | here
        t:a=1:=   missing parameter name | = | here
        t:{"x":nul}   invalid value | nul | expected a string, a number, true, false or a list
        t:{"x":}   invalid JSON | } | expected a value before this
        t:{x:1}   invalid JSON | x | expected a name in double quotes or `}`
        t:{"x" 1}   invalid JSON | "x" | expected `:` and a value after it
        t:{"x":1   unclosed object | {"x":1 | missing `}`
        "#);
    }

    // The shell removes the quotes of `cmd:argv="sort -k1,2"`: they are needed twice.
    #[test]
    fn a_value_that_ends_at_a_separator_is_shown_quoted() {
        for (text, quoted) in [
            ("t:argv=sort -k1,2", r#"'t:argv="sort -k1,2"'"#),
            ("t:a=1,argv=sort -k1,2,b=[x,y]", r#"'t:a=1,argv="sort -k1,2",b=[x,y]'"#),
            ("t:target=/mnt/a:b,c,n=1", r#"'t:target="/mnt/a:b,c",n=1'"#),
            (r#"t:argv=sort "-k1,2""#, r#"'t:argv="sort \"-k1,2\""'"#),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.help().unwrap().contains(quoted), "{text}: {:?}", error.help());
            assert!(parse(quoted.trim_matches('\'')).is_ok(), "{quoted}");
        }
    }

    #[test]
    fn nested_lists_are_limited() {
        let nested = |depth: usize, open: &str| format!("{open}{}1{}", "[".repeat(depth), "]".repeat(depth));
        for (open, close) in [("t:x=", ""), ("t:{\"x\":", "}")] {
            assert!(parse(&(nested(MAX_DEPTH, open) + close)).is_ok());
            for depth in [MAX_DEPTH + 1, 5_000, 100_000] {
                let error = parse(&(nested(depth, open) + close)).unwrap_err();
                assert_eq!(error.to_string(), "lists nested too deeply");
            }
        }
        // Lists beside each other are not nested.
        assert!(parse(&format!("t:x=[{}]", vec!["[1]"; 100].join(","))).is_ok());
    }

    #[test]
    fn an_object_keeps_duplicates_and_the_spans_of_its_values() {
        let text = r#"fio:{"rw":["read","raed"],"rw":"write"}"#;
        let request = parse(text).unwrap();
        assert_eq!(request.params.len(), 2);
        let ValueForm::List(list) = &request.params[0].value.form else { panic!("expected a list") };
        assert_eq!(&text[list[1].span.clone()], "\"raed\"");
        assert_eq!(&text[request.params[1].name_span.clone()], "rw");
    }

    #[test]
    fn invalid_specifications_are_refused() {
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
        fn no_text_of_the_grammars_characters_panics(text in "[a-z:=,\\[\\]{}\"\\\\ 0-9é]{0,40}") {
            let _ = parse(&text);
        }
    }
}
