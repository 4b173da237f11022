//! How the endpoints of a cell are started: commands with placeholders.

use std::collections::BTreeMap;

use regex::Regex;
use wb_diagnostics::{help_with_suggestion, suggest};

/// Placeholders besides the axes of the matrix, which a command may use as `{NAME}`.
pub const PLACEHOLDERS: [&str; 12] = [
    "host",
    "port",
    "address",
    "send",
    "receive",
    "iterations",
    "timeout",
    DURATION,
    "interval",
    "direction",
    "scenario",
    "folder",
];

/// The placeholder for the duration of a transfer of a fixed time, in seconds.
pub const DURATION: &str = "duration";

/// How an endpoint is built and started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    pub dialect: Dialect,
    pub counts: Counts,
    pub payload: Payload,
    /// Whether its programs, on either side, can transfer for a fixed time.
    pub duration: bool,
    /// The command that builds its programs; runs in the root of the matrix.
    pub build: Vec<String>,
    /// What it is built from; relative to the root of the matrix.
    pub sources: Vec<String>,
    /// Files and folders that its programs need, themselves included; relative to the peers file. Empty if they need
    /// only themselves.
    pub files: Vec<String>,
    /// `None` if it only opens connections.
    pub listener: Option<EndpointCommand>,
    /// `None` if it only accepts connections.
    pub dialer: Option<EndpointCommand>,
}

/// Whose counts of transferred bytes are exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counts {
    /// Those of dialer and listener, which are compared.
    #[default]
    Both,
    /// Those of the dialer alone: the listener does not wait for data in flight, like iperf3's server.
    Dialer,
}

/// What happens to the bytes that a dialer is to transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Payload {
    /// They cross the interfaces of the host unchanged.
    #[default]
    Wire,
    /// Other bytes cross the interfaces: they are compressed, or only their differences are sent.
    Transformed,
    /// They stay within the host and cross no interface: Unix sockets, pipes, shared memory.
    Local,
}

impl Payload {
    pub fn name(self) -> &'static str {
        match self {
            Self::Wire => "wire",
            Self::Transformed => "transformed",
            Self::Local => "local",
        }
    }

    /// The payload of a cell with these endpoints: the dialer's, or the listener's if the dialer's is [`Self::Wire`].
    pub fn of_pair(dialer: Self, listener: Self) -> Self {
        if dialer == Self::Wire { listener } else { dialer }
    }
}

impl std::str::FromStr for Payload {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        [Self::Wire, Self::Transformed, Self::Local]
            .into_iter()
            .find(|payload| payload.name() == name)
            .ok_or_else(|| format!("invalid payload `{name}`: expected wire, transformed or local"))
    }
}

/// What the programs of an endpoint print, and how they find each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// Lines of JSON, as in endpoints/README.md; the listener prints its address.
    #[default]
    Weighbridge,
    /// Nothing: Weighbridge's own network engine, over the transport tcp, tls or quic.
    Engine,
    /// libp2p/test-plans: environment variables, the address in Redis, statistics in YAML.
    TestPlans,
    /// libp2p/unified-testing: like test-plans, with unique Redis keys.
    UnifiedTesting,
}

impl Dialect {
    pub fn is_suite(self) -> bool {
        matches!(self, Self::TestPlans | Self::UnifiedTesting)
    }
}

/// A command with placeholders.
#[derive(Debug, Clone)]
pub struct EndpointCommand {
    pub argv: Vec<Argument>,
    pub env: BTreeMap<String, Template>,
    /// The line of standard output with which a listener reports that it accepts connections; the group `address` is
    /// what its dialer connects to. `None`: `{"listening": "ADDRESS"}`.
    pub ready: Option<Regex>,
    /// The image of its container; `argv` are then the arguments of the entry point, and may be empty.
    pub container: Option<ContainerImage>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerImage {
    pub name: String,
    /// Further options of the engine's `create`, such as `--init`.
    pub options: Vec<String>,
}

/// One or several arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Argument {
    Single(Template),
    /// Given only if all placeholders have a value.
    Group(Vec<Template>),
}

