//! Both sides of a run in one process: what is moved, counted and timed.

use std::{collections::BTreeMap, net::Ipv4Addr, time::Duration};

use tokio::sync::mpsc::unbounded_channel;
use wb_net::{
    engine::{
        report::Report,
        site::Site,
        work::{Assignment, Order, Places, Progress, Settings, Side},
    },
    language::*,
    session::coordinate::{Ended, News, Observer, Party, coordinate},
    transport::address::Place,
};

struct Nobody;

impl Observer for Nobody {
    fn progress(&mut self, _: Option<&str>, _: Progress) {}
    fn transaction(&mut self, _: usize, _: usize) {}
    fn raw(&mut self, _: &[wb_net::engine::raw::RawTime]) {}
}

fn endpoint(protocol: Protocol) -> Box<Endpoint> {
    Box::new(Endpoint {
        remote: "there".to_owned(),
        local: None,
        protocol,
        port: None,
        window: None,
        no_delay: true,
        congestion: None,
        non_blocking: false,
        timeout: None,
        sctp: SctpEndpoint::default(),
    })
}

fn flowop(name: &str, action: Action) -> Flowop {
    Flowop {
        name: name.to_owned(),
        action,
        connection: None,
        count: 1,
        repeat: 1,
        batch: 1,
        rate: None,
        duration: None,
        can_fail: false,
    }
}

fn message(size: Size) -> Message {
    Message { size, remote_size: None, call: Call::ReadWrite, timeout: None, non_blocking: false, sctp: SctpMessage::default() }
}

fn send(size: u32) -> Flowop {
    flowop("write", Action::Send(message(Size::Fixed(size))))
}

fn receive(size: u32) -> Flowop {
    flowop("read", Action::Receive(message(Size::Fixed(size))))
}

fn transaction(extent: Extent, flowops: Vec<Flowop>) -> Transaction {
    Transaction { name: "Txn".to_owned(), extent, rate: None, flowops }
}

/// Connect, this, disconnect.
fn profile(strands: u32, protocol: Protocol, middle: Transaction) -> Profile {
    let once = |flowop| transaction(Extent::Iterations(1), vec![flowop]);
    let transactions = vec![
        once(flowop("connect", Action::Connect(endpoint(protocol)))),
        middle,
        once(flowop("disconnect", Action::Disconnect)),
    ];
    Profile {
        name: "test".to_owned(),
        groups: vec![Group { name: "Group0".to_owned(), strands, kind: StrandKind::Thread, transactions }],
    }
}

fn mirrored(profile: &Profile) -> Profile {
    let mut mirror = profile.clone();
    for flowop in mirror.groups.iter_mut().flat_map(|group| &mut group.transactions).flat_map(|t| &mut t.flowops) {
        flowop.action = match flowop.action.clone() {
            Action::Connect(endpoint) => Action::Accept(endpoint),
            Action::Accept(endpoint) => Action::Connect(endpoint),
            Action::Send(message) => Action::Receive(message),
            Action::Receive(message) => Action::Send(message),
            same => same,
        };
    }
    mirror
}

fn run(profile: &Profile, settings: &Settings) -> (Ended, Report, Report) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut ended = runtime.block_on(async {
        let (tell, events) = unbounded_channel();
        let here = Place::Ip(Ipv4Addr::LOCALHOST.into());
        let parties = [(None, Side::Client, profile.clone()), (Some("there".to_owned()), Side::Server, mirrored(profile))];
        let parties = parties.into_iter().enumerate().map(|(position, (host, side, profile))| {
            let tell = tell.clone();
            let site = Site::start(move |event| tell.send((position, News::Event(event))).is_ok()).expect("a thread");
            let strands = profile.groups.iter().map(|group| 0..group.strands).collect();
            let hosts = BTreeMap::from([("there".to_owned(), Places { here, there: here })]);
            let assignment = Assignment { profile, side, strands, hosts, seed: 42, settings: settings.clone() };
            Party { host, assignment, order: Box::new(move |order: Order| site.order(order)) }
        });
        coordinate(profile, parties.collect(), events, None, std::future::pending(), &mut Nobody).await
    });
    assert_eq!(ended.fault, None);
    let server = ended.reports.pop().flatten().expect("the server reports");
    let client = ended.reports.pop().flatten().expect("the client reports");
    (ended, client, server)
}

