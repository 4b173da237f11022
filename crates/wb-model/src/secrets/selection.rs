//! Parameters of tests in a command line: `redis:keyspace=1000,command=get`. They are recorded as typed, whatever their
//! names, except variables (`env`), commands (`before`), and passwords in URLs.

use serde_json::Value as Json;

use super::names::is_secret_header;
use super::{mask_argument, mask_url_credentials};

/// Words before a `:` that are no names of tests: kinds of variants with another syntax, and provisioners.
const OTHER_KINDS: [&str; 5] = ["env", "cmd", "bin", "command", "ansible"];

/// Kinds of variants that are parameters, after a name of the variant: `NAME:param:keyspace=1000`.
const PARAM_KINDS: [&str; 2] = ["param", "knob"];

/// Parameters of every test that can contain secrets.
const ENVIRONMENTS: [&str; 2] = ["env", "before"];

const BARE_END: [char; 3] = [',', ':', ']'];

/// Deepest list in a list; deeper ones are no parameters.
const MAX_DEPTH: usize = 8;

/// Masks the secrets in `TEST:name=value,…` or `TEST:{…}`; none for other texts.
pub(super) fn mask_selection(text: &str) -> Option<String> {
    let (test, groups) = text.split_once(':')?;
    let is_name = !test.is_empty() && test.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    // A variant can combine kinds: `param:keyspace=1000+env:TOKEN=…`.
    let is_combined = OTHER_KINDS.iter().any(|kind| groups.contains(&format!("+{kind}:")));
    if !is_name || OTHER_KINDS.contains(&test) || is_combined || is_secret_header(test) {
        return None;
    }
    if PARAM_KINDS.iter().any(|kind| groups.strip_prefix(kind).is_some_and(|rest| rest.starts_with(':'))) {
        return mask_selection(groups).map(|masked| format!("{test}:{masked}"));
    }
    let mut scanner = Scanner { rest: groups, masked: format!("{test}:") };
    scanner.groups().then_some(scanner.masked)
}

pub fn mask_param(name: &str, text: &str) -> String {
    if ENVIRONMENTS.contains(&name) { mask_argument(text) } else { mask_url_credentials(text) }
}

/// Copies what it reads, with secrets masked. The methods return whether the text is valid so far.
struct Scanner<'a> {
    rest: &'a str,
    masked: String,
}

impl<'a> Scanner<'a> {
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    fn copy(&mut self, length: usize) {
        let copied = self.take(length);
        self.masked += copied;
    }

    fn skip_white_space(&mut self) {
        self.copy(self.rest.len() - self.rest.trim_start().len());
    }

    fn eat(&mut self, c: char) -> bool {
        let is_next = self.rest.starts_with(c);
        if is_next {
            self.copy(c.len_utf8());
        }
        is_next
    }

    /// Groups of parameters, separated by `:`. At least one has a parameter.
    fn groups(&mut self) -> bool {
        let mut has_params = false;
        loop {
            self.skip_white_space();
            if self.rest.starts_with('{') {
                if !self.object() {
                    return false;
                }
                has_params = true;
            } else if !self.rest.is_empty() && !self.rest.starts_with(':') {
                if !self.params() {
                    return false;
                }
                has_params = true;
            }
            self.skip_white_space();
            if self.rest.is_empty() {
                return has_params;
            }
            if !self.eat(':') {
                return false;
            }
        }
    }

    /// A JSON object with texts, numbers and lists of them.
    fn object(&mut self) -> bool {
        let mut values = serde_json::Deserializer::from_str(self.rest).into_iter::<Json>();
        let Some(Ok(Json::Object(params))) = values.next() else { return false };
        let length = values.byte_offset();
        if params.values().any(has_object) {
            return false;
        }
        let masked: serde_json::Map<String, Json> =
            params.iter().map(|(name, value)| (name.clone(), mask_json(name, value))).collect();
        let typed = self.take(length);
        self.masked += &if masked == params { typed.to_owned() } else { Json::from(masked).to_string() };
        true
    }

    fn params(&mut self) -> bool {
        loop {
            let Some(name) = self.name() else { return false };
            self.skip_white_space();
            if !self.eat('=') || !self.value(&name, 0) {
                return false;
            }
            self.skip_white_space();
            if !self.eat(',') {
                return true;
            }
            self.skip_white_space();
            if self.rest.is_empty() {
                return true;
            }
        }
    }

    fn name(&mut self) -> Option<String> {
        if self.rest.starts_with('"') {
            let (name, length) = quoted(self.rest)?;
            self.copy(length);
            return Some(name);
        }
        let is_end = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@' | '/'));
        let length = self.rest.find(is_end).unwrap_or(self.rest.len());
        let name = self.rest[..length].to_owned();
        self.copy(length);
        (length > 0).then_some(name)
    }

    /// The value of a parameter at a depth in lists: bare, in quotes, or a list.
    fn value(&mut self, name: &str, depth: usize) -> bool {
        self.skip_white_space();
        if depth < MAX_DEPTH && self.eat('[') {
            loop {
                self.skip_white_space();
                if self.eat(']') {
                    return true;
                }
                if !self.value(name, depth + 1) {
                    return false;
                }
                self.skip_white_space();
                if !self.eat(',') && !self.rest.starts_with(']') {
                    return false;
                }
            }
        }
        let is_quoted = self.rest.starts_with('"');
        let bare = self.rest.find(BARE_END).unwrap_or(self.rest.len());
        let found = if is_quoted { quoted(self.rest) } else { Some((self.rest[..bare].to_owned(), bare)) };
        let Some((value, length)) = found.filter(|(_, length)| *length > 0) else { return false };
        let masked = mask_param(name, &value);
        let typed = self.take(length);
        self.masked += &if masked == value {
            typed.to_owned()
        } else if is_quoted || masked.contains(BARE_END) {
            Json::from(masked).to_string()
        } else {
            masked
        };
        true
    }
}

/// The text in the quotes at the start, and their length.
fn quoted(text: &str) -> Option<(String, usize)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<String>();
    let value = values.next()?.ok()?;
    Some((value, values.byte_offset()))
}

fn has_object(value: &Json) -> bool {
    value.is_object() || value.as_array().is_some_and(|all| all.iter().any(has_object))
}

fn mask_json(name: &str, value: &Json) -> Json {
    match value {
        Json::String(text) => Json::from(mask_param(name, text)),
        Json::Array(all) => all.iter().map(|value| mask_json(name, value)).collect(),
        other => other.clone(),
    }
}
