//! Data connections are identified whatever their addresses are: behind address translation, from any local address,
//! and on few ports.

use std::fmt::Write as _;

use super::{
    lab::{CLIENT, Lab, OTHER, SERVER},
    profiles::{connected, flowop, profile, rr, transaction},
    program::{Program, eventually},
    result::number,
    server::Server,
};

/// How a server may limit its ports, and the ports that a firewall then leaves open.
const PORT_MODES: [(&str, &str); 3] =
    [("", "0-65535"), ("--data-ports 30000-30003", "{ 20000, 30000-30003 }"), ("--one-port", "20000")];

const PRESETS: [&str; 10] = [
    "rr",
    "crr",
    "stream",
    "rr --protocols ssl",
    "udp-rr",
    "rr --protocols quic",
    "stream --protocols udp --max-threads 1",
    "crr --processes",
    "udp-rr --processes",
    "rr --protocols quic --processes",
];

/// Runs each preset in each port mode, with four strands.
fn presets_complete(translated: bool) {
    for (flags, open) in PORT_MODES {
        let Some(lab) = Lab::with_nft(2) else { return };
        if translated {
            lab.translate_sources(CLIENT);
        }
        let server = lab.serve(flags);
        lab.drop(SERVER, &format!("meta l4proto {{ tcp, udp }} th dport != {open}"));
        for preset in PRESETS {
            for threads in ["", " --max-threads 1"] {
                let (name, options) = preset.split_once(' ').unwrap_or((preset, ""));
                let line = format!("net {name} {} {options}{threads} -t 50ms -n 4 --json", SERVER.v4());
                let has_threads = !options.contains("--max-threads") && !options.contains("--processes");
                if !has_threads && !threads.is_empty() {
                    continue;
                }
                let result = lab.run(&line).completed();
                assert!(result.rounds() > 0, "{flags} {line}");
            }
        }
        assert_eq!(lab.dropped(SERVER), 0, "{flags}: packets to other ports");
        server.assert_unchanged();
        lab.wait_for_client_exit();
    }
}

#[test]
fn every_preset_works_behind_address_translation_in_every_port_mode() {
    presets_complete(true);
}

#[test]
#[ignore = "repeats without translation what works with it: make test-long"]
fn soak_every_preset_works_in_every_port_mode() {
    presets_complete(false);
}

#[test]
fn connections_come_from_the_local_address_that_the_profile_names() {
    let Some(lab) = Lab::new(2) else { return };
    lab.network.run(CLIENT, &["ip", "addr", "add", "10.77.0.50/24", "dev", "eth0"]).unwrap();
    let server = lab.serve("");
    for protocol in ["tcp", "ssl", "udp", "quic"] {
        for (flags, middle) in
            [("", rr("iterations=20", "64", "64")), ("--max-threads 1", rr("iterations=20", "64", "64"))]
        {
            let options = format!("protocol={protocol} localhost=10.77.0.50");
            let result = lab.run_profile(&connected(2, &options, &middle), flags).completed();
            assert_eq!(result.rounds(), 40, "{protocol} {flags}");
        }
        // Opened repeatedly, and accepted at that address by the client.
        for kind in ["connect", "accept"] {
            let flowops = flowop(kind, &format!("remotehost=there protocol={protocol} localhost=10.77.0.50"))
                + &flowop("write", "size=64")
                + &flowop("read", "size=64")
                + &flowop("disconnect", "");
            let profile = profile(&format!("<group nthreads=2>{}</group>", transaction("iterations=5", &flowops)));
            assert_eq!(lab.run_profile(&profile, "").completed().rounds(), 10, "{protocol} {kind}");
        }
    }
    let strange = connected(1, "protocol=tcp localhost=192.0.2.1", &rr("iterations=1", "64", "64"));
    let reason = lab.run_profile(&strange, "").fell_short("failed");
    assert!(reason.contains("Cannot assign requested address"), "{reason}");
    server.assert_unchanged();
}

#[test]
fn a_profile_cannot_leave_the_data_ports() {
    for (flags, allowed) in [("--data-ports 30000-30003", "30000-30003"), ("--one-port", "20000")] {
        for protocol in ["tcp", "udp"] {
            let Some(lab) = Lab::new(2) else { return };
            let server = lab.serve(flags);
            let options = format!("protocol={protocol} port=5000");
            let reason =
                lab.run_profile(&connected(2, &options, &rr("iterations=1", "64", "64")), "").fell_short("failed");
            let expected = format!("port 5000 is not among the ports for data, {allowed}");
            assert!(reason.contains(&expected), "{reason}");
            server.assert_unchanged();
        }
    }
}

