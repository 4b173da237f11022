//! Parser from a raw definition to a validated one; reports every error with its position.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use wb_agent::{Capture, OutputStream};
use wb_diagnostics::{Diagnostic, SourceText};
use wb_model::{Declaration, Param, Scope, Sha256, TestName};
use wb_record::definition_files::{DefinitionFile, FileCopy, LARGEST_COPY};
use wb_record::files::relative_to;
use wb_sys::contained_file;
use wb_test::test::NamedFile;

use super::RecordedFiles;
use super::check::Check;
use super::definition::{
    Definition, DurationControl, File, FileContent, MeasuredProgram, Readiness, RequirementTemplate, SameOutput,
    Service, StdoutPolicy,
};
use super::error::toml_diagnostic;
use super::file_hashes::FileHashes;
use super::metric::{MetricDefinition, MetricSource, compile_regex};
use super::params::{MachineParam, ParsedParams, defaults};
use super::raw::{self, CommandWords, TargetFolder};
use super::sample_output::OutputSource;
use super::template::{ArgumentShape, Builtin, CommandTemplate, Phase, Template, TemplateScope};

impl Definition {
    /// Parses a definition. Files that it refers to are in `folder`, or are `copies` there.
    pub(super) fn parse(
        file: &str,
        text: &str,
        folder: Option<&Path>,
        recorded: Option<&RecordedFiles>,
    ) -> Result<Self, Diagnostic> {
        let source = SourceText::new(file, text);
        let raw: raw::Definition = toml::from_str(text).map_err(|error| toml_diagnostic(&source, &error))?;
        let parsed = ParsedParams::parse(&source, &raw.param)?;
        let parser = Parser {
            text: source,
            folder,
            recorded,
            included_files: Vec::new(),
            argument_shapes: parsed.argument_shapes,
            digest_input: text.as_bytes().to_vec(),
            prepare_builtins: BTreeSet::new(),
            sample_builtins: BTreeSet::new(),
        };
        parser.parse_definition(&raw, parsed.params, parsed.machine_params)
    }
}

struct Parser<'a> {
    text: SourceText,
    folder: Option<&'a Path>,
    recorded: Option<&'a RecordedFiles>,
    included_files: Vec<(NamedFile, Sha256)>,
    argument_shapes: BTreeMap<String, ArgumentShape>,
    /// Content of the definition and its included files.
    digest_input: Vec<u8>,
    /// Built-in placeholders that are used for preparation, and for samples.
    prepare_builtins: BTreeSet<Builtin>,
    sample_builtins: BTreeSet<Builtin>,
}

