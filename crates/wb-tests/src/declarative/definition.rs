//! A definition that was understood: everything that can be wrong with it is found while it is read.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use regex::Regex;
use toml::Spanned;
use wb_agent::Stream;
use wb_model::{Declaration, Nanos, Scope, Sha256, TestName};

use super::check::Check;
use super::error::{DefinitionError, Fault, Text};
use super::left::Place;
use super::params::{Declared, FromMachine};
use super::raw::{self, Folder, Words};
use super::reading::{Reading, Source, Way, regex};
use super::template::{Argv, Builtin, Known, Moment, Template};

/// A test in TOML.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) declaration: Declaration,
    /// Of its text and its files.
    pub(super) digest: Sha256,
    pub(super) folder: Option<String>,
    pub(super) machine: Vec<FromMachine>,
    pub(super) needs: Vec<Need>,
    pub(super) files: Vec<File>,
    pub(super) build: Vec<Argv>,
    pub(super) programs: Vec<String>,
    pub(super) setup: Vec<Argv>,
    pub(super) services: Vec<Service>,
    pub(super) measured: Measured,
    pub(super) env: Vec<(String, Template)>,
    pub(super) calibration: Calibration,
    pub(super) estimate: Option<Nanos>,
    pub(super) readings: Vec<Reading>,
    pub(super) checks: Vec<Check>,
    pub(super) cleanup: Vec<Argv>,
    pub(super) needs_port: bool,
}

/// What is measured.
#[derive(Debug)]
pub(super) enum Measured {
    /// A command, whose output is read.
    Command(Argv),
    /// A program that speaks the protocol of runners.
    Runner(Argv),
}

/// What decides how long a sample takes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Calibration {
    Work(raw::Work),
    Time,
    Fixed,
}

/// A program that is needed, which parameters may decide.
#[derive(Debug)]
pub(super) struct Need {
    pub(super) program: Template,
    pub(super) package: Template,
    pub(super) version: Vec<String>,
}

/// A file that is put into a private folder.
#[derive(Debug)]
pub(super) struct File {
    pub(super) name: String,
    pub(super) folder: Folder,
    pub(super) content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
    Bytes(Vec<u8>),
    Template(Template),
}

/// A server that is there while samples are taken.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) command: Argv,
    pub(super) ready: Ready,
    pub(super) limit: Nanos,
    pub(super) stop: Option<Argv>,
}

/// How a server shows that it is ready.
#[derive(Debug)]
pub(super) enum Ready {
    Line(Stream, Regex),
    Port(Template),
    Command(Argv),
}

impl Definition {
    /// Reads a definition. Files that it names lie in `folder`.
    pub(super) fn read(file: &str, text: &str, folder: Option<&Path>) -> Result<Self, DefinitionError> {
        let source = Text { file, text };
        let raw: raw::Definition = toml::from_str(text).map_err(|error| source.malformed(&error))?;
        Reader { text: source, folder, digest: text.as_bytes().to_vec() }.definition(&raw)
    }
}

struct Reader<'a> {
    text: Text<'a>,
    folder: Option<&'a Path>,
    digest: Vec<u8>,
}

