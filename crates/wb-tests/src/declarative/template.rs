//! Placeholders in commands and files: `{name}` and `{name:form}`; `{{` and `}}` are braces. No shell has a part in it.

use std::collections::{BTreeMap, BTreeSet};

use wb_model::{Bytes, Nanos, ParamKind, ParamValue, Params};

use super::error::Diagnostic;

/// What a placeholder can stand for beside a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Builtin {
    /// The private folder of what was prepared.
    Scratch,
    /// The private folder of one run of the measured command.
    Sample,
    /// How much work is to be done.
    Work,
    /// How long the measured command is to take.
    Seconds,
    /// A free TCP and UDP port, the same for all that was prepared together.
    Port,
    /// The folder that the definition lies in.
    Here,
    /// How many CPUs the measured processes may use.
    CpuCount,
    /// How many cores those CPUs are of.
    CoreCount,
}

impl Builtin {
    const ALL: [(&str, Self); 8] = [
        ("scratch", Self::Scratch),
        ("sample", Self::Sample),
        ("work", Self::Work),
        ("seconds", Self::Seconds),
        ("port", Self::Port),
        ("here", Self::Here),
        ("cpu-count", Self::CpuCount),
        ("core-count", Self::CoreCount),
    ];

    /// The one of this name.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, builtin)| *builtin)
    }

    /// All their names.
    pub(super) fn names() -> impl Iterator<Item = &'static str> + Clone {
        Self::ALL.iter().map(|(name, _)| *name)
    }
}

/// Phase in which a template is expanded; it decides which placeholders are available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// While it is planned: parameters alone.
    Plan,
    /// While things are made ready or taken down.
    Prepare,
    /// For one run of the measured command.
    Sample,
}

/// What a parameter becomes in a command.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ArgumentShape {
    /// One text.
    One(ParamKind),
    /// One argument for each of its values.
    List,
    /// Its words, as a shell would split them.
    Words,
    /// The arguments that the definition gives for each value.
    Table(BTreeMap<String, Vec<String>>),
}

/// The names that placeholders can use.
#[derive(Debug)]
pub(super) struct TemplateScope<'a> {
    /// Parameters by name.
    pub(super) argument_shapes: &'a BTreeMap<String, ArgumentShape>,
    /// By when.
    pub(super) phase: Phase,
    /// Whether the definition lies in a folder.
    pub(super) has_folder: bool,
}

/// How a value is written.
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

/// A text with placeholders.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Template(Vec<TemplatePart>);

/// A command with placeholders.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CommandTemplate(Vec<Template>);

/// What placeholders stand for, once it is known.
#[derive(Debug, Clone)]
pub(super) struct Bindings<'a> {
    /// The effective parameters.
    pub(super) params: &'a Params,
    /// The rest.
    pub(super) builtins: BTreeMap<Builtin, ParamValue>,
}

impl Bindings<'_> {
    /// With one more.
    pub(super) fn with(mut self, builtin: Builtin, value: ParamValue) -> Self {
        self.builtins.insert(builtin, value);
        self
    }

    fn get(&self, source: &Variable) -> Result<ParamValue, String> {
        let (name, value) = match source {
            Variable::Param(name, _) => (name.as_str(), self.params.get(name)),
            Variable::Builtin(builtin) => {
                let name = Builtin::ALL.iter().find(|(_, known)| known == builtin).map_or("", |(name, _)| name);
                (name, self.builtins.get(builtin))
            }
        };
        value.cloned().ok_or_else(|| format!("`{name}` has no value"))
    }
}

