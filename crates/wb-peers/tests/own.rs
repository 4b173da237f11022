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
fn invalid_files_are_refused() {
    for (from, to, message) in [
        (
            "[\"version\", \"tls\", \"cipher\"]",
            "[\"tls\", \"version\", \"cipher\"]",
            "which must come before it in `axes`",
        ),
        ("drop = [\"tls\"]", "drop = [\"tsl\"]", "unknown axis `tsl`: did you mean `tls`?"),
        ("id = \"curl\"", "id = \"nginx\"", "the id `nginx` occurs twice"),
        ("id = \"curl\"", "id = \"~curl\"", "invalid id `~curl`"),
        ("[\"http3\", \"http1\"]", "[\"http3\", \"http3\"]", "`http3` occurs twice in `version`"),
        ("id = \"curl\"", "name = \"curl\"", "unknown field `name`"),
        (
            "id = \"curl\"",
            "id = \"curl\"\nduration = true\ndialer = { command = [\"curl\", \"{address}\"] }",
            "invalid endpoint `curl`: dialer: invalid `command`: `duration = true` requires `{duration}` in it",
        ),
        (
            "id = \"curl\"",
            "id = \"curl\"\nduration = true\ndialect = \"engine\"",
            "invalid `duration`: only endpoints of the dialect `weighbridge` can be given one",
        ),
    ] {
        assert!(WEB.contains(from), "{from}");
        let error = parse(&WEB.replacen(from, to, 1)).expect_err(message);
        assert!(error.contains(message), "{error}");
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
