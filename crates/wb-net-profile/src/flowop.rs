//! Parses a `flowop` tag into a [`Flowop`].

use wb_diagnostics::{Diagnostic, suggest};

use super::attributes::Attributes;
use super::context::ParseContext;
use super::endpoint::parse_endpoint;
use super::flowop_source::FlowopSource;
use super::keywords::{FLOWOP_KINDS, FlowopKind, find_flowop, removed_help};
use super::markup::Tag;
use super::message::{parse_files, parse_message};
use super::options::FlowopOptions;
use super::profile::{Flowop, FlowopAction, MAX_BATCH};
use super::quantity::{parse_duration, parse_integer, parse_rate};
use super::spanned_text::Span;

pub(super) struct ParsedFlowop {
    pub(super) flowop: Flowop,
    pub(super) span: Span,
    /// The span of its `conn` if given, otherwise that of its tag.
    pub(super) connection_span: Span,
}

/// Parses a flowop; `None` if it has errors, which have been reported. Each of the `processes` that execute it would
/// need a fixed port for itself.
pub(super) fn parse_flowop(scope: &mut ParseContext, tag: &Tag, processes: u32) -> Option<ParsedFlowop> {
    let errors_before = scope.error_count();
    let attributes = Attributes::parse(scope, tag, &["type", "options"]);
    let Some((name, kind)) = parse_kind(scope, tag, &attributes) else {
        // If the type is a typing error, the rest is checked too; an unrelated type has options of its own.
        let type_name = attributes.raw("type").map_or("", |type_name| type_name.as_str());
        if removed_help(type_name).is_none() && suggest(type_name, FLOWOP_KINDS.map(|(name, _)| name)).is_some() {
            FlowopOptions::check_names(scope, attributes.raw("options"));
        }
        return None;
    };
    let options = FlowopOptions::parse(scope, attributes.raw("options"), name, kind.family());

    let connection = options.get(scope, "conn", |text| {
        parse_integer(text, 1..=u64::from(u32::MAX)).map_err(|error| error.with_help("expected a number of at least 1"))
    });
    let mut flowop = Flowop {
        name: name.to_owned(),
        action: FlowopAction::Nop,
        connection: connection.map(|connection| connection as u32),
        count: options.get(scope, "count", |text| parse_integer(text, 1..=u64::MAX)).unwrap_or(1),
        repeat: options.get(scope, "repeat", |text| parse_integer(text, 1..=u64::MAX)).unwrap_or(1),
        batch: options.get(scope, "batch_size", |text| parse_integer(text, 1..=u64::from(MAX_BATCH))).unwrap_or(1)
            as u32,
        rate: options.get_with_note(scope, "rate", parse_rate),
        duration: None,
        can_fail: options.has("canfail"),
    };
    let source = FlowopSource { name, tag, options: &options };
    flowop.action = match kind {
        FlowopKind::Connect => FlowopAction::Connect(Box::new(parse_endpoint(scope, &source, processes)?)),
        FlowopKind::Accept => FlowopAction::Accept(Box::new(parse_endpoint(scope, &source, processes)?)),
        FlowopKind::Disconnect => FlowopAction::Disconnect,
        FlowopKind::Send(call) => FlowopAction::Send(parse_message(scope, &source, call)?),
        FlowopKind::Receive(call) => FlowopAction::Receive(parse_message(scope, &source, call)?),
        FlowopKind::SendFiles => FlowopAction::SendFiles(parse_files(scope, &source)?),
        FlowopKind::Think => parse_think(scope, &source)?,
        FlowopKind::Nop => FlowopAction::Nop,
    };
    if kind != FlowopKind::Think {
        flowop.duration = options.get_with_note(scope, "duration", parse_duration);
    }
    let connection_span = options.span("conn").unwrap_or_else(|| tag.span.clone());
    let sound = scope.error_count() == errors_before;
    sound.then(|| ParsedFlowop { flowop, span: tag.span.clone(), connection_span })
}

fn parse_kind(scope: &mut ParseContext, tag: &Tag, attributes: &Attributes) -> Option<(&'static str, FlowopKind)> {
    let names = || FLOWOP_KINDS.map(|(name, _)| name);
    if !attributes.has("type") {
        let help = format!("write `type=\"…\"`: one of {}", names().join(", "));
        scope.report(
            tag.span.clone(),
            Diagnostic::labelled("a flowop without a type", "`type` is missing").with_help(help),
        );
    }
    attributes.get(scope, "type", |name| {
        find_flowop(name).ok_or_else(|| {
            let error = Diagnostic::labelled(format!("unknown flowop `{name}`"), "unknown");
            if let Some(help) = removed_help(name) {
                return error.with_help(help);
            }
            error.with_suggestion(suggest(name, names())).with_help(format!("expected one of {}", names().join(", ")))
        })
    })
}

fn parse_think(scope: &mut ParseContext, source: &FlowopSource) -> Option<FlowopAction> {
    source.require(scope, "duration", "write `duration=10ms`, and `idle` or `busy`");
    let options = source.options;
    if let (true, Some(span)) = (options.has("idle"), options.span("busy")) {
        let error = Diagnostic::labelled("`think` with both `idle` and `busy`", "`idle` is given, too");
        scope.report(span, error.with_help("remove one of them; the default is idle"));
    }
    let duration = options.get_with_note(scope, "duration", parse_duration)?;
    Some(FlowopAction::Think { duration, busy: options.has("busy") })
}
