//! From a `flowop` tag to a [`Flowop`].

use super::attributes::Attributes;
use super::endpoint::endpoint;
use super::markup::Tag;
use super::message::{files, message};
use super::nearest::nearest;
use super::options::Options;
use super::profile::{Action, BATCH, Flowop};
use super::quantity::{rate, time, whole};
use super::scope::{Scope, Wrong};
use super::text::Span;
use super::words::{Deed, FLOWOPS, REMOVED, flowop_type};

/// A flowop and where it stands.
pub(super) struct Placed {
    pub(super) flowop: Flowop,
    /// Its tag.
    pub(super) span: Span,
    /// Its `conn`, otherwise its tag.
    pub(super) connection_span: Span,
}

/// Reads a flowop; `None` if it has faults, which have been reported.
///
/// `processes` is how many processes carry it out, each of which would want a fixed port for itself.
pub(super) fn flowop(scope: &mut Scope, tag: &Tag, processes: u32) -> Option<Placed> {
    let faults_before = scope.fault_count();
    let attributes = Attributes::read(scope, tag, &["type", "options"]);
    let Some((name, deed)) = kind(scope, tag, &attributes) else {
        // Of a slip of the keyboard the rest is looked at, too; what is something else has options of its own.
        let given = attributes.raw("type").map_or("", |given| given.as_str());
        if !is_removed(given) && nearest(given, FLOWOPS.map(|(name, _)| name)).is_some() {
            Options::check_names(scope, attributes.raw("options"));
        }
        return None;
    };
    let options = Options::read(scope, attributes.raw("options"), name, deed.family());

    let connection = options.get(scope, "conn", |text| {
        whole(text, 1..=u64::from(u32::MAX)).map_err(|wrong| wrong.help("a connection is named by a number from 1 on"))
    });
    let mut flowop = Flowop {
        name: name.to_owned(),
        action: Action::Nop,
        connection: connection.map(|connection| connection as u32),
        count: options.get(scope, "count", |text| whole(text, 1..=u64::MAX)).unwrap_or(1),
        repeat: options.get(scope, "repeat", |text| whole(text, 1..=u64::MAX)).unwrap_or(1),
        batch: options.get(scope, "batch_size", |text| whole(text, 1..=u64::from(BATCH))).unwrap_or(1) as u32,
        rate: options.get_noted(scope, "rate", rate),
        duration: None,
        can_fail: options.has("canfail"),
    };
    let what = Subject { name, tag, options: &options };
    flowop.action = match deed {
        Deed::Connect => Action::Connect(Box::new(endpoint(scope, &what, processes)?)),
        Deed::Accept => Action::Accept(Box::new(endpoint(scope, &what, processes)?)),
        Deed::Disconnect => Action::Disconnect,
        Deed::Send(call) => Action::Send(message(scope, &what, call)?),
        Deed::Receive(call) => Action::Receive(message(scope, &what, call)?),
        Deed::SendFiles => Action::SendFiles(files(scope, &what)?),
        Deed::Think => think(scope, &what)?,
        Deed::Nop => Action::Nop,
    };
    if deed != Deed::Think {
        flowop.duration = options.get_noted(scope, "duration", time);
    }
    let connection_span = options.span("conn").unwrap_or_else(|| tag.span.clone());
    let sound = scope.fault_count() == faults_before;
    sound.then(|| Placed { flowop, span: tag.span.clone(), connection_span })
}

/// What is being read, for messages and for its options.
pub(super) struct Subject<'a> {
    pub(super) name: &'a str,
    tag: &'a Tag,
    pub(super) options: &'a Options,
}

impl Subject<'_> {
    /// Reports a required option that is not given; an unreadable one has been reported before.
    pub(super) fn require(&self, scope: &mut Scope, option: &str, help: &str) {
        if self.options.lacks(option) {
            let wrong = Wrong::new(format!("`{}` has no `{option}`", self.name), format!("`{option}` is missing"));
            scope.fault(self.tag.span.clone(), wrong.help(help));
        }
    }
}

fn kind(scope: &mut Scope, tag: &Tag, attributes: &Attributes) -> Option<(&'static str, Deed)> {
    let known = || FLOWOPS.map(|(name, _)| name);
    if !attributes.has("type") {
        let help = format!("write `type=\"…\"`: one of {}", known().join(", "));
        scope.fault(tag.span.clone(), Wrong::new("a flowop without a type", "`type` is missing").help(help));
    }
    attributes.get(scope, "type", |name| {
        flowop_type(name).ok_or_else(|| {
            let wrong = Wrong::new(format!("there is no flowop `{name}`"), "unknown");
            if is_removed(name) {
                return wrong.help(format!("`{name}` belongs to a dialect that uperf no longer speaks either"));
            }
            wrong.near(name, known()).help(format!("known are {}", known().join(", ")))
        })
    })
}

fn is_removed(name: &str) -> bool {
    REMOVED.iter().any(|removed| removed.eq_ignore_ascii_case(name))
}

fn think(scope: &mut Scope, what: &Subject) -> Option<Action> {
    what.require(scope, "duration", "write `duration=10ms`, and `idle` or `busy`");
    let options = what.options;
    if let (true, Some(span)) = (options.has("idle"), options.span("busy")) {
        let wrong = Wrong::new("a think is idle or busy, not both", "`idle` is given, too");
        scope.fault(span, wrong.help("leave one away; without either it is idle"));
    }
    let duration = options.get_noted(scope, "duration", time)?;
    Some(Action::Think { duration, busy: options.has("busy") })
}
