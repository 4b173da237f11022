use proptest::prelude::*;

use super::*;

#[test]
fn settings_of_a_file_are_masked_line_by_line() {
    let text = "# key = what opens\nport = 1\n  password = a b\ntoken=abc\nsecret =\n";
    assert_eq!(mask_lines(text), "# key = what opens\nport = 1\n  password = ***\ntoken=***\nsecret =\n");
}

#[test]
fn secrets_are_masked_everywhere() {
    for (line, expected) in [
        ("ro quiet root=UUID=1-2", "ro quiet root=UUID=1-2"),
        ("luks.password=\"a b\" ro", "luks.password=*** ro"),
        ("--password 'a  b c' ro", "--password *** ro"),
        ("--api-token abc  --fast", "--api-token ***  --fast"),
        ("--auth-required --fast", "--auth-required --fast"),
        ("memtier --key-maximum 1000 --key-pattern=R:R", "memtier --key-maximum 1000 --key-pattern=R:R"),
        ("tool --max-key abc key_size=4k", "tool --max-key *** key_size=4k"),
        ("--default-password=abc -v", "--default-password=*** -v"),
        ("sh -c \"tool --password abc --fast\"", "sh -c \"tool --password *** --fast\""),
        ("systemd.setenv=MY_TOKEN=abc", "systemd.setenv=MY_TOKEN=***"),
        ("ds=https://joe:pw@host/x", "ds=https://***@host/x"),
        ("netroot=iscsi:joe:pw@10.0.0.1::3260", "netroot=iscsi:***@10.0.0.1::3260"),
        ("curl -u me:hunter2 -s --user joe", "curl -u me:*** -s --user joe"),
        ("curl -ume:hunter2 --user=joe:x -unix:/s", "curl -ume:*** --user=joe:*** -unix:***"),
        ("console=a@b", "console=a@b"),
        ("run --hosts lab:root@h1 b=joe@h2 --into R", "run --hosts lab:root@h1 b=joe@h2 --into R"),
        ("run --hosts=lab:root@h1 -- x:y@z", "run --hosts=lab:root@h1 -- x:***@z"),
        (
            "run --hosts lab:joe:pw@h1 ssh://joe:pw@h h:{\"token\":\"a\"}",
            "run --hosts lab:***@h1 ssh://***@h h:{\"token\":***",
        ),
        ("fio:{\"type\":\"read\"} --hosts a:1", "fio:{\"type\":\"read\"} --hosts a:1"),
        ("uperf:{\"a\": 1, \"token\": \"abc def\"} -v", "uperf:{\"a\": 1, \"token\": *** -v"),
        ("curl -H 'Authorization: Bearer abc' x", "curl -H 'Authorization: Bearer ***' x"),
        (
            "command:{\"c\":\"curl -H Authorization:Basic abc -s\"}",
            "command:{\"c\":\"curl -H Authorization:Basic *** -s\"}",
        ),
        ("{\"Authorization\": \"Bearer abc\"} -v", "{\"Authorization\": \"Bearer ***\" -v"),
        ("Authorization: abc -v", "Authorization: *** -v"),
        ("use Bearer abc for it", "use Bearer *** for it"),
        ("--password basic abc", "--password *** abc"),
        ("login with password abc failed", "login with password *** failed"),
        ("the password is abc, joe", "the password is *** joe"),
        ("the password is wrong; Password for joe", "the password is wrong; Password for joe"),
        ("7 tests passed: 3 by passing x=1, passed=4", "7 tests passed: 3 by passing x=1, passed=4"),
        ("DB_PASS=abc sshpass -p x userPass=abc", "DB_PASS=*** sshpass -p x userPass=***"),
    ] {
        assert_eq!(mask_secret_words(line), expected, "{line}");
        assert_eq!(mask_secret_words(expected), expected, "masking twice");
    }
    for (line, expected) in [
        ("x=https://joe:pw@h/y?token=abc -v", "x=https://***@h/y?token=*** -v"),
        ("https://joe:mykey:pw@h/", "https://***@h/"),
        ("--user=joe:my-token=pw", "--user=joe:***"),
        ("H=Bearer abc -v", "H=Bearer *** -v"),
        ("auth=Bearer abc -v", "auth=*** *** -v"),
        ("-H 'Cookie: a=b; c=d' -v", "-H 'Cookie: ***' -v"),
        ("sh -c 'token=a b' -v", "sh -c 'token=***' -v"),
        ("\"--token a\" -v '-u joe:a b' -v", "\"--token ***\" -v '-u joe:***' -v"),
        ("login c=password \"a b\" -v", "login c=password *** -v"),
        ("password \"failed\" -v", "password *** -v"),
        ("env=[\"H=Basic am9lOnB3\"] -v", "env=[\"H=Basic ***\" -v"),
        ("with basic settings of Basic Linear Algebra", "with basic settings of Basic Linear Algebra"),
        ("the joe's token=abc don't", "the joe's token=*** don't"),
    ] {
        assert_eq!(mask_secret_words(line), expected, "{line}");
        assert_eq!(mask_secret_words(expected), expected, "masking twice");
    }
    assert_eq!(mask_options("rw,username=joe,password=x"), "rw,username=joe,password=***");
    assert_eq!(mask_option("keyserver:/export"), "keyserver:/export");
}

