//! Masking of secrets in recorded plans and test definitions; all other text is recorded unchanged.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use wb_model::secrets::{
    MASK, is_secret_name, mask_argument, mask_arguments, mask_declared, mask_lines, mask_param, mask_url_credentials,
};

/// Keys of a test definition with commands and variables; all others are needed to read its samples.
const COMMANDS: [&str; 7] = ["env", "command", "runner", "setup", "cleanup", "service", "build"];

/// Tables of a plan whose keys are the parameters of a test.
const TESTS: [&str; 2] = ["test", "peers"];

/// A key of a test that contains commands and is not a parameter.
const TOOLS: &str = "tools";

/// Masks the secrets in the text of a plan. Parameters of tests are recorded as typed.
pub fn mask_plan(text: &str) -> String {
    let Ok(table) = DeTable::parse(text) else { return mask_lines(text) };
    let mut strings = MaskedStrings { all: Vec::new(), keep_templates: false };
    for (name, value) in table.get_ref() {
        match value.get_ref() {
            DeValue::Array(tests) if TESTS.contains(&name.get_ref().as_ref()) => {
                tests.iter().for_each(|test| strings.collect_test(test));
            }
            _ => strings.collect(name.get_ref(), value),
        }
    }
    replace_strings(text, strings.all)
}

/// Masks the secrets in the text of a test definition. Templates are kept: what a command takes from parameters is not
/// a secret of the definition.
pub fn mask_definition(text: &str) -> String {
    let Ok(table) = DeTable::parse(text) else { return mask_declared(text).into_owned() };
    let mut strings = MaskedStrings { all: Vec::new(), keep_templates: true };
    for (name, value) in table.get_ref().iter().filter(|(name, _)| COMMANDS.contains(&name.get_ref().as_ref())) {
        strings.collect(name.get_ref(), value);
    }
    mask_declared(&replace_strings(text, strings.all)).into_owned()
}

struct MaskedStrings {
    all: Vec<(Range<usize>, Option<String>)>,
    keep_templates: bool,
}

impl MaskedStrings {
    fn collect(&mut self, name: &str, value: &Spanned<DeValue<'_>>) {
        match value.get_ref() {
            DeValue::String(text) => {
                let masked = if is_secret_name(name) { MASK.to_owned() } else { mask_argument(text) };
                self.push(name, value.span(), text, masked);
            }
            DeValue::Array(list) => self.collect_list(name, list),
            DeValue::Table(table) => table.iter().for_each(|(name, value)| self.collect(name.get_ref(), value)),
            DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Datetime(_) => {}
        }
    }

    fn collect_test(&mut self, test: &Spanned<DeValue<'_>>) {
        let DeValue::Table(entries) = test.get_ref() else { return };
        for (name, value) in entries {
            match name.get_ref().as_ref() {
                TOOLS => self.collect(TOOLS, value),
                name => self.collect_param(name, value),
            }
        }
    }

    fn collect_param(&mut self, name: &str, value: &Spanned<DeValue<'_>>) {
        match value.get_ref() {
            DeValue::String(text) => self.push(name, value.span(), text, mask_param(name, text)),
            DeValue::Array(list) => list.iter().for_each(|value| self.collect_param(name, value)),
            DeValue::Table(knobs) => knobs.iter().for_each(|(name, value)| self.collect_param(name.get_ref(), value)),
            DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Datetime(_) => {}
        }
    }

    /// A list may be the words of one command, which are masked together.
    fn collect_list<'a>(&mut self, name: &str, list: impl IntoIterator<Item = &'a Spanned<DeValue<'a>>>) {
        let mut words: Vec<(Range<usize>, &str)> = Vec::new();
        for value in list {
            match value.get_ref() {
                DeValue::String(text) => words.push((value.span(), text)),
                _ => self.collect(name, value),
            }
        }
        let together = mask_arguments(words.iter().map(|(_, text)| text));
        for ((position, text), masked_together) in words.into_iter().zip(together) {
            let masked = match mask_argument(text) {
                _ if is_secret_name(name) => MASK.to_owned(),
                unchanged if unchanged == text => masked_together,
                masked => masked,
            };
            self.push(name, position, text, masked);
        }
    }

    fn push(&mut self, name: &str, span: Range<usize>, text: &str, masked: String) {
        let is_template = self.keep_templates && text.contains('{') && !is_secret_name(name);
        self.all.push((span, (masked != text && !is_template).then_some(masked)));
    }
}

/// Replaces the strings in the text, and masks the rest: comments are free text.
fn replace_strings(text: &str, mut strings: Vec<(Range<usize>, Option<String>)>) -> String {
    strings.sort_by_key(|(span, _)| span.start);
    let mut masked = String::with_capacity(text.len());
    let mut from = 0;
    for (span, string) in strings {
        masked += &mask_url_credentials(&text[from..span.start]);
        match string {
            Some(string) => masked += &toml::Value::String(string).to_string(),
            None => masked += &text[span.clone()],
        }
        from = span.end;
    }
    masked + &mask_url_credentials(&text[from..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_plan_is_recorded_without_secrets_and_otherwise_unchanged() {
        let text = "# with password: of mine at https://joe:zq1@host/\npublish = \"up --token zq2 -v\"\ntools = [\"x --api-key zq3\"]\n\
                    [[test]]\nname = \"fio\"  # token=5\nenv = [\"A=1\", \"API_TOKEN=zq4 zq5\"]\n\
                    before = 'curl -u joe:zq6 https://joe:zq7@host/'\nkeys = 5\ntools = [\"sh -c 'x --password zq8 -v'\"]\n\
                    passphrase = \"typed --token abc\"\ntoken = [\"a\", \"b@c\"]\nurl = \"https://joe:zq9@host/\"\n\
                    knobs = { api-key = \"typed\" }\n[other]\npassphrase = \"zq10\"\n";
        let masked = mask_plan(text);
        assert!(!masked.contains("zq"), "{masked}");
        insta::assert_snapshot!(masked, @r#"
        # with password: of mine at https://***@host/
        publish = "up --token *** -v"
        tools = ["x --api-key ***"]
        [[test]]
        name = "fio"  # token=5
        env = ["A=1", "API_TOKEN=***"]
        before = "curl -u joe:*** https://***@host/"
        keys = 5
        tools = ["sh -c 'x --password *** -v'"]
        passphrase = "typed --token abc"
        token = ["a", "b@c"]
        url = "https://***@host/"
        knobs = { api-key = "typed" }
        [other]
        passphrase = "***"
        "#);
        assert_eq!(mask_plan(&masked), masked);
        assert!(!mask_plan("[broken\npassword=zq1\n").contains("zq"));
    }

    #[test]
    fn a_definition_keeps_what_is_needed_to_read_its_samples() {
        let text = "name = \"x\"\ncommand = [\"x\", \"-u\", \"joe:zq1\", \"--token={token}\"]\n\n[env]\nTOKEN = \"zq2\"\n\
                    [[metric]]\nname = \"keys\"\nregex = 'token=(\\S+)'\n";
        let masked = mask_definition(text);
        assert!(!masked.contains("zq") && masked.contains("'token=(\\S+)'") && masked.contains("{token}"), "{masked}");
    }

    proptest! {
        #[test]
        fn no_text_panics(text: String) {
            let _ = (mask_plan(&text), mask_definition(&text));
        }
    }
}
