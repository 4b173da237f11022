//! Parser for variants.

use std::collections::BTreeMap;

use wb_diagnostics::{Diagnostic, Suggestion, suggest};
use wb_model::secrets::mask_arguments;
use wb_model::{AttemptSetup, TestName};

use super::{Variant, VariantSetting};
use crate::expand::KNOBS;
use crate::{SpannedParam, spec};

const KINDS: [(&str, &str); 5] = [
    ("param", "param:NAME=VALUE, a parameter of the test"),
    ("knob", "knob:NAME[@TARGET]=VALUE, a system setting that is applied during each sample"),
    ("env", "env:NAME=VALUE, an environment variable of the test's processes"),
    ("cmd", "cmd:COMMAND, run by sh before each sample"),
    ("bin", "bin:[PROGRAM=]PATH, a file that replaces the program"),
];

const BASE: &str = "base";

impl Variant {
    /// Parses variants and gives each a unique name. Fails if one is invalid, or two were given the same name.
    pub fn parse_all(texts: &[String]) -> Result<Vec<Self>, Diagnostic> {
        let mut all: Vec<Self> = Vec::new();
        for text in texts {
            let mut variant = Self::parse(text)?;
            let is_taken = |name: &TestName| all.iter().any(|other| other.name == *name);
            if is_taken(&variant.name) {
                let is_derived = explicit_name(text).is_none();
                let numbered = (2..).map(|number| TestName::new(format!("{}-{number}", variant.name)));
                let free = numbered.flatten().find(|name| !is_taken(name)).filter(|_| is_derived);
                variant.name = free.ok_or_else(|| {
                    Diagnostic::new(format!("duplicate variant name `{}`", variant.name))
                        .with_help("give each variant a unique name: `NAME:param:…`")
                })?;
            }
            all.push(variant);
        }
        Ok(all)
    }

    pub fn parse(text: &str) -> Result<Self, Diagnostic> {
        let name = explicit_name(text);
        let rest = name.map_or(text, |name| &text[name.len() + 1..]);
        let settings: Vec<VariantSetting> = match rest {
            BASE | "" if name.is_some() || rest == BASE => Vec::new(),
            _ => split_settings(rest).into_iter().map(parse_setting).collect::<Result<_, _>>()?,
        };
        let name = name.map_or_else(
            || Ok(derive_name(rest)),
            |name| {
                let valid = TestName::new(name).ok().filter(|_| name.chars().any(|c| !c.is_ascii_digit()));
                valid.ok_or_else(|| {
                    Diagnostic::new(format!("invalid variant name `{name}`"))
                        .with_help("expected letters, digits, `_`, `.` and `-`, not digits alone")
                })
            },
        )?;
        Ok(Self { name, text: text.to_owned(), settings })
    }
}

/// The explicit name of a variant: the text before the first `:`, unless that is a kind of setting.
fn explicit_name(text: &str) -> Option<&str> {
    let (first, rest) = text.split_once(':')?;
    let is_kind = |word: &str| KINDS.iter().any(|(kind, _)| *kind == word);
    let is_variant = rest.is_empty() || rest == BASE || rest.split_once(':').is_some_and(|(second, _)| is_kind(second));
    (!is_kind(first) && is_variant).then_some(first)
}

fn split_settings(text: &str) -> Vec<&str> {
    let starts_setting =
        |rest: &str| KINDS.iter().any(|(kind, _)| rest.strip_prefix(kind).is_some_and(|rest| rest.starts_with(':')));
    let cuts =
        text.match_indices('+').map(|(position, _)| position).filter(|position| starts_setting(&text[position + 1..]));
    let mut parts = Vec::new();
    let mut start = 0;
    for cut in cuts {
        parts.push(&text[start..cut]);
        start = cut + 1;
    }
    parts.push(&text[start..]);
    parts
}

fn parse_setting(text: &str) -> Result<VariantSetting, Diagnostic> {
    let (kind, value) = text.split_once(':').unwrap_or((text, ""));
    let invalid = |reason: &str| {
        let (_, form) = KINDS.iter().find(|(name, _)| *name == kind).unwrap_or(&KINDS[0]);
        Diagnostic::new(format!("invalid variant `{text}`: {reason}")).with_help(format!("expected {form}"))
    };
    match kind {
        "param" | "knob" => {
            // Parsed like a test, so that values have the same syntax in both.
            let request = spec::parse(text)?;
            let [param] = &request.params[..] else { return Err(invalid("expected one parameter")) };
            let prefix = if kind == "knob" { KNOBS } else { "" };
            let param = SpannedParam { name: format!("{prefix}{}", param.name), ..param.clone() };
            Ok(VariantSetting::Param { param, source: request.source })
        }
        "env" => {
            let env = AttemptSetup { env: vec![value.to_owned()], before_command: None };
            env.variables().map_err(|_| invalid("expected an environment variable NAME=VALUE"))?;
            Ok(VariantSetting::Env(value.to_owned()))
        }
        "cmd" if value.trim().is_empty() => Err(invalid("missing command")),
        "cmd" => Ok(VariantSetting::Before(value.to_owned())),
        "bin" => {
            let replacement = value.split_once('=').filter(|(name, _)| !name.is_empty() && !name.contains('/'));
            let (name, file) = replacement.map_or((None, value), |(name, file)| (Some(name.to_owned()), file));
            if file.is_empty() {
                return Err(invalid("missing file"));
            }
            let file = std::path::absolute(file).map_err(|error| invalid(&format!("invalid path: {error}")))?;
            Ok(VariantSetting::Program { name, file: file.display().to_string() })
        }
        other => {
            let kinds = KINDS.map(|(kind, _)| kind);
            let near = suggest(other, kinds).map(|near| format!("; {}", Suggestion::new(format!("{}:", near.name()))));
            let near = near.unwrap_or_default();
            let forms = KINDS.map(|(_, form)| form).join("; ");
            Err(Diagnostic::new(format!("invalid variant `{text}`{near}"))
                .with_help(format!("expected {forms}; or `{BASE}`")))
        }
    }
}