#[test]
fn passwords_of_urls_are_masked_and_nothing_else() {
    let text = "x=https://joe:pw@host/a,b http://joe@host token=1 s3://k:v@";
    assert_eq!(mask_url_credentials(text), "x=https://***@host/a,b http://joe@host token=1 s3://***@");
}

#[test]
fn words_of_a_command_are_masked_separately() {
    let words = ["run", "--token", "a b", "-u", "joe:x y", "--pass", "-v", "sh", "-c", "curl -u me:pw", "k=v"];
    let expected = ["run", "--token", "***", "-u", "joe:***", "--pass", "-v", "sh", "-c", "curl -u me:***", "k=v"];
    assert_eq!(mask_arguments(words), expected);
}

#[test]
fn white_space_in_an_argument_does_not_end_a_secret() {
    for (argument, expected) in [
        ("auth=Bearer abc", "auth=***"),
        ("token=Bearer abc", "token=***"),
        ("password=a abc", "password=***"),
        ("Cookie: a=b; c=d", "Cookie: ***"),
        ("h=Bearer abc", "h=Bearer ***"),
        ("h=bearer abc", "h=bearer ***"),
        ("url=https://joe:pw@x/y?token=abc", "url=https://***@x/y?token=***"),
        ("okk:{\"url\":\"https://joe:pw@h/?token=a\"}", "okk:{\"url\":\"https://***@h/?token=***\"}"),
        ("c=password \"abc\"", "c=password ***"),
        ("linpack:threads=1,env=[\"H=Bearer abc\"]", "linpack:threads=1,env=[\"H=Bearer ***\"]"),
        ("env:AUTH=Bearer abc", "env:AUTH=***"),
        ("env:URL=https://joe:pw@h/?token=abc", "env:URL=https://***@h/?token=***"),
        (
            "linpack:before=[\"true --password abc -u joe:abc\", \"true\"]",
            "linpack:before=[\"true --password *** -u joe:***\",\"true\"]",
        ),
        ("curl -H 'Authorization: Bearer abc' || true", "curl -H 'Authorization: Bearer ***' || true"),
        ("x:{\"a\": {\"pins\": [1, \"x\"], \"token\": 5}}", "x:{\"a\":{\"pins\":[1,\"x\"],\"token\":\"***\"}}"),
    ] {
        assert_eq!(mask_argument(argument), expected, "{argument}");
        assert_eq!(mask_argument(expected), expected, "masking twice");
        assert_eq!(mask_arguments([argument, "-v"]), [expected, "-v"], "{argument}");
        assert!(contains_secret(argument) && !contains_secret(expected));
    }
}

#[test]
fn arguments_without_secrets_are_unchanged() {
    let words = [
        "run",
        "--hosts",
        "lab:root@h1",
        "b=joe@h2",
        "c:joe@[fe80::1%eth0]",
        "--",
        "fio:{\"type\":\"read\", \"block-sizes\":[4, \"1m\"]}",
        "ds=a@b",
        "linpack:threads=[1, 2],env=[\"A=1 2\"]",
        "before=[\"sync; echo 3 > /proc/sys/vm/drop_caches\"]",
        "note=nothing basic about it",
        "cmd:sh -c 'echo \"a b\"'",
        "7 tests passed: 3 by passing x=1",
        "https://h:8080/x?a=b",
    ];
    assert_eq!(mask_arguments(words), words);
    let tests = words.iter().skip_while(|word| **word != "--");
    assert!(tests.clone().count() > 5 && tests.into_iter().all(|word| !contains_secret(word)));
}

