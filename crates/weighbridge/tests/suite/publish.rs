//! Publishing with a command of the user, and metadata on HTML pages.

use crate::lab::Lab;

const QUICK: &str = "--min-time 1ms --warm-up 0 --samples 6 --retakes 0 --precision 100";

/// A publishing script that logs its calls, and fails while the file `down` exists.
const HOOK: &str = "echo \"${WEIGHBRIDGE_TEST-all} $WEIGHBRIDGE_METADATA_BUILD_URL\" >> \"$1\"/published\n\
                    [ -z \"$WEIGHBRIDGE_TEST\" ] || [ -s \"$WEIGHBRIDGE_TEST_FOLDER/result.json\" ] || exit 8\n\
                    [ -s \"$WEIGHBRIDGE_RUN/run.json\" ] || exit 9\n\
                    [ ! -e \"$1\"/down ] || { echo the server is down >&2; exit 7; }\n";

fn published(lab: &Lab) -> Vec<String> {
    let text = std::fs::read_to_string(lab.path("published")).unwrap_or_default();
    let _ = std::fs::remove_file(lab.path("published"));
    text.lines().map(str::to_owned).collect()
}

#[test]
fn tests_are_published_when_measured_and_the_run_at_its_end() {
    let lab = Lab::new();
    lab.write("hook.sh", HOOK);
    let hook = format!("sh hook.sh {}", lab.path("").display());
    lab.write(
        "p.toml",
        &format!(
            "publish = \"{hook}\"\n[[test]]\nname = \"steady\"\nkind = [\"a\", \"b\"]\n[[test]]\nname = \"steady\"\n"
        ),
    );
    let line = format!("run --plan p.toml {QUICK} --metadata build-url=https://ci/7 --into R");
    lab.weighbridge(&line).expect_code(0);
    let mut all = published(&lab);
    assert_eq!(all.pop().unwrap(), "all https://ci/7");
    all.sort();
    assert_eq!(all, ["Localhost/steady/0000 https://ci/7", "Localhost/steady/0001 https://ci/7"]);
    let log = lab.read("R/environment/publish-0.log");
    assert!(log.starts_with("sh hook.sh ") && log.contains("exit status 0"), "{log}");
    assert_eq!((lab.weighbridge(&line).code, published(&lab).len()), (4, 0), "everything is published already");
    assert_eq!(lab.wait_for_processes(), [""; 0]);
}

// Without `--into`, the same command begins another run.
#[test]
fn the_command_that_publishes_what_is_missing_names_the_run() {
    let lab = Lab::new();
    let ran = lab.run_command(lab.command(&format!("run steady {QUICK} --quiet --publish")).arg("false"));
    ran.expect_code(3).expect_stderr("help: to publish what is missing: ").expect_stderr(" --into weighbridge-");
}

#[test]
fn failed_publishing_is_reported_and_repeated_on_resume() {
    let lab = Lab::new();
    lab.write("hook.sh", HOOK);
    lab.write("down", "");
    let hook = format!("sh hook.sh {}", lab.path("").display());
    let line = format!("run steady {QUICK} --into R --quiet --publish");
    let run = || lab.run_command(lab.command(&line).arg(&hook));
    let ran = run().expect_code(3);
    let warning = "was not published: exit status 7: the server is down\n";
    ran.expect_stderr(&format!("warning: Localhost/steady/0000 {warning}"));
    ran.expect_stderr(&format!("warning: the run {warning}help: to publish what is missing: "));
    let failed =
        lab.journal("R").iter().filter(|line| line["event"] == "published" && line["outcome"] == "failed").count();
    assert_eq!((failed, published(&lab).len()), (2, 2));
    let study = lab.weighbridge("study R --json").json();
    assert_eq!(study["cells"][0]["outcome"]["outcome"], "measured");
    std::fs::remove_file(lab.path("down")).unwrap();
    run().expect_code(0);
    assert_eq!(published(&lab), ["Localhost/steady/0000 ", "all "]);
    assert_eq!(run().code, 4);
}

#[test]
fn missing_publishing_program_is_refused() {
    let lab = Lab::new();
    let ran = lab.weighbridge(&format!("run steady {QUICK} --into R --publish ./nosuch.sh"));
    insta::assert_snapshot!(ran.transcript(), @r"
    exit 1
    error: no such program: `./nosuch.sh`, which would publish the run
    help: name a file, or a program on the PATH of this machine
    ");
    assert!(!lab.path("R").exists());
    lab.write("p.toml", "publish = \"nosuch-program now\"\n[[test]]\nname = \"steady\"\n");
    for line in ["plan --plan p.toml", "run --plan p.toml --into R"] {
        let ran = lab.weighbridge(line);
        assert!(
            ran.code == 1 && ran.err.starts_with("error: no such program: `nosuch-program`, "),
            "{}",
            ran.transcript()
        );
    }
    assert!(!lab.path("R").exists());
}

#[test]
fn run_perf_publishing_metadata_is_noted() {
    let lab = Lab::new();
    let ran = lab.weighbridge(&format!("run steady {QUICK} --into R --metadata pbench_server_publish=yes"));
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    ran.expect_stderr("note: metadata `pbench_server_publish` has no effect: pass a command");
}

#[test]
fn pages_link_to_build_and_machines_but_not_to_scripts() {
    let lab = Lab::new();
    let run = |into: &str, metadata: &[&str]| {
        let mut command = lab.command(&format!("run steady {QUICK} --into {into}"));
        for one in metadata {
            command.args(["--metadata", one]);
        }
        let ran = lab.run_command(&mut command);
        assert_eq!(ran.code, 0, "{}", ran.transcript());
        lab.weighbridge(&format!("report {into} --html {into}.html")).expect_code(0);
        lab.read(format!("{into}.html"))
    };
    lab.weighbridge("summary R --json").expect_code(1);
    let page = run(
        "R",
        &["build=7<b>", "url=https://ci/7", "project=P&Q", "machine_url_base=https://inventory/%(machine)s/view"],
    );
    assert!(
        page.contains("<a href=\"https:&#x2f;&#x2f;ci&#x2f;7\" rel=\"noopener noreferrer\">7&lt;b&gt;</a>"),
        "{page}"
    );
    let run_file = lab.read_json("R/run.json");
    let machine = run_file["invocations"][0]["facts"]["local"]["hostname"].as_str().unwrap();
    assert!(page.contains(&format!("https:&#x2f;&#x2f;inventory&#x2f;{machine}&#x2f;view")), "{page}");
    assert!(page.contains("P&amp;Q") && !page.contains("7<b>"));
    let other = run("S", &["build=8", "url=javascript:alert(1)", "machine-url-base=https://inventory/"]);
    assert!(!other.contains("href=\"javascript") && other.contains("<dd>8</dd>"), "{other}");
    assert!(other.contains(&format!("https:&#x2f;&#x2f;inventory&#x2f;{machine}\"")), "{other}");
    lab.weighbridge("compare R S --html C.html").expect_code(0);
    let compared = lab.read("C.html");
    assert!(
        compared.contains("href=\"https:&#x2f;&#x2f;ci&#x2f;7\"")
            && compared.contains(&format!("inventory&#x2f;{machine}\"")),
        "{compared}"
    );
    assert!(!compared.contains("href=\"javascript"));
}
