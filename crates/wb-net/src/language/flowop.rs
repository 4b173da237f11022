//! From a `flowop` tag to a [`Flowop`].

use super::attributes::Attributes;
use super::context::{ParseContext, ParseError};
use super::endpoint::parse_endpoint;
use super::keywords::{FLOWOP_KINDS, FlowopKind, REMOVED, find_flowop};
use super::markup::Tag;
use super::message::{parse_files, parse_message};
use super::nearest::nearest;
use super::options::FlowopOptions;
use super::profile::{Flowop, FlowopAction, MAX_BATCH};
use super::quantity::{parse_duration, parse_integer, parse_rate};
use super::spanned_text::Span;

/// A flowop and where it stands.
pub(super) struct ParsedFlowop {
    pub(super) flowop: Flowop,
    /// Its tag.
    pub(super) span: Span,
    /// Its `conn`, otherwise its tag.
    pub(super) connection_span: Span,
}

/// Reads a flowop; `None` if it has faults, which have been reported.
///
/// `processes` is how many processes carry it out, each of which would want a fixed port for itself.
pub(super) fn parse_flowop(scope: &mut ParseContext, tag: &Tag, processes: u32) -> Option<ParsedFlowop> {
    let faults_before = scope.error_count();
    let attributes = Attributes::parse(scope, tag, &["type", "options"]);
    let Some((name, deed)) = parse_kind(scope, tag, &attributes) else {
        // Of a slip of the keyboard the rest is looked at, too; what is something else has options of its own.
        let given = attributes.raw("type").map_or("", |given| given.as_str());
        if !is_removed(given) && nearest(given, FLOWOP_KINDS.map(|(name, _)| name)).is_some() {
            FlowopOptions::check_names(scope, attributes.raw("options"));
        }
        return None;
    };
    let options = FlowopOptions::parse(scope, attributes.raw("options"), name, deed.family());

    let connection = options.get(scope, "conn", |text| {
        parse_integer(text, 1..=u64::from(u32::MAX))
            .map_err(|wrong| wrong.help("a connection is named by a number from 1 on"))
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
    let what = FlowopSource { name, tag, options: &options };
    flowop.action = match deed {
        FlowopKind::Connect => FlowopAction::Connect(Box::new(parse_endpoint(scope, &what, processes)?)),
        FlowopKind::Accept => FlowopAction::Accept(Box::new(parse_endpoint(scope, &what, processes)?)),
        FlowopKind::Disconnect => FlowopAction::Disconnect,
        FlowopKind::Send(call) => FlowopAction::Send(parse_message(scope, &what, call)?),
        FlowopKind::Receive(call) => FlowopAction::Receive(parse_message(scope, &what, call)?),
        FlowopKind::SendFiles => FlowopAction::SendFiles(parse_files(scope, &what)?),
        FlowopKind::Think => parse_think(scope, &what)?,
        FlowopKind::Nop => FlowopAction::Nop,
    };
    if deed != FlowopKind::Think {
        flowop.duration = options.get_with_note(scope, "duration", parse_duration);
    }
    let connection_span = options.span("conn").unwrap_or_else(|| tag.span.clone());
    let sound = scope.error_count() == faults_before;
    sound.then(|| ParsedFlowop { flowop, span: tag.span.clone(), connection_span })
}

/// What is being read, for messages and for its options.
pub(super) struct FlowopSource<'a> {
    pub(super) name: &'a str,
    tag: &'a Tag,
    pub(super) options: &'a FlowopOptions,
}

impl FlowopSource<'_> {
    /// Reports a required option that is not given; an unreadable one has been reported before.
    pub(super) fn require(&self, scope: &mut ParseContext, option: &str, help: &str) {
        if self.options.is_missing(option) {
            let wrong = ParseError::new(format!("`{}` has no `{option}`", self.name), format!("`{option}` is missing"));
            scope.report(self.tag.span.clone(), wrong.help(help));
        }
    }
}

fn parse_kind(scope: &mut ParseContext, tag: &Tag, attributes: &Attributes) -> Option<(&'static str, FlowopKind)> {
    let known = || FLOWOP_KINDS.map(|(name, _)| name);
    if !attributes.has("type") {
        let help = format!("write `type=\"…\"`: one of {}", known().join(", "));
        scope.report(tag.span.clone(), ParseError::new("a flowop without a type", "`type` is missing").help(help));
    }
    attributes.get(scope, "type", |name| {
        find_flowop(name).ok_or_else(|| {
            let wrong = ParseError::new(format!("there is no flowop `{name}`"), "unknown");
            if is_removed(name) {
                return wrong.help(format!("`{name}` belongs to a dialect that uperf no longer speaks either"));
            }
            wrong.suggest(name, known()).help(format!("known are {}", known().join(", ")))
        })
    })
}

fn is_removed(name: &str) -> bool {
    REMOVED.iter().any(|removed| removed.eq_ignore_ascii_case(name))
}

fn parse_think(scope: &mut ParseContext, what: &FlowopSource) -> Option<FlowopAction> {
    what.require(scope, "duration", "write `duration=10ms`, and `idle` or `busy`");
    let options = what.options;
    if let (true, Some(span)) = (options.has("idle"), options.span("busy")) {
        let wrong = ParseError::new("a think is idle or busy, not both", "`idle` is given, too");
        scope.report(span, wrong.help("leave one away; without either it is idle"));
    }
    let duration = options.get_with_note(scope, "duration", parse_duration)?;
    Some(FlowopAction::Think { duration, busy: options.has("busy") })
}