const WINDOW: Extent = Extent::Window(Duration::from_millis(300));

#[test]
fn a_stream_of_a_window_arrives() {
    for threads in [128, 0] {
        let settings = Settings { threads, ..Settings::default() };
        let (_, client, server) = run(&profile(2, Protocol::Tcp, transaction(WINDOW, vec![send(8192)])), &settings);
        let (sent, received) = (&client.groups[0].transactions[1], &server.groups[0].transactions[1]);
        let (sent, received) = (&sent.flowops[0], &received.flowops[0]);
        println!("{} GB/s sent, {} received, {:?}", sent.bytes as f64 / 3e8, received.bytes as f64 / 3e8, server.executor);
        assert!(sent.count > 100 && received.count > 100);
        assert_eq!(sent.count, sent.service.histogram.len());
        assert_eq!(client.groups[0].transactions[1].ended - client.groups[0].transactions[1].began, 300_000_000);
    }
}

#[test]
fn requests_are_answered_over_every_protocol() {
    for threads in [128, 0] {
        for protocol in [Protocol::Tcp, Protocol::Udp, Protocol::Unix, Protocol::UnixDgram] {
            let settings = Settings { threads, ..Settings::default() };
            let profile = profile(3, protocol, transaction(Extent::Iterations(200), vec![send(90), receive(90)]));
            let (_, client, server) = run(&profile, &settings);
            for report in [&client, &server] {
                let transaction = &report.groups[0].transactions[1];
                assert_eq!(transaction.rounds.histogram.len(), 600, "{protocol:?} {threads}");
                assert_eq!(transaction.flowops.iter().map(|flowop| flowop.count).collect::<Vec<_>>(), [600, 600]);
            }
            let rounds = &client.groups[0].transactions[1].rounds;
            println!("{protocol:?} {threads}: median {} ns", rounds.histogram.value_at_quantile(0.5));
        }
    }
}

#[test]
fn connections_are_made_over_and_over() {
    for (threads, protocol) in [(128, Protocol::Tcp), (0, Protocol::Tcp), (128, Protocol::Unix), (0, Protocol::Udp)] {
        let settings = Settings { threads, ..Settings::default() };
        let flowops = vec![
            flowop("connect", Action::Connect(endpoint(protocol))),
            send(90),
            receive(90),
            flowop("disconnect", Action::Disconnect),
        ];
        let mut profile = profile(2, protocol, transaction(WINDOW, flowops));
        profile.groups[0].transactions.remove(0);
        profile.groups[0].transactions.pop();
        let (_, client, server) = run(&profile, &settings);
        println!("{protocol:?}: {} connections", client.groups[0].transactions[0].flowops[0].count);
        assert!(client.groups[0].transactions[0].flowops[3].count > 100);
        assert_eq!(server.refused, 0);
    }
}

#[test]
fn messages_of_random_size_end_where_they_should() {
    for threads in [128, 0] {
        let settings = Settings { threads, ..Settings::default() };
        let size = Size::Random { min: 1, max: 1 << 20 };
        let flowops = vec![
            flowop("write", Action::Send(message(size))),
            flowop("read", Action::Receive(message(size))),
        ];
        let profile = profile(2, Protocol::Tcp, transaction(Extent::Iterations(50), flowops));
        let (_, client, server) = run(&profile, &settings);
        let bytes = |report: &Report| {
            report.groups[0].transactions[1].flowops.iter().map(|flowop| flowop.bytes).collect::<Vec<_>>()
        };
        assert_eq!(bytes(&client), bytes(&server));
    }
}
