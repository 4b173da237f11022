//! From a definition as it is written to one that is understood: whatever is wrong with it is found here.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use wb_agent::{Capture, Stream};
use wb_model::{Declaration, Param, Scope, Sha256, TestName};
use wb_record::definition_files::{DefinitionFile, DefinitionFiles, FileCopy};

use super::check::Check;
use super::definition::{Calibration, Content, Definition, File, Measured, Need, Ready, SameOutput, Service, Stdout};
use super::error::{DefinitionError, Fault, Text};
use super::file_hashes::FileHashes;
use super::left::Place;
use super::params::{Declared, FromMachine, defaults};
use super::raw::{self, Folder, Words};
use super::reading::{Reading, Source, regex};
use super::template::{Argv, Builtin, Known, Moment, Shape, Template};
use crate::test::NamedFile;

impl Definition {
    /// Reads a definition. Files that it names lie in `folder`, or are `copies` there.
    pub(super) fn read(
        file: &str,
        text: &str,
        folder: Option<&Path>,
        copies: Option<&DefinitionFiles>,
    ) -> Result<Self, DefinitionError> {
        let source = Text { file, text };
        let raw: raw::Definition = toml::from_str(text).map_err(|error| source.malformed(&error))?;
        let declared = Declared::read(&source, &raw.param)?;
        let reader = Reader {
            text: source,
            folder,
            copies,
            beside: Vec::new(),
            shapes: declared.shapes,
            digest: text.as_bytes().to_vec(),
            prepared: BTreeSet::new(),
            sampled: BTreeSet::new(),
        };
        reader.definition(&raw, declared.params, declared.machine)
    }
}

struct Reader<'a> {
    text: Text<'a>,
    folder: Option<&'a Path>,
    copies: Option<&'a DefinitionFiles>,
    beside: Vec<(NamedFile, Sha256)>,
    shapes: BTreeMap<String, Shape>,
    /// All that the definition consists of, its files included.
    digest: Vec<u8>,
    /// What is used of the built-in placeholders to prepare, and to sample.
    prepared: BTreeSet<Builtin>,
    sampled: BTreeSet<Builtin>,
}

