//! From tags to a profile: which element is within which, and what each needs.

use super::attributes::Attributes;
use super::flowop::{Placed, flowop};
use super::follow::follow_connections;
use super::markup::Tag;
use super::profile::{Extent, Group, Profile, StrandKind, Transaction};
use super::quantity::{large_whole, rate, time};
use super::scope::{Scope, Wrong};
use super::text::Span;

/// More are a slip of the keyboard, and could not be started.
const MOST_STRANDS: u64 = 1 << 20;
pub(super) const ELEMENTS: [&str; 4] = ["profile", "group", "transaction", "flowop"];

/// Builds the profile; it is only good for use if no fault has been reported.
///
/// As uperf does, this takes no notice of elements that are not closed: a new one closes its like.
pub(super) fn tree(scope: &mut Scope, tags: &[Tag], stem: &str) -> Profile {
    let mut builder = Builder { scope, name: stem.to_owned(), start: None, ended: false, groups: Vec::new() };
    for tag in tags {
        let element = tag.name.to_ascii_lowercase();
        match element.as_str() {
            "profile" if tag.closing => builder.end_profile(),
            "profile" => builder.profile(tag),
            "group" if tag.closing => builder.end_group(),
            "group" => builder.group(tag),
            "transaction" if tag.closing => builder.end_transaction(),
            "transaction" => builder.transaction(tag),
            "flowop" if tag.closing => {}
            "flowop" => builder.flowop(tag),
            _ => {
                let wrong = Wrong::new(format!("there is no element `{}`", tag.name), "unknown")
                    .near(&tag.name, ELEMENTS)
                    .help("a profile consists of group, transaction and flowop");
                builder.scope.fault(tag.name_span.clone(), wrong);
            }
        }
    }
    builder.finish()
}

struct Builder<'s, 'a> {
    scope: &'s mut Scope<'a>,
    name: String,
    /// The profile's opening tag.
    start: Option<Span>,
    ended: bool,
    groups: Vec<Draft>,
}

/// A group that is being read.
struct Draft {
    group: Group,
    tag: Span,
    /// Whether transactions can be added.
    open: bool,
    transactions: Vec<DraftTransaction>,
}

struct DraftTransaction {
    transaction: Transaction,
    tag: Span,
    /// Whether flowops can be added.
    open: bool,
    flowops: Vec<Placed>,
    /// Whether it has flowops that are not understood.
    incomplete: bool,
}

impl Builder<'_, '_> {
    fn profile(&mut self, tag: &Tag) {
        let attributes = Attributes::read(self.scope, tag, &["name"]);
        if self.start.is_some() {
            let wrong = Wrong::new("a second profile", "starts here").help("write one file for each");
            self.scope.fault(tag.span.clone(), wrong);
            return;
        }
        self.start = Some(tag.span.clone());
        if let Some(name) = attributes.text(self.scope, "name").filter(|name| !name.as_str().is_empty()) {
            self.name = name.as_str().to_owned();
        }
    }

    fn end_profile(&mut self) {
        self.end_group();
        self.ended = true;
    }

