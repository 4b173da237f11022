//! From a definition as it is written to one that is understood: whatever is wrong with it is found here.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use wb_agent::{Capture, Stream};
use wb_model::{Declaration, Param, Scope, Sha256, TestName};
use wb_record::definition_files::{DefinitionFile, DefinitionFiles, FileCopy};

use super::check::Check;
use super::definition::{
    Definition, DurationControl, File, FileContent, MeasuredProgram, Readiness, RequirementTemplate, SameOutput,
    Service, StdoutPolicy,
};
use super::error::{DefinitionError, Diagnostic, SourceText};
use super::file_hashes::FileHashes;
use super::metric::{MetricDefinition, MetricSource, compile_regex};
use super::params::{MachineParam, ParsedParams, defaults};
use super::raw::{self, CommandWords, TargetFolder};
use super::sample_output::OutputSource;
use super::template::{ArgumentShape, Builtin, CommandTemplate, Phase, Template, TemplateScope};
use crate::test::NamedFile;

impl Definition {
    /// Reads a definition. Files that it names lie in `folder`, or are `copies` there.
    pub(super) fn parse(
        file: &str,
        text: &str,
        folder: Option<&Path>,
        copies: Option<&DefinitionFiles>,
    ) -> Result<Self, DefinitionError> {
        let source = SourceText { file, text };
        let raw: raw::Definition = toml::from_str(text).map_err(|error| source.malformed(&error))?;
        let declared = ParsedParams::parse(&source, &raw.param)?;
        let reader = Parser {
            text: source,
            folder,
            copies,
            included_files: Vec::new(),
            argument_shapes: declared.argument_shapes,
            digest_input: text.as_bytes().to_vec(),
            prepare_builtins: BTreeSet::new(),
            sample_builtins: BTreeSet::new(),
        };
        reader.parse_definition(&raw, declared.params, declared.machine_params)
    }
}

struct Parser<'a> {
    text: SourceText<'a>,
    folder: Option<&'a Path>,
    copies: Option<&'a DefinitionFiles>,
    included_files: Vec<(NamedFile, Sha256)>,
    argument_shapes: BTreeMap<String, ArgumentShape>,
    /// All that the definition consists of, its files included.
    digest_input: Vec<u8>,
    /// What is used of the built-in placeholders to prepare, and to sample.
    prepare_builtins: BTreeSet<Builtin>,
    sample_builtins: BTreeSet<Builtin>,
}

