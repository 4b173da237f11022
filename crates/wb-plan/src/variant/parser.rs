//! A variant as it is typed.

use std::collections::BTreeMap;

use wb_model::secrets::mask_arguments;
use wb_model::{AttemptSetup, TestName};

use super::{Variant, VariantSetting};
use crate::expand::KNOBS;
use crate::suggestion::suggest;
use crate::{PlanError, SpannedParam, spec};

/// The kinds of settings, and what follows each.
const KINDS: [(&str, &str); 5] = [
    ("param", "param:NAME=VALUE, a parameter of the test"),
    ("knob", "knob:NAME[@TARGET]=VALUE, a setting of the machine while a sample is taken"),
    ("env", "env:NAME=VALUE, a variable in the environment of its processes"),
    ("cmd", "cmd:COMMAND, run by sh before each sample"),
    ("bin", "bin:[PROGRAM=]PATH, a file in the place of its program"),
];

/// The word for a test as it stands.
const BASE: &str = "base";

impl Variant {
    /// Reads variants as they are typed, each with a name of its own.
    ///
    /// # Errors
    /// When one is none, or two have been given the same name.
    pub fn parse_all(texts: &[String]) -> Result<Vec<Self>, PlanError> {
        let mut all: Vec<Self> = Vec::new();
        for text in texts {
            let mut variant = Self::parse(text)?;
            let taken = |name: &TestName| all.iter().any(|other| other.name == *name);
            if taken(&variant.name) {
                let derived = explicit_name(text).is_none();
                let numbered = (2..).map(|number| TestName::new(format!("{}-{number}", variant.name)));
                let free = numbered.flatten().find(|name| !taken(name)).filter(|_| derived);
                variant.name = free.ok_or_else(|| {
                    PlanError::without_location(format!("two variants are called `{}`", variant.name))
                        .with_help("give each a name of its own: `NAME:param:…`")
                })?;
            }
            all.push(variant);
        }
        Ok(all)
    }

    /// Reads one.
    ///
    /// # Errors
    /// When it names no kind of setting, or sets nothing.
    pub fn parse(text: &str) -> Result<Self, PlanError> {
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
                    PlanError::without_location(format!("`{name}` is no name for a variant"))
                        .with_help("letters, digits, `_`, `.` and `-` make a name, digits alone none")
                })
            },
        )?;
        Ok(Self { name, text: text.to_owned(), settings })
    }
}

/// The name that a text begins with: what stands before the first `:`, unless that is a kind of setting.
fn explicit_name(text: &str) -> Option<&str> {
    let (first, rest) = text.split_once(':')?;
    let is_kind = |word: &str| KINDS.iter().any(|(kind, _)| *kind == word);
    let follows = rest.is_empty() || rest == BASE || rest.split_once(':').is_some_and(|(second, _)| is_kind(second));
    (!is_kind(first) && follows).then_some(first)
}

/// Cuts at each `+` that a setting follows.
fn split_settings(text: &str) -> Vec<&str> {
    let starts_setting =
        |rest: &str| KINDS.iter().any(|(kind, _)| rest.strip_prefix(kind).is_some_and(|rest| rest.starts_with(':')));
    let cuts = text.match_indices('+').map(|(at, _)| at).filter(|at| starts_setting(&text[at + 1..]));
    let mut parts = Vec::new();
    let mut start = 0;
    for cut in cuts {
        parts.push(&text[start..cut]);
        start = cut + 1;
    }
    parts.push(&text[start..]);
    parts
}

fn parse_setting(text: &str) -> Result<VariantSetting, PlanError> {
    let (kind, value) = text.split_once(':').unwrap_or((text, ""));
    let wrong = |what: &str| {
        let (_, form) = KINDS.iter().find(|(known, _)| *known == kind).unwrap_or(&KINDS[0]);
        PlanError::without_location(format!("`{text}` {what}")).with_help(format!("it is written `{form}`"))
    };
    match kind {
        "param" | "knob" => {
            // Read as a test's, so that values are written the same in both.
            let request = spec::parse(text)?;
            let [given] = &request.given[..] else { return Err(wrong("is not one parameter")) };
            let prefix = if kind == "knob" { KNOBS } else { "" };
            let given = SpannedParam { name: format!("{prefix}{}", given.name), ..given.clone() };
            Ok(VariantSetting::Param { given, source: request.source })
        }
        "env" => {
            let env = AttemptSetup { env: vec![value.to_owned()], before_command: None };
            env.variables().map_err(|_| wrong("is no environment variable"))?;
            Ok(VariantSetting::Env(value.to_owned()))
        }
        "cmd" if value.trim().is_empty() => Err(wrong("has no command")),
        "cmd" => Ok(VariantSetting::Before(value.to_owned())),
        "bin" => {
            let named = value.split_once('=').filter(|(name, _)| !name.is_empty() && !name.contains('/'));
            let (name, file) = named.map_or((None, value), |(name, file)| (Some(name.to_owned()), file));
            if file.is_empty() {
                return Err(wrong("names no file"));
            }
            let file = std::path::absolute(file).map_err(|error| wrong(&format!("is no path: {error}")))?;
            Ok(VariantSetting::Program { name, file: file.display().to_string() })
        }
        other => {
            let kinds = KINDS.map(|(kind, _)| kind);
            let near = suggest(other, kinds).map_or(String::new(), |near| format!("; did you mean `{near}:`?"));
            let forms = KINDS.map(|(_, form)| form).join("; ");
            Err(PlanError::without_location(format!("`{text}` is no variant{near}"))
                .with_help(format!("{forms}; or `{BASE}`")))
        }
    }
}