impl Parser<'_> {
    fn parse_definition(
        mut self,
        raw: &raw::Definition,
        params: Vec<Param>,
        machine_params: Vec<MachineParam>,
    ) -> Result<Definition, Diagnostic> {
        let declaration = self.parse_declaration(raw, params)?;
        let requirements =
            raw.requires.iter().map(|requirement| self.parse_requirement(requirement)).collect::<Result<_, _>>()?;
        let build = raw.build.as_ref().map_or(&[][..], |build| &build.commands);
        let build = self.parse_commands(build)?;
        let built_programs = raw.build.as_ref().map_or(&[][..], |build| &build.programs);
        let built_programs = built_programs.iter().map(|name| self.parse_file_name(name)).collect::<Result<_, _>>()?;
        let setup = self.parse_commands(&raw.setup)?;
        let services =
            raw.service.iter().map(|service| self.parse_service(service.get_ref())).collect::<Result<_, _>>()?;
        let cleanup = self.parse_commands(&raw.cleanup)?;
        let measured_program = self.parse_measured_program(raw)?;
        let mut env = Vec::new();
        for (name, value) in &raw.env {
            env.push((name.clone(), self.parse_template(value, Phase::Sample)?));
        }
        let files = raw.file.iter().map(|file| self.parse_file(file)).collect::<Result<_, _>>()?;
        let work_factors = raw.work.get_ref().multiple_of.iter();
        let work_factors =
            work_factors.map(|factor| self.parse_template(factor, Phase::Plan)).collect::<Result<_, _>>()?;
        let calibration = self.parse_duration_control(raw)?;
        let is_runner = matches!(measured_program, MeasuredProgram::Runner(_));
        let metrics = self.parse_metrics(&raw.metric, is_runner, calibration)?;
        let checks = self.parse_checks(raw, &metrics, is_runner)?;
        let same_output = self.parse_same_output(raw, is_runner)?;
        let stdout = self.parse_stdout(raw, &metrics, &checks, same_output.as_ref(), is_runner)?;
        let mut definition = Definition {
            declaration,
            digest: Sha256::digest(&self.digest_input),
            folder: self.folder.map(|folder| folder.display().to_string()),
            included_files: self.included_files,
            file_hashes: FileHashes::default(),
            machine_params,
            requirement_templates: requirements,
            files,
            build,
            built_programs,
            setup,
            services,
            measured_program,
            env,
            stdout,
            duration_control: calibration,
            work_factors,
            estimate: raw.estimate,
            metrics,
            checks,
            same_output,
            cleanup,
            needs_port: self.prepare_builtins.contains(&Builtin::Port) || self.sample_builtins.contains(&Builtin::Port),
        };
        let defaults = defaults(&definition.declaration);
        definition.declaration.requires = definition.possible_requirements(&defaults);
        Ok(definition)
    }

    fn parse_declaration(&self, raw: &raw::Definition, params: Vec<Param>) -> Result<Declaration, Diagnostic> {
        let name = TestName::new(raw.name.get_ref().as_str())
            .map_err(|error| self.text.locate(raw.name.span(), Diagnostic::new(error.to_string())))?;
        let summary = raw.summary.get_ref().trim().to_owned();
        if summary.is_empty() {
            return self.error_at(raw.summary.span(), Diagnostic::new("missing summary"));
        }
        let scope = raw.scope.unwrap_or(if raw.build.is_some() { Scope::Cell } else { Scope::Sample });
        Ok(Declaration { name, summary, version: *raw.version.get_ref(), params, scope, requires: Vec::new() })
    }

    fn parse_measured_program(&mut self, raw: &raw::Definition) -> Result<MeasuredProgram, Diagnostic> {
        match (&raw.command, &raw.runner) {
            (Some(command), None) => self.parse_command(command, Phase::Sample).map(MeasuredProgram::Command),
            (None, Some(runner)) => {
                let argv = self.parse_command(runner, Phase::Sample)?;
                if self.sample_builtins.contains(&Builtin::Work) || self.sample_builtins.contains(&Builtin::Seconds) {
                    let diagnostic = Diagnostic::new("a runner receives work and time on standard input");
                    return self.error_at(runner.span(), diagnostic.with_help("remove `{work}` and `{seconds}`"));
                }
                Ok(MeasuredProgram::Runner(argv))
            }
            (Some(_), Some(runner)) => self.error_at(
                runner.span(),
                Diagnostic::new("`command` and `runner` are mutually exclusive").with_help("remove one"),
            ),
            (None, None) => self.error_at(raw.name.span(), Diagnostic::new("missing `command` or `runner`")),
        }
    }

    fn parse_duration_control(&self, raw: &raw::Definition) -> Result<DurationControl, Diagnostic> {
        let limits = raw.work.get_ref();
        if limits.start == 0 || limits.max < limits.start {
            return self.error_at(
                raw.work.span(),
                Diagnostic::new("invalid `work`: expected `start` of at least 1, and `max` of at least `start`"),
            );
        }
        match (self.sample_builtins.contains(&Builtin::Work), self.sample_builtins.contains(&Builtin::Seconds)) {
            (true, true) => {
                let diagnostic =
                    Diagnostic::new("`{work}` and `{seconds}` are mutually exclusive").with_help("remove one");
                self.error_at(raw.name.span(), diagnostic)
            }
            (true, false) => Ok(DurationControl::Work(limits.limits())),
            (false, true) => Ok(DurationControl::Time),
            (false, false) => Ok(DurationControl::Fixed),
        }
    }

    /// Determines how standard output is captured: completely if it is used, otherwise its length and hash, which show
    /// whether it changed.
    fn parse_stdout(
        &self,
        raw: &raw::Definition,
        metrics: &[MetricDefinition],
        checks: &[Check],
        same_output: Option<&SameOutput>,
        is_runner: bool,
    ) -> Result<StdoutPolicy, Diagnostic> {
        let is_stdout = |definition: &MetricDefinition| {
            matches!(definition.source, Some(MetricSource::Output(OutputSource::Stdout, _)))
        };
        let is_read = is_runner
            || metrics.iter().any(is_stdout)
            || checks.iter().any(|check| check.output_source() == Some(&OutputSource::Stdout))
            || matches!(same_output, Some(SameOutput::Matching(_)));
        let capture = match &raw.stdout {
            None if is_read => Capture::Keep,
            None => Capture::Hash,
            Some(capture) if is_runner => {
                let diagnostic = Diagnostic::new("standard output of a runner is always kept");
                return self.error_at(capture.span(), diagnostic.with_help("remove `stdout`"));
            }
            Some(capture) if is_read && *capture.get_ref() != Capture::Keep => {
                let diagnostic =
                    Diagnostic::new("a metric, a check or `same-output` requires that standard output is kept");
                return self.error_at(capture.span(), diagnostic.with_help("remove `stdout`, or use a `file`"));
            }
            Some(capture) if same_output.is_some() && *capture.get_ref() == Capture::Discard => {
                let diagnostic =
                    Diagnostic::new("`same-output` requires the hash of standard output, which is discarded");
                return self.error_at(
                    capture.span(),
                    diagnostic.with_help("use `stdout = \"hash\"`, or remove `same-output`"),
                );
            }
            Some(capture) => *capture.get_ref(),
        };
        Ok(StdoutPolicy { capture, is_read })
    }

    fn parse_checks(
        &self,
        raw: &raw::Definition,
        metrics: &[MetricDefinition],
        is_runner: bool,
    ) -> Result<Vec<Check>, Diagnostic> {
        let mut checks = Vec::new();
        for check in &raw.check {
            let mut used = BTreeSet::new();
            checks.push(Check::parse(&self.text, check, metrics, &self.scope(Phase::Sample), &mut used, is_runner)?);
            let is_recorded = |builtin: &Builtin| {
                matches!(builtin, Builtin::Work | Builtin::Seconds) && self.sample_builtins.contains(builtin)
            };
            if !used.iter().all(is_recorded) {
                let diagnostic = Diagnostic::new("a bound of the check is not recorded with the sample");
                let help = "use parameters, or `{work}` or `{seconds}` if the command uses it";
                return self.error_at(check.span(), diagnostic.with_help(help));
            }
        }
        Ok(checks)
    }

    fn parse_same_output(&self, raw: &raw::Definition, is_runner: bool) -> Result<Option<SameOutput>, Diagnostic> {
        let Some(same) = &raw.same_output else { return Ok(None) };
        match same.get_ref() {
            raw::SameOutput::Whole(false) => Ok(None),
            _ if is_runner => {
                let diagnostic = Diagnostic::new("the output of a runner differs between samples");
                self.error_at(same.span(), diagnostic.with_help("remove `same-output`"))
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
    ) -> Result<Vec<MetricDefinition>, Diagnostic> {
        let mut metrics: Vec<MetricDefinition> = Vec::new();
        for metric in raw {
            let definition = MetricDefinition::parse(&self.text, metric.get_ref(), is_runner)?;
            let span = metric.get_ref().name.span();
            let key = definition.metric.key();
            if metrics.iter().any(|existing| existing.metric.key() == key) {
                return self.error_at(span, Diagnostic::new(format!("duplicate metric `{key}`")));
            }
            definition.check_work(calibration).map_err(|diagnostic| self.text.locate(span.clone(), diagnostic))?;
            if definition.metric.primary && definition.optional {
                return self.error_at(span, Diagnostic::new("a primary metric cannot be optional"));
            }
            metrics.push(definition);
        }
        match raw.first() {
            _ if metrics.iter().any(|definition| definition.metric.primary) => Ok(metrics),
            Some(first) => {
                let diagnostic = Diagnostic::new("missing primary metric")
                    .with_help("mark each metric that decides with `primary = true`");
                self.error_at(first.get_ref().name.span(), diagnostic)
            }
            None => self.error_at(0..0, Diagnostic::new("missing [[metric]]")),
        }
    }

    fn parse_requirement(&mut self, raw: &raw::Requirement) -> Result<RequirementTemplate, Diagnostic> {
        Ok(RequirementTemplate {
            program: self.parse_template(&raw.program, Phase::Plan)?,
            package: self.parse_template(&raw.package, Phase::Plan)?,
            version: raw.version.clone(),
        })
    }

    fn parse_service(&mut self, raw: &raw::Service) -> Result<Service, Diagnostic> {
        let ready = raw.ready.get_ref();
        let stream = match ready.stream {
            raw::Stream::Stdout => OutputStream::Stdout,
            raw::Stream::Stderr => OutputStream::Stderr,
        };
        let ready = match (&ready.line, &ready.port, &ready.command) {
            (Some(line), None, None) => Readiness::Line(stream, compile_regex(&self.text, line)?),
            (None, Some(port), None) => Readiness::Port(self.parse_template(port, Phase::Prepare)?),
            (None, None, Some(command)) => Readiness::Command(self.parse_command(command, Phase::Prepare)?),
            _ => {
                let diagnostic = Diagnostic::new("invalid `ready`");
                return self
                    .error_at(raw.ready.span(), diagnostic.with_help("expected one of `line`, `port` and `command`"));
            }
        };
        let stop = match &raw.stop {
            Some(stop) => Some(self.parse_command(stop, Phase::Prepare)?),
            None => None,
        };
        Ok(Service { command: self.parse_command(&raw.command, Phase::Prepare)?, ready, limit: raw.limit, stop })
    }

    fn parse_file(&mut self, raw: &Spanned<raw::File>) -> Result<File, Diagnostic> {
        let (position, raw) = (raw.span(), raw.get_ref());
        let name = self.parse_file_name(&raw.name)?;
        let (bytes, position) = match (&raw.text, &raw.path) {
            (Some(text), None) => (text.get_ref().clone().into_bytes(), text.span()),
            (None, Some(path)) => match self.include_file(path)? {
                Ok(bytes) => (bytes, path.span()),
                Err(reason) => return Ok(File { name, folder: raw.folder, content: FileContent::Missing(reason) }),
            },
            _ => {
                return self.error_at(
                    position,
                    Diagnostic::new(format!("invalid file `{name}`: expected either `text` or `path`")),
                );
            }
        };
        let phase = match raw.folder {
            TargetFolder::Scratch => Phase::Prepare,
            TargetFolder::Sample => Phase::Sample,
        };
        let content = if raw.template {
            FileContent::Template(
                self.parse_template(&Spanned::new(position, String::from_utf8_lossy(&bytes).into_owned()), phase)?,
            )
        } else {
            FileContent::Bytes(bytes)
        };
        Ok(File { name, folder: raw.folder, content })
    }

    /// Reads a file that the definition includes, and adds it to the digest. The inner error is why the run that
    /// recorded the definition has no exact copy.
    fn include_file(&mut self, path: &Spanned<String>) -> Result<Result<Vec<u8>, String>, Diagnostic> {
        let Some(folder) = self.folder else {
            return self.error_at(
                path.span(),
                Diagnostic::new("`path` requires a definition in a folder").with_help("use `text`"),
            );
        };
        let location = match self.recorded.and_then(|recorded| recorded.copies.get(path.get_ref())) {
            None => folder.join(path.get_ref()),
            Some(DefinitionFile { copy: FileCopy::Whole { file }, .. }) => folder.join(file),
            Some(DefinitionFile { copy: FileCopy::Masked { .. }, .. }) => {
                return Ok(Err("its secrets are masked".to_owned()));
            }
            Some(DefinitionFile { copy: FileCopy::Missing { reason }, .. }) => return Ok(Err(reason.clone())),
        };
        let bytes = match self.recorded {
            Some(RecordedFiles { run, .. }) => {
                let read = relative_to(run, &location)
                    .and_then(|relative| contained_file::read(run, relative, LARGEST_COPY.0));
                match read {
                    Ok(bytes) => Ok(bytes),
                    Err(error) => return Ok(Err(format!("cannot read `{}`: {error}", location.display()))),
                }
            }
            None => std::fs::read(&location),
        };
        let bytes = bytes.map_err(|error| {
            self.text.locate(path.span(), Diagnostic::new(format!("cannot read `{}`: {error}", path.get_ref())))
        })?;
        self.digest_input.extend_from_slice(&bytes);
        self.included_files.push((NamedFile { path: path.get_ref().clone(), location }, Sha256::digest(&bytes)));
        Ok(Ok(bytes))
    }

    fn parse_file_name(&self, name: &Spanned<String>) -> Result<String, Diagnostic> {
        let plain = name.get_ref();
        if plain.is_empty() || plain.contains(['/', '\0']) || plain == "." || plain == ".." {
            return self.error_at(name.span(), Diagnostic::new(format!("invalid file name `{plain}`")));
        }
        Ok(plain.clone())
    }

    fn parse_commands(&mut self, raw: &[Spanned<CommandWords>]) -> Result<Vec<CommandTemplate>, Diagnostic> {
        raw.iter().map(|command| self.parse_command(command, Phase::Prepare)).collect()
    }

    fn parse_command(&mut self, raw: &Spanned<CommandWords>, phase: Phase) -> Result<CommandTemplate, Diagnostic> {
        let mut used = BTreeSet::new();
        let argv = CommandTemplate::parse(&raw.get_ref().0, &self.scope(phase), &mut used);
        self.record_builtins(used, phase);
        argv.map_err(|diagnostic| self.text.locate(raw.span(), diagnostic))
    }

    fn parse_template(&mut self, raw: &Spanned<String>, phase: Phase) -> Result<Template, Diagnostic> {
        let mut used = BTreeSet::new();
        let template = Template::parse(raw.get_ref(), &self.scope(phase), &mut used);
        self.record_builtins(used, phase);
        template.map_err(|diagnostic| self.text.locate(raw.span(), diagnostic))
    }

    fn scope(&self, phase: Phase) -> TemplateScope<'_> {
        TemplateScope { argument_shapes: &self.argument_shapes, phase, has_folder: self.folder.is_some() }
    }

    fn record_builtins(&mut self, used: BTreeSet<Builtin>, phase: Phase) {
        match phase {
            Phase::Plan => {}
            Phase::Prepare => self.prepare_builtins.extend(used),
            Phase::Sample => self.sample_builtins.extend(used),
        }
    }

    fn error_at<T>(&self, span: Range<usize>, diagnostic: Diagnostic) -> Result<T, Diagnostic> {
        Err(self.text.locate(span, diagnostic))
    }
}
