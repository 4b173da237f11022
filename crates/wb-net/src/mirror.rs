//! What the other side of a profile does: what one side sends, the other receives.

use crate::language::connections::links;
use crate::language::{
    Action, Endpoint, FileSizes, Files, Flowop, Group, Message, Profile, Size, Transaction, opposite,
};

/// The remote hosts of a profile, each once, in the order of their first appearance.
pub fn hosts(profile: &Profile) -> Vec<String> {
    let mut hosts: Vec<String> = Vec::new();
    for flowop in profile.groups.iter().flat_map(|group| &group.transactions).flat_map(|part| &part.flowops) {
        if let Action::Connect(endpoint) | Action::Accept(endpoint) = &flowop.action
            && !hosts.contains(&endpoint.remote)
        {
            hosts.push(endpoint.remote.clone());
        }
    }
    hosts
}

/// What `host`, as the profile writes it, does meanwhile.
///
/// Groups, transactions and flowops keep their positions: what concerns another host becomes
/// [`Action::Elsewhere`], and a group that does not concern `host` at all consists of nothing else.
/// Which host a flowop concerns follows from the connection that it means, in straight-line order.
///
/// - An endpoint keeps `remote` as written, so that a mirror names the same host as its profile, and the port,
///   which is that of the side that accepts. It loses `local`, an address of the first side.
/// - A message's size is that of its own side's calls and `remote_size` that of the other's, so they change
///   places; the message itself is as large as its sender's size. A random size is the same on both sides.
/// - A rate stays where `host` speaks first in a transaction; otherwise it only answers, at the other's pace.
/// - Files come with their sizes from `file_sizes`, as only the first side has them. That has no way back: in
///   the mirror of a mirror they are [`Action::Elsewhere`].
pub fn mirror(profile: &Profile, host: &str, file_sizes: &dyn Fn(&Files) -> Vec<u64>) -> Profile {
    let groups = profile.groups.iter().map(|group| mirror_group(group, host, file_sizes)).collect();
    Profile { name: profile.name.clone(), groups }
}

fn mirror_group(group: &Group, host: &str, file_sizes: &dyn Fn(&Files) -> Vec<u64>) -> Group {
    let links = links(group);
    let belongs = |link: &Option<&Endpoint>| link.is_some_and(|endpoint| endpoint.remote == host);
    let endpoints: Vec<Vec<_>> =
        links.into_iter().map(|links| links.into_iter().map(|link| link.endpoint()).collect()).collect();
    let concerned = endpoints.iter().flatten().any(belongs);
    let transactions = group.transactions.iter().zip(&endpoints).map(|(transaction, endpoints)| {
        let flowops = transaction.flowops.iter().zip(endpoints).map(|(flowop, endpoint)| {
            let here = concerned && (belongs(endpoint) || concerns_nobody(&flowop.action));
            if here { mirror_flowop(flowop, file_sizes) } else { elsewhere(flowop) }
        });
        paced(Transaction { flowops: flowops.collect(), ..transaction.clone() })
    });
    Group { transactions: transactions.collect(), ..group.clone() }
}

/// Whether it is done on every side.
fn concerns_nobody(action: &Action) -> bool {
    matches!(action, Action::Think { .. } | Action::Nop)
}

fn elsewhere(flowop: &Flowop) -> Flowop {
    Flowop { action: Action::Elsewhere, ..flowop.clone() }
}

fn mirror_flowop(flowop: &Flowop, file_sizes: &dyn Fn(&Files) -> Vec<u64>) -> Flowop {
    let action = match &flowop.action {
        Action::Connect(endpoint) => Action::Accept(Box::new(mirror_endpoint(endpoint))),
        Action::Accept(endpoint) => Action::Connect(Box::new(mirror_endpoint(endpoint))),
        Action::Send(message) => Action::Receive(mirror_message(message)),
        Action::Receive(message) => Action::Send(mirror_message(message)),
        Action::SendFiles(files) => {
            Action::ReceiveFiles(FileSizes { sizes: file_sizes(files), count: files.count })
        }
        Action::ReceiveFiles(_) => return elsewhere(flowop),
        same @ (Action::Disconnect | Action::Think { .. } | Action::Nop | Action::Elsewhere) => same.clone(),
    };
    Flowop { name: opposite(&flowop.name).to_owned(), action, ..flowop.clone() }
}

fn mirror_endpoint(endpoint: &Endpoint) -> Endpoint {
    let mut mirrored = Endpoint { local: None, ..endpoint.clone() };
    let sctp = &mut mirrored.sctp;
    std::mem::swap(&mut sctp.in_streams, &mut sctp.out_streams);
    mirrored
}

fn mirror_message(message: &Message) -> Message {
    let mut mirrored = message.clone();
    if let (Size::Fixed(size), Some(remote)) = (message.size, message.remote_size) {
        mirrored.size = Size::Fixed(remote);
        mirrored.remote_size = Some(size);
    }
    mirrored
}

/// Without its rates unless it speaks first; a transaction without messages does if it opens with a connect.
fn paced(mut transaction: Transaction) -> Transaction {
    let actions = || transaction.flowops.iter().map(|flowop| &flowop.action);
    let first_message = actions().find_map(|action| match action {
        Action::Send(_) | Action::SendFiles(_) => Some(true),
        Action::Receive(_) | Action::ReceiveFiles(_) => Some(false),
        _ => None,
    });
    let first_opening = actions().find_map(|action| match action {
        Action::Connect(_) => Some(true),
        Action::Accept(_) => Some(false),
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