impl Parser<'_> {
    fn parse_definition(
        mut self,
        raw: &raw::Definition,
        params: Vec<Param>,
        machine: Vec<MachineParam>,
    ) -> Result<Definition, DefinitionError> {
        let declaration = self.parse_declaration(raw, params)?;
        let needs = raw.requires.iter().map(|need| self.parse_requirement(need)).collect::<Result<_, _>>()?;
        let build = raw.build.as_ref().map_or(&[][..], |build| &build.commands);
        let build = self.parse_commands(build)?;
        let programs = raw.build.as_ref().map_or(&[][..], |build| &build.programs);
        let programs = programs.iter().map(|name| self.parse_file_name(name)).collect::<Result<_, _>>()?;
        let setup = self.parse_commands(&raw.setup)?;
        let services =
            raw.service.iter().map(|service| self.parse_service(service.get_ref())).collect::<Result<_, _>>()?;
        let cleanup = self.parse_commands(&raw.cleanup)?;
        let measured = self.parse_measured_program(raw)?;
        let mut env = Vec::new();
        for (name, value) in &raw.env {
            env.push((name.clone(), self.parse_template(value, Phase::Sample)?));
        }
        let files = raw.file.iter().map(|file| self.parse_file(file)).collect::<Result<_, _>>()?;
        let calibration = self.parse_duration_control(raw)?;
        let is_runner = matches!(measured, MeasuredProgram::Runner(_));
        let readings = self.parse_metrics(&raw.metric, is_runner, calibration)?;
        let checks = self.parse_checks(raw, &readings, is_runner)?;
        let same_output = self.parse_same_output(raw, is_runner)?;
        let stdout = self.parse_stdout(raw, &readings, &checks, same_output.as_ref(), is_runner)?;
        let mut definition = Definition {
            declaration,
            digest: Sha256::of(&self.digest_input),
            folder: self.folder.map(|folder| folder.display().to_string()),
            included_files: self.included_files,
            file_hashes: FileHashes::default(),
            machine_params: machine,
            requirement_templates: needs,
            files,
            build,
            built_programs: programs,
            setup,
            services,
            measured_program: measured,
            env,
            stdout,
            calibration,
            estimate: raw.estimate,
            metrics: readings,
            checks,
            same_output,
            cleanup,
            needs_port: self.prepare_builtins.contains(&Builtin::Port) || self.sample_builtins.contains(&Builtin::Port),
        };
        let known = defaults(&definition.declaration);
        definition.declaration.requires = definition.possible_requirements(&known);
        Ok(definition)
    }

    fn parse_declaration(&self, raw: &raw::Definition, params: Vec<Param>) -> Result<Declaration, DefinitionError> {
        let name = TestName::new(raw.name.get_ref().as_str())
            .map_err(|error| self.text.error_at(raw.name.span(), Diagnostic::new(error.to_string())))?;
        let summary = raw.summary.get_ref().trim().to_owned();
        if summary.is_empty() {
            return self.error_at(raw.summary.span(), Diagnostic::new("a test has a summary"));
        }
        let scope = raw.scope.unwrap_or(if raw.build.is_some() { Scope::Cell } else { Scope::Sample });
        Ok(Declaration { name, summary, version: *raw.version.get_ref(), params, scope, requires: Vec::new() })
    }

    fn parse_measured_program(&mut self, raw: &raw::Definition) -> Result<MeasuredProgram, DefinitionError> {
        match (&raw.command, &raw.runner) {
            (Some(command), None) => self.parse_command(command, Phase::Sample).map(MeasuredProgram::Command),
            (None, Some(runner)) => {
                let argv = self.parse_command(runner, Phase::Sample)?;
                if self.sample_builtins.contains(&Builtin::Work) || self.sample_builtins.contains(&Builtin::Seconds) {
                    let fault = Diagnostic::new("a runner is told its work and its time on standard input");
                    return self.error_at(runner.span(), fault.with_help("remove `{work}` and `{seconds}`"));
                }
                Ok(MeasuredProgram::Runner(argv))
            }
            (Some(_), Some(runner)) => self.error_at(
                runner.span(),
                Diagnostic::new("a test has a `command` or a `runner`").with_help("remove one"),
            ),
            (None, None) => self.error_at(
                raw.name.span(),
                Diagnostic::new("nothing is measured").with_help("add `command`, or `runner`"),
            ),
        }
    }

    fn parse_duration_control(&self, raw: &raw::Definition) -> Result<DurationControl, DefinitionError> {
        let limits = raw.work.get_ref();
        if limits.start == 0 || limits.max < limits.start {
            return self
                .error_at(raw.work.span(), Diagnostic::new("`start` is at least 1, and `most` no less than that"));
        }
        match (self.sample_builtins.contains(&Builtin::Work), self.sample_builtins.contains(&Builtin::Seconds)) {
            (true, true) => {
                let fault = Diagnostic::new("the command takes both `{work}` and `{seconds}`").with_help("choose one");
                self.error_at(raw.name.span(), fault)
            }
            (true, false) => Ok(DurationControl::Work(*limits)),
            (false, true) => Ok(DurationControl::Time),
            (false, false) => Ok(DurationControl::Fixed),
        }
    }

    /// What is read has to be kept; of the rest, the length and the hash tell whether it changed.
    fn parse_stdout(
        &self,
        raw: &raw::Definition,
        readings: &[MetricDefinition],
        checks: &[Check],
        same_output: Option<&SameOutput>,
        is_runner: bool,
    ) -> Result<StdoutPolicy, DefinitionError> {
        let is_stdout =
            |reading: &MetricDefinition| matches!(reading.source, Some(MetricSource::Output(OutputSource::Stdout, _)));
        let is_read = is_runner
            || readings.iter().any(is_stdout)
            || checks.iter().any(|check| check.output_source() == Some(&OutputSource::Stdout))
            || matches!(same_output, Some(SameOutput::Matching(_)));
        let capture = match &raw.stdout {
            None if is_read => Capture::Keep,
            None => Capture::Hash,
            Some(given) if is_runner => {
                let fault = Diagnostic::new("what a runner writes to standard output is always kept");
                return self.error_at(given.span(), fault.with_help("remove `stdout`"));
            }
            Some(given) if is_read && *given.get_ref() != Capture::Keep => {
                let fault = Diagnostic::new(
                    "a metric, a check or `same-output` reads standard output, which has to be kept then",
                );
                return self.error_at(given.span(), fault.with_help("remove `stdout`, or read a `file`"));
            }
            Some(given) if same_output.is_some() && *given.get_ref() == Capture::Discard => {
                let fault = Diagnostic::new("`same-output` compares standard output by its hash, and this discards it");
                return self
                    .error_at(given.span(), fault.with_help("write `stdout = \"hash\"`, or remove `same-output`"));
            }
            Some(given) => *given.get_ref(),
        };
        Ok(StdoutPolicy { capture, is_read })
    }

    fn parse_checks(
        &self,
        raw: &raw::Definition,
        readings: &[MetricDefinition],
        is_runner: bool,
    ) -> Result<Vec<Check>, DefinitionError> {
        let mut checks = Vec::new();
        for check in &raw.check {
            let mut used = BTreeSet::new();
            checks.push(Check::parse(&self.text, check, readings, &self.scope(Phase::Sample), &mut used, is_runner)?);
            let is_recorded = |builtin: &Builtin| {
                matches!(builtin, Builtin::Work | Builtin::Seconds) && self.sample_builtins.contains(builtin)
            };
            if !used.iter().all(is_recorded) {
                let fault = Diagnostic::new("this check has a bound that is not recorded with the sample");
                let way_out = "parameters are, and `{work}` or `{seconds}` where the command takes it";
                return self.error_at(check.span(), fault.with_help(way_out));
            }
        }
        Ok(checks)
    }

    fn parse_same_output(&self, raw: &raw::Definition, is_runner: bool) -> Result<Option<SameOutput>, DefinitionError> {
        let Some(same) = &raw.same_output else { return Ok(None) };
        match same.get_ref() {
            raw::SameOutput::Whole(false) => Ok(None),
            _ if is_runner => {
                let fault = Diagnostic::new("the output of a runner is its events, which are of one sample alone");
                self.error_at(same.span(), fault.with_help("remove `same-output`"))
            }
            raw::SameOutput::Whole(true) => Ok(Some(SameOutput::Whole)),
            raw::SameOutput::Matching(pattern) => {
                compile_regex(&self.text, &Spanned::new(same.span(), pattern.clone()))
                    .map(SameOutput::Matching)
                    .map(Some)
            }
        }
    }

    fn parse_metrics(
        &self,
        raw: &[Spanned<raw::Metric>],
        is_runner: bool,
        calibration: DurationControl,
    ) -> Result<Vec<MetricDefinition>, DefinitionError> {
        let mut readings: Vec<MetricDefinition> = Vec::new();
        for metric in raw {
            let reading = MetricDefinition::parse(&self.text, metric.get_ref(), is_runner)?;
            let at = metric.get_ref().name.span();
            if readings.iter().any(|known| known.key() == reading.key()) {
                return self.error_at(at, Diagnostic::new(format!("there are two metrics `{}`", reading.key())));
            }
            if matches!(
                (&reading.source, calibration),
                (Some(MetricSource::Rate), DurationControl::Time | DurationControl::Fixed)
            ) {
                return self
                    .error_at(at, Diagnostic::new("this is work per second, and the command takes no `{work}`"));
            }
            if reading.metric.primary && reading.optional {
                return self.error_at(at, Diagnostic::new("the primary metric cannot be optional"));
            }
            readings.push(reading);
        }
        let primary: Vec<_> =
            raw.iter().filter(|metric| metric.get_ref().primary).map(|metric| metric.get_ref().name.span()).collect();
        match (primary.as_slice(), raw.first()) {
            ([_], _) => Ok(readings),
            ([_, second, ..], _) => self
                .error_at(second.clone(), Diagnostic::new("a test has one primary metric").with_help("mark one only")),
            ([], Some(first)) => {
                let fault = Diagnostic::new("no metric is primary")
                    .with_help("mark the one that decides with `primary = true`");
                self.error_at(first.get_ref().name.span(), fault)
            }
            ([], None) => self.error_at(0..0, Diagnostic::new("a test has at least one [[metric]]")),
        }
    }

    fn parse_requirement(&mut self, raw: &raw::Requirement) -> Result<RequirementTemplate, DefinitionError> {
        Ok(RequirementTemplate {
            program: self.parse_template(&raw.program, Phase::Plan)?,
            package: self.parse_template(&raw.package, Phase::Plan)?,
            version: raw.version.clone(),
        })
    }

    fn parse_service(&mut self, raw: &raw::Service) -> Result<Service, DefinitionError> {
        let ready = raw.ready.get_ref();
        let stream = match ready.stream {
            raw::Stream::Stdout => Stream::Stdout,
            raw::Stream::Stderr => Stream::Stderr,
        };
        let ready = match (&ready.line, &ready.port, &ready.command) {
            (Some(line), None, None) => Readiness::Line(stream, compile_regex(&self.text, line)?),
            (None, Some(port), None) => Readiness::Port(self.parse_template(port, Phase::Prepare)?),
            (None, None, Some(command)) => Readiness::Command(self.parse_command(command, Phase::Prepare)?),
            _ => {
                let fault = Diagnostic::new("a service shows in one way that it is ready");
                return self.error_at(raw.ready.span(), fault.with_help("give `line`, `port` or `command`"));
            }
        };
        let stop = match &raw.stop {
            Some(stop) => Some(self.parse_command(stop, Phase::Prepare)?),
            None => None,
        };
        Ok(Service { command: self.parse_command(&raw.command, Phase::Prepare)?, ready, limit: raw.limit, stop })
    }

    fn parse_file(&mut self, raw: &Spanned<raw::File>) -> Result<File, DefinitionError> {
        let (at, raw) = (raw.span(), raw.get_ref());
        let name = self.parse_file_name(&raw.name)?;
        let (bytes, at) = match (&raw.text, &raw.path) {
            (Some(text), None) => (text.get_ref().clone().into_bytes(), text.span()),
            (None, Some(path)) => match self.include_file(path)? {
                Ok(bytes) => (bytes, path.span()),
                Err(why) => return Ok(File { name, folder: raw.folder, content: FileContent::Missing(why) }),
            },
            _ => return self.error_at(at, Diagnostic::new(format!("the file `{name}` has a `text` or a `path`"))),
        };
        let moment = match raw.folder {
            TargetFolder::Scratch => Phase::Prepare,
            TargetFolder::Sample => Phase::Sample,
        };
        let content = if raw.template {
            FileContent::Template(
                self.parse_template(&Spanned::new(at, String::from_utf8_lossy(&bytes).into_owned()), moment)?,
            )
        } else {
            FileContent::Bytes(bytes)
        };
        Ok(File { name, folder: raw.folder, content })
    }

    /// A file beside the definition, which counts as a part of it; why there is no exact copy where a run has recorded
    /// the definition.
    fn include_file(&mut self, path: &Spanned<String>) -> Result<Result<Vec<u8>, String>, DefinitionError> {
        let Some(folder) = self.folder else {
            return self.error_at(
                path.span(),
                Diagnostic::new("this definition lies in no folder").with_help("give a `text`"),
            );
        };
        let location = match self.copies.and_then(|copies| copies.get(path.get_ref())) {
            None => folder.join(path.get_ref()),
            Some(DefinitionFile { copy: FileCopy::Whole { file }, .. }) => folder.join(file),
            Some(DefinitionFile { copy: FileCopy::Masked { .. }, .. }) => {
                return Ok(Err("secrets in it are masked".to_owned()));
            }
            Some(DefinitionFile { copy: FileCopy::Missing { reason: why }, .. }) => return Ok(Err(why.clone())),
        };
        let bytes = std::fs::read(&location);
        if let (Err(error), true) = (&bytes, self.copies.is_some()) {
            return Ok(Err(format!("cannot read {}: {error}", location.display())));
        }
        let bytes = bytes.map_err(|error| {
            self.text.error_at(path.span(), Diagnostic::new(format!("`{}` cannot be read: {error}", path.get_ref())))
        })?;
        self.digest_input.extend_from_slice(&bytes);
        self.included_files.push((NamedFile { path: path.get_ref().clone(), location }, Sha256::of(&bytes)));
        Ok(Ok(bytes))
    }

    fn parse_file_name(&self, name: &Spanned<String>) -> Result<String, DefinitionError> {
        let plain = name.get_ref();
        if plain.is_empty() || plain.contains(['/', '\0']) || plain == "." || plain == ".." {
            return self.error_at(name.span(), Diagnostic::new(format!("`{plain}` is not the name of a file")));
        }
        Ok(plain.clone())
    }

    fn parse_commands(&mut self, raw: &[Spanned<CommandWords>]) -> Result<Vec<CommandTemplate>, DefinitionError> {
        raw.iter().map(|command| self.parse_command(command, Phase::Prepare)).collect()
    }

    fn parse_command(
        &mut self,
        raw: &Spanned<CommandWords>,
        moment: Phase,
    ) -> Result<CommandTemplate, DefinitionError> {
        let mut used = BTreeSet::new();
        let argv = CommandTemplate::parse(&raw.get_ref().0, &self.scope(moment), &mut used);
        self.record_builtins(used, moment);
        argv.map_err(|fault| self.text.error_at(raw.span(), fault))
    }

    fn parse_template(&mut self, raw: &Spanned<String>, moment: Phase) -> Result<Template, DefinitionError> {
        let mut used = BTreeSet::new();
        let template = Template::parse(raw.get_ref(), &self.scope(moment), &mut used);
        self.record_builtins(used, moment);
        template.map_err(|fault| self.text.error_at(raw.span(), fault))
    }

    fn scope(&self, moment: Phase) -> TemplateScope<'_> {
        TemplateScope { argument_shapes: &self.argument_shapes, phase: moment, has_folder: self.folder.is_some() }
    }

    fn record_builtins(&mut self, used: BTreeSet<Builtin>, moment: Phase) {
        match moment {
            Phase::Plan => {}
            Phase::Prepare => self.prepare_builtins.extend(used),
            Phase::Sample => self.sample_builtins.extend(used),
        }
    }

    fn error_at<T>(&self, span: Range<usize>, fault: Diagnostic) -> Result<T, DefinitionError> {
        Err(self.text.error_at(span, fault))
    }
}