/// A text with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    text: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Placeholder(String),
}

pub type Values<'a> = BTreeMap<&'a str, String>;

/// The error of a placeholder that has no value in a cell.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{{{0}}}` has no value in this cell: write the arguments that need it as a list of their own")]
pub struct MissingValue(String);

impl Template {
    /// Parses a text in which `{NAME}` is a placeholder, and `{{` and `}}` are braces. Fails if a brace is not closed,
    /// or a placeholder is neither an axis nor one of [`PLACEHOLDERS`].
    pub fn parse(text: &str, axes: &[String]) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(position) = rest.find(['{', '}']) {
            literal.push_str(&rest[..position]);
            let brace = &rest[position..=position];
            rest = &rest[position + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                literal.push_str(brace);
                rest = after;
                continue;
            }
            let end = (brace == "{").then(|| rest.find('}')).flatten();
            let end =
                end.ok_or_else(|| format!("invalid text `{text}`: expected `{{NAME}}`, or `{{{{` for a brace"))?;
            let name = &rest[..end];
            check_placeholder(name, axes)?;
            if !literal.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut literal)));
            }
            parts.push(Part::Placeholder(name.to_owned()));
            rest = &rest[end + 1..];
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Text(literal));
        }
        Ok(Self { text: text.to_owned(), parts })
    }

    /// Replaces the placeholders. Fails if one has no value.
    pub fn fill(&self, values: &Values<'_>) -> Result<String, MissingValue> {
        self.parts.iter().try_fold(String::new(), |text, part| match part {
            Part::Text(part) => Ok(text + part),
            Part::Placeholder(name) => match values.get(name.as_str()) {
                Some(value) => Ok(text + value),
                None => Err(MissingValue(name.clone())),
            },
        })
    }
}

fn check_placeholder(name: &str, axes: &[String]) -> Result<(), String> {
    let all = || axes.iter().map(String::as_str).chain(PLACEHOLDERS);
    if all().any(|placeholder| placeholder == name) {
        return Ok(());
    }
    let help = format!("expected one of {}", all().collect::<Vec<_>>().join(", "));
    Err(format!("unknown placeholder `{{{name}}}`: {}", help_with_suggestion(suggest(name, all()).as_ref(), &help)))
}

impl PartialEq for EndpointCommand {
    fn eq(&self, other: &Self) -> bool {
        self.definition(str::to_owned) == other.definition(str::to_owned)
    }
}

impl Eq for EndpointCommand {}

impl EndpointCommand {
    /// Describes the command: a line for each argument and variable, and the pattern. `name` replaces the texts of
    /// arguments.
    pub fn definition(&self, name: impl Fn(&str) -> String) -> String {
        let mut lines: Vec<String> = Vec::new();
        for argument in &self.argv {
            match argument {
                Argument::Single(template) => lines.push(format!("argument {}", name(&template.text))),
                Argument::Group(group) => {
                    lines.extend(group.iter().map(|template| format!("group {}", name(&template.text))));
                    lines.push("end of group".to_owned());
                }
            }
        }
        lines.extend(self.env.iter().map(|(name, value)| format!("variable {name}={}", value.text)));
        lines.extend(self.ready.iter().map(|ready| format!("ready {ready}")));
        if let Some(ContainerImage { name, options }) = &self.container {
            lines.push(format!("image {name}"));
            lines.extend(options.iter().map(|option| format!("option {option}")));
        }
        lines.join("\n")
    }

    /// The program and its arguments. Fails if a placeholder outside of a group has no value.
    pub fn fill(&self, values: &Values<'_>) -> Result<Vec<String>, MissingValue> {
        let mut argv = Vec::new();
        for argument in &self.argv {
            match argument {
                Argument::Single(template) => argv.push(template.fill(values)?),
                Argument::Group(group) => {
                    if let Ok(group) = group.iter().map(|template| template.fill(values)).collect::<Result<Vec<_>, _>>()
                    {
                        argv.extend(group);
                    }
                }
            }
        }
        Ok(argv)
    }

