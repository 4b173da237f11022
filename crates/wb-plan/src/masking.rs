//! Plans and definitions of tests as they are recorded: without what looks like a secret, and otherwise as they were
//! written.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use wb_model::secrets::{MASK, is_secret_name, mask_argument, mask_arguments, mask_declared, mask_words};

/// Where a definition of a test has commands and variables. All else is needed to read its samples, and left as it is.
const COMMANDS: [&str; 7] = ["env", "command", "runner", "setup", "cleanup", "service", "build"];

/// A plan's text.
pub fn mask_plan(text: &str) -> String {
    match DeTable::parse(text) {
        Ok(table) => {
            let mut strings = MaskedStrings { all: Vec::new(), keep_templates: false };
            table.get_ref().iter().for_each(|(name, value)| strings.collect(name.get_ref(), value));
            replace_strings(text, strings.all)
        }
        Err(_) => text.split_inclusive('\n').map(mask_words).collect(),
    }
}

/// The text of a test's definition. What a command has from parameters is no secret of its author's.
pub fn mask_definition(text: &str) -> String {
    let Ok(table) = DeTable::parse(text) else { return mask_declared(text).into_owned() };
    let mut strings = MaskedStrings { all: Vec::new(), keep_templates: true };
    for (name, value) in table.get_ref().iter().filter(|(name, _)| COMMANDS.contains(&name.get_ref().as_ref())) {
        strings.collect(name.get_ref(), value);
    }
    mask_declared(&replace_strings(text, strings.all)).into_owned()
}

/// The strings of a document, each with what is recorded in its place.
struct MaskedStrings {
    all: Vec<(Range<usize>, Option<String>)>,
    keep_templates: bool,
}

impl MaskedStrings {
    fn collect(&mut self, name: &str, value: &Spanned<DeValue<'_>>) {
        match value.get_ref() {
            DeValue::String(text) => {
                let shown = if is_secret_name(name) { MASK.to_owned() } else { mask_argument(text) };
                self.push(name, value.span(), text, shown);
            }
            DeValue::Array(list) => self.collect_list(name, list),
            DeValue::Table(table) => table.iter().for_each(|(name, value)| self.collect(name.get_ref(), value)),
            DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Datetime(_) => {}
        }
    }

    /// The words of a command may be a list.
    fn collect_list<'a>(&mut self, name: &str, list: impl IntoIterator<Item = &'a Spanned<DeValue<'a>>>) {
        let mut words: Vec<(Range<usize>, &str)> = Vec::new();
        for value in list {
            match value.get_ref() {
                DeValue::String(text) => words.push((value.span(), text)),
                _ => self.collect(name, value),
            }
        }
        let together = mask_arguments(words.iter().map(|(_, text)| text));
        for ((at, text), shown_together) in words.into_iter().zip(together) {
            let shown = match mask_argument(text) {
                _ if is_secret_name(name) => MASK.to_owned(),
                unchanged if unchanged == text => shown_together,
                shown => shown,
            };
            self.push(name, at, text, shown);
        }
    }

    fn push(&mut self, name: &str, at: Range<usize>, text: &str, shown: String) {
        let is_template = self.keep_templates && text.contains('{') && !is_secret_name(name);
        self.all.push((at, (shown != text && !is_template).then_some(shown)));
    }
}

/// The text with strings replaced, and comments masked.
fn replace_strings(text: &str, mut strings: Vec<(Range<usize>, Option<String>)>) -> String {
    strings.sort_by_key(|(at, _)| at.start);
    let mut shown = String::with_capacity(text.len());
    let mut from = 0;
    for (at, string) in strings {
        shown += &mask_comments(&text[from..at.start]);
        match string {
            Some(string) => shown += &toml::Value::String(string).to_string(),
            None => shown += &text[at.clone()],
        }
        from = at.end;
    }
    shown + &mask_comments(&text[from..])
}

/// What stands between strings: only comments can have secrets.
fn mask_comments(text: &str) -> String {
    let line = |line: &str| match line.find('#') {
        Some(at) => format!("{}{}", &line[..at], mask_words(&line[at..])),
        None => line.to_owned(),
    };
    text.split_inclusive('\n').map(line).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_plan_is_recorded_without_secrets_and_otherwise_as_it_stands() {
        let text = "# with password: zq1 of mine\npublish = \"up --token zq2 -v\"\n\n[[test]]\nname = \"fio\"  # token=zq3\n\
                    env = [\"A=1\", \"API_TOKEN=zq4 zq5\"]\nbefore = 'curl -u joe:zq6 https://joe:zq7@host/'\nkeys = 5\n\
                    command = [\"x\", \"--password\", \"zq8 zq9\"]\npassphrase = \"zq10\"\n";
        let shown = mask_plan(text);
        assert!(!shown.contains("zq"), "{shown}");
        insta::assert_snapshot!(shown, @r#"
        # with password: *** of mine
        publish = "up --token *** -v"

        [[test]]
        name = "fio"  # token=***
        env = ["A=1", "API_TOKEN=***"]
        before = "curl -u joe:*** https://***@host/"
        keys = 5
        command = ["x", "--password", "***"]
        passphrase = "***"
        "#);
        assert_eq!(mask_plan(&shown), shown);
        assert!(!mask_plan("[broken\npassword=zq1\n").contains("zq"));
    }

    #[test]
    fn a_definition_keeps_all_that_reads_its_samples() {
        let text = "name = \"x\"\ncommand = [\"x\", \"-u\", \"joe:zq1\", \"--token={token}\"]\n\n[env]\nTOKEN = \"zq2\"\n\
                    [[metric]]\nname = \"keys\"\nregex = 'token=(\\S+)'\n";
        let shown = mask_definition(text);
        assert!(!shown.contains("zq") && shown.contains("'token=(\\S+)'") && shown.contains("{token}"), "{shown}");
    }

    proptest! {
        #[test]
        fn no_text_panics(text: String) {
            let _ = (mask_plan(&text), mask_definition(&text));
        }
    }
}
