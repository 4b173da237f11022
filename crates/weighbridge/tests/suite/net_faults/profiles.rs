//! Builders for network profiles.

/// A profile of one group with this many threads that connects, runs the transactions and disconnects.
pub(crate) fn connected(threads: u32, options: &str, middle: &str) -> String {
    profile(&group(&format!("nthreads={threads}"), options, middle))
}

/// A profile of these groups.
pub(crate) fn profile(groups: &str) -> String {
    format!("<profile name='faults'>{groups}</profile>")
}

/// A group that connects, runs the transactions and disconnects.
pub(crate) fn group(strands: &str, options: &str, middle: &str) -> String {
    format!(
        "<group {strands}>
           <transaction iterations='1'><flowop type='connect' options='remotehost=there {options}'/></transaction>
           {middle}
           <transaction iterations='1'><flowop type='disconnect'/></transaction>
         </group>"
    )
}

/// A transaction of requests and responses of these sizes, with a duration or a number of iterations.
pub(crate) fn rr(extent: &str, request: &str, response: &str) -> String {
    transaction(extent, &(flowop("write", &format!("size={request}")) + &flowop("read", &format!("size={response}"))))
}

pub(crate) fn transaction(extent: &str, flowops: &str) -> String {
    format!("<transaction {extent}>{flowops}</transaction>")
}

pub(crate) fn flowop(kind: &str, options: &str) -> String {
    format!("<flowop type='{kind}' options='{options}'/>")
}
