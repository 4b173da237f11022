//! Builds a profile from tags: checks the nesting of elements, and their required attributes.

use wb_diagnostics::{Diagnostic, suggest};

use super::attributes::Attributes;
use super::connection_check::check_connections;
use super::context::ParseContext;
use super::flowop::{ParsedFlowop, parse_flowop};
use super::markup::Tag;
use super::profile::{Extent, Group, NetProfile, StrandKind, Transaction};
use super::quantity::{parse_duration, parse_rate, parse_scaled_integer};
use super::spanned_text::Span;

/// Upper limit for the number of strands: more are a typing error, and could not be started.
const MAX_STRANDS: u64 = 1 << 20;

/// Upper limit for the number of strands that are processes: each is one.
const MAX_PROCESSES: u64 = 1024;
pub(super) const ELEMENTS: [&str; 4] = ["profile", "group", "transaction", "flowop"];

/// Builds the profile; the result is only valid if no error has been reported. Like uperf, this ignores missing end
/// tags: a new element closes the previous one of its kind.
pub(super) fn build_profile(scope: &mut ParseContext, tags: &[Tag], stem: &str) -> NetProfile {
    let mut builder =
        ProfileBuilder { context: scope, name: stem.to_owned(), start: None, ended: false, groups: Vec::new() };
    for tag in tags {
        let element = tag.name.to_ascii_lowercase();
        match element.as_str() {
            "profile" if tag.closing => builder.end_profile(),
            "profile" => builder.begin_profile(tag),
            "group" if tag.closing => builder.end_group(),
            "group" => builder.begin_group(tag),
            "transaction" if tag.closing => builder.end_transaction(),
            "transaction" => builder.begin_transaction(tag),
            "flowop" if tag.closing => {}
            "flowop" => builder.add_flowop(tag),
            _ => {
                let error = Diagnostic::labelled(format!("unknown element `{}`", tag.name), "unknown")
                    .with_suggestion(suggest(&tag.name, ELEMENTS))
                    .with_help("a profile consists of group, transaction and flowop");
                builder.context.report(tag.name_span.clone(), error);
            }
        }
    }
    builder.finish()
}

struct ProfileBuilder<'s, 'a> {
    context: &'s mut ParseContext<'a>,
    name: String,
    start: Option<Span>,
    ended: bool,
    groups: Vec<GroupDraft>,
}

struct GroupDraft {
    group: Group,
    tag: Span,
    open: bool,
    transactions: Vec<TransactionDraft>,
}

struct TransactionDraft {
    transaction: Transaction,
    tag: Span,
    open: bool,
    flowops: Vec<ParsedFlowop>,
    /// Whether any of its flowops could not be parsed.
    incomplete: bool,
}

impl ProfileBuilder<'_, '_> {
    fn begin_profile(&mut self, tag: &Tag) {
        let attributes = Attributes::parse(self.context, tag, &["name"]);
        if self.start.is_some() {
            let error = Diagnostic::labelled("a second profile", "starts here").with_help("write one profile per file");
            self.context.report(tag.span.clone(), error);
            return;
        }
        self.start = Some(tag.span.clone());
        if let Some(name) = attributes.text(self.context, "name").filter(|name| !name.as_str().is_empty()) {
            self.name = name.as_str().to_owned();
        }
    }

    fn end_profile(&mut self) {
        self.end_group();
        self.ended = true;
    }

