//! The flowop that is being parsed, as its parsers share it.

use wb_diagnostics::Diagnostic;

use super::context::ParseContext;
use super::markup::Tag;
use super::options::FlowopOptions;

pub(super) struct FlowopSource<'a> {
    pub(super) name: &'a str,
    pub(super) tag: &'a Tag,
    pub(super) options: &'a FlowopOptions,
}

impl FlowopSource<'_> {
    /// Reports a required option that is missing; an invalid one has been reported before.
    pub(super) fn require(&self, scope: &mut ParseContext, option: &str, help: &str) {
        if self.options.is_missing(option) {
            let error = Diagnostic::labelled(
                format!("missing option `{option}` of `{}`", self.name),
                format!("`{option}` is missing"),
            );
            scope.report(self.tag.span.clone(), error.with_help(help));
        }
    }
}