#[test]
fn a_port_behind_a_firewall_is_named_at_once() {
    for (protocol, limit, packets) in
        [("tcp", "1 s", "connections"), ("ssl", "1 s", "connections"), ("udp", "2 s", "datagrams")]
    {
        let Some(lab) = Lab::with_nft(2) else { return };
        let server = lab.serve("--data-ports 30000-30003");
        lab.drop(SERVER, "meta l4proto { tcp, udp } th dport 30000-30003");
        let options = format!("protocol={protocol}");
        let reason = lab.run_profile(&connected(2, &options, &rr("iterations=1", "64", "64")), "").fell_short("failed");
        let expected =
            format!("no answer from 10.77.0.2:30000 within {limit}: a firewall may drop {packets} to this port");
        assert!(reason.contains(&expected), "{reason}");
        server.assert_unchanged();
    }
}

#[test]
fn link_local_addresses_keep_their_interface() {
    let Some(lab) = Lab::new(2) else { return };
    let link_local = |host| {
        let text = lab.network.run(host, &["ip", "-6", "-o", "addr", "show", "dev", "eth0", "scope", "link"]).ok()?;
        let usable = !text.contains("tentative");
        text.split_whitespace().find_map(|word| word.strip_suffix("/64").filter(|_| usable)).map(str::to_owned)
    };
    eventually("both hosts have link-local addresses", || {
        let both = link_local(SERVER).and(link_local(CLIENT));
        both.map(drop).ok_or_else(|| "an address is missing or tentative".to_owned())
    });
    let server_address = link_local(SERVER).unwrap();
    let scope = lab.network.run(CLIENT, &["cat", "/sys/class/net/eth0/ifindex"]).unwrap();
    let server = lab.start(SERVER, "net serve --listen ::");
    server.wait_for_stderr("serving at");
    for protocol in ["tcp", "ssl", "udp", "quic"] {
        lab.write("profile.xml", &connected(2, &format!("protocol={protocol}"), &rr("iterations=20", "64", "64")));
        let line = format!("net run profile.xml --json --server there=[{server_address}%{}]:20000", scope.trim());
        assert_eq!(lab.run(&line).completed().rounds(), 40, "{protocol}");
    }
}

/// A stranger on the server's host who connects to all its ports, sends garbage and a cookie of another session, and
/// waits for answers.
fn disturb(lab: &Lab, protocol: &str, ports: &[u16]) -> Program {
    let mut script = String::new();
    for port in ports {
        let device = format!("/dev/{protocol}/{}/{port}", SERVER.v4());
        // Not a cookie; the beginning of one; one with a wrong code.
        for bytes in ["hello", "wbd1", &format!("wbd1{}", "x".repeat(48))] {
            write!(
                script,
                "exec {{fd}}<>{device} && printf %s {bytes} >&$fd; if read -t 1 -N 1 -u $fd answer; then echo ANSWERED {port} $bytes; fi; "
            )
            .unwrap();
        }
        // Silent connections.
        write!(script, "for i in 1 2 3; do exec {{fd}}<>{device}; done; ").unwrap();
    }
    script.push_str("echo disturbed; sleep 3");
    let mut bash = lab.command(OTHER, "bash");
    bash.args(["-c", &script]);
    Program::start(bash, &lab.path("bash"))
}