#[test]
fn fields_are_masked_by_name_and_strings_by_content() {
    let input = serde_json::json!({
        "own": {"password": "abc", "pins": {"key": [1, 2]}, "rack": "B7", "unit": 3, "note": ["use Bearer abc now"]},
    });
    let expected = serde_json::json!({
        "own": {"password": "***", "pins": {"key": "***"}, "rack": "B7", "unit": 3, "note": ["use Bearer *** now"]},
    });
    assert_eq!(mask_fields(input), expected);
}

/// Texts that users write with a secret in them.
const TEMPLATES: [&str; 20] = [
    "auth=Bearer SECRET",
    "token=Bearer SECRET",
    "password=a SECRET",
    "h=Bearer SECRET",
    "h=bearer SECRET of mine",
    "h=Basic SECRET",
    "Authorization: Digest username=joe, response=SECRET",
    "Cookie: a=b; c=SECRET",
    "url=https://joe:SECRET@x/y?token=abcdef",
    "url=https://joe:a@x/y?token=SECRET&b=SECRET",
    "okk:{\"url\":\"https://joe:SECRET@h/?token=a\"}",
    "okk:{\"a\": [{\"db-password\": {\"of\": \"SECRET\"}}], \"b\": \"--token SECRET\"}",
    "c=password \"SECRET\"",
    "c=password \"SECRET and SECRET\"",
    "linpack:threads=1,env=[\"H=Bearer SECRET\"]",
    "linpack:env=[\"TOKEN=a SECRET\"],threads=1",
    "env:AUTH=Bearer SECRET",
    "env:URL=https://joe:SECRET@h/?token=abc",
    "before=[\"true --password SECRET -u joe:SECRET\", \"true\"]",
    "curl -H 'Authorization: Bearer SECRET' || true",
];

proptest! {
    #[test]
    fn a_named_secret_never_gets_through(
        before in "[a-z]{0,8}", name in "(--)?(api_|my-)?(token|PASSWORD|secret|Key)", separator in "[ =:]",
        value in "zq[a-zA-Z0-9=@:/]{6,20}",
    ) {
        let name = if separator == " " { format!("--{}", name.trim_start_matches('-')) } else { format!("x.{name}") };
        let line = mask_secret_words(&format!("{before} {name}{separator}{value} ro"));
        prop_assert!(!line.contains(&value) && line.ends_with(" ro"), "{line}");
    }

    #[test]
    fn a_quoted_secret_never_gets_through(
        words in proptest::collection::vec("zq[a-zA-Z0-9=:-]{1,6}", 1..4), quote in "[\"']", separator in "( |=|: )",
    ) {
        let line = mask_secret_words(&format!("run --token{separator}{quote}{}{quote} -v", words.join(" ")));
        prop_assert!(!line.contains("zq") && line.ends_with(" -v"), "{line}");
    }

    #[test]
    fn a_secret_never_gets_through_in_user_input(secret in "[A-Za-z]{3}[0-9]zq[A-Za-z0-9._~+/-]{2,16}") {
        for template in TEMPLATES {
            let text = template.replace("SECRET", &secret);
            let single = mask_argument(&text);
            prop_assert!(!single.contains("zq"), "{text} became {single}");
            let joined = mask_arguments(["run", "--metadata", &text, "-v"]).join(" ");
            prop_assert!(!joined.contains("zq") && joined.ends_with(" -v"), "{text} became {joined}");
            let quoted = text.replace('\'', "'\\''");
            let line = mask_secret_words(&format!("run --metadata '{quoted}' -v"));
            prop_assert!(!line.contains("zq"), "{text} became {line}");
        }
    }

    #[test]
    fn no_text_panics(text: String) {
        let _ = (mask_argument(&text), mask_arguments([&text, &text]), mask_url_credentials(&text));
        let _ = mask_secret_words(&text);
        let _ = mask_options(&text);
    }
}
