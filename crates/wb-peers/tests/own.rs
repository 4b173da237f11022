//! Matrices of our own files.

use wb_diagnostics::SourceText;
use wb_peers::format::parse_matrix;
use wb_peers::{Decision, Matrix, SelectionFlags, select};

const WEB: &str = r#"
axes = ["version", "tls", "cipher"]

[[rules]]
when = { version = "http3" }
drop = ["tls"]

[[endpoints]]
id = "nginx"
protocol = "http"
supports = { version = ["http1", "http2", "http3"], tls = ["1.2", "1.3"], cipher = ["aes"] }

[[endpoints]]
id = "curl"
protocol = "http"
supports = { version = ["http3", "http1"], tls = ["1.3", "1.2"], cipher = ["aes"] }

[[endpoints]]
id = "redis"
protocol = "resp"

[[baselines]]
id = "iperf3"
supports = { version = ["tcp"] }

[aliases]
web = "nginx|curl"
"#;

fn parse(text: &str) -> Result<Matrix, String> {
    parse_matrix(&SourceText::new("peers.toml", text), true).map_err(|error| error.to_string())
}

fn decisions(flags: &SelectionFlags) -> Vec<(String, Option<String>)> {
    let matrix = parse(WEB).expect("valid");
    let decisions = select(&matrix, flags).expect("valid");
    decisions.iter().map(|decision| (decision.name(), decision.reason())).collect()
}

fn selected(flags: &SelectionFlags) -> Vec<String> {
    decisions(flags).into_iter().filter(|(_, reason)| reason.is_none()).map(|(name, _)| name).collect()
}

#[test]
fn values_are_in_the_order_of_the_dialer_and_rules_drop_axes() {
    assert_eq!(
        selected(&SelectionFlags::default()),
        [
            "iperf3 x iperf3 (tcp)",
            "nginx x nginx (http1, 1.2, aes)",
            "nginx x nginx (http1, 1.3, aes)",
            "nginx x nginx (http2, 1.2, aes)",
            "nginx x nginx (http2, 1.3, aes)",
            "nginx x nginx (http3, aes)",
            "nginx x curl (http1, 1.2, aes)",
            "nginx x curl (http1, 1.3, aes)",
            "nginx x curl (http3, aes)",
            "curl x nginx (http3, aes)",
            "curl x nginx (http1, 1.3, aes)",
            "curl x nginx (http1, 1.2, aes)",
            "curl x curl (http3, aes)",
            "curl x curl (http1, 1.3, aes)",
            "curl x curl (http1, 1.2, aes)",
            "redis x redis",
        ]
    );
}

#[test]
fn each_possible_cell_has_a_reason() {
    let flags = SelectionFlags {
        test: wb_peers::selection::SelectIgnore { select: Some("~web".into()), ignore: Some("glob:curl x*".into()) },
        ..SelectionFlags::default()
    };
    let decisions = decisions(&flags);
    let reason =
        |name: &str| decisions.iter().find(|(own, _)| own == name).unwrap_or_else(|| panic!("{name}")).1.as_deref();
    assert_eq!(reason("nginx x curl (http3, aes)"), None);
    assert_eq!(reason("curl x curl (http3, aes)"), Some("--test-ignore: glob:curl x*"));
    assert_eq!(reason("redis x redis"), Some("not selected by --test-select"));
    assert_eq!(reason("iperf3 x iperf3 (tcp)"), Some("not selected by --test-select"));
    assert_eq!(reason("redis x nginx"), Some("different protocols"));
}