impl Template {
    /// Reads a text; what it uses of the built-in placeholders is added to `used`.
    pub(super) fn parse(
        text: &str,
        known: &TemplateScope<'_>,
        used: &mut BTreeSet<Builtin>,
    ) -> Result<Self, Diagnostic> {
        let mut pieces: Vec<TemplatePart> = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            literal.push_str(&rest[..at]);
            let (brace, after) = rest[at..].split_at(1);
            if after.starts_with(brace) {
                literal.push_str(brace);
                rest = &after[1..];
                continue;
            }
            let close = (brace == "{").then(|| after.find('}')).flatten().ok_or_else(|| unpaired_brace(brace))?;
            if !literal.is_empty() {
                pieces.push(TemplatePart::Text(std::mem::take(&mut literal)));
            }
            pieces.push(parse_placeholder(&after[..close], known, used)?);
            rest = &after[close + 1..];
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            pieces.push(TemplatePart::Text(literal));
        }
        let several = |piece: &TemplatePart| {
            matches!(
                piece,
                TemplatePart::Placeholder(Variable::Param(_, ArgumentShape::Words | ArgumentShape::Table(_)), _)
            )
        };
        if pieces.len() > 1 && pieces.iter().any(several) {
            return Err(Diagnostic::new(format!("`{text}` has a placeholder of several arguments inside of a text"))
                .with_help("make it an element of its own"));
        }
        Ok(Self(pieces))
    }

    /// The text, with a list's values joined by commas.
    pub(super) fn text(&self, bindings: &Bindings<'_>) -> Result<String, String> {
        self.0
            .iter()
            .map(|piece| match piece {
                TemplatePart::Text(text) => Ok(text.clone()),
                TemplatePart::Placeholder(source, form) => match bindings.get(source)? {
                    ParamValue::List(values) => {
                        Ok(values.iter().map(ParamValue::to_string).collect::<Vec<_>>().join(","))
                    }
                    value => format_value(&value, *form),
                },
            })
            .collect()
    }

    /// Whether it has a placeholder for a parameter.
    pub(super) fn uses_param(&self, param: &str) -> bool {
        self.0
            .iter()
            .any(|piece| matches!(piece, TemplatePart::Placeholder(Variable::Param(name, _), _) if name == param))
    }

    /// Whether its own text, or an argument that it gives for a value of a parameter, has this in it.
    pub(super) fn mentions(&self, word: &str) -> bool {
        self.0.iter().any(|piece| match piece {
            TemplatePart::Text(text) => text.contains(word),
            TemplatePart::Placeholder(Variable::Param(_, ArgumentShape::Table(table)), _) => {
                table.values().flatten().any(|argument| argument.contains(word))
            }
            TemplatePart::Placeholder(..) => false,
        })
    }

    fn arguments(&self, bindings: &Bindings<'_>) -> Result<Vec<String>, String> {
        let [TemplatePart::Placeholder(source @ Variable::Param(name, shape), _)] = self.0.as_slice() else {
            return Ok(vec![self.text(bindings)?]);
        };
        match (shape, bindings.get(source)?) {
            (ArgumentShape::One(_), _) => Ok(vec![self.text(bindings)?]),
            (ArgumentShape::List, ParamValue::List(values)) => Ok(values.iter().map(ParamValue::to_string).collect()),
            (ArgumentShape::List, value) => Ok(vec![value.to_string()]),
            (ArgumentShape::Words, value) => split_words(&value.to_string()),
            (ArgumentShape::Table(table), value) => {
                table.get(&value.to_string()).cloned().ok_or_else(|| format!("`{name}` has no arguments for `{value}`"))
            }
        }
    }
}

