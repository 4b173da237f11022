//! Profiles, so that tests show only what matters to them.

/// Of one group with so many threads: connects, does this, disconnects.
pub(crate) fn connected(threads: u32, options: &str, middle: &str) -> String {
    profile(&group(&format!("nthreads={threads}"), options, middle))
}

/// Of these groups.
pub(crate) fn profile(groups: &str) -> String {
    format!("<profile name='faults'>{groups}</profile>")
}

/// A group that connects, does this, disconnects.
pub(crate) fn group(strands: &str, options: &str, middle: &str) -> String {
    format!(
        "<group {strands}>
           <transaction iterations='1'><flowop type='connect' options='remotehost=there {options}'/></transaction>
           {middle}
           <transaction iterations='1'><flowop type='disconnect'/></transaction>
         </group>"
    )
}

/// Requests and responses of these sizes, for so long or so often.
pub(crate) fn rr(extent: &str, request: &str, response: &str) -> String {
    transaction(extent, &(flowop("write", &format!("size={request}")) + &flowop("read", &format!("size={response}"))))
}

pub(crate) fn transaction(extent: &str, flowops: &str) -> String {
    format!("<transaction {extent}>{flowops}</transaction>")
}

pub(crate) fn flowop(kind: &str, options: &str) -> String {
    format!("<flowop type='{kind}' options='{options}'/>")
}
