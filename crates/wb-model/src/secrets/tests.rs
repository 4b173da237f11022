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
        ("tool --max-key abc --api-key abc key_size=4k", "tool --max-key abc --api-key *** key_size=4k"),
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
            "run --hosts lab:***@h1 ssh://***@h h:{\"token\":\"***\"}",
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
        ("use Bearer abc for it, but H=Bearer abc", "use Bearer abc for it, but H=Bearer ***"),
        ("--password basic abc", "--password *** abc"),
        ("run-perf --default-passwords abc 'd e' f -- fio", "run-perf --default-passwords *** *** *** -- fio"),
        ("login with password abc failed", "login with password abc failed"),
        ("run redis:keyspace=1000,command=get --keymap us", "run redis:keyspace=1000,command=get --keymap us"),
        ("auth:threads=2 kv:token=5,key=[1,2] public-key=x", "auth:threads=2 kv:token=5,key=[1,2] public-key=x"),
        ("param:token=1 env:TOKEN=1 x:env:A_TOKEN=1", "param:token=1 env:TOKEN=*** x:env:A_TOKEN=***"),
        ("7 tests passed: 3 by passing x=1, passed=4", "7 tests passed: 3 by passing x=1, passed=4"),
        ("DB_PASS=abc sshpass -p x userPass=abc", "DB_PASS=*** sshpass -p *** userPass=***"),
    ] {
        assert_eq!(mask_command_line(line), expected, "{line}");
        assert_eq!(mask_command_line(expected), expected, "masking twice");
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
        ("env=[\"H=Basic am9lOnB3\"] -v", "env=[\"H=Basic ***\" -v"),
        ("with basic settings of Basic Linear Algebra", "with basic settings of Basic Linear Algebra"),
        ("the joe's token=abc don't", "the joe's token=*** don't"),
    ] {
        assert_eq!(mask_command_line(line), expected, "{line}");
        assert_eq!(mask_command_line(expected), expected, "masking twice");
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
fn passwords_of_commands_that_prepare_machines_are_masked() {
    let words = ["bkr", "-p", "-a b", "-u", "joe", "--port", "22", "-parallel=2"];
    assert_eq!(mask_provisioner_arguments(words), ["bkr", "-p", "***", "-u", "joe", "--port", "22", "-parallel=2"]);
    for (argument, expected) in [
        (
            r#"command:{"command":"sshpass -p 'a b' ssh {address}"}"#,
            r#"command:{"command":"sshpass -p *** ssh {address}"}"#,
        ),
        (r#"command:{"command":"true 'x y'"}"#, r#"command:{"command":"true 'x y'"}"#),
    ] {
        assert_eq!(mask_argument(argument), expected);
        assert_eq!(mask_arguments([argument]), [expected]);
    }
    assert_eq!(mask_arguments(["ssh", "-p", "22"]), ["ssh", "-p", "22"]);
}

#[test]
fn short_options_with_secrets_depend_on_the_program() {
    for (line, expected) in [
        ("sshpass -p abc ssh -p 22 h", "sshpass -p *** ssh -p 22 h"),
        ("sudo /usr/bin/sshpass -pabc scp -p f h:", "sudo /usr/bin/sshpass -p*** scp -p f h:"),
        ("sh -c 'sshpass -p \"a b\" ssh h'", "sh -c 'sshpass -p *** ssh h'"),
        ("mysql -h h -p'a b' -p base", "mysql -h h -p*** -p base"),
        ("redis-benchmark -a abc -n 5 -p 6379", "redis-benchmark -a *** -n 5 -p 6379"),
        ("ipmitool -U joe -P abc sol", "ipmitool -U joe -P *** sol"),
        ("7z -pabc x; mkdir -p d", "7z -p*** x; mkdir -p d"),
        ("docker run -u 1000:1000 -p 80:80 i", "docker run -u 1000:1000 -p 80:80 i"),
    ] {
        assert_eq!(mask_command_line(line), expected);
        assert_eq!(mask_command_line(expected), expected, "masking twice");
    }
    assert_eq!(
        mask_arguments(["sshpass", "-p", "a b", "ssh", "-p", "22"]),
        ["sshpass", "-p", "***", "ssh", "-p", "22"]
    );
}

#[test]
fn secrets_of_fio_are_known() {
    for name in
        ["http_pass", "http_s3_key", "http-s3-sse-customer-key", "http_s3_security_token", "http_swift_auth_token"]
    {
        assert!(is_secret_name(name), "{name}");
        assert_eq!(mask_command_line(&format!("fio --{name}=abc --bs=4k")), format!("fio --{name}=*** --bs=4k"));
        assert_eq!(mask_lines(&format!("[job]\n{name}=abc\nbs=4k")), format!("[job]\n{name}=***\nbs=4k"));
    }
    let typed = "fio --http_s3_keyid=abc --http_user=joe --http_s3_sse_customer_algorithm=AES256";
    assert_eq!(mask_command_line(typed), typed);
}

#[test]
fn parameters_of_tests_are_recorded_as_typed() {
    for word in [
        "redis:keyspace=1000,command=get",
        "kv:token=abc,password=\"a,b\",auth=[1,\"x y\"]",
        "kv:{\"token\": \"abc\", \"secret\": [1, \"x\"]}",
        "kv:mode=basic AbcDef,label=bearer x",
        "kv:path=/a@b,to=root@h,\"api-key\"=5",
        "iocost-qos::token=5:secret=x",
        "kv:url=\"https://h/x?token=abc@d\"",
        "param:token=abc",
        "x:param:token=abc",
        "x:param:token=\"x --password abc\"",
        "param:token=5+knob:swappiness=1",
    ] {
        assert_eq!(mask_argument(word), word);
        assert_eq!(mask_arguments([word, "--token", "t"]), [word, "--token", "***"]);
        assert!(word.contains(' ') || mask_command_line(word) == word, "{word}");
    }
    for (word, expected) in [
        ("kv:env=[\"A_TOKEN=a b\",\"B=1\"],token=5", "kv:env=[\"A_TOKEN=***\",\"B=1\"],token=5"),
        ("kv:env=A_TOKEN=abc,token=5", "kv:env=A_TOKEN=***,token=5"),
        ("kv:{\"env\": [\"A_TOKEN=abc\"], \"token\": 5}", "kv:{\"env\":[\"A_TOKEN=***\"],\"token\":5}"),
        ("kv:before=\"curl -u joe:abc\",token=5", "kv:before=\"curl -u joe:***\",token=5"),
        ("kv:url=\"https://joe:abc@h/\",token=5", "kv:url=\"https://***@h/\",token=5"),
        ("param:token=5+env:A_TOKEN=abc", "param:token=5+env:A_TOKEN=***"),
        ("x:env:A_TOKEN=a b", "x:env:A_TOKEN=***"),
        ("cmd:tool --token abc", "cmd:tool --token ***"),
    ] {
        assert_eq!(mask_argument(word), expected);
        assert_eq!(mask_arguments([word]), [expected]);
    }
    // What follows these options is no test.
    let typed = ["--provisioner", "pool:{\"token\":\"abc\"}", "--hosts", "h:{\"password\":\"abc\"}"];
    let masked = ["--provisioner", "pool:{\"token\":\"***\"}", "--hosts", "h:{\"password\":\"***\"}"];
    assert_eq!(mask_arguments(typed), masked);
    assert_eq!(mask_arguments(["--provisioner=pool:{\"token\":\"abc\"}"]), ["--provisioner=pool:{\"token\":\"***\"}"]);
    assert_eq!(mask_argument(&format!("t:a={}", "[".repeat(100_000))).len(), 100_004);
}

// A guess in prose masked what was no secret.
#[test]
fn what_people_and_programs_write_is_not_searched() {
    for text in [
        "login with password abc failed: unexpected token: `x`",
        "invalid secret: expected --token VALUE, use Bearer abc",
        "7 tests passed: 3, key: abc at 10:30@noon",
    ] {
        assert_eq!(mask_url_credentials(text), text);
    }
    for line in ["syntax error near unexpected token: `x`", "say the password: abc", "it is a bearer of news"] {
        assert_eq!(mask_command_line(line), line);
    }
}

#[test]
fn users_of_urls_end_before_the_path() {
    for (word, expected) in [
        ("https://h/a@b", "https://h/a@b"),
        ("https://h:80/a@b?c=d@e", "https://h:80/a@b?c=d@e"),
        ("http://[fe80::1]/a@b", "http://[fe80::1]/a@b"),
        ("https://joe:a/b@h/c@d", "https://***@d"),
        ("a=https://joe:x@h,b=https://me:y@k/z", "a=https://***@h,b=https://***@k/z"),
        ("image:5@sha256:abc", "image:5@sha256:abc"),
        ("joe:abc@h", "joe:***@h"),
    ] {
        assert_eq!(mask_command_line(word), expected);
        assert_eq!(mask_command_line(expected), expected, "masking twice");
    }
}

// `redis:keyspace=1000` was recorded as `***`, because any name with `key` in it was that of a secret.
#[test]
fn words_of_names_decide_and_not_parts_of_them() {
    for name in
        ["PGPASSWORD", "MYSQL_PWD", "dbPass2", "SSHPASS", "API_KEY", "apikey", "--client-secret", "AUTH", "Cookie"]
    {
        assert!(is_secret_name(name), "{name}");
    }
    for name in [
        "keyspace",
        "key",
        "keymap",
        "PWD",
        "OLDPWD",
        "bypass",
        "tokens_per_second",
        "key-maximum",
        "author",
        "max-key",
        "public_key",
        "TOKEN_FILE",
        "SSH_AUTH_SOCK",
        "",
    ] {
        assert!(!is_secret_name(name), "{name}");
    }
}

#[test]
fn words_of_a_command_are_masked_separately() {
    let words = ["--default-passwords", "a b", "c", "--", "x"];
    assert_eq!(mask_arguments(words), ["--default-passwords", "***", "***", "--", "x"]);
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
        ("Bearer abc", "Bearer ***"),
        ("Basic am9lOnB3", "Basic ***"),
        ("h=bearer abc", "h=bearer ***"),
        ("url=https://joe:pw@x/y?token=abc", "url=https://***@x/y?token=***"),
        ("okk:{\"url\":\"https://joe:pw@h/?token=a\"}", "okk:{\"url\":\"https://***@h/?token=a\"}"),
        ("linpack:threads=1,env=[\"H=Bearer abc\"]", "linpack:threads=1,env=[\"H=Bearer ***\"]"),
        ("env:AUTH=Bearer abc", "env:AUTH=***"),
        ("env:URL=https://joe:pw@h/?token=abc", "env:URL=https://***@h/?token=***"),
        (
            "linpack:before=[\"true --password abc -u joe:abc\", \"true\"]",
            "linpack:before=[\"true --password *** -u joe:***\", \"true\"]",
        ),
        ("curl -H 'Authorization: Bearer abc' || true", "curl -H 'Authorization: Bearer ***' || true"),
        ("x:{\"a\": {\"pins\": [1, \"x\"], \"token\": 5}}", "x:{\"a\":{\"pins\":[1,\"x\"],\"token\":\"***\"}}"),
    ] {
        assert_eq!(mask_argument(argument), expected, "{argument}");
        assert_eq!(mask_argument(expected), expected, "masking twice");
        assert_eq!(mask_arguments([argument, "-v"]), [expected, "-v"], "{argument}");
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
        "bearer of news",
        "Basic Linear Algebra",
        "https://h:8080/x?a=b",
    ];
    assert_eq!(mask_arguments(words), words);
    assert!(words.iter().skip_while(|word| **word != "--").all(|word| mask_argument(word) == **word));
}

#[test]
fn fields_are_masked_by_name_and_strings_by_content() {
    let input = serde_json::json!({
        "own": {"password": "abc", "pins": {"api-key": [1, 2]}, "rack": "B7", "unit": 3, "note": ["H=Bearer abc now"]},
    });
    let expected = serde_json::json!({
        "own": {"password": "***", "pins": {"api-key": "***"}, "rack": "B7", "unit": 3, "note": ["H=Bearer *** now"]},
    });
    assert_eq!(mask_fields(input), expected);
}

/// Texts that users write with a secret in them.
const TEMPLATES: [&str; 18] = [
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
        before in "[a-z]{0,8}", name in "(api_|my-)?(token|PASSWORD|secret|ApiKey)", form in 0..3_usize,
        value in "zq[a-zA-Z0-9=@:/]{6,20}",
    ) {
        let setting = [format!("--{name} {value}"), format!("x.{name}={value}"), format!("\"{name}\": {value}")];
        let line = mask_command_line(&format!("{before} {} ro", setting[form]));
        prop_assert!(!line.contains(&value) && line.ends_with(" ro"), "{line}");
    }

    #[test]
    fn a_quoted_secret_never_gets_through(
        words in proptest::collection::vec("zq[a-zA-Z0-9=:-]{1,6}", 1..4), quote in "[\"']", separator in "( |=)",
    ) {
        let line = mask_command_line(&format!("run --token{separator}{quote}{}{quote} -v", words.join(" ")));
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
            let line = mask_command_line(&format!("run --metadata '{quoted}' -v"));
            prop_assert!(!line.contains("zq"), "{text} became {line}");
        }
    }

    #[test]
    fn no_text_panics(text: String) {
        let _ = (mask_argument(&text), mask_arguments([&text, &text]), mask_url_credentials(&text));
        let _ = mask_command_line(&text);
        let _ = mask_options(&text);
    }
}