impl Template {
    /// The whole text, where nothing in it is to be filled in.
    pub(super) fn literal(&self) -> Option<&str> {
        match self.0.as_slice() {
            [TemplatePart::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// What follows `{here}/` in it, where all of that is known.
    pub(super) fn path_below_here(&self, bindings: &Bindings<'_>) -> Option<String> {
        let is_here =
            |piece: &TemplatePart| matches!(piece, TemplatePart::Placeholder(Variable::Builtin(Builtin::Here), _));
        let at = self.0.iter().position(is_here)?;
        let rest = Self(self.0[at + 1..].to_vec()).text(bindings).ok()?;
        rest.strip_prefix('/').filter(|path| !path.is_empty()).map(str::to_owned)
    }
}

impl CommandTemplate {
    /// Reads the words of a command.
    pub(super) fn parse(
        words: &[String],
        known: &TemplateScope<'_>,
        used: &mut BTreeSet<Builtin>,
    ) -> Result<Self, Diagnostic> {
        if words.is_empty() {
            return Err(Diagnostic::new("a command has at least its program"));
        }
        words.iter().map(|word| Template::parse(word, known, used)).collect::<Result<_, _>>().map(Self)
    }

    /// Its words.
    pub(super) fn words(&self) -> &[Template] {
        &self.0
    }

    /// The arguments, the program first.
    pub(super) fn fill(&self, bindings: &Bindings<'_>) -> Result<Vec<String>, String> {
        let all: Vec<Vec<String>> = self.0.iter().map(|word| word.arguments(bindings)).collect::<Result<_, _>>()?;
        Ok(all.concat())
    }
}

/// Splits a text into words as a shell would, quotes and backslashes included, and does nothing else of what it does.
pub(super) fn split_words(text: &str) -> Result<Vec<String>, String> {
    shell_words::split(text).map_err(|_| format!("`{text}` has a quote that is not closed"))
}

fn unpaired_brace(brace: &str) -> Diagnostic {
    Diagnostic::new(format!("a `{brace}` stands alone"))
        .with_help(format!("write `{brace}{brace}` for the brace itself"))
}

fn parse_placeholder(
    text: &str,
    known: &TemplateScope<'_>,
    used: &mut BTreeSet<Builtin>,
) -> Result<TemplatePart, Diagnostic> {
    let (name, form) = text.split_once(':').map_or((text, None), |(name, form)| (name, Some(form)));
    if let Some(shape) = known.argument_shapes.get(name) {
        let form = match shape {
            ArgumentShape::One(kind) => parse_format(name, kind, form)?,
            _ if form.is_some() => return Err(Diagnostic::new(format!("`{name}` has no forms"))),
            _ => ValueFormat::Canonical,
        };
        return Ok(TemplatePart::Placeholder(Variable::Param(name.to_owned(), shape.clone()), form));
    }
    let builtin = Builtin::from_name(name).ok_or_else(|| {
        let mut all: Vec<&str> = Builtin::names().collect();
        all.extend(known.argument_shapes.keys().map(|name| name.as_str()));
        Diagnostic::unknown(format!("there is no placeholder `{{{name}}}`"), name, all)
    })?;
    let of_sample = matches!(builtin, Builtin::Sample | Builtin::Work | Builtin::Seconds);
    match known.phase {
        Phase::Plan => {
            return Err(Diagnostic::new(format!("`{{{name}}}` is not known yet here")).with_help("only parameters are"));
        }
        Phase::Prepare if of_sample => {
            return Err(Diagnostic::new(format!("`{{{name}}}` is not known yet here"))
                .with_help("only the measured command and files of a sample have it"));
        }
        _ => {}
    }
    if builtin == Builtin::Here && !known.has_folder {
        return Err(Diagnostic::new("`{here}` is the definition's folder, and this one lies in none"));
    }
    let form = match builtin {
        Builtin::Seconds => parse_format(name, &ParamKind::Duration { min: None }, Some(form.unwrap_or("s")))?,
        _ => parse_format(name, &ParamKind::Text, form)?,
    };
    used.insert(builtin);
    Ok(TemplatePart::Placeholder(Variable::Builtin(builtin), form))
}

/// Forms by name, with the factor of each.
type FormatTable = &'static [(&'static str, f64)];

fn parse_format(name: &str, kind: &ParamKind, form: Option<&str>) -> Result<ValueFormat, Diagnostic> {
    let Some(form) = form else { return Ok(ValueFormat::Canonical) };
    let (forms, make): (FormatTable, fn(f64) -> ValueFormat) = match kind {
        ParamKind::Bytes { .. } => (&SIZES, ValueFormat::Size),
        ParamKind::Duration { .. } if form == "whole" => return Ok(ValueFormat::WholeSeconds),
        ParamKind::Duration { .. } => (&TIMES, ValueFormat::Time),
        _ => return Err(Diagnostic::new(format!("`{name}` has no forms")).with_help("only sizes and times have")),
    };
    let factor = forms.iter().find(|(known, _)| *known == form).map(|(_, factor)| *factor);
    let known =
        forms.iter().map(|(known, _)| *known).chain(matches!(kind, ParamKind::Duration { .. }).then_some("whole"));
    factor.map(make).ok_or_else(|| Diagnostic::unknown(format!("`{name}` has no form `{form}`"), form, known))
}

fn format_value(value: &ParamValue, form: ValueFormat) -> Result<String, String> {
    let text = value.to_string();
    let time = || text.parse::<Nanos>().map(|time| time.0 as f64).map_err(|error| error.to_string());
    match form {
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
        let known = TemplateScope { argument_shapes: &shapes, phase: Phase::Sample, has_folder: false };
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let argv = CommandTemplate::parse(&words, &known, &mut BTreeSet::new()).map_err(|fault| fault.to_string())?;
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
    fn a_value_is_one_argument_whatever_it_holds() {
        assert_eq!(fill(&["{cc}", "-c", "x{size}.c"]).unwrap(), ["gcc; rm -rf $HOME", "-c", "x64k.c"]);
    }

    #[test]
    fn lists_words_and_tables_become_several_arguments() {
        assert_eq!(fill(&["a", "{flags}", "{cpus}"]).unwrap(), ["a", "-O3", "-DX=a b", "0", "2"]);
        assert_eq!(fill(&["a", "--cpus={cpus}", "{reverse}"]).unwrap(), ["a", "--cpus=0,2", "--reverse"]);
    }

    #[test]
    fn sizes_and_times_have_forms() {
        let words =
            fill(&["{size}", "{size:B}", "{size:MiB}", "{seconds}", "{seconds:ms}", "{seconds:whole}"]).unwrap();
        assert_eq!(words, ["64k", "65536", "0.0625", "0.5", "500", "1"]);
    }

    #[test]
    fn braces_are_doubled() {
        assert_eq!(fill(&["{{\"a\": {{}}}}"]).unwrap(), ["{\"a\": {}}"]);
        assert_eq!(fill(&["a}"]).unwrap_err(), "a `}` stands alone: write `}}` for the brace itself");
        assert_eq!(fill(&["{a"]).unwrap_err(), "a `{` stands alone: write `{{` for the brace itself");
    }

    #[test]
    fn what_is_unknown_is_said_before_anything_runs() {
        assert_eq!(fill(&["{szie}"]).unwrap_err(), "there is no placeholder `{szie}`: did you mean `size`?");
        assert_eq!(fill(&["{size:MB}"]).unwrap_err(), "`size` has no form `MB`: did you mean `B`?");
        assert_eq!(fill(&["{cc:B}"]).unwrap_err(), "`cc` has no forms: only sizes and times have");
        assert!(fill(&["-x{flags}"]).unwrap_err().contains("inside of a text"));
        assert!(fill(&["{here}/x"]).unwrap_err().contains("lies in none"));
        assert!(fill(&[]).unwrap_err().contains("at least its program"));
    }

    #[test]
    fn what_a_sample_decides_is_unknown_before_it() {
        let shapes = shapes();
        for (moment, text, is_fine) in [
            (Phase::Prepare, "{work}", false),
            (Phase::Prepare, "{port}", true),
            (Phase::Plan, "{port}", false),
            (Phase::Plan, "{cc}", true),
        ] {
            let known = TemplateScope { argument_shapes: &shapes, phase: moment, has_folder: true };
            assert_eq!(Template::parse(text, &known, &mut BTreeSet::new()).is_ok(), is_fine, "{text}");
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
        fn doubled_braces_give_any_text_back(text: String) {
            let escaped = text.replace('{', "{{").replace('}', "}}");
            prop_assert_eq!(fill(&[&escaped]).unwrap(), [text]);
        }

        #[test]
        fn a_filled_in_value_is_never_read_again(value in "[{}a-z$'\" ]{0,16}") {
            let shapes = BTreeMap::from([("x".to_owned(), ArgumentShape::One(ParamKind::Text))]);
            let known = TemplateScope { argument_shapes: &shapes, phase: Phase::Plan, has_folder: false };
            let argv = CommandTemplate::parse(&["{x}".to_owned()], &known, &mut BTreeSet::new()).unwrap();
            let params = Params::from([("x".to_owned(), ParamValue::Text(value.clone()))]);
            let bindings = Bindings { params: &params, builtins: BTreeMap::new() };
            prop_assert_eq!(argv.fill(&bindings).unwrap(), [value]);
        }
    }
}
