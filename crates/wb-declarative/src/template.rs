//! Templates of commands and files, with placeholders `{name}` and `{name:format}`; `{{` and `}}` are braces. There is
//! no shell.

use std::collections::{BTreeMap, BTreeSet};

use wb_diagnostics::Diagnostic;
use wb_model::{Bytes, Nanos, ParamKind, ParamValue, Params};

use super::error::unknown_name;
/// Built-in placeholders, in addition to parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Builtin {
    /// Private folder of the preparation.
    Scratch,
    /// Private folder of one run of the measured command.
    SampleFolder,
    Work,
    /// Requested duration of the measured command.
    Seconds,
    /// A free TCP and UDP port, the same for the preparation and all samples.
    Port,
    DefinitionFolder,
    /// CPUs that the measured processes may use.
    CpuCount,
    /// Cores of these CPUs.
    CoreCount,
}

impl Builtin {
    const ALL: [(&str, Self); 8] = [
        ("scratch", Self::Scratch),
        ("sample-folder", Self::SampleFolder),
        ("work", Self::Work),
        ("seconds", Self::Seconds),
        ("port", Self::Port),
        ("definition-folder", Self::DefinitionFolder),
        ("cpu-count", Self::CpuCount),
        ("core-count", Self::CoreCount),
    ];

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(candidate, _)| *candidate == name).map(|(_, builtin)| *builtin)
    }

    pub(super) fn names() -> impl Iterator<Item = &'static str> + Clone {
        Self::ALL.iter().map(|(name, _)| *name)
    }
}

/// Phase in which a template is expanded; it decides which placeholders are available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Only parameters are available.
    Plan,
    /// Preparation and cleanup.
    Prepare,
    /// One run of the measured command.
    Sample,
}

/// How a parameter is expanded in a command.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ArgumentShape {
    /// One argument, or a part of one.
    One(ParamKind),
    /// One argument for each value.
    List,
    /// Split as by a shell.
    Words,
    /// Arguments that the definition gives for each value.
    Table(BTreeMap<String, Vec<String>>),
}

#[derive(Debug)]
pub(super) struct TemplateScope<'a> {
    pub(super) argument_shapes: &'a BTreeMap<String, ArgumentShape>,
    pub(super) phase: Phase,
    pub(super) has_folder: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum ValueFormat {
    Canonical,
    Size(f64),
    Time(f64),
    WholeSeconds,
}