impl Reader<'_> {
    fn wrong<T>(&self, span: Range<usize>, fault: Fault) -> Result<T, DefinitionError> {
        Err(self.text.wrong(span, fault))
    }

    fn definition(mut self, raw: &raw::Definition) -> Result<Definition, DefinitionError> {
        let name = TestName::new(raw.name.get_ref().as_str())
            .map_err(|error| self.text.wrong(raw.name.span(), Fault::new(error.to_string())))?;
        if raw.summary.get_ref().trim().is_empty() {
            return self.wrong(raw.summary.span(), Fault::new("a test has a summary"));
        }
        let declared = Declared::read(&self.text, &raw.param)?;
        let known = |moment| Known { shapes: &declared.shapes, moment, has_folder: self.folder.is_some() };
        let (planned, ready, sampled) = (known(Moment::Planned), known(Moment::Prepared), known(Moment::Sampled));
        let (mut prepared, mut used) = (BTreeSet::new(), BTreeSet::new());

        let needs = raw.requires.iter().map(|need| self.need(need, &planned)).collect::<Result<Vec<_>, _>>()?;
        let (build, programs) = match &raw.build {
            None => (Vec::new(), Vec::new()),
            Some(build) => (self.commands(&build.commands, &ready, &mut prepared)?, self.programs(&build.programs)?),
        };
        let setup = self.commands(&raw.setup, &ready, &mut prepared)?;
        let services: Result<Vec<_>, _> =
            raw.service.iter().map(|service| self.service(service.get_ref(), &ready, &mut prepared)).collect();
        let cleanup = self.commands(&raw.cleanup, &ready, &mut prepared)?;
        let measured = self.measured(raw, &sampled, &mut used)?;
        let is_runner = matches!(measured, Measured::Runner(_));
        let mut env = Vec::new();
        for (name, value) in &raw.env {
            env.push((name.clone(), self.template(value, &sampled, &mut used)?));
        }
        let has_folder = self.folder.is_some();
        let mut files = Vec::new();
        for file in &raw.file {
            let (moment, used) = match file.get_ref().folder {
                Folder::Scratch => (Moment::Prepared, &mut prepared),
                Folder::Sample => (Moment::Sampled, &mut used),
            };
            files.push(self.file(file, &Known { shapes: &declared.shapes, moment, has_folder }, used)?);
        }
        let calibration = match (used.contains(&Builtin::Work), used.contains(&Builtin::Seconds)) {
            (true, true) => {
                let fault = Fault::new("the command takes both `{work}` and `{seconds}`").with("choose one");
                return self.wrong(raw.name.span(), fault);
            }
            (true, false) => Calibration::Work(raw.work),
            (false, true) => Calibration::Time,
            (false, false) => Calibration::Fixed,
        };
        if raw.work.start == 0 || raw.work.most < raw.work.start {
            return self.wrong(raw.name.span(), Fault::new("`work.start` is at least 1 and `work.most` no less"));
        }
        let readings = self.readings(&raw.metric, is_runner)?;
        let needs_work = |reading: &Reading| matches!(reading.source, Some(Source::Rate));
        if let (Some(reading), Calibration::Time | Calibration::Fixed) =
            (readings.iter().find(|reading| needs_work(reading)), calibration)
        {
            let what = format!("`{}` is work per second, and the command takes no `{{work}}`", reading.metric.name);
            return self.wrong(raw.name.span(), Fault::new(what));
        }
        let mut bounds = BTreeSet::new();
        let checks = raw.check.iter();
        let checks = checks
            .map(|check| Check::read(&self.text, check, &readings, &sampled, &mut bounds, is_runner))
            .collect::<Result<Vec<_>, _>>()?;
        let recorded = [Builtin::Work, Builtin::Seconds];
        if bounds.iter().any(|builtin| !used.contains(builtin) || !recorded.contains(builtin)) {
            let fault = Fault::new("a check has a bound that the sample does not have");
            let way_out = "only parameters and what the command itself takes, like `{work}`, are known when it is read";
            return self.wrong(raw.name.span(), fault.with(way_out));
        }
        let scope = raw.scope.unwrap_or(if raw.build.is_some() { Scope::Cell } else { Scope::Sample });
        let mut definition = Definition {
            declaration: Declaration {
                name,
                summary: raw.summary.get_ref().trim().to_owned(),
                version: *raw.version.get_ref(),
                params: declared.params,
                scope,
                requires: Vec::new(),
            },
            digest: Sha256::of(&self.digest),
            folder: self.folder.map(|folder| folder.display().to_string()),
            machine: declared.machine,
            needs,
            files,
            build,
            programs,
            setup,
            services: services?,
            measured,
            env,
            calibration,
            estimate: raw.estimate,
            readings,
            checks,
            cleanup,
            needs_port: prepared.contains(&Builtin::Port) || used.contains(&Builtin::Port),
        };
        let defaults = super::params::defaults(&definition.declaration);
        definition.declaration.requires = definition.requirements(&defaults);
        Ok(definition)
    }

    fn measured(
        &self,
        raw: &raw::Definition,
        known: &Known<'_>,
        used: &mut BTreeSet<Builtin>,
    ) -> Result<Measured, DefinitionError> {
        match (&raw.command, &raw.runner) {
            (Some(command), None) => self.command(command, known, used).map(Measured::Command),
            (None, Some(runner)) => {
                let argv = self.command(runner, known, used)?;
                if used.contains(&Builtin::Work) || used.contains(&Builtin::Seconds) {
                    let fault = Fault::new("a runner is told its work and its time on standard input");
                    return self.wrong(runner.span(), fault.with("remove `{work}` and `{seconds}`"));
                }
                Ok(Measured::Runner(argv))
            }
            (Some(_), Some(runner)) => {
                self.wrong(runner.span(), Fault::new("a test has a `command` or a `runner`").with("remove one"))
            }
            (None, None) => {
                self.wrong(raw.name.span(), Fault::new("nothing is measured").with("add `command`, or `runner`"))
            }
        }
    }

    fn readings(&self, raw: &[Spanned<raw::Metric>], is_runner: bool) -> Result<Vec<Reading>, DefinitionError> {
        let mut readings: Vec<Reading> = Vec::new();
        for metric in raw {
            let reading = Reading::read(&self.text, metric.get_ref(), is_runner)?;
            let at = metric.get_ref().name.span();
            if readings.iter().any(|known| known.key() == reading.key()) {
                return self.wrong(at, Fault::new(format!("there are two metrics `{}`", reading.key())));
            }
            if reading.metric.primary && reading.optional {
                return self.wrong(at, Fault::new("the primary metric cannot be optional"));
            }
            readings.push(reading);
        }
        let primary: Vec<_> =
            raw.iter().filter(|metric| metric.get_ref().primary).map(|metric| metric.get_ref().name.span()).collect();
        match (primary.as_slice(), raw.first()) {
            ([_], _) => Ok(readings),
            ([_, second, ..], _) => {
                self.wrong(second.clone(), Fault::new("a test has one primary metric").with("mark one only"))
            }
            ([], Some(first)) => {
                let fault = Fault::new("no metric is primary").with("mark the one that decides with `primary = true`");
                self.wrong(first.get_ref().name.span(), fault)
            }
            ([], None) => self.wrong(0..0, Fault::new("a test has at least one [[metric]]")),
        }
    }

    fn need(&self, raw: &raw::Requires, known: &Known<'_>) -> Result<Need, DefinitionError> {
        Ok(Need {
            program: self.template(&raw.program, known, &mut BTreeSet::new())?,
            package: self.template(&raw.package, known, &mut BTreeSet::new())?,
            version: raw.version.clone(),
        })
    }

    fn programs(&self, names: &[Spanned<String>]) -> Result<Vec<String>, DefinitionError> {
        names.iter().map(|name| self.file_name(name)).collect()
    }

    fn service(
        &self,
        raw: &raw::Service,
        known: &Known<'_>,
        used: &mut BTreeSet<Builtin>,
    ) -> Result<Service, DefinitionError> {
        let ready = raw.ready.get_ref();
        let stream = match ready.stream {
            raw::Stream::Stdout => Stream::Stdout,
            raw::Stream::Stderr => Stream::Stderr,
        };
        let ready = match (&ready.line, &ready.port, &ready.command) {
            (Some(line), None, None) => Ready::Line(stream, regex(&self.text, line)?),
            (None, Some(port), None) => Ready::Port(self.template(port, known, used)?),
            (None, None, Some(command)) => Ready::Command(self.command(command, known, used)?),
            _ => {
                let fault =
                    Fault::new("a service shows that it is ready in one way").with("give `line`, `port` or `command`");
                return self.wrong(raw.ready.span(), fault);
            }
        };
        Ok(Service {
            command: self.command(&raw.command, known, used)?,
            ready,
            limit: raw.limit,
            stop: raw.stop.as_ref().map(|stop| self.command(stop, known, used)).transpose()?,
        })
    }

    fn file(
        &mut self,
        raw: &Spanned<raw::File>,
        known: &Known<'_>,
        used: &mut BTreeSet<Builtin>,
    ) -> Result<File, DefinitionError> {
        let (at, raw) = (raw.span(), raw.get_ref());
        let name = self.file_name(&raw.name)?;
        let (bytes, at) = match (&raw.text, &raw.path) {
            (Some(text), None) => (text.get_ref().clone().into_bytes(), text.span()),
            (None, Some(path)) => (self.beside(path)?, path.span()),
            _ => return self.wrong(at, Fault::new(format!("the file `{name}` has a `text` or a `path`"))),
        };
        let content = if raw.template {
            let text = String::from_utf8_lossy(&bytes);
            let template = Template::parse(&text, known, used).map_err(|fault| self.text.wrong(at, fault))?;
            Content::Template(template)
        } else {
            Content::Bytes(bytes)
        };
        Ok(File { name, folder: raw.folder, content })
    }

    /// A file beside the definition, which counts as a part of it.
    fn beside(&mut self, path: &Spanned<String>) -> Result<Vec<u8>, DefinitionError> {
        let Some(folder) = self.folder else {
            return self.wrong(path.span(), Fault::new("this definition lies in no folder").with("give a `text`"));
        };
        let bytes = std::fs::read(folder.join(path.get_ref())).map_err(|error| {
            self.text.wrong(path.span(), Fault::new(format!("`{}` cannot be read: {error}", path.get_ref())))
        })?;
        self.digest.extend_from_slice(&bytes);
        Ok(bytes)
    }

    fn file_name(&self, name: &Spanned<String>) -> Result<String, DefinitionError> {
        let plain = name.get_ref();
        if plain.is_empty() || plain.contains(['/', '\0']) || plain == "." || plain == ".." {
            return self.wrong(name.span(), Fault::new(format!("`{plain}` is not the name of a file")));
        }
        Ok(plain.clone())
    }

    fn commands(
        &self,
        raw: &[Spanned<Words>],
        known: &Known<'_>,
        used: &mut BTreeSet<Builtin>,
    ) -> Result<Vec<Argv>, DefinitionError> {
        raw.iter().map(|command| self.command(command, known, used)).collect()
    }

    fn command(
        &self,
        raw: &Spanned<Words>,
        known: &Known<'_>,
        used: &mut BTreeSet<Builtin>,
    ) -> Result<Argv, DefinitionError> {
        Argv::parse(&raw.get_ref().0, known, used).map_err(|fault| self.text.wrong(raw.span(), fault))
    }

    fn template(
        &self,
        raw: &Spanned<String>,
        known: &Known<'_>,
        used: &mut BTreeSet<Builtin>,
    ) -> Result<Template, DefinitionError> {
        Template::parse(raw.get_ref(), known, used).map_err(|fault| self.text.wrong(raw.span(), fault))
    }
}

impl Definition {
    /// The files that a sample has to keep beside its output.
    pub(super) fn kept(&self) -> BTreeSet<String> {
        let of_reading = |reading: &'_ Reading| match &reading.source {
            Some(Source::Found(Place::File(name), Way::Regex(_) | Way::Json(_))) => Some(name.clone()),
            _ => None,
        };
        let of_check = |check: &Check| match check.place() {
            Some(Place::File(name)) => Some(name.clone()),
            _ => None,
        };
        self.readings.iter().filter_map(of_reading).chain(self.checks.iter().filter_map(of_check)).collect()
    }
}