    fn group(&mut self, tag: &Tag) {
        self.end_group();
        if self.start.is_none() || self.ended {
            let wrong = Wrong::new("a group outside of a profile", "here");
            self.scope.fault(tag.span.clone(), wrong.help("groups stand between `<profile>` and `</profile>`"));
        }
        let attributes = Attributes::read(self.scope, tag, &["nthreads", "nprocs", "name"]);
        let (strands, kind) = strands(self.scope, tag, &attributes);
        let name = attributes.text(self.scope, "name").map(|name| name.as_str().to_owned());
        let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| format!("Group{}", self.groups.len()));
        let group = Group { name, strands, kind, transactions: Vec::new() };
        self.groups.push(Draft { group, tag: tag.span.clone(), open: true, transactions: Vec::new() });
    }

    fn end_group(&mut self) {
        self.end_transaction();
        if let Some(group) = self.groups.last_mut() {
            group.open = false;
        }
    }

    fn transaction(&mut self, tag: &Tag) {
        self.end_transaction();
        let attributes = Attributes::read(self.scope, tag, &["iterations", "duration", "rate"]);
        let extent = extent(self.scope, &attributes);
        let rate = attributes.get_noted(self.scope, "rate", rate);
        let Some(draft) = self.groups.last_mut().filter(|draft| draft.open) else {
            let wrong = Wrong::new("a transaction outside of a group", "here");
            self.scope.fault(tag.span.clone(), wrong.help("transactions stand between `<group>` and `</group>`"));
            return;
        };
        let name = format!("Txn{}", draft.transactions.len());
        draft.transactions.push(DraftTransaction {
            transaction: Transaction { name, extent, rate, flowops: Vec::new() },
            tag: tag.span.clone(),
            open: true,
            flowops: Vec::new(),
            incomplete: false,
        });
    }

    fn end_transaction(&mut self) {
        if let Some(transaction) = self.groups.last_mut().and_then(|draft| draft.transactions.last_mut()) {
            transaction.open = false;
        }
    }

    fn flowop(&mut self, tag: &Tag) {
        let processes = self.groups.last().map_or(1, |draft| match draft.group.kind {
            StrandKind::Process => draft.group.strands,
            StrandKind::Thread => 1,
        });
        let placed = flowop(self.scope, tag, processes);
        let transactions = self.groups.last_mut().map(|draft| &mut draft.transactions);
        let Some(transaction) = transactions.and_then(|all| all.last_mut()).filter(|transaction| transaction.open)
        else {
            let wrong = Wrong::new("a flowop outside of a transaction", "here");
            let help = "flowops stand between `<transaction>` and `</transaction>`";
            self.scope.fault(tag.span.clone(), wrong.help(help));
            return;
        };
        transaction.incomplete |= placed.is_none();
        transaction.flowops.extend(placed);
    }

    fn finish(self) -> Profile {
        let Self { scope, name, start, groups, .. } = self;
        let end = scope.source.len();
        match start {
            None if groups.is_empty() => {
                scope.fault(end..end, no_profile());
            }
            Some(start) if groups.is_empty() => {
                let wrong = Wrong::new("a profile without groups", "it does nothing");
                scope.fault(start, wrong.help("add `<group nthreads=\"1\">` with a transaction"));
            }
            _ => {}
        }
        Profile { name, groups: groups.into_iter().map(|draft| draft.finish(scope)).collect() }
    }
}

/// What is said of a text that is something else.
pub(super) fn no_profile() -> Wrong {
    Wrong::new("there is no profile in this text", "").help("a profile starts with `<profile name=\"…\">`")
}

impl Draft {
    fn finish(mut self, scope: &mut Scope) -> Group {
        if self.transactions.is_empty() {
            let wrong = Wrong::new("a group without transactions", "it does nothing");
            scope.fault(self.tag, wrong.help("add `<transaction>` with flowops"));
        }
        let complete = self.transactions.iter().all(|transaction| !transaction.incomplete);
        let mut places = Vec::new();
        for draft in self.transactions {
            if draft.flowops.is_empty() && !draft.incomplete {
                let wrong = Wrong::new("a transaction without flowops", "it does nothing");
                scope.fault(draft.tag, wrong.help("add `<flowop type=\"…\" options=\"…\"/>`"));
            }
            let (flowops, spans): (Vec<_>, Vec<_>) = draft
                .flowops
                .into_iter()
                .map(|Placed { flowop, span, connection_span }| (flowop, (span, connection_span)))
                .unzip();
            self.group.transactions.push(Transaction { flowops, ..draft.transaction });
            places.push(spans);
        }
        if complete {
            follow_connections(scope, &self.group, &places);
        }
        self.group
    }
}

fn strands(scope: &mut Scope, tag: &Tag, attributes: &Attributes) -> (u32, StrandKind) {
    let mut number = |name| attributes.get(scope, name, |text| large_whole(text, 1..=MOST_STRANDS)).unwrap_or(1) as u32;
    let (threads, processes) = (number("nthreads"), number("nprocs"));
    match (attributes.span("nthreads"), attributes.span("nprocs")) {
        (Some(_), None) => return (threads, StrandKind::Thread),
        (None, Some(_)) => return (processes, StrandKind::Process),
        (Some(_), Some(second)) => {
            let wrong = Wrong::new("a group of threads and of processes", "`nthreads` is given, too");
            scope.fault(second, wrong.help("leave one away, or write two groups"));
        }
        (None, None) => {
            let wrong = Wrong::new("a group does not say how many strands it has", "`nthreads` or `nprocs` is missing");
            scope.fault(tag.span.clone(), wrong.help("write `nthreads=\"1\"`"));
        }
    }
    (1, StrandKind::Thread)
}

fn extent(scope: &mut Scope, attributes: &Attributes) -> Extent {
    let iterations = attributes.get(scope, "iterations", |text| large_whole(text, 0..=u64::MAX));
    let duration = attributes.get_noted(scope, "duration", time);
    if let (Some(_), Some(second)) = (attributes.span("iterations"), attributes.span("duration")) {
        let wrong = Wrong::new("a transaction with both `iterations` and `duration`", "`iterations` is given, too");
        scope.fault(second, wrong.help("leave one away: uperf would look at the last only"));
    }
    duration.map_or(Extent::Iterations(iterations.unwrap_or(1)), Extent::Window)
}
