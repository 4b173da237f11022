//! What flowops say of what they move: messages and files.

use super::endpoint::timeout;
use super::flowop::Subject;
use super::options::Options;
use super::profile::{Call, Files, Message, PartialReliability, SctpMessage, Size};
use super::quantity::{large_whole, size, whole};
use super::scope::{Scope, Wrong};
use super::text::Text;

/// Reads a message; `None` if its size is missing or cannot be read.
pub(super) fn message(scope: &mut Scope, what: &Subject, call: Call) -> Option<Message> {
    let options = what.options;
    what.require(scope, "size", "write `size=64`, `size=8k` or `size=rand(1,8k)`");
    let bytes = options.text("size").and_then(|text| any_size(scope, text));
    let mut remote_size = options.get(scope, "rsize", size);
    if let (Some(Size::Random { .. }), Some(span)) = (bytes, options.span("rsize")) {
        scope.note(span, "`rsize` is passed over: the other side takes messages of random size as they are");
        remote_size = None;
    }
    let timeout = timeout(scope, options);
    let sctp = sctp(scope, options);
    Some(Message { size: bytes?, remote_size, call, timeout, non_blocking: options.has("non_blocking"), sctp })
}

/// Reads files to send; `None` if it is not said which.
pub(super) fn files(scope: &mut Scope, what: &Subject) -> Option<Files> {
    let options = what.options;
    what.require(scope, "dir", "write `dir=FOLDER`, where the files lie");
    let count = options.get(scope, "nfiles", |text| large_whole(text, 1..=u64::from(u32::MAX)));
    let chunk = options.get(scope, "size", size);
    Some(Files { dir: options.word("dir")?, count: count.map_or(1, |count| count as u32), chunk })
}

/// A size, or `rand(MIN,MAX)`.
fn any_size(scope: &mut Scope, text: &Text) -> Option<Size> {
    let text = text.trim();
    if !text.as_str().get(..4).is_some_and(|start| start.eq_ignore_ascii_case("rand")) {
        return size(text.as_str()).map(Size::Fixed).map_err(|wrong| scope.fault(text.span(), wrong)).ok();
    }
    let Some((min, max)) = limits(&text) else {
        let wrong = Wrong::new(format!("`{}` is no size", text.as_str()), "not a size");
        scope.fault(text.span(), wrong.help("a random size is written `rand(MIN,MAX)`: rand(1,8k)"));
        return None;
    };
    let mut limit = |limit: &Text| {
        let limit = limit.trim();
        size(limit.as_str()).map_err(|wrong| scope.fault(limit.span(), wrong)).ok()
    };
    let (smallest, largest) = (limit(&min), limit(&max));
    let (min, max) = (smallest?, largest?);
    if min > max {
        let wrong = Wrong::new(format!("a random size from {min} to {max} bytes"), "the smallest is above the largest");
        scope.fault(text.span(), wrong.help("a random size is written `rand(MIN,MAX)`: rand(1,8k)"));
        return None;
    }
    Some(Size::Random { min, max })
}

/// The two in `rand(MIN,MAX)`.
fn limits(text: &Text) -> Option<(Text, Text)> {
    let given = text.as_str();
    let open = 4 + given[4..].len() - given[4..].trim_start().strip_prefix('(')?.len();
    let close = given.strip_suffix(')')?.len();
    let comma = given.find(',')?;
    (open <= comma && comma < close).then(|| (text.part(open..comma), text.part(comma + 1..close)))
}

fn sctp(scope: &mut Scope, options: &Options) -> SctpMessage {
    let stream = options.get(scope, "sctp_stream_id", |text| whole(text, 0..=u64::from(u16::MAX)));
    SctpMessage {
        stream: stream.map(|stream| stream as u16),
        unordered: options.has("sctp_unordered"),
        partial: partial_reliability(scope, options),
    }
}

fn partial_reliability(scope: &mut Scope, options: &Options) -> Option<PartialReliability> {
    const POLICIES: [&str; 5] = ["ttl", "rtx", "buf", "none", "rtt"];
    let value = options.get(scope, "sctp_pr_value", |text| large_whole(text, 0..=u64::from(u32::MAX)));
    if let (false, Some(span)) = (options.has("sctp_pr_policy"), options.span("sctp_pr_value")) {
        scope.note(span, "`sctp_pr_value` means nothing without `sctp_pr_policy`");
    }
    let policy = options.get(scope, "sctp_pr_policy", |name| {
        POLICIES.into_iter().find(|policy| policy.eq_ignore_ascii_case(name.trim())).ok_or_else(|| {
            let known = format!("known are {}", POLICIES.join(", "));
            Wrong::new(format!("there is no policy `{name}`"), "unknown").near(name, POLICIES).help(known)
        })
    })?;
    let span = options.span("sctp_pr_policy").unwrap_or_default();
    let limited: fn(u32) -> PartialReliability = match policy {
        "ttl" => PartialReliability::Lifetime,
        "rtx" => PartialReliability::Retransmissions,
        "buf" => PartialReliability::Priority,
        "none" => return Some(PartialReliability::Never),
        _ => {
            scope.note(span, format!("Linux has no policy `{policy}`: messages are never given up"));
            return Some(PartialReliability::Never);
        }
    };
    if !options.has("sctp_pr_value") {
        let wrong = Wrong::new(format!("the policy `{policy}` has no value"), "`sctp_pr_value` is missing");
        scope.fault(span, wrong.help("write `sctp_pr_value=50`: milliseconds, retransmissions or a priority"));
    }
    value.map(|value| limited(value as u32))
}