fn derive_name(text: &str) -> TestName {
    let mut names: BTreeMap<usize, String> = BTreeMap::new();
    // Names are shown and recorded everywhere, so they must not contain secrets.
    for (index, part) in mask_arguments(split_settings(text)).iter().enumerate() {
        let value = part.split_once(':').map_or(part.as_str(), |(_, value)| value);
        let file = part.starts_with("bin:").then(|| value.rsplit(['/', '=']).next()).flatten();
        let words = file.unwrap_or(value).split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_')));
        names.insert(index, words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-"));
    }
    let joined = names.into_values().collect::<Vec<_>>().join("-");
    let short: String = joined.chars().take(48).collect();
    let name = if short.chars().any(|c| c.is_ascii_alphabetic()) { short } else { format!("v{short}") };
    TestName::new(&name).unwrap_or_else(|_| unreachable!("`{name}` is a valid name"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Variant {
        Variant::parse(text).unwrap()
    }

    fn parsed_names(texts: &[&str]) -> Vec<String> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        Variant::parse_all(&texts).unwrap().into_iter().map(|variant| variant.name.to_string()).collect()
    }

    #[test]
    fn variant_names_are_explicit_or_derived_from_the_settings() {
        assert_eq!(
            parsed_names(&[
                "base",
                "param:huge-pages=never",
                "env:A=1",
                "cmd:sync; echo 3",
                "bin:/opt/new/fio",
                "old:base"
            ]),
            ["base", "huge-pages-never", "A-1", "sync-echo-3", "fio", "old"]
        );
        assert_eq!(parsed_names(&["bin:/a/fio", "bin:/b/fio", "new:bin:redis-server=/x"]), ["fio", "fio-2", "new"]);
        assert_eq!(parsed_names(&["env:API_TOKEN=hunter2", "env:API_TOKEN=hunter3"]), ["API_TOKEN", "API_TOKEN-2"]);
        assert_eq!(
            parsed_names(&["env:AUTH=Bearer zq1", "env:URL=https://joe:zq2@h/?token=zq3", "env:H=Bearer zq4+env:B=2"]),
            ["AUTH", "URL-https-h-token", "H-Bearer-B-2"]
        );
        assert_eq!(parsed_names(&["param:bs=4k+env:X=a+b", "env:N=:1"]), ["bs-4k-X-a-b", "N-1"]);
    }

    #[test]
    fn settings_are_split_where_another_begins() {
        let [VariantSetting::Param { param, .. }, VariantSetting::Env(env), VariantSetting::Before(command)] =
            &parse("param:bs=[4k,8k]+env:A=1+2+cmd:echo a+b:c").settings[..]
        else {
            panic!("three settings")
        };
        assert_eq!((param.name.as_str(), env.as_str(), command.as_str()), ("bs", "A=1+2", "echo a+b:c"));
    }

    #[test]
    fn a_knob_keeps_its_target_and_its_span() {
        let [VariantSetting::Param { param, source }] = &parse("knob:hugetlb@2048kB=[0,2]").settings[..] else {
            panic!("one setting")
        };
        assert_eq!(param.name, "knobs.hugetlb@2048kB");
        assert_eq!(&source.text[param.name_span.clone()], "hugetlb@2048kB");
    }

    #[test]
    fn an_invalid_variant_has_a_message() {
        let message = |text: &str| Variant::parse(text).unwrap_err().to_string();
        for (text, expected) in [
            ("huge-pages=never", "invalid variant `huge-pages=never`"),
            ("parm:a=1", "invalid variant `parm:a=1`; did you mean `param:`?"),
            ("param:a=1,b=2", "invalid variant `param:a=1,b=2`: expected one parameter"),
            ("env:1=2", "invalid variant `env:1=2`: expected an environment variable NAME=VALUE"),
            ("cmd: ", "invalid variant `cmd: `: missing command"),
            ("bin:", "invalid variant `bin:`: missing file"),
            ("a b:base", "invalid variant name `a b`"),
            ("7:env:A=1", "invalid variant name `7`"),
        ] {
            assert_eq!(message(text), expected);
        }
        let duplicates = ["x:base".to_owned(), "x:env:A=1".to_owned()];
        assert_eq!(Variant::parse_all(&duplicates).unwrap_err().to_string(), "duplicate variant name `x`");
    }

    proptest! {
        #[test]
        fn no_text_panics(text: String) {
            let _ = Variant::parse_all(&[text.clone(), text.clone(), format!("env:A={text}"), format!("bin:{text}")]);
        }
    }
}
