//! The mirror image of a profile, which the other side executes: what one side sends, the other receives.

use crate::connections::connection_uses;
use crate::keywords::opposite;
use crate::{Endpoint, FileSizes, Files, Flowop, FlowopAction, Group, Message, MessageSize, NetProfile, Transaction};

/// The remote hosts of a profile, each once, in the order of their first appearance.
pub fn hosts(profile: &NetProfile) -> Vec<String> {
    let mut hosts: Vec<String> = Vec::new();
    for flowop in profile.flowops() {
        if let Some(endpoint) = flowop.endpoint()
            && !hosts.contains(&endpoint.remote)
        {
            hosts.push(endpoint.remote.clone());
        }
    }
    hosts
}

/// Returns the mirror image of a profile for `host`, as named in the profile.
///
/// Groups, transactions and flowops keep their positions: flowops of other hosts become [`FlowopAction::Skip`], and a
/// group that does not concern `host` consists only of those. Which host a flowop concerns follows from the connection
/// that it uses, in straight-line order.
///
/// - An endpoint keeps `remote` as written, so that a mirror names the same host as its profile, and the port, which is
///   that of the accepting side. It loses `local`, an address of the first side.
/// - A message's size is that of its own side's system calls and `remote_size` that of the other's, so they are
///   swapped; the message itself has the sender's size. A random size is the same on both sides.
/// - A rate is kept where `host` sends first in a transaction; otherwise it only responds, at the other's pace.
/// - Files come with their sizes from `file_sizes`, as only the first side has them. That cannot be inverted: in the
///   mirror of a mirror they are [`FlowopAction::Skip`].
pub fn mirror(profile: &NetProfile, host: &str, file_sizes: &dyn Fn(&Files) -> Vec<u64>) -> NetProfile {
    let groups = profile.groups.iter().map(|group| mirror_group(group, host, file_sizes)).collect();
    NetProfile { name: profile.name.clone(), groups }
}

fn mirror_group(group: &Group, host: &str, file_sizes: &dyn Fn(&Files) -> Vec<u64>) -> Group {
    let links = connection_uses(group);
    let belongs = |link: &Option<&Endpoint>| link.is_some_and(|endpoint| endpoint.remote == host);
    let endpoints: Vec<Vec<_>> =
        links.into_iter().map(|links| links.into_iter().map(|link| link.endpoint()).collect()).collect();
    let concerned = endpoints.iter().flatten().any(belongs);
    let transactions = group.transactions.iter().zip(&endpoints).map(|(transaction, endpoints)| {
        let flowops = transaction.flowops.iter().zip(endpoints).map(|(flowop, endpoint)| {
            let applies = concerned && (belongs(endpoint) || is_symmetric(&flowop.action));
            if applies { mirror_flowop(flowop, file_sizes) } else { skip(flowop) }
        });
        drop_passive_rates(Transaction { flowops: flowops.collect(), ..transaction.clone() })
    });
    Group { transactions: transactions.collect(), ..group.clone() }
}

/// Whether every side executes the action.
fn is_symmetric(action: &FlowopAction) -> bool {
    matches!(action, FlowopAction::Think { .. } | FlowopAction::Nop)
}

fn skip(flowop: &Flowop) -> Flowop {
    Flowop { action: FlowopAction::Skip, ..flowop.clone() }
}

fn mirror_flowop(flowop: &Flowop, file_sizes: &dyn Fn(&Files) -> Vec<u64>) -> Flowop {
    let action = match &flowop.action {
        FlowopAction::Connect(endpoint) => FlowopAction::Accept(Box::new(mirror_endpoint(endpoint))),
        FlowopAction::Accept(endpoint) => FlowopAction::Connect(Box::new(mirror_endpoint(endpoint))),
        FlowopAction::Send(message) => FlowopAction::Receive(mirror_message(message)),
        FlowopAction::Receive(message) => FlowopAction::Send(mirror_message(message)),
        FlowopAction::SendFiles(files) => {
            FlowopAction::ReceiveFiles(FileSizes { sizes: file_sizes(files), count: files.count })
        }
        FlowopAction::ReceiveFiles(_) => return skip(flowop),
        same @ (FlowopAction::Disconnect | FlowopAction::Think { .. } | FlowopAction::Nop | FlowopAction::Skip) => {
            same.clone()
        }
    };
    Flowop { name: opposite(&flowop.name).to_owned(), action, ..flowop.clone() }
}

