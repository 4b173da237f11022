//! Inputs that affect only the build of a definition's programs.

use wb_model::{Params, Requirement};
use wb_test::BuildInputs;

use super::definition::{Definition, FileContent, MeasuredProgram, Readiness, Service};
use super::template::{CommandTemplate, Template};

impl Definition {
    /// Parameters and programs that affect only the build; none if nothing is built. A program that any other text of
    /// the definition mentions is not included.
    pub(super) fn build_inputs(&self, params: &Params) -> BuildInputs {
        if self.built_programs.is_empty() {
            return BuildInputs::default();
        }
        let other_templates = self.templates_outside_build();
        let build_templates: Vec<&Template> = self.build.iter().flat_map(CommandTemplate::words).collect();
        let requirements = || self.requirement_templates.iter().map(|requirement| &requirement.program);
        let affects_only_build = |param: &str| {
            let is_used =
                build_templates.iter().copied().chain(requirements()).any(|template| template.uses_param(param));
            is_used && !other_templates.iter().any(|template| template.uses_param(param))
        };
        let is_mentioned = |program: &str| {
            let name = program.rsplit('/').next().unwrap_or(program);
            let in_bytes = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(name);
            let in_files =
                || self.files.iter().any(|file| matches!(&file.content, FileContent::Bytes(b) if in_bytes(b)));
            // A placeholder may stand for the program itself.
            let by_value = |template: &Template| {
                params.iter().any(|(param, value)| template.uses_param(param) && value.to_string().contains(name))
            };
            other_templates.iter().any(|template| template.mentions(name) || by_value(template)) || in_files()
        };
        let names = self.declaration.params.iter().map(|param| param.name.clone());
        let programs = self.requirements(params).into_iter().map(|Requirement { program, .. }| program);
        BuildInputs {
            params: names.filter(|name| affects_only_build(name)).collect(),
            programs: programs.filter(|program| !is_mentioned(program)).collect(),
        }
    }

    /// All templates except those of the build, the requirements and the checks.
    fn templates_outside_build(&self) -> Vec<&Template> {
        let (MeasuredProgram::Command(measured) | MeasuredProgram::Runner(measured)) = &self.measured_program;
        let commands = [measured].into_iter().chain(&self.setup).chain(&self.cleanup);
        let mut all: Vec<&Template> = commands.flat_map(CommandTemplate::words).collect();
        all.extend(self.services.iter().flat_map(Service::templates));
        all.extend(self.env.iter().map(|(_, value)| value));
        all.extend(self.files.iter().filter_map(|file| match &file.content {
            FileContent::Template(template) => Some(template),
            FileContent::Bytes(_) | FileContent::Missing(_) => None,
        }));
        all
    }
}

impl Service {
    fn templates(&self) -> Vec<&Template> {
        let mut all: Vec<&Template> = self.command.words().iter().collect();
        match &self.ready {
            Readiness::Line(..) => {}
            Readiness::Port(port) => all.push(port),
            Readiness::Command(command) => all.extend(command.words()),
        }
        all.extend(self.stop.iter().flat_map(CommandTemplate::words));
        all
    }
}