#[test]
fn mistakes_in_toml_and_yaml_are_refused_at_their_places() {
    for (from, to, place, message) in [
        ("\"tls\", \"cipher\"]", "\"tls\", \"tls\"]", "\"tls\"", "invalid axes: `tls` occurs twice"),
        ("\"tls\", \"cipher\"]", "\"tls\", \"address\"]", "\"address\"", "it is the name of a placeholder of commands"),
        ("drop = [\"tls\"]", "drop = [\"version\"]", "\"version\"", "which must come before it in `axes`"),
        ("drop = [\"tls\"]", "drop = [\"tsl\"]", "\"tsl\"", "invalid rule: unknown axis `tsl`"),
        ("version = \"http3\" }", "versoin = \"http3\" }", "\"http3\"", "invalid rule: unknown axis `versoin`"),
        ("id = \"curl\"", "id = \"nginx\"", "\"nginx\"", "the id `nginx` occurs twice"),
        ("id = \"curl\"", "id = \"~curl\"", "\"~curl\"", "invalid id `~curl`"),
        ("id = \"iperf3\"", "id = \"a|b\"", "\"a|b\"", "invalid id `a|b`"),
        ("[\"http3\", \"http1\"]", "[\"http3\", \"http3\"]", "\"http3\"", "`curl`: `http3` occurs twice in `version`"),
        (
            "version = [\"tcp\"]",
            "vresion = [\"tcp\"]",
            "[\"tcp\"]",
            "invalid endpoint `iperf3`: unknown axis `vresion`",
        ),
        ("id = \"curl\"", "id = \"curl\"\nceiling = { tls = \"1.3\" }", "{ tls = \"1.3\" }", "are keys of baselines"),
        ("id = \"iperf3\"", "id = \"iperf3\"\nceiling = { tls = \"1.4\" }", "\"1.4\"", "no endpoint has tls `1.4`"),
        (
            "id = \"curl\"",
            "id = \"curl\"\nserver = \"far\"",
            "\"far\"",
            "invalid endpoint `curl`: unknown server `far`",
        ),
        ("id = \"curl\"", "id = \"curl\"\nscenarios = [\"uplaod\"]", "\"uplaod\"", "unknown scenario `uplaod`"),
        (
            "id = \"curl\"",
            "id = \"curl\"\nduration = true\ndialer = { command = [\"curl\", \"{address}\"] }",
            "[\"curl\", \"{address}\"]",
            "invalid endpoint `curl`: dialer: invalid `command`: `duration = true` requires `{duration}` in it",
        ),
        (
            "id = \"curl\"",
            "id = \"curl\"\ndialer = { command = [\"curl\", \"{adress}\"] }",
            "\"{adress}\"",
            "invalid endpoint `curl`: dialer: unknown placeholder `{adress}`",
        ),
        (
            "id = \"curl\"",
            "id = \"curl\"\nlistener = { command = [\"curl\"], env = { A = \"{\" } }",
            "\"{\"",
            "invalid endpoint `curl`: listener: invalid text `{`",
        ),
        (
            "id = \"curl\"",
            "id = \"curl\"\nlistener = { command = [\"curl\"], ready = \"(\" }",
            "\"(\"",
            "invalid endpoint `curl`: listener: invalid `ready`",
        ),
        (
            "id = \"curl\"",
            "id = \"curl\"\ncontainer = { image = \"x\", options = [\"--init\", \"--rm\"] }",
            "\"--rm\"",
            "invalid endpoint `curl`: invalid option `--rm` of a container",
        ),
        (
            "id = \"curl\"",
            "id = \"curl\"\nduration = true\ndialect = \"engine\"",
            "true",
            "invalid `duration`: only endpoints of the dialect `weighbridge` can be given one",
        ),
        (
            "[aliases]",
            "[[checks]]\nmetric = \"upload\"\nmin = 1\n\n[aliases]",
            "\"upload\"",
            "invalid metric `upload` of a check",
        ),
        (
            "[aliases]",
            "[[scenarios]]\nid = \"upload\"\nsend = 1\niterations = 1\n\n[aliases]",
            "\"upload\"",
            "invalid scenarios: `upload` occurs twice",
        ),
        (
            "[aliases]",
            "[[expected-failures]]\ncells = \"a\"\nreason = \"b\"\nuntil = \"soon\"\n\n[aliases]",
            "\"soon\"",
            "invalid `until` `soon`",
        ),
    ] {
        assert!(WEB.contains(from), "{from}");
        let toml = WEB.replacen(from, to, 1);
        // JSON is YAML; in lines, so that the rest of a line is a place.
        let yaml = serde_json::to_string_pretty(&toml::from_str::<serde_json::Value>(&toml).unwrap()).unwrap();
        let first_line = |place: &'static str| if place.starts_with(['[', '{']) { &place[..1] } else { place };
        for (source, is_toml, place) in [
            (SourceText::new("peers.toml", &toml), true, place),
            (SourceText::new("peers.yaml", &yaml), false, first_line(place)),
        ] {
            let error = parse_matrix(&source, is_toml).expect_err(message);
            assert!(error.message().contains(message), "{error}");
            let excerpt = error.excerpt();
            assert!(excerpt.contains(place) && excerpt.len() < source.text.len() / 2, "{message}: {excerpt}");
            if is_toml {
                let start = WEB.find(from).unwrap() + to.rfind(place).unwrap();
                assert_eq!(error.location().unwrap().span.start, start, "{message}: {excerpt}");
            }
        }
    }
}

#[test]
fn a_large_matrix_is_expanded() {
    let mut text = "axes = [\"transport\"]\n".to_owned();
    for index in 0..200 {
        text += &format!("[[endpoints]]\nid = \"e{index}\"\nsupports = {{ transport = [\"tcp\", \"quic\"] }}\n");
    }
    let matrix = parse(&text).expect("valid");
    let decisions = select(&matrix, &SelectionFlags::default()).expect("valid");
    assert_eq!(decisions.iter().filter(|decision| matches!(decision, Decision::In(_))).count(), 80_000);
}

#[test]
fn a_text_without_names_and_values_is_no_peers_file() {
    for (text, expected) in [("hello world\n", true), ("- a\n- b\n", true), ("axes: [a]\nendpoint: []\n", false)] {
        let error = parse_matrix(&SourceText::new("peers", text), false).unwrap_err().to_string();
        assert_eq!(error == "invalid peers file: expected TOML or YAML", expected, "{text}: {error}");
    }
}
