//! Network profiles of various shapes between hosts in network namespaces.

use super::{
    lab::{CLIENT, Lab, OTHER, SERVER},
    profiles::{connected, flowop, group, profile, rr, transaction},
    result::number,
};

/// The bytes that a run of this profile sends and receives.
fn moved(profile: &str, flags: &str) -> Option<(u64, u64)> {
    let lab = Lab::new(2)?;
    let server = lab.serve("");
    let bytes = lab.run_profile(profile, flags).completed().bytes();
    server.assert_unchanged();
    lab.wait_for_client_exit();
    Some(bytes)
}

#[test]
fn groups_may_have_windows_of_different_length() {
    let Some(lab) = Lab::new(2) else { return };
    let server = lab.serve("");
    let connect = transaction("iterations=1", &flowop("connect", "remotehost=there protocol=tcp"));
    let one = format!("<group nthreads=2>{connect}{}</group>", rr("duration=100ms", "64", "64"));
    let other = format!("<group nthreads=2>{connect}{}</group>", rr("duration=300ms", "64", "64"));
    let result = lab.run_profile(&profile(&(one + &other)), "").completed();
    let seconds = |group| result.transaction(group, 1)["seconds"].as_f64();
    assert_eq!((seconds(0), seconds(1)), (Some(0.1), Some(0.3)));
    server.assert_unchanged();
    lab.wait_for_client_exit();
}

#[test]
fn server_may_use_another_message_size() {
    for (size, rsize) in [("1000", "4000"), ("4000", "1000"), ("1000", "333")] {
        for kind in ["write", "read"] {
            let flowops = flowop(kind, &format!("size={size} rsize={rsize}"));
            let profile = connected(2, "protocol=tcp", &transaction("iterations=60", &flowops));
            let bytes = 2 * 60 * size.parse::<u64>().unwrap();
            let Some(moved) = moved(&profile, "") else { return };
            assert_eq!(moved, (bytes, bytes), "{kind} size={size} rsize={rsize}");
        }
    }
}

#[test]
fn message_sizes_that_do_not_divide_end_with_their_window() {
    for kind in ["write", "read"] {
        let flowops = flowop(kind, "size=1000 rsize=333");
        let profile = connected(2, "protocol=tcp", &transaction("duration=300ms", &flowops));
        let Some((sent, received)) = moved(&profile, "") else { return };
        // A message truncated by the end of the window is not counted as sent, though parts of it were received.
        assert!(0 < received && received < sent + 2 * 1000, "{kind}: {sent} sent and {received} received");
    }
}

#[test]
fn both_sides_draw_the_same_random_sizes() {
    let Some((sent, received)) =
        moved(&connected(2, "protocol=tcp", &rr("iterations=40", "rand(1,1m)", "rand(1,1m)")), "")
    else {
        return;
    };
    assert_eq!(sent, received);
    assert!(sent > 40 << 20, "{sent} bytes are too few for sizes up to 1 MiB");
}

#[test]
fn strands_may_share_a_port() {
    for protocol in ["tcp", "udp"] {
        for flags in ["", "--max-threads 1"] {
            let profile = connected(5, &format!("protocol={protocol} port=30100"), &rr("iterations=50", "64", "64"));
            let Some(moved) = moved(&profile, flags) else { return };
            assert_eq!(moved, (2 * 5 * 50 * 64, 2 * 5 * 50 * 64), "{protocol} {flags}");
        }
    }
}

#[test]
fn many_strands_share_few_ports() {
    for protocol in ["tcp", "udp"] {
        let Some(lab) = Lab::with_nft(2) else { return };
        let server = lab.serve("--data-ports 30000-30003");
        lab.drop(SERVER, "meta l4proto { tcp, udp } th dport != { 20000, 30000-30003 }");
        let profile = connected(20, &format!("protocol={protocol}"), &rr("iterations=20", "64", "64"));
        assert_eq!(lab.run_profile(&profile, "").completed().rounds(), 20 * 20, "{protocol}");
        server.assert_unchanged();
    }
}

#[test]
fn processes_and_threads_mix() {
    let Some(lab) = Lab::new(2) else { return };
    let server = lab.serve("");
    let middle = rr("iterations=50", "64", "1k");
    let groups = group("nprocs=3", "protocol=tcp", &middle) + &group("nthreads=4", "protocol=udp", &middle);
    let result = lab.run_profile(&profile(&groups), "").completed();
    let rounds = |group| number(&result.transaction(group, 1)["rounds"]);
    assert_eq!((rounds(0), rounds(1)), (150, 200));
    assert_eq!(result.group(0)["processes"], true);
    server.assert_unchanged();
    lab.wait_for_client_exit();
}