    fn begin_group(&mut self, tag: &Tag) {
        self.end_group();
        if self.start.is_none() || self.ended {
            let error = Diagnostic::labelled("a group outside of a profile", "here");
            self.context
                .report(tag.span.clone(), error.with_help("groups belong between `<profile>` and `</profile>`"));
        }
        let attributes = Attributes::parse(self.context, tag, &["nthreads", "nprocs", "name"]);
        let (strands, kind) = parse_strands(self.context, tag, &attributes);
        let name = attributes.text(self.context, "name").map(|name| name.as_str().to_owned());
        let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| format!("Group{}", self.groups.len()));
        let group = Group { name, strands, kind, transactions: Vec::new() };
        self.groups.push(GroupDraft { group, tag: tag.span.clone(), open: true, transactions: Vec::new() });
    }

    fn end_group(&mut self) {
        self.end_transaction();
        if let Some(group) = self.groups.last_mut() {
            group.open = false;
        }
    }

    fn begin_transaction(&mut self, tag: &Tag) {
        self.end_transaction();
        let attributes = Attributes::parse(self.context, tag, &["iterations", "duration", "rate"]);
        let extent = parse_extent(self.context, &attributes);
        let rate = attributes.get_with_note(self.context, "rate", parse_rate);
        let Some(draft) = self.groups.last_mut().filter(|draft| draft.open) else {
            let error = Diagnostic::labelled("a transaction outside of a group", "here");
            self.context
                .report(tag.span.clone(), error.with_help("transactions belong between `<group>` and `</group>`"));
            return;
        };
        let name = format!("Txn{}", draft.transactions.len());
        draft.transactions.push(TransactionDraft {
            transaction: Transaction { name, extent, rate, warm_up: false, flowops: Vec::new() },
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

    fn add_flowop(&mut self, tag: &Tag) {
        let processes = self.groups.last().map_or(1, |draft| match draft.group.kind {
            StrandKind::Process => draft.group.strands,
            StrandKind::Thread => 1,
        });
        let parsed = parse_flowop(self.context, tag, processes);
        let transactions = self.groups.last_mut().map(|draft| &mut draft.transactions);
        let Some(transaction) = transactions.and_then(|all| all.last_mut()).filter(|transaction| transaction.open)
        else {
            let error = Diagnostic::labelled("a flowop outside of a transaction", "here");
            let help = "flowops belong between `<transaction>` and `</transaction>`";
            self.context.report(tag.span.clone(), error.with_help(help));
            return;
        };
        transaction.incomplete |= parsed.is_none();
        transaction.flowops.extend(parsed);
    }

    fn finish(self) -> NetProfile {
        let Self { context: scope, name, start, groups, .. } = self;
        let end = scope.source.text.len();
        match start {
            None if groups.is_empty() => {
                scope.report(end..end, missing_profile());
            }
            Some(start) if groups.is_empty() => {
                let error = Diagnostic::labelled("a profile without groups", "it does nothing");
                scope.report(start, error.with_help("add `<group nthreads=\"1\">` with a transaction"));
            }
            _ => {}
        }
        NetProfile { name, groups: groups.into_iter().map(|draft| draft.finish(scope)).collect() }
    }
}

pub(super) fn missing_profile() -> Diagnostic {
    Diagnostic::labelled("no profile found", "").with_help("a profile starts with `<profile name=\"…\">`")
}

impl GroupDraft {
    fn finish(mut self, scope: &mut ParseContext) -> Group {
        if self.transactions.is_empty() {
            let error = Diagnostic::labelled("a group without transactions", "it does nothing");
            scope.report(self.tag, error.with_help("add `<transaction>` with flowops"));
        }
        let complete = self.transactions.iter().all(|transaction| !transaction.incomplete);
        let mut spans_by_transaction = Vec::new();
        for draft in self.transactions {
            if draft.flowops.is_empty() && !draft.incomplete {
                let error = Diagnostic::labelled("a transaction without flowops", "it does nothing");
                scope.report(draft.tag, error.with_help("add `<flowop type=\"…\" options=\"…\"/>`"));
            }
            let (flowops, spans): (Vec<_>, Vec<_>) = draft
                .flowops
                .into_iter()
                .map(|ParsedFlowop { flowop, span, connection_span }| (flowop, (span, connection_span)))
                .unzip();
            self.group.transactions.push(Transaction { flowops, ..draft.transaction });
            spans_by_transaction.push(spans);
        }
        if complete {
            check_connections(scope, &self.group, &spans_by_transaction);
        }
        self.group
    }
}

fn parse_strands(scope: &mut ParseContext, tag: &Tag, attributes: &Attributes) -> (u32, StrandKind) {
    let mut strand_count =
        |name, limit| attributes.get(scope, name, |text| parse_scaled_integer(text, 1..=limit)).unwrap_or(1) as u32;
    let (threads, processes) = (strand_count("nthreads", MAX_STRANDS), strand_count("nprocs", MAX_PROCESSES));
    match (attributes.span("nthreads"), attributes.span("nprocs")) {
        (Some(_), None) => return (threads, StrandKind::Thread),
        (None, Some(_)) => return (processes, StrandKind::Process),
        (Some(_), Some(second)) => {
            let error = Diagnostic::labelled("a group with both `nthreads` and `nprocs`", "`nthreads` is given, too");
            scope.report(second, error.with_help("remove one of them, or write two groups"));
        }
        (None, None) => {
            let error = Diagnostic::labelled("missing number of strands", "`nthreads` or `nprocs` is missing");
            scope.report(tag.span.clone(), error.with_help("write `nthreads=\"1\"`"));
        }
    }
    (1, StrandKind::Thread)
}

fn parse_extent(scope: &mut ParseContext, attributes: &Attributes) -> Extent {
    let iterations = attributes.get(scope, "iterations", |text| parse_scaled_integer(text, 0..=u64::MAX));
    let duration = attributes.get_with_note(scope, "duration", parse_duration);
    if let (Some(_), Some(second)) = (attributes.span("iterations"), attributes.span("duration")) {
        let error =
            Diagnostic::labelled("a transaction with both `iterations` and `duration`", "`iterations` is given, too");
        scope.report(second, error.with_help("remove one of them: uperf would use only the last"));
    }
    duration.map_or(Extent::Iterations(iterations.unwrap_or(1)), Extent::Window)
}