/// A name made of what a variant sets.
fn derive_name(text: &str) -> TestName {
    let mut names: BTreeMap<usize, String> = BTreeMap::new();
    // Names are shown and recorded everywhere.
    for (at, part) in mask_arguments(split_settings(text)).iter().enumerate() {
        let value = part.split_once(':').map_or(part.as_str(), |(_, value)| value);
        let file = part.starts_with("bin:").then(|| value.rsplit(['/', '=']).next()).flatten();
        let words = file.unwrap_or(value).split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_')));
        names.insert(at, words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-"));
    }
    let joined = names.into_values().collect::<Vec<_>>().join("-");
    let short: String = joined.chars().take(48).collect();
    let lettered = if short.chars().any(|c| c.is_ascii_alphabetic()) { short } else { format!("v{short}") };
    TestName::new(&lettered).unwrap_or_else(|_| unreachable!("`{lettered}` is a name"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Variant {
        Variant::parse(text).unwrap()
    }

    fn shown(texts: &[&str]) -> Vec<String> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        Variant::parse_all(&texts).unwrap().into_iter().map(|variant| variant.name.to_string()).collect()
    }

    #[test]
    fn variants_are_named_by_what_they_set_or_as_they_are_told() {
        assert_eq!(
            shown(&["base", "param:huge-pages=never", "env:A=1", "cmd:sync; echo 3", "bin:/opt/new/fio", "old:base"]),
            ["base", "huge-pages-never", "A-1", "sync-echo-3", "fio", "old"]
        );
        assert_eq!(shown(&["bin:/a/fio", "bin:/b/fio", "new:bin:redis-server=/x"]), ["fio", "fio-2", "new"]);
        assert_eq!(shown(&["env:API_TOKEN=hunter2", "env:API_TOKEN=hunter3"]), ["API_TOKEN", "API_TOKEN-2"]);
        assert_eq!(
            shown(&["env:AUTH=Bearer zq1", "env:URL=https://joe:zq2@h/?token=zq3", "env:H=Bearer zq4+env:B=2"]),
            ["AUTH", "URL-https-h-token", "H-Bearer-B-2"]
        );
        assert_eq!(shown(&["param:bs=4k+env:X=a+b", "env:N=:1"]), ["bs-4k-X-a-b", "N-1"]);
    }

    #[test]
    fn settings_are_cut_where_another_begins() {
        let [VariantSetting::Param { given, .. }, VariantSetting::Env(env), VariantSetting::Before(command)] =
            &parse("param:bs=[4k,8k]+env:A=1+2+cmd:echo a+b:c").settings[..]
        else {
            panic!("three settings")
        };
        assert_eq!((given.name.as_str(), env.as_str(), command.as_str()), ("bs", "A=1+2", "echo a+b:c"));
    }

    #[test]
    fn a_knob_has_a_target_and_stands_where_it_was_typed() {
        let [VariantSetting::Param { given, source }] = &parse("knob:hugetlb@2048kB=[0,2]").settings[..] else {
            panic!("one setting")
        };
        assert_eq!(given.name, "knobs.hugetlb@2048kB");
        assert_eq!(&source.text[given.name_span.clone()], "hugetlb@2048kB");
    }

    #[test]
    fn what_is_no_variant_is_told() {
        let told = |text: &str| Variant::parse(text).unwrap_err().to_string();
        for (text, wanted) in [
            ("huge-pages=never", "`huge-pages=never` is no variant"),
            ("parm:a=1", "`parm:a=1` is no variant; did you mean `param:`?"),
            ("param:a=1,b=2", "`param:a=1,b=2` is not one parameter"),
            ("env:1=2", "`env:1=2` is no environment variable"),
            ("cmd: ", "`cmd: ` has no command"),
            ("bin:", "`bin:` names no file"),
            ("a b:base", "`a b` is no name for a variant"),
            ("7:env:A=1", "`7` is no name for a variant"),
        ] {
            assert_eq!(told(text), wanted);
        }
        let twice = ["x:base".to_owned(), "x:env:A=1".to_owned()];
        assert_eq!(Variant::parse_all(&twice).unwrap_err().to_string(), "two variants are called `x`");
    }

    proptest! {
        #[test]
        fn no_text_panics(text: String) {
            let _ = Variant::parse_all(&[text.clone(), text.clone(), format!("env:A={text}"), format!("bin:{text}")]);
        }
    }
}
