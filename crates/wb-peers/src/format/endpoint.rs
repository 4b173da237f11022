//! An endpoint of our own file, and the commands that start it.

use std::collections::BTreeMap;

use regex::Regex;
use serde::Deserialize;

use crate::launch::{Argument, Counts, Dialect, EndpointCommand, Launch, Template};
use crate::matrix::Scenario;

/// An endpoint or baseline.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EndpointEntry {
    pub(super) id: String,
    pub(super) version: Option<String>,
    pub(super) protocol: Option<String>,
    #[serde(default)]
    pub(super) supports: BTreeMap<String, Vec<String>>,
    pub(super) scenarios: Option<Vec<Scenario>>,
    #[serde(default)]
    dialect: Dialect,
    #[serde(default)]
    counts: Counts,
    #[serde(default)]
    build: Vec<String>,
    #[serde(default)]
    sources: Vec<String>,
    #[serde(default)]
    files: Vec<String>,
    listener: Option<CommandEntry>,
    dialer: Option<CommandEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandEntry {
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
    /// How it is started; none if the file does not say.
    pub(super) fn launch(&self, axes: &[String]) -> Result<Option<Launch>, String> {
        let has_commands = self.listener.is_some() || self.dialer.is_some();
        match (self.dialect, has_commands) {
            (Dialect::Engine, true) => return Err("the dialect `engine` has no commands".to_owned()),
            (Dialect::Engine, false) | (_, true) => {}
            (_, false) => return Ok(None),
        }
        let side = |name: &str, entry: &Option<CommandEntry>| {
            let command = entry.as_ref().map(|entry| entry.command(axes)).transpose();
            command.map_err(|reason| format!("{name}: {reason}"))
        };
        if self.dialer.as_ref().is_some_and(|dialer| dialer.ready.is_some()) {
            return Err("dialer: invalid `ready`: expected it in `listener`".to_owned());
        }
        Ok(Some(Launch {
            dialect: self.dialect,
            counts: self.counts,
            build: self.build.clone(),
            sources: self.sources.clone(),
            files: self.files.clone(),
            listener: side("listener", &self.listener)?,
            dialer: side("dialer", &self.dialer)?,
        }))
    }
}

impl CommandEntry {
    fn command(&self, axes: &[String]) -> Result<EndpointCommand, String> {
        if self.command.is_empty() {
            return Err("invalid `command`: expected a program".to_owned());
        }
        let template = |text: &String| Template::parse(text, axes);
        let argument = |entry: &ArgumentEntry| match entry {
            ArgumentEntry::Single(text) => Ok(Argument::Single(template(text)?)),
            ArgumentEntry::Group(texts) => Ok(Argument::Group(texts.iter().map(template).collect::<Result<_, _>>()?)),
        };
        let ready = self.ready.as_deref().map(Regex::new).transpose();
        Ok(EndpointCommand {
            argv: self.command.iter().map(argument).collect::<Result<_, String>>()?,
            env: self
                .env
                .iter()
                .map(|(name, value)| Ok((name.clone(), template(value)?)))
                .collect::<Result<_, String>>()?,
            ready: ready.map_err(|error| format!("invalid `ready`: {error}"))?,
        })
    }
}