fn mirror_endpoint(endpoint: &Endpoint) -> Endpoint {
    let mut mirrored = Endpoint { local: None, local_port: None, ..endpoint.clone() };
    let sctp = &mut mirrored.sctp;
    std::mem::swap(&mut sctp.in_streams, &mut sctp.out_streams);
    mirrored
}

fn mirror_message(message: &Message) -> Message {
    let mut mirrored = message.clone();
    if let (MessageSize::Fixed(size), Some(remote)) = (message.size, message.remote_size) {
        mirrored.size = MessageSize::Fixed(remote);
        mirrored.remote_size = Some(size);
    }
    mirrored
}

/// Drops rates unless this side sends first; in a transaction without messages, unless it starts with a connect.
fn drop_passive_rates(mut transaction: Transaction) -> Transaction {
    let actions = || transaction.flowops.iter().map(|flowop| &flowop.action);
    let first_message = actions().find_map(|action| match action {
        FlowopAction::Send(_) | FlowopAction::SendFiles(_) => Some(true),
        FlowopAction::Receive(_) | FlowopAction::ReceiveFiles(_) => Some(false),
        _ => None,
    });
    let first_opening = actions().find_map(|action| match action {
        FlowopAction::Connect(_) => Some(true),
        FlowopAction::Accept(_) => Some(false),
        _ => None,
    });
    if !first_message.or(first_opening).unwrap_or(false) {
        transaction.rate = None;
        for flowop in &mut transaction.flowops {
            flowop.rate = None;
        }
    }
    transaction
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{PartialReliability, Variables, parse};

    fn profile(text: &str) -> NetProfile {
        parse("p.xml", text, &Variables::new()).expect("it is sound").profile
    }

    fn mirrored(text: &str, host: &str) -> NetProfile {
        mirror(&profile(text), host, &|_| vec![1, 2])
    }

    /// The flowops of a profile, a line per transaction.
    fn outline(profile: &NetProfile) -> Vec<String> {
        let line = |transaction: &Transaction| {
            let word = |flowop: &Flowop| match flowop.action {
                FlowopAction::Skip => "-".to_owned(),
                _ => flowop.name.clone(),
            };
            let words: Vec<_> = transaction.flowops.iter().map(word).collect();
            let rate = transaction.rate.map_or(String::new(), |rate| format!(" at {rate}/s"));
            words.join(" ") + &rate
        };
        profile.groups.iter().flat_map(|group| &group.transactions).map(line).collect()
    }

    const TWO: &str = "<profile><group nthreads=2>
        <transaction>
          <flowop type=connect options='remotehost=a protocol=tcp'/>
          <flowop type=accept options='conn=1 remotehost=b protocol=udp'/>
          <flowop type=connect options='remotehost=b protocol=tcp'/>
        <transaction duration=1s rate=10>
          <flowop type=sendto options='size=4'/><flowop type=recv options='conn=1 size=4'/><flowop type=nop/>
        <transaction iterations=2>
          <flowop type=disconnect /><flowop type=disconnect options='canfail'/>
        <group nthreads=1><transaction>
          <flowop type=connect options='remotehost=b protocol=tcp'/><flowop type=think options='duration=1s'/>
          <flowop type=sendfile options='dir=/srv nfiles=3'/>";

    #[test]
    fn each_host_keeps_the_positions_of_its_part() {
        assert_eq!(hosts(&profile(TWO)), ["a", "b"]);
        let expected = ["accept - -", "recvfrom - nop", "disconnect -", "- - -"];
        assert_eq!(outline(&mirrored(TWO, "a")), expected);
        let expected = ["- connect accept", "- send nop at 10/s", "- disconnect", "accept think recvfile"];
        assert_eq!(outline(&mirrored(TWO, "b")), expected);
        assert!(outline(&mirrored(TWO, "c")).iter().all(|line| line.split(' ').all(|word| word == "-")));
    }

    #[test]
    fn mirrored_files_have_their_sizes() {
        let mirrored = mirrored(TWO, "b");
        let files = &mirrored.groups[1].transactions[0].flowops[2].action;
        assert_eq!(*files, FlowopAction::ReceiveFiles(FileSizes { sizes: vec![1, 2], count: 3 }));
    }

    #[test]
    fn rates_are_dropped_on_the_side_that_only_responds() {
        let text = "<profile><group nthreads=1><transaction rate=5>
            <flowop type=connect options='remotehost=h protocol=tcp'/>
            <flowop type=write options='size=4 rate=7'/><flowop type=read options='size=4'/>";
        let mirror = mirrored(text, "h");
        assert_eq!(outline(&mirror), ["accept read write"]);
        assert_eq!(mirror.groups[0].transactions[0].flowops[1].rate, None);
        let mirror = mirrored(&text.replace("write", "recv"), "h");
        assert_eq!(outline(&mirror), ["accept send write at 5/s"]);
        assert_eq!(mirror.groups[0].transactions[0].flowops[1].rate, Some(7.0));
    }

    #[test]
    fn streams_and_sizes_are_swapped() {
        let other = mirrored(
            "<profile><group nthreads=1><transaction>
             <flowop type=connect options='remotehost=h protocol=sctp sctp_in_streams=4 sctp_out_streams=8 localhost=me'/>
             <flowop type=write options='size=64 rsize=16'/>",
            "h",
        );
        let flowops = &other.groups[0].transactions[0].flowops;
        let FlowopAction::Accept(endpoint) = &flowops[0].action else { panic!("no accept") };
        assert_eq!((endpoint.sctp.in_streams, endpoint.sctp.out_streams, &endpoint.local), (Some(8), Some(4), &None));
        let FlowopAction::Receive(message) = &flowops[1].action else { panic!("no read") };
        assert_eq!((message.size, message.remote_size), (MessageSize::Fixed(16), Some(64)));
    }

    /// The options of a message, as text.
    fn message() -> impl Strategy<Value = String> {
        let kinds = ["read", "write", "send", "recv", "sendto", "recvfrom", "readv", "writev"];
        let sizes =
            ["size=4", "size=rand(1,9)", "size=8 rsize=2", "size=1k count=3 canfail timeout=1s", "size=9 duration=1s"];
        (prop::sample::select(kinds.to_vec()), prop::sample::select(sizes.to_vec()), 0..3_u8)
            .prop_map(|(kind, size, conn)| flowop(kind, size, conn))
    }

    fn flowop(kind: &str, options: &str, conn: u8) -> String {
        let conn = if conn == 0 { String::new() } else { format!("conn={conn}") };
        format!("<flowop type={kind} options='{options} {conn}'/>")
    }

    fn opened() -> impl Strategy<Value = String> {
        let one = |conn| {
            prop::sample::select(&["connect", "accept"][..])
                .prop_map(move |kind| flowop(kind, "remotehost=h protocol=sctp sctp_in_streams=3 port=7", conn))
        };
        (one(0), one(1), one(2)).prop_map(|(a, b, c)| a + &b + &c)
    }

    proptest! {
        #[test]
        fn the_mirror_of_the_mirror_is_the_profile(
            opened in opened(),
            rounds in prop::collection::vec(prop::collection::vec(message(), 1..6), 1..4),
        ) {
            let rounds: String =
                rounds.iter().map(|round| format!("<transaction duration=1s>{}<flowop type=nop/>", round.concat())).collect();
            let text = format!(
                "<profile><group nthreads=2><transaction>{opened}{rounds}<transaction><flowop type=disconnect />\
                 <flowop type=disconnect options='conn=2'/><flowop type=think options='duration=1s busy'/>"
            );
            let profile = profile(&text);
            let mirrored = mirror(&profile, "h", &|_| Vec::new());
            prop_assert_ne!(&mirrored, &profile);
            prop_assert_eq!(mirror(&mirrored, "h", &|_| Vec::new()), profile);
        }
    }

    #[test]
    fn sctp_options_of_a_message_are_kept() {
        let text = "<profile><group nthreads=1><transaction>
            <flowop type=connect options='remotehost=h protocol=sctp'/>
            <flowop type=write options='size=4 sctp_unordered sctp_pr_policy=ttl sctp_pr_value=9'/>";
        let FlowopAction::Receive(message) = &mirrored(text, "h").groups[0].transactions[0].flowops[1].action.clone()
        else {
            panic!("no read")
        };
        assert_eq!(message.sctp.partial, Some(PartialReliability::Lifetime(9)));
    }
}