    pub fn has_placeholder(&self, name: &str) -> bool {
        let arguments = self.argv.iter().flat_map(|argument| match argument {
            Argument::Single(template) => std::slice::from_ref(template),
            Argument::Group(group) => group.as_slice(),
        });
        let is_it = |part: &Part| matches!(part, Part::Placeholder(placeholder) if placeholder == name);
        arguments.chain(self.env.values()).any(|template| template.parts.iter().any(is_it))
    }

    /// The environment variables; one that needs a missing value is not set.
    pub fn fill_env(&self, values: &Values<'_>) -> Vec<(String, String)> {
        let filled = self.env.iter().filter_map(|(name, value)| Some((name.clone(), value.fill(values).ok()?)));
        filled.collect()
    }

    /// The arguments, without the program, that may be files of the host, such as the script of an interpreter: paths
    /// without placeholders.
    pub fn file_arguments(&self) -> Vec<String> {
        if self.container.is_some() {
            return Vec::new();
        }
        let templates = self.argv.iter().skip(1).flat_map(|argument| match argument {
            Argument::Single(template) => std::slice::from_ref(template),
            Argument::Group(group) => group.as_slice(),
        });
        let texts = templates.filter_map(|template| template.fill(&Values::new()).ok());
        texts.filter(|text| text.starts_with("./") || text.starts_with("../") || text.starts_with('/')).collect()
    }

    /// The program, if it is one of the host and does not depend on a placeholder.
    pub fn program(&self) -> Option<String> {
        if self.container.is_some() {
            return None;
        }
        match self.argv.first()? {
            Argument::Single(template) => template.fill(&Values::new()).ok(),
            Argument::Group(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn template(text: &str) -> Result<Template, String> {
        Template::parse(text, &["transport".to_owned(), "security".to_owned()])
    }

    fn command(argv: Vec<Argument>) -> EndpointCommand {
        EndpointCommand {
            argv,
            env: BTreeMap::from([("S".to_owned(), template("{security}").unwrap())]),
            ready: None,
            container: None,
        }
    }

    #[test]
    fn placeholders_are_replaced_and_braces_can_be_escaped() {
        let values = Values::from([("transport", "tcp".to_owned())]);
        assert_eq!(template("a-{transport}-{{b}}").unwrap().fill(&values).unwrap(), "a-tcp-{b}");
        let missing = template("{security}").unwrap().fill(&values).unwrap_err().to_string();
        assert!(missing.starts_with("`{security}` has no value in this cell"), "{missing}");
    }

    #[test]
    fn invalid_placeholders_are_refused_with_a_suggestion() {
        let error = template("{transprt}").unwrap_err();
        assert!(error.starts_with("unknown placeholder `{transprt}`: did you mean `transport`?"), "{error}");
        for text in ["{", "}", "{host", "a}b"] {
            assert!(template(text).unwrap_err().starts_with("invalid text"), "{text}");
        }
    }

    #[test]
    fn groups_and_variables_without_a_value_are_left_out() {
        let group = |texts: [&str; 2]| Argument::Group(texts.map(|text| template(text).unwrap()).to_vec());
        let of = |text: &str| Argument::Single(template(text).unwrap());
        let command = command(vec![of("./x"), group(["--s", "{security}"]), group(["--t", "{transport}"])]);
        let values = Values::from([("transport", "quic-v1".to_owned())]);
        assert_eq!(command.fill(&values).unwrap(), ["./x", "--t", "quic-v1"]);
        assert_eq!(command.fill_env(&values), []);
        assert_eq!(command.program().as_deref(), Some("./x"));
        let script =
            EndpointCommand { argv: vec![of("python3"), of("./a.py"), of("{transport}"), of("-x")], ..command };
        assert_eq!(script.file_arguments(), ["./a.py"]);
    }

    proptest! {
        #[test]
        fn any_text_is_a_template_or_an_error(text: String) {
            if let Ok(template) = template(&text) {
                let _ = template.fill(&Values::new());
            }
        }

        #[test]
        fn a_text_without_braces_stays_as_it_is(text in "[^{}]*") {
            prop_assert_eq!(template(&text).unwrap().fill(&Values::new()).unwrap(), text);
        }
    }
}
