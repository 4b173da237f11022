//! An endpoint of our own file, and the commands that start it.

use std::collections::BTreeMap;

use regex::Regex;
use serde::Deserialize;

use super::entry_error::{EntryError, convert_items};
use crate::launch::{Argument, ContainerImage, Counts, DURATION, Dialect, EndpointCommand, Launch, Payload, Template};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EndpointEntry {
    pub(super) id: String,
    pub(super) version: Option<String>,
    pub(super) protocol: Option<String>,
    #[serde(default)]
    pub(super) supports: BTreeMap<String, Vec<String>>,
    pub(super) scenarios: Option<Vec<String>>,
    pub(super) server: Option<String>,
    pub(super) ceiling: Option<AxisEntry>,
    pub(super) comparison: Option<AxisEntry>,
    #[serde(default)]
    dialect: Dialect,
    #[serde(default)]
    counts: Counts,
    #[serde(default)]
    payload: Payload,
    #[serde(default)]
    duration: bool,
    #[serde(default)]
    build: Vec<String>,
    #[serde(default)]
    sources: Vec<String>,
    #[serde(default)]
    files: Vec<String>,
    container: Option<ContainerEntry>,
    listener: Option<CommandEntry>,
    dialer: Option<CommandEntry>,
}

pub(super) type AxisEntry = BTreeMap<String, OneOrMany>;

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ContainerEntry {
    image: String,
    #[serde(default)]
    options: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandEntry {
    #[serde(default)]
    command: Vec<ArgumentEntry>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    ready: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum ArgumentEntry {
    Single(String),
    Group(Vec<String>),
}

impl EndpointEntry {
    pub(super) fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// How the endpoint is started; `None` if the file does not say.
    pub(super) fn launch(&self, axes: &[String]) -> Result<Option<Launch>, EntryError> {
        let has_commands = self.listener.is_some() || self.dialer.is_some() || self.container.is_some();
        match (self.dialect, has_commands) {
            (Dialect::Engine, true) => {
                return Err(EntryError::new("the dialect `engine` has neither commands nor containers"));
            }
            (Dialect::Engine, false) | (_, true) => {}
            (_, false) => return Ok(None),
        }
        let container = self.container.as_ref().map(ContainerEntry::image).transpose();
        let container = container.map_err(|error| error.within("container"))?;
        let side = |name: &str, entry: &Option<CommandEntry>| {
            // The programs of the suites need no arguments: their images serve both sides.
            let is_implied = self.container.is_some() && self.dialect.is_suite();
            let implied = is_implied.then(CommandEntry::default);
            let command = entry.as_ref().or(implied.as_ref()).map(|entry| entry.command(axes, container.as_ref()));
            command.transpose().map_err(|error| error.with_subject(name).within(name))
        };
        if self.dialer.as_ref().is_some_and(|dialer| dialer.ready.is_some()) {
            let error = EntryError::new("dialer: invalid `ready`: expected it in `listener`");
            return Err(error.within("ready").within("dialer"));
        }
        let (listener, dialer) = (side("listener", &self.listener)?, side("dialer", &self.dialer)?);
        if self.duration {
            if self.dialect != Dialect::Weighbridge {
                let message = "invalid `duration`: only endpoints of the dialect `weighbridge` can be given one";
                return Err(EntryError::new(message).within("duration"));
            }
            if dialer.as_ref().is_some_and(|dialer| !dialer.has_placeholder(DURATION)) {
                let message = format!("dialer: invalid `command`: `duration = true` requires `{{{DURATION}}}` in it");
                return Err(EntryError::new(message).within("command").within("dialer"));
            }
        }
        Ok(Some(Launch {
            dialect: self.dialect,
            counts: self.counts,
            payload: self.payload,
            duration: self.duration,
            build: self.build.clone(),
            sources: self.sources.clone(),
            files: self.files.clone(),
            listener,
            dialer,
        }))
    }
}

/// Options of a container engine that the harness sets itself: where a container is, and that it is removed.
const RESERVED_OPTIONS: [&str; 10] =
    ["--name", "--network", "--net", "--cpuset-cpus", "--cpuset-mems", "--detach", "-d", "--cidfile", "--pod", "--rm"];

impl ContainerEntry {
    fn image(&self) -> Result<ContainerImage, EntryError> {
        let check_option = |option: &String| {
            let is_reserved = option.split('=').next().is_some_and(|name| RESERVED_OPTIONS.contains(&name));
            if is_reserved {
                let reason = "it is set for each sample, and cannot be given";
                return Err(EntryError::new(format!("invalid option `{option}` of a container: {reason}")));
            }
            Ok(option.clone())
        };
        let options = convert_items(&self.options, "options", check_option)?;
        if self.image.is_empty() || self.image.starts_with('-') {
            let message = format!("invalid image `{}`: expected the name of an image", self.image);
            return Err(EntryError::new(message).within("image"));
        }
        Ok(ContainerImage { name: self.image.clone(), options })
    }
}

impl CommandEntry {
    fn command(&self, axes: &[String], container: Option<&ContainerImage>) -> Result<EndpointCommand, EntryError> {
        if self.command.is_empty() && container.is_none() {
            return Err(EntryError::new("invalid `command`: expected a program"));
        }
        let template = |text: &String| Template::parse(text, axes).map_err(EntryError::new);
        let argument = |entry: &ArgumentEntry| match entry {
            ArgumentEntry::Single(text) => Ok(Argument::Single(template(text)?)),
            ArgumentEntry::Group(texts) => Ok(Argument::Group(texts.iter().map(template).collect::<Result<_, _>>()?)),
        };
        let variable = |(name, value): (&String, _)| match template(value) {
            Ok(value) => Ok((name.clone(), value)),
            Err(error) => Err(error.within(name.as_str()).within("env")),
        };
        let ready = self.ready.as_deref().map(Regex::new).transpose();
        Ok(EndpointCommand {
            argv: convert_items(&self.command, "command", argument)?,
            env: self.env.iter().map(variable).collect::<Result<_, _>>()?,
            ready: ready.map_err(|error| EntryError::new(format!("invalid `ready`: {error}")).within("ready"))?,
            container: container.cloned(),
        })
    }
}
