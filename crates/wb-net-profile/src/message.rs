//! Parses the options of flowops that move data: messages and files.

use wb_diagnostics::{Diagnostic, suggest};

use super::context::ParseContext;
use super::endpoint::parse_timeout;
use super::flowop_source::FlowopSource;
use super::options::FlowopOptions;
use super::profile::{Files, Message, MessageSize, PartialReliability, SctpMessage, SyscallFamily};
use super::quantity::{parse_integer, parse_scaled_integer, parse_size};
use super::spanned_text::SpannedText;

/// Parses a message; `None` if its size is missing or invalid.
pub(super) fn parse_message(scope: &mut ParseContext, source: &FlowopSource, call: SyscallFamily) -> Option<Message> {
    let options = source.options;
    source.require(scope, "size", "write `size=64`, `size=8k` or `size=rand(1,8k)`");
    let bytes = options.text("size").and_then(|text| parse_message_size(scope, text));
    let mut remote_size = options.get(scope, "rsize", parse_size);
    if let (Some(MessageSize::Random { .. }), Some(span)) = (bytes, options.span("rsize")) {
        scope.add_note(span, "`rsize` is ignored: both sides use the same size for a message of random size");
        remote_size = None;
    }
    let timeout = parse_timeout(scope, options);
    let sctp = parse_sctp(scope, options);
    Some(Message { size: bytes?, remote_size, call, timeout, non_blocking: options.has("non_blocking"), sctp })
}

/// Parses files to send; `None` if the folder is missing.
pub(super) fn parse_files(scope: &mut ParseContext, source: &FlowopSource) -> Option<Files> {
    let options = source.options;
    source.require(scope, "dir", "write `dir=FOLDER`, the folder of the files");
    let count = options.get(scope, "nfiles", |text| parse_scaled_integer(text, 1..=u64::from(u32::MAX)));
    let chunk = options.get(scope, "size", parse_size);
    Some(Files { dir: options.word("dir")?, count: count.map_or(1, |count| count as u32), chunk })
}

/// A size, or `rand(MIN,MAX)`.
fn parse_message_size(scope: &mut ParseContext, text: &SpannedText) -> Option<MessageSize> {
    let text = text.trim();
    if !text.as_str().get(..4).is_some_and(|start| start.eq_ignore_ascii_case("rand")) {
        return parse_size(text.as_str())
            .map(MessageSize::Fixed)
            .map_err(|error| scope.report(text.span(), error))
            .ok();
    }
    let Some((min, max)) = split_random(&text) else {
        let error = Diagnostic::labelled(format!("invalid size `{}`", text.as_str()), "not a size");
        scope.report(text.span(), error.with_help("expected `rand(MIN,MAX)`, such as rand(1,8k)"));
        return None;
    };
    let mut limit = |limit: &SpannedText| {
        let limit = limit.trim();
        parse_size(limit.as_str()).map_err(|error| scope.report(limit.span(), error)).ok()
    };
    let (smallest, largest) = (limit(&min), limit(&max));
    let (min, max) = (smallest?, largest?);
    if min > max {
        let error = Diagnostic::labelled(
            format!("invalid random size from {min} to {max} bytes"),
            "the minimum exceeds the maximum",
        );
        scope.report(text.span(), error.with_help("expected `rand(MIN,MAX)`, such as rand(1,8k)"));
        return None;
    }
    Some(MessageSize::Random { min, max })
}

fn split_random(text: &SpannedText) -> Option<(SpannedText, SpannedText)> {
    let source = text.as_str();
    let open = 4 + source[4..].len() - source[4..].trim_start().strip_prefix('(')?.len();
    let close = source.strip_suffix(')')?.len();
    let comma = source.find(',')?;
    (open <= comma && comma < close).then(|| (text.slice(open..comma), text.slice(comma + 1..close)))
}

fn parse_sctp(scope: &mut ParseContext, options: &FlowopOptions) -> SctpMessage {
    let stream = options.get(scope, "sctp_stream_id", |text| parse_integer(text, 0..=u64::from(u16::MAX)));
    SctpMessage {
        stream: stream.map(|stream| stream as u16),
        unordered: options.has("sctp_unordered"),
        partial: parse_reliability(scope, options),
    }
}

fn parse_reliability(scope: &mut ParseContext, options: &FlowopOptions) -> Option<PartialReliability> {
    const POLICIES: [&str; 5] = ["ttl", "rtx", "buf", "none", "rtt"];
    let value = options.get(scope, "sctp_pr_value", |text| parse_scaled_integer(text, 0..=u64::from(u32::MAX)));
    if let (false, Some(span)) = (options.has("sctp_pr_policy"), options.span("sctp_pr_value")) {
        scope.add_note(span, "`sctp_pr_value` has no effect without `sctp_pr_policy`");
    }
    let policy = options.get(scope, "sctp_pr_policy", |name| {
        POLICIES.into_iter().find(|policy| policy.eq_ignore_ascii_case(name.trim())).ok_or_else(|| {
            let help = format!("expected one of {}", POLICIES.join(", "));
            Diagnostic::labelled(format!("unknown policy `{name}`"), "unknown")
                .with_suggestion(suggest(name, POLICIES))
                .with_help(help)
        })
    })?;
    let span = options.span("sctp_pr_policy").unwrap_or_default();
    let limited: fn(u32) -> PartialReliability = match policy {
        "ttl" => PartialReliability::Lifetime,
        "rtx" => PartialReliability::Retransmissions,
        "buf" => PartialReliability::Priority,
        "none" => return Some(PartialReliability::Never),
        _ => {
            scope.add_note(span, format!("Linux does not support policy `{policy}`: messages are never abandoned"));
            return Some(PartialReliability::Never);
        }
    };
    if !options.has("sctp_pr_value") {
        let error = Diagnostic::labelled(format!("policy `{policy}` has no value"), "`sctp_pr_value` is missing");
        scope.report(span, error.with_help("write `sctp_pr_value=50`: milliseconds, retransmissions or a priority"));
    }
    value.map(|value| limited(value as u32))
}