/// Measures in a port mode while a stranger connects to every port.
fn strangers_change_nothing(flags: &str) {
    for protocol in ["tcp", "udp"] {
        for threads in ["", "--max-threads 1"] {
            let Some(lab) = Lab::new(3) else { return };
            let server = lab.serve(flags);
            let profile = connected(2, &format!("protocol={protocol}"), &rr("iterations=1200 rate=300", "64", "64"));
            let client = lab.start_profile(&profile, threads);
            let kind = if protocol == "udp" { "-u" } else { "-t" };
            let ports = || -> Vec<u16> {
                let sockets = lab.sockets(SERVER, &format!("{kind}a"));
                let words = sockets.iter().filter_map(|socket| socket.split_whitespace().nth(3));
                let mut ports: Vec<u16> = words.filter_map(|word| word.rsplit(':').next()?.parse().ok()).collect();
                ports.sort_unstable();
                ports.dedup();
                // The control port takes whatever is no cookie for TLS, and answers with an alert.
                ports.retain(|port| *port != 20000 || (flags == "--one-port" && protocol == "udp"));
                ports
            };
            if flags != "--one-port" || protocol == "udp" {
                eventually(
                    "the server has data ports",
                    || {
                        if ports().is_empty() { Err(server.stderr()) } else { Ok(()) }
                    },
                );
            }
            let stranger = disturb(&lab, protocol, &ports());
            let result = client.finish().completed();
            assert_eq!((result.rounds(), result.bytes()), (2400, (2 * 2400 * 64, 2 * 2400 * 64)), "{flags} {protocol}");
            assert_eq!(number(&result.0["totals"]["lost-datagrams"]), 0, "{flags} {protocol}");
            if protocol == "tcp" && flags != "--one-port" {
                assert!(number(&result.0["machines"][1]["rejected-connections"]) >= 2, "{flags} {threads}");
            }
            let stranger = stranger.finish();
            assert!(stranger.out.contains("disturbed"), "{stranger:?}");
            assert!(!stranger.out.contains("ANSWERED"), "{flags} {protocol}: {stranger:?}");
            server.assert_unchanged();
        }
    }
}

#[test]
fn strangers_are_neither_counted_nor_answered_in_any_port_mode() {
    // They wait for most of the time.
    std::thread::scope(|scope| {
        for (flags, _) in PORT_MODES {
            scope.spawn(move || strangers_change_nothing(flags));
        }
    });
}

// Connections without a cookie are kept for a while; 150 descriptors are soon used up.
#[test]
fn silent_strangers_do_not_use_up_the_descriptors_of_a_server() {
    for threads in ["", "--max-threads 1"] {
        let Some(lab) = Lab::new(3) else { return };
        let line = format!("net serve --listen {} --data-ports 30000-30000", SERVER.v4());
        let server = Server::ready(lab.start_limited(SERVER, "ulimit -n 150; exec", &line));
        let flowops = flowop("connect", "conn=1 remotehost=there protocol=tcp")
            + &flowop("think", "duration=2s")
            + &flowop("connect", "conn=2 remotehost=there protocol=tcp")
            + &flowop("write", "conn=2 size=64")
            + &flowop("disconnect", "conn=2")
            + &flowop("disconnect", "conn=1");
        let profile = profile(&format!("<group nthreads=2>{}</group>", transaction("iterations=1", &flowops)));
        let client = lab.start_profile(&profile, threads);
        eventually("the server has a data port", || {
            let has = lab.sockets(SERVER, "-tl").iter().any(|socket| socket.contains(":30000"));
            if has { Ok(()) } else { Err(server.stderr()) }
        });
        let open = format!(
            "for i in {{1..400}}; do exec {{fd}}<>/dev/tcp/{}/30000; done; echo open >&2; sleep 60",
            SERVER.v4()
        );
        let mut bash = lab.command(OTHER, "bash");
        bash.args(["-c", &open]);
        let strangers = Program::start(bash, &lab.path("bash"));
        strangers.wait_for_stderr("open");
        assert_eq!(client.finish().completed().rounds(), 2, "{threads}");
        drop(strangers);
    }
}

#[test]
fn accept_has_a_time_limit() {
    let Some(lab) = Lab::with_nft(2) else { return };
    let server = lab.serve("");
    // The server's connections do not arrive; its probe before the run does. The rule is there while the client thinks,
    // also on a busy machine.
    let flowops =
        flowop("think", "duration=1500ms") + &flowop("accept", "remotehost=there protocol=tcp timeout=200ms canfail");
    let profile = profile(&format!("<group nthreads=1>{}</group>", transaction("iterations=1", &flowops)));
    let client = lab.start_profile(&profile, "");
    server.wait_for_stderr("session started");
    std::thread::sleep(std::time::Duration::from_millis(150));
    lab.drop(CLIENT, "tcp sport != 20000 tcp flags & (syn | ack) == syn");
    let result = client.finish();
    let (run, client_error) = (result.result(), &result.err);
    let errors = &run.transaction(0, 0)["flowops"][1]["client"]["errors"];
    assert_eq!(*errors, serde_json::json!({"Connection timed out (os error 110)": 1}), "{}", client_error);
}