const SIZES: [(&str, f64); 4] = [("B", 1.0), ("KiB", 1024.0), ("MiB", 1_048_576.0), ("GiB", 1_073_741_824.0)];
const TIMES: [(&str, f64); 4] = [("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)];

#[derive(Debug, Clone, PartialEq)]
enum Variable {
    Param(String, ArgumentShape),
    Builtin(Builtin),
}

#[derive(Debug, Clone, PartialEq)]
enum TemplatePart {
    Text(String),
    Placeholder(Variable, ValueFormat),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Template(Vec<TemplatePart>);

#[derive(Debug, Clone, PartialEq)]
pub(super) struct CommandTemplate(Vec<Template>);

#[derive(Debug, Clone)]
pub(super) struct Bindings<'a> {
    pub(super) params: &'a Params,
    pub(super) builtins: BTreeMap<Builtin, ParamValue>,
}

impl Bindings<'_> {
    pub(super) fn with(mut self, builtin: Builtin, value: ParamValue) -> Self {
        self.builtins.insert(builtin, value);
        self
    }

    fn get(&self, variable: &Variable) -> Result<ParamValue, String> {
        let (name, value) = match variable {
            Variable::Param(name, _) => (name.as_str(), self.params.get(name)),
            Variable::Builtin(builtin) => {
                let name = Builtin::ALL.iter().find(|(_, entry)| entry == builtin).map_or("", |(name, _)| name);
                (name, self.builtins.get(builtin))
            }
        };
        value.cloned().ok_or_else(|| format!("`{name}` has no value"))
    }
}

impl Template {
    /// Parses a text, and adds the built-in placeholders that it uses to `used`.
    pub(super) fn parse(
        text: &str,
        scope: &TemplateScope<'_>,
        used: &mut BTreeSet<Builtin>,
    ) -> Result<Self, Diagnostic> {
        let mut parts: Vec<TemplatePart> = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(position) = rest.find(['{', '}']) {
            literal.push_str(&rest[..position]);
            let (brace, after) = rest[position..].split_at(1);
            if after.starts_with(brace) {
                literal.push_str(brace);
                rest = &after[1..];
                continue;
            }
            let close = (brace == "{").then(|| after.find('}')).flatten().ok_or_else(|| unpaired_brace(brace))?;
            if !literal.is_empty() {
                parts.push(TemplatePart::Text(std::mem::take(&mut literal)));
            }
            parts.push(parse_placeholder(&after[..close], scope, used)?);
            rest = &after[close + 1..];
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(TemplatePart::Text(literal));
        }
        let is_several_arguments = |part: &TemplatePart| {
            matches!(
                part,
                TemplatePart::Placeholder(Variable::Param(_, ArgumentShape::Words | ArgumentShape::Table(_)), _)
            )
        };
        if parts.len() > 1 && parts.iter().any(is_several_arguments) {
            return Err(Diagnostic::new(format!("placeholder for several arguments within `{text}`"))
                .with_help("make it a separate argument"));
        }
        Ok(Self(parts))
    }

    /// Expands to one text; values of a list are joined by commas.
    pub(super) fn text(&self, bindings: &Bindings<'_>) -> Result<String, String> {
        self.0
            .iter()
            .map(|part| match part {
                TemplatePart::Text(text) => Ok(text.clone()),
                TemplatePart::Placeholder(variable, format) => match bindings.get(variable)? {
                    ParamValue::List(values) => {
                        Ok(values.iter().map(ParamValue::to_string).collect::<Vec<_>>().join(","))
                    }
                    value => format_value(&value, *format),
                },
            })
            .collect()
    }

    pub(super) fn uses_param(&self, param: &str) -> bool {
        self.0
            .iter()
            .any(|part| matches!(part, TemplatePart::Placeholder(Variable::Param(name, _), _) if name == param))
    }

    /// Whether its text, or an argument for a value of a parameter, contains a word.
    pub(super) fn mentions(&self, word: &str) -> bool {
        self.0.iter().any(|part| match part {
            TemplatePart::Text(text) => text.contains(word),
            TemplatePart::Placeholder(Variable::Param(_, ArgumentShape::Table(table)), _) => {
                table.values().flatten().any(|argument| argument.contains(word))
            }
            TemplatePart::Placeholder(..) => false,
        })
    }

    fn arguments(&self, bindings: &Bindings<'_>) -> Result<Vec<String>, String> {
        let [TemplatePart::Placeholder(variable @ Variable::Param(name, shape), _)] = self.0.as_slice() else {
            return Ok(vec![self.text(bindings)?]);
        };
        match (shape, bindings.get(variable)?) {
            (ArgumentShape::One(_), _) => Ok(vec![self.text(bindings)?]),
            (ArgumentShape::List, ParamValue::List(values)) => Ok(values.iter().map(ParamValue::to_string).collect()),
            (ArgumentShape::List, value) => Ok(vec![value.to_string()]),
            (ArgumentShape::Words, value) => split_words(&value.to_string()),
            (ArgumentShape::Table(table), value) => table
                .get(&value.to_string())
                .cloned()
                .ok_or_else(|| format!("`{name}` defines no arguments for value `{value}`")),
        }
    }
}

impl Template {
    /// The text, if it has no placeholders.
    pub(super) fn literal(&self) -> Option<&str> {
        match self.0.as_slice() {
            [TemplatePart::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The path after `{definition-folder}/`, if its placeholders have values.
    pub(super) fn path_below_here(&self, bindings: &Bindings<'_>) -> Option<String> {
        let is_here = |part: &TemplatePart| {
            matches!(part, TemplatePart::Placeholder(Variable::Builtin(Builtin::DefinitionFolder), _))
        };
        let position = self.0.iter().position(is_here)?;
        let rest = Self(self.0[position + 1..].to_vec()).text(bindings).ok()?;
        rest.strip_prefix('/').filter(|path| !path.is_empty()).map(str::to_owned)
    }
}

impl CommandTemplate {
    pub(super) fn parse(
        words: &[String],
        scope: &TemplateScope<'_>,
        used: &mut BTreeSet<Builtin>,
    ) -> Result<Self, Diagnostic> {
        if words.is_empty() {
            return Err(Diagnostic::new("empty command"));
        }
        words.iter().map(|word| Template::parse(word, scope, used)).collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn words(&self) -> &[Template] {
        &self.0
    }

    /// Expands to the arguments, starting with the program.
    pub(super) fn fill(&self, bindings: &Bindings<'_>) -> Result<Vec<String>, String> {
        let all: Vec<Vec<String>> = self.0.iter().map(|word| word.arguments(bindings)).collect::<Result<_, _>>()?;
        Ok(all.concat())
    }
}

/// Splits a text into words with the quotes and backslashes of a shell, without any expansion.
pub(super) fn split_words(text: &str) -> Result<Vec<String>, String> {
    shell_words::split(text).map_err(|_| format!("unclosed quote in `{text}`"))
}

fn unpaired_brace(brace: &str) -> Diagnostic {
    Diagnostic::new(format!("unmatched `{brace}`")).with_help(format!("write `{brace}{brace}` for a literal brace"))
}

fn parse_placeholder(
    text: &str,
    scope: &TemplateScope<'_>,
    used: &mut BTreeSet<Builtin>,
) -> Result<TemplatePart, Diagnostic> {
    let (name, format) = text.split_once(':').map_or((text, None), |(name, format)| (name, Some(format)));
    if let Some(shape) = scope.argument_shapes.get(name) {
        let format = match shape {
            ArgumentShape::One(kind) => parse_format(name, kind, format)?,
            _ if format.is_some() => return Err(Diagnostic::new(format!("parameter `{name}` takes no format"))),
            _ => ValueFormat::Canonical,
        };
        return Ok(TemplatePart::Placeholder(Variable::Param(name.to_owned(), shape.clone()), format));
    }
    let builtin = Builtin::from_name(name).ok_or_else(|| {
        let mut all: Vec<&str> = Builtin::names().collect();
        all.extend(scope.argument_shapes.keys().map(|name| name.as_str()));
        unknown_name(format!("unknown placeholder `{{{name}}}`"), name, all)
    })?;
    let is_of_sample = matches!(builtin, Builtin::SampleFolder | Builtin::Work | Builtin::Seconds);
    match scope.phase {
        Phase::Plan => {
            return Err(Diagnostic::new(format!("placeholder `{{{name}}}` is not available here"))
                .with_help("only parameters are available when a run is planned"));
        }
        Phase::Prepare if is_of_sample => {
            return Err(Diagnostic::new(format!("placeholder `{{{name}}}` is not available here"))
                .with_help("it is available only in the measured command and in files of a sample"));
        }
        _ => {}
    }
    if builtin == Builtin::DefinitionFolder && !scope.has_folder {
        return Err(Diagnostic::new(
            "placeholder `{definition-folder}` is not available: the definition is not in a folder",
        ));
    }
    let format = match builtin {
        Builtin::Seconds => parse_format(name, &ParamKind::Duration { min: None }, Some(format.unwrap_or("s")))?,
        _ => parse_format(name, &ParamKind::Text, format)?,
    };
    used.insert(builtin);
    Ok(TemplatePart::Placeholder(Variable::Builtin(builtin), format))
}

/// Formats by name, with their factors.
type FormatTable = &'static [(&'static str, f64)];

fn parse_format(name: &str, kind: &ParamKind, format: Option<&str>) -> Result<ValueFormat, Diagnostic> {
    let Some(format) = format else { return Ok(ValueFormat::Canonical) };
    let (formats, create): (FormatTable, fn(f64) -> ValueFormat) = match kind {
        ParamKind::Bytes { .. } => (&SIZES, ValueFormat::Size),
        ParamKind::Duration { .. } if format == "whole" => return Ok(ValueFormat::WholeSeconds),
        ParamKind::Duration { .. } => (&TIMES, ValueFormat::Time),
        _ => return Err(Diagnostic::new(format!("`{name}` takes no format")).with_help("only sizes and times do")),
    };
    let factor = formats.iter().find(|(unit, _)| *unit == format).map(|(_, factor)| *factor);
    let names =
        formats.iter().map(|(unit, _)| *unit).chain(matches!(kind, ParamKind::Duration { .. }).then_some("whole"));
    factor.map(create).ok_or_else(|| unknown_name(format!("unknown format `{format}` of `{name}`"), format, names))
}

fn format_value(value: &ParamValue, format: ValueFormat) -> Result<String, String> {
    let text = value.to_string();
    let time = || text.parse::<Nanos>().map(|time| time.0 as f64).map_err(|error| error.to_string());
    match format {
        ValueFormat::Canonical => Ok(text),
        ValueFormat::Size(factor) => {
            let size = text.parse::<Bytes>().map_err(|error| error.to_string())?;
            Ok((size.0 as f64 / factor).to_string())
        }
        ValueFormat::Time(factor) => Ok((time()? / factor).to_string()),
        ValueFormat::WholeSeconds => Ok((time()? / 1e9).ceil().max(1.0).to_string()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shapes() -> BTreeMap<String, ArgumentShape> {
        let table = [("true", vec!["--reverse"]), ("false", vec![])]
            .map(|(value, words)| (value.to_owned(), words.into_iter().map(str::to_owned).collect()));
        BTreeMap::from([
            ("cc".to_owned(), ArgumentShape::One(ParamKind::Text)),
            ("size".to_owned(), ArgumentShape::One(ParamKind::Bytes { min: None })),
            ("flags".to_owned(), ArgumentShape::Words),
            ("cpus".to_owned(), ArgumentShape::List),
            ("reverse".to_owned(), ArgumentShape::Table(table.into())),
        ])
    }

    fn fill(words: &[&str]) -> Result<Vec<String>, String> {
        let shapes = shapes();
        let scope = TemplateScope { argument_shapes: &shapes, phase: Phase::Sample, has_folder: false };
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let argv =
            CommandTemplate::parse(&words, &scope, &mut BTreeSet::new()).map_err(|diagnostic| diagnostic.one_line())?;
        let params: Params = [
            ("cc", ParamValue::Text("gcc; rm -rf $HOME".into())),
            ("size", ParamValue::Text("64k".into())),
            ("flags", ParamValue::Text("-O3 '-DX=a b'".into())),
            ("cpus", ParamValue::List(vec![ParamValue::Integer(0), ParamValue::Integer(2)])),
            ("reverse", ParamValue::Bool(true)),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        let builtins = BTreeMap::from([(Builtin::Seconds, ParamValue::Text("500ms".into()))]);
        argv.fill(&Bindings { params: &params, builtins })
    }

    #[test]
    fn a_value_is_one_argument_whatever_its_content() {
        assert_eq!(fill(&["{cc}", "-c", "x{size}.c"]).unwrap(), ["gcc; rm -rf $HOME", "-c", "x64k.c"]);
    }

    #[test]
    fn lists_words_and_tables_become_several_arguments() {
        assert_eq!(fill(&["a", "{flags}", "{cpus}"]).unwrap(), ["a", "-O3", "-DX=a b", "0", "2"]);
        assert_eq!(fill(&["a", "--cpus={cpus}", "{reverse}"]).unwrap(), ["a", "--cpus=0,2", "--reverse"]);
    }

    #[test]
    fn sizes_and_times_have_formats() {
        let words =
            fill(&["{size}", "{size:B}", "{size:MiB}", "{seconds}", "{seconds:ms}", "{seconds:whole}"]).unwrap();
        assert_eq!(words, ["64k", "65536", "0.0625", "0.5", "500", "1"]);
    }

    #[test]
    fn braces_are_doubled() {
        assert_eq!(fill(&["{{\"a\": {{}}}}"]).unwrap(), ["{\"a\": {}}"]);
        assert_eq!(fill(&["a}"]).unwrap_err(), "unmatched `}`: write `}}` for a literal brace");
        assert_eq!(fill(&["{a"]).unwrap_err(), "unmatched `{`: write `{{` for a literal brace");
    }

    #[test]
    fn unknown_placeholders_and_formats_are_errors() {
        assert_eq!(fill(&["{szie}"]).unwrap_err(), "unknown placeholder `{szie}`: did you mean `size`?");
        assert_eq!(fill(&["{size:MB}"]).unwrap_err(), "unknown format `MB` of `size`: did you mean `B`?");
        assert_eq!(fill(&["{cc:B}"]).unwrap_err(), "`cc` takes no format: only sizes and times do");
        assert!(fill(&["-x{flags}"]).unwrap_err().contains("several arguments within"));
        assert!(fill(&["{definition-folder}/x"]).unwrap_err().contains("not in a folder"));
        assert!(fill(&[]).unwrap_err().contains("empty command"));
    }

    #[test]
    fn placeholders_of_a_sample_are_not_available_before_it() {
        let shapes = shapes();
        for (phase, text, is_valid) in [
            (Phase::Prepare, "{work}", false),
            (Phase::Prepare, "{port}", true),
            (Phase::Plan, "{port}", false),
            (Phase::Plan, "{cc}", true),
        ] {
            let scope = TemplateScope { argument_shapes: &shapes, phase, has_folder: true };
            assert_eq!(Template::parse(text, &scope, &mut BTreeSet::new()).is_ok(), is_valid, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text: String) {
            let _ = fill(&[&text]);
        }

        #[test]
        fn no_text_of_braces_panics(text in "[{}:a-z]{0,24}") {
            let _ = fill(&[&text]);
        }

        #[test]
        fn doubled_braces_preserve_any_text(text: String) {
            let escaped = text.replace('{', "{{").replace('}', "}}");
            prop_assert_eq!(fill(&[&escaped]).unwrap(), [text]);
        }

        #[test]
        fn an_expanded_value_is_never_parsed_again(value in "[{}a-z$'\" ]{0,16}") {
            let shapes = BTreeMap::from([("x".to_owned(), ArgumentShape::One(ParamKind::Text))]);
            let scope = TemplateScope { argument_shapes: &shapes, phase: Phase::Plan, has_folder: false };
            let argv = CommandTemplate::parse(&["{x}".to_owned()], &scope, &mut BTreeSet::new()).unwrap();
            let params = Params::from([("x".to_owned(), ParamValue::Text(value.clone()))]);
            let bindings = Bindings { params: &params, builtins: BTreeMap::new() };
            prop_assert_eq!(argv.fill(&bindings).unwrap(), [value]);
        }
    }
}
