//! `peers list`: the cells of a matrix of implementations.

use insta::assert_snapshot;

use crate::lab::Lab;

/// Web servers and clients, with a baseline.
const WEB: &str = r#"
axes = ["version", "tls"]

[[rules]]
when = { version = "http3" }
drop = ["tls"]

[[endpoints]]
id = "nginx"
protocol = "http"
supports = { version = ["http1", "http3"], tls = ["1.2", "1.3"] }

[[endpoints]]
id = "curl"
protocol = "http"
supports = { version = ["http3", "http1"], tls = ["1.3"] }

[[endpoints]]
id = "redis"
protocol = "resp"

[[baselines]]
id = "iperf3"
supports = { version = ["tcp"] }

[aliases]
web = "nginx|curl"
loop = "~loop2"
loop2 = "x|~loop"
"#;

fn lab() -> Lab {
    let lab = Lab::new();
    lab.write("web.toml", WEB);
    lab
}

#[test]
fn cells_are_listed_by_name_with_the_baselines_first() {
    let ran = lab().weighbridge("peers list web.toml --test-ignore redis");
    assert_eq!((ran.code, ran.err.as_str()), (0, "1 baseline, 9 tests\n"), "{}", ran.transcript());
    assert_snapshot!(ran.out, @r"
    iperf3 x iperf3 (tcp)
    nginx x nginx (http1, 1.2)
    nginx x nginx (http1, 1.3)
    nginx x nginx (http3)
    nginx x curl (http1, 1.3)
    nginx x curl (http3)
    curl x nginx (http3)
    curl x nginx (http1, 1.3)
    curl x curl (http3)
    curl x curl (http1, 1.3)
    ");
}

#[test]
fn each_cell_has_a_reason() {
    let ran = lab().weighbridge("peers list web.toml --why --test-select ~web --tls-select 1.3");
    assert_eq!(ran.code, 1, "{}", ran.transcript());
    let ran = lab().weighbridge("peers list web.toml --why --test-select ~web --axis-select tls=1.3");
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    let rows: Vec<&str> = ran.out.lines().skip(1).collect();
    assert_snapshot!(rows.join("\n"), @r"
    out  iperf3 x iperf3 (tcp)       not selected by --test-select
    out  nginx x nginx (http1, 1.2)  no selected tls
    in   nginx x nginx (http1, 1.3)
    in   nginx x nginx (http3)
    in   nginx x curl (http1, 1.3)
    in   nginx x curl (http3)
    out  nginx x redis               different protocols
    in   curl x nginx (http3)
    in   curl x nginx (http1, 1.3)
    in   curl x curl (http3)
    in   curl x curl (http1, 1.3)
    out  curl x redis                different protocols
    out  redis x nginx               different protocols
    out  redis x curl                different protocols
    out  redis x redis               not selected by --test-select
    ");
}

#[test]
fn json_has_every_possible_cell() {
    let ran = lab().weighbridge("peers list web.toml --json --impl-select curl");
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    let listing = ran.json();
    assert_eq!((&listing["baselines"], &listing["tests"]), (&1.into(), &2.into()), "{listing}");
    let cells = listing["cells"].as_array().unwrap();
    let find = |name: &str| cells.iter().find(|cell| cell["name"] == name).unwrap_or_else(|| panic!("{listing}"));
    assert_eq!(find("curl x curl (http1, 1.3)")["values"]["tls"], "1.3");
    assert_eq!(find("nginx x curl (http3)")["reason"], "not selected by --impl-select");
    assert_eq!(find("redis x curl")["reason"], "different protocols");
}

#[test]
fn an_invalid_selection_is_an_error_and_an_empty_one_nothing_to_do() {
    for (flags, code, message) in [
        ("--test-select ~wbe", 1, "unknown alias `~wbe`"),
        ("--test-select ~loop", 1, "alias `~loop` names itself: loop -> loop2 -> loop"),
        ("--test-select re:(", 1, "invalid pattern `re:(`: expected a regular expression"),
        ("--transport-select tcp", 1, "unknown axis `transport`: expected one of version, tls"),
        ("--axis-select tls", 1, "expected AXIS=FILTER"),
        ("--test-select nothing", 4, "no cell of the matrix is selected"),
        ("--test-select !~all --baseline-ignore iperf3", 1, "unknown alias `~all`"),
    ] {
        let ran = lab().weighbridge(&format!("peers list web.toml {flags}"));
        assert_eq!(ran.code, code, "{flags}: {}", ran.transcript());
        assert!(ran.err.contains(message), "{flags}: {}", ran.err);
    }
}

#[test]
fn an_invalid_file_is_an_error_with_its_position() {
    let lab = lab();
    lab.write("bad.toml", &WEB.replace("id = \"curl\"", "name = \"curl\""));
    let ran = lab.weighbridge("peers list bad.toml");
    assert_eq!(ran.code, 1, "{}", ran.transcript());
    assert!(ran.err.contains("bad.toml") && ran.err.contains("unknown field `name`"), "{}", ran.err);
    let missing = lab.weighbridge("peers list missing.toml");
    assert_eq!(missing.code, 1, "{}", missing.transcript());
    assert!(missing.err.contains("missing.toml"), "{}", missing.err);
}

#[test]
fn endpoints_and_what_they_need_are_listed() {
    let lab = Lab::new();
    let endpoint = |id: &str, program: &str| {
        format!(
            "[[endpoints]]\nid = \"{id}\"\nsupports = {{ transport = [\"tcp\"] }}\nlistener = {{ command = [\"{program}\"] }}\n\
             dialer = {{ command = [\"{program}\"] }}\n"
        )
    };
    lab.write(
        "peers.toml",
        &format!("axes = [\"transport\"]\n{}{}", endpoint("shell", "sh"), endpoint("own", "./own")),
    );
    let listed = lab.weighbridge("peers list peers.toml --list-impls").expect_code(0);
    assert_eq!(listed.out, "shell\nown\n");
    let checked = lab.weighbridge("peers list peers.toml --check-deps").expect_code(1);
    assert!(
        checked.out.contains("sh") && checked.out.contains("found") && checked.out.contains("missing"),
        "{}",
        checked.out
    );
    lab.weighbridge("peers list peers.toml --check-deps --impl-select shell").expect_code(0);
}