/// Reads from one server and passes on to another.
const RELAY: &str = "<profile name='relay'><group nthreads='2'>
    <transaction iterations='1'>
      <flowop type='connect' options='conn=1 remotehost=from protocol=tcp'/>
      <flowop type='connect' options='conn=2 remotehost=to protocol=tcp tcp_nodelay'/>
    </transaction>
    <transaction iterations='100'>
      <flowop type='read' options='conn=1 size=4k'/>
      <flowop type='write' options='conn=2 size=1k count=4'/>
    </transaction>
    <transaction iterations='1'>
      <flowop type='disconnect' options='conn=1'/><flowop type='disconnect' options='conn=2'/>
    </transaction>
  </group></profile>";

#[test]
fn one_client_may_use_two_servers() {
    let Some(lab) = Lab::new(3) else { return };
    let servers = [SERVER, OTHER].map(|host| lab.serve_at(host, host.v4().into(), ""));
    lab.write("relay.xml", RELAY);
    let flags = format!("--server from={} --server to={}", SERVER.v4(), OTHER.v4());
    let result = lab.run(&format!("net run relay.xml --json {flags}")).completed();
    assert_eq!(result.rounds(), 200);
    assert_eq!(result.bytes(), (2 * 200 * 4096, 2 * 200 * 4096));
    servers.iter().for_each(super::server::Server::assert_unchanged);
    lab.wait_for_client_exit();
}

#[test]
fn lost_one_of_two_servers_is_named() {
    let Some(lab) = Lab::new(3) else { return };
    let servers = [SERVER, OTHER].map(|host| lab.serve_at(host, host.v4().into(), ""));
    lab.write("relay.xml", &RELAY.replace("iterations='100'", "duration='30s'"));
    let flags = format!("--server from={} --server to={}", SERVER.v4(), OTHER.v4());
    let client = lab.start(CLIENT, &format!("net run relay.xml --json {flags}"));
    servers[0].wait_for_stderr("session started");
    servers[1].wait_for_stderr("session started");
    servers[1].receives(1 << 20);
    servers[1].signal(rustix::process::Signal::KILL);
    let reason = client.finish().fell_short("lost");
    assert!(reason.starts_with("lost the connection to to: "), "{reason}");
    servers[0].assert_unchanged();
    lab.wait_for_client_exit();
}

#[test]
fn hosts_may_have_ipv6_addresses() {
    let Some(lab) = Lab::new(2) else { return };
    let server = lab.serve_at(SERVER, SERVER.v6().into(), "");
    for protocol in ["tcp", "udp"] {
        lab.write("profile.xml", &connected(3, &format!("protocol={protocol}"), &rr("iterations=50", "64", "64")));
        let ran = lab.run(&format!("net run profile.xml --json --server there={}", SERVER.v6()));
        assert_eq!(ran.completed().rounds(), 150, "{protocol}");
    }
    server.assert_unchanged();
    lab.wait_for_client_exit();
}

#[test]
fn server_on_all_addresses_accepts_ipv4_and_ipv6() {
    let Some(lab) = Lab::new(2) else { return };
    let _server = lab.serve_at(SERVER, "::".parse().unwrap(), "");
    lab.write("profile.xml", &connected(1, "protocol=tcp", &rr("iterations=5", "64", "64")));
    for address in [SERVER.v4().to_string(), SERVER.v6().to_string()] {
        lab.run(&format!("net run profile.xml --json --server there={address}")).completed();
    }
}

#[test]
fn zero_iterations_move_no_bytes() {
    let Some(moved) = moved(&connected(2, "protocol=tcp", &rr("iterations=0", "64", "64")), "") else { return };
    assert_eq!(moved, (0, 0));
}

#[test]
fn the_server_may_connect_back() {
    for flags in ["", "--max-threads 1"] {
        let accept = connected(3, "protocol=tcp", &rr("iterations=50", "64", "64")).replace("'connect'", "'accept'");
        let Some(moved) = moved(&accept, flags) else { return };
        assert_eq!(moved, (2 * 3 * 50 * 64, 2 * 3 * 50 * 64));
    }
}

/// Opens and closes connections repeatedly.
fn over_and_over(kind: &str, flags: &str) {
    let Some(lab) = Lab::new(2) else { return };
    let server = lab.serve("");
    let open = flowop(kind, "remotehost=there protocol=tcp");
    let round = open + &flowop("write", "size=64") + &flowop("read", "size=64") + &flowop("disconnect", "");
    let profile = profile(&format!("<group nthreads=2>{}</group>", transaction("iterations=2000", &round)));
    assert_eq!(lab.run_profile(&profile, flags).completed().rounds(), 4000);
    server.assert_unchanged();
    lab.wait_for_client_exit();
}

#[test]
fn thousands_of_connections_are_opened_by_threads() {
    over_and_over("connect", "");
}

#[test]
fn thousands_of_connections_are_opened_by_event_loops() {
    over_and_over("connect", "--max-threads 1");
}

#[test]
fn thousands_of_connections_are_opened_by_the_server() {
    over_and_over("accept", "");
}