impl Reader<'_> {
    fn definition(
        mut self,
        raw: &raw::Definition,
        params: Vec<Param>,
        machine: Vec<FromMachine>,
    ) -> Result<Definition, DefinitionError> {
        let declaration = self.declaration(raw, params)?;
        let needs = raw.requires.iter().map(|need| self.need(need)).collect::<Result<_, _>>()?;
        let build = raw.build.as_ref().map_or(&[][..], |build| &build.commands);
        let build = self.commands(build)?;
        let programs = raw.build.as_ref().map_or(&[][..], |build| &build.programs);
        let programs = programs.iter().map(|name| self.file_name(name)).collect::<Result<_, _>>()?;
        let setup = self.commands(&raw.setup)?;
        let services = raw.service.iter().map(|service| self.service(service.get_ref())).collect::<Result<_, _>>()?;
        let cleanup = self.commands(&raw.cleanup)?;
        let measured = self.measured(raw)?;
        let mut env = Vec::new();
        for (name, value) in &raw.env {
            env.push((name.clone(), self.template(value, Moment::Sampled)?));
        }
        let files = raw.file.iter().map(|file| self.file(file)).collect::<Result<_, _>>()?;
        let calibration = self.calibration(raw)?;
        let is_runner = matches!(measured, Measured::Runner(_));
        let readings = self.readings(&raw.metric, is_runner, calibration)?;
        let checks = self.checks(raw, &readings, is_runner)?;
        let same_output = self.same_output(raw, is_runner)?;
        let stdout = self.stdout(raw, &readings, &checks, same_output.as_ref(), is_runner)?;
        let mut definition = Definition {
            declaration,
            digest: Sha256::of(&self.digest),
            folder: self.folder.map(|folder| folder.display().to_string()),
            beside: self.beside,
            file_hashes: FileHashes::default(),
            machine,
            needs,
            files,
            build,
            programs,
            setup,
            services,
            measured,
            env,
            stdout,
            calibration,
            estimate: raw.estimate,
            readings,
            checks,
            same_output,
            cleanup,
            needs_port: self.prepared.contains(&Builtin::Port) || self.sampled.contains(&Builtin::Port),
        };
        let known = defaults(&definition.declaration);
        definition.declaration.requires = definition.possible_requirements(&known);
        Ok(definition)
    }

    fn declaration(&self, raw: &raw::Definition, params: Vec<Param>) -> Result<Declaration, DefinitionError> {
        let name = TestName::new(raw.name.get_ref().as_str())
            .map_err(|error| self.text.wrong(raw.name.span(), Fault::new(error.to_string())))?;
        let summary = raw.summary.get_ref().trim().to_owned();
        if summary.is_empty() {
            return self.wrong(raw.summary.span(), Fault::new("a test has a summary"));
        }
        let scope = raw.scope.unwrap_or(if raw.build.is_some() { Scope::Cell } else { Scope::Sample });
        Ok(Declaration { name, summary, version: *raw.version.get_ref(), params, scope, requires: Vec::new() })
    }

    fn measured(&mut self, raw: &raw::Definition) -> Result<Measured, DefinitionError> {
        match (&raw.command, &raw.runner) {
            (Some(command), None) => self.command(command, Moment::Sampled).map(Measured::Command),
            (None, Some(runner)) => {
                let argv = self.command(runner, Moment::Sampled)?;
                if self.sampled.contains(&Builtin::Work) || self.sampled.contains(&Builtin::Seconds) {
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

    fn calibration(&self, raw: &raw::Definition) -> Result<Calibration, DefinitionError> {
        let limits = raw.work.get_ref();
        if limits.start == 0 || limits.most < limits.start {
            return self.wrong(raw.work.span(), Fault::new("`start` is at least 1, and `most` no less than that"));
        }
        match (self.sampled.contains(&Builtin::Work), self.sampled.contains(&Builtin::Seconds)) {
            (true, true) => {
                let fault = Fault::new("the command takes both `{work}` and `{seconds}`").with("choose one");
                self.wrong(raw.name.span(), fault)
            }
            (true, false) => Ok(Calibration::Work(*limits)),
            (false, true) => Ok(Calibration::Time),
            (false, false) => Ok(Calibration::Fixed),
        }
    }

    /// What is read has to be kept; of the rest, the length and the hash tell whether it changed.
    fn stdout(
        &self,
        raw: &raw::Definition,
        readings: &[Reading],
        checks: &[Check],
        same_output: Option<&SameOutput>,
        is_runner: bool,
    ) -> Result<Stdout, DefinitionError> {
        let is_stdout = |reading: &Reading| matches!(reading.source, Some(Source::Found(Place::Stdout, _)));
        let is_read = is_runner
            || readings.iter().any(is_stdout)
            || checks.iter().any(|check| check.place() == Some(&Place::Stdout))
            || matches!(same_output, Some(SameOutput::Matching(_)));
        let capture = match &raw.stdout {
            None if is_read => Capture::Keep,
            None => Capture::Hash,
            Some(given) if is_runner => {
                let fault = Fault::new("what a runner writes to standard output is always kept");
                return self.wrong(given.span(), fault.with("remove `stdout`"));
            }
            Some(given) if is_read && *given.get_ref() != Capture::Keep => {
                let fault =
                    Fault::new("a metric, a check or `same-output` reads standard output, which has to be kept then");
                return self.wrong(given.span(), fault.with("remove `stdout`, or read a `file`"));
            }
            Some(given) if same_output.is_some() && *given.get_ref() == Capture::Discard => {
                let fault = Fault::new("`same-output` compares standard output by its hash, and this discards it");
                return self.wrong(given.span(), fault.with("write `stdout = \"hash\"`, or remove `same-output`"));
            }
            Some(given) => *given.get_ref(),
        };
        Ok(Stdout { capture, is_read })
    }

    fn checks(
        &self,
        raw: &raw::Definition,
        readings: &[Reading],
        is_runner: bool,
    ) -> Result<Vec<Check>, DefinitionError> {
        let mut checks = Vec::new();
        for check in &raw.check {
            let mut used = BTreeSet::new();
            checks.push(Check::read(&self.text, check, readings, &self.known(Moment::Sampled), &mut used, is_runner)?);
            let is_recorded = |builtin: &Builtin| {
                matches!(builtin, Builtin::Work | Builtin::Seconds) && self.sampled.contains(builtin)
            };
            if !used.iter().all(is_recorded) {
                let fault = Fault::new("this check has a bound that is not recorded with the sample");
                let way_out = "parameters are, and `{work}` or `{seconds}` where the command takes it";
                return self.wrong(check.span(), fault.with(way_out));
            }
        }
        Ok(checks)
    }

    fn same_output(&self, raw: &raw::Definition, is_runner: bool) -> Result<Option<SameOutput>, DefinitionError> {
        let Some(same) = &raw.same_output else { return Ok(None) };
        match same.get_ref() {
            raw::SameOutput::Whole(false) => Ok(None),
            _ if is_runner => {
                let fault = Fault::new("the output of a runner is its events, which are of one sample alone");
                self.wrong(same.span(), fault.with("remove `same-output`"))
            }
            raw::SameOutput::Whole(true) => Ok(Some(SameOutput::Whole)),
            raw::SameOutput::Matching(pattern) => {
                regex(&self.text, &Spanned::new(same.span(), pattern.clone())).map(SameOutput::Matching).map(Some)
            }
        }
    }

    fn readings(
        &self,
        raw: &[Spanned<raw::Metric>],
        is_runner: bool,
        calibration: Calibration,
    ) -> Result<Vec<Reading>, DefinitionError> {
        let mut readings: Vec<Reading> = Vec::new();
        for metric in raw {
            let reading = Reading::read(&self.text, metric.get_ref(), is_runner)?;
            let at = metric.get_ref().name.span();
            if readings.iter().any(|known| known.key() == reading.key()) {
                return self.wrong(at, Fault::new(format!("there are two metrics `{}`", reading.key())));
            }
            if matches!((&reading.source, calibration), (Some(Source::Rate), Calibration::Time | Calibration::Fixed)) {
                return self.wrong(at, Fault::new("this is work per second, and the command takes no `{work}`"));
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

    fn need(&mut self, raw: &raw::Requires) -> Result<Need, DefinitionError> {
        Ok(Need {
            program: self.template(&raw.program, Moment::Planned)?,
            package: self.template(&raw.package, Moment::Planned)?,
            version: raw.version.clone(),
        })
    }

    fn service(&mut self, raw: &raw::Service) -> Result<Service, DefinitionError> {
        let ready = raw.ready.get_ref();
        let stream = match ready.stream {
            raw::Stream::Stdout => Stream::Stdout,
            raw::Stream::Stderr => Stream::Stderr,
        };
        let ready = match (&ready.line, &ready.port, &ready.command) {
            (Some(line), None, None) => Ready::Line(stream, regex(&self.text, line)?),
            (None, Some(port), None) => Ready::Port(self.template(port, Moment::Prepared)?),
            (None, None, Some(command)) => Ready::Command(self.command(command, Moment::Prepared)?),
            _ => {
                let fault = Fault::new("a service shows in one way that it is ready");
                return self.wrong(raw.ready.span(), fault.with("give `line`, `port` or `command`"));
            }
        };
        let stop = match &raw.stop {
            Some(stop) => Some(self.command(stop, Moment::Prepared)?),
            None => None,
        };
        Ok(Service { command: self.command(&raw.command, Moment::Prepared)?, ready, limit: raw.limit, stop })
    }

    fn file(&mut self, raw: &Spanned<raw::File>) -> Result<File, DefinitionError> {
        let (at, raw) = (raw.span(), raw.get_ref());
        let name = self.file_name(&raw.name)?;
        let (bytes, at) = match (&raw.text, &raw.path) {
            (Some(text), None) => (text.get_ref().clone().into_bytes(), text.span()),
            (None, Some(path)) => match self.beside(path)? {
                Ok(bytes) => (bytes, path.span()),
                Err(why) => return Ok(File { name, folder: raw.folder, content: Content::Missing(why) }),
            },
            _ => return self.wrong(at, Fault::new(format!("the file `{name}` has a `text` or a `path`"))),
        };
        let moment = match raw.folder {
            Folder::Scratch => Moment::Prepared,
            Folder::Sample => Moment::Sampled,
        };
        let content = if raw.template {
            Content::Template(self.template(&Spanned::new(at, String::from_utf8_lossy(&bytes).into_owned()), moment)?)
        } else {
            Content::Bytes(bytes)
        };
        Ok(File { name, folder: raw.folder, content })
    }

    /// A file beside the definition, which counts as a part of it; why there is no exact copy where a run has recorded
    /// the definition.
    fn beside(&mut self, path: &Spanned<String>) -> Result<Result<Vec<u8>, String>, DefinitionError> {
        let Some(folder) = self.folder else {
            return self.wrong(path.span(), Fault::new("this definition lies in no folder").with("give a `text`"));
        };
        let location = match self.copies.and_then(|copies| copies.get(path.get_ref())) {
            None => folder.join(path.get_ref()),
            Some(DefinitionFile { copy: FileCopy::Whole { file }, .. }) => folder.join(file),
            Some(DefinitionFile { copy: FileCopy::Masked { .. }, .. }) => {
                return Ok(Err("secrets in it are masked".to_owned()));
            }
            Some(DefinitionFile { copy: FileCopy::Missing { why }, .. }) => return Ok(Err(why.clone())),
        };
        let bytes = std::fs::read(&location);
        if let (Err(error), true) = (&bytes, self.copies.is_some()) {
            return Ok(Err(format!("cannot read {}: {error}", location.display())));
        }
        let bytes = bytes.map_err(|error| {
            self.text.wrong(path.span(), Fault::new(format!("`{}` cannot be read: {error}", path.get_ref())))
        })?;
        self.digest.extend_from_slice(&bytes);
        self.beside.push((NamedFile { path: path.get_ref().clone(), location }, Sha256::of(&bytes)));
        Ok(Ok(bytes))
    }

    fn file_name(&self, name: &Spanned<String>) -> Result<String, DefinitionError> {
        let plain = name.get_ref();
        if plain.is_empty() || plain.contains(['/', '\0']) || plain == "." || plain == ".." {
            return self.wrong(name.span(), Fault::new(format!("`{plain}` is not the name of a file")));
        }
        Ok(plain.clone())
    }

    fn commands(&mut self, raw: &[Spanned<Words>]) -> Result<Vec<Argv>, DefinitionError> {
        raw.iter().map(|command| self.command(command, Moment::Prepared)).collect()
    }

    fn command(&mut self, raw: &Spanned<Words>, moment: Moment) -> Result<Argv, DefinitionError> {
        let mut used = BTreeSet::new();
        let argv = Argv::parse(&raw.get_ref().0, &self.known(moment), &mut used);
        self.note(used, moment);
        argv.map_err(|fault| self.text.wrong(raw.span(), fault))
    }

    fn template(&mut self, raw: &Spanned<String>, moment: Moment) -> Result<Template, DefinitionError> {
        let mut used = BTreeSet::new();
        let template = Template::parse(raw.get_ref(), &self.known(moment), &mut used);
        self.note(used, moment);
        template.map_err(|fault| self.text.wrong(raw.span(), fault))
    }

    fn known(&self, moment: Moment) -> Known<'_> {
        Known { shapes: &self.shapes, moment, has_folder: self.folder.is_some() }
    }

    fn note(&mut self, used: BTreeSet<Builtin>, moment: Moment) {
        match moment {
            Moment::Planned => {}
            Moment::Prepared => self.prepared.extend(used),
            Moment::Sampled => self.sampled.extend(used),
        }
    }

    fn wrong<T>(&self, span: Range<usize>, fault: Fault) -> Result<T, DefinitionError> {
        Err(self.text.wrong(span, fault))
    }
}
