//! What must not be recorded: values that look like secrets are replaced by `***`.
//!
//! The rule errs on the side of masking: `keymap=us` is masked too. Beside what looks like a secret there is what the user
//! declared to be one.

mod declared;

use std::borrow::Cow;

use serde_json::Value as Json;

pub use declared::{SHORTEST, TooShort, any_declared, declare, has_declared, masked_json, without_declared};

/// What stands for a secret.
const MASK: &str = "***";

/// Parts of names whose values are secrets.
const SECRET: [&str; 10] =
    ["password", "passwd", "passphrase", "passcode", "secret", "token", "key", "credential", "auth", "cookie"];

/// Whether a name sounds like a secret's.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET.iter().any(|part| name.contains(part)) || has_pass(&name)
}

/// Whether a word of a name ends in `pass`, as in `DB_PASS` and `dbpass2`, and not in `passed`.
fn has_pass(name: &str) -> bool {
    let is_end = |(at, part): (usize, &str)| !name[at + part.len()..].starts_with(|c: char| c.is_ascii_alphabetic());
    name.match_indices("pass").any(is_end)
}

/// A variable's value, masked where its name sounds like a secret's.
pub fn masked_value<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    if is_secret(name) { Cow::Borrowed(MASK) } else { without_declared(value) }
}

/// The words of a command, each by itself, with their secrets masked: of `--password` and `-u` also the word after it.
pub fn masked_arguments<A: AsRef<str>>(words: impl IntoIterator<Item = A>) -> Vec<String> {
    let mut next = Next::Plain;
    let mask = |word: A| {
        let word = without_declared(word.as_ref());
        let (shown, after) = match next {
            Next::Authorization if is_scheme(&word) => (word.into_owned(), Next::Secret),
            Next::Secret | Next::Authorization if !word.starts_with('-') => (MASK.to_owned(), Next::Plain),
            Next::User if word.contains(':') => (without_password(&word), Next::Plain),
            Next::Host if !word.starts_with('-') => (masked_host(&word), Next::Host),
            _ if word.contains(char::is_whitespace) => (masked_words(&word), Next::Plain),
            // An argument after one that ends in `password` is no sentence of its own.
            _ => match masked_word(&word) {
                (shown, Next::Prose) => (shown, Next::Plain),
                shown => shown,
            },
        };
        next = after;
        shown
    };
    words.into_iter().map(mask).collect()
}

/// A command line or a sentence with its secrets masked: `token=abc`, `--password abc`, `"token": "abc"`,
/// `https://user:abc@host`, `Bearer abc`, `with password abc`. Words keep the blanks between them.
pub fn masked_words(line: &str) -> String {
    let line = without_declared(line);
    let mut masked = String::with_capacity(line.len());
    let mut next = Next::Plain;
    for piece in line.split_inclusive(char::is_whitespace) {
        let word = piece.trim_end();
        let blank = &piece[word.len()..];
        if let Next::Within(quote) = next {
            if word.contains(quote) {
                next = Next::Plain;
                masked.push_str(blank);
            }
            continue;
        }
        if !word.is_empty() {
            let (shown, after) = match next {
                Next::Authorization if is_scheme(word) => (word.to_owned(), Next::Secret),
                Next::Prose if is_linking(word) => (word.to_owned(), Next::Prose),
                Next::Prose if is_of_prose(word) => masked_word(word),
                Next::Secret | Next::Authorization | Next::Prose if !word.starts_with('-') => {
                    (MASK.to_owned(), after_value(word))
                }
                Next::User if word.contains(':') => {
                    let password = word.split_once(':').map_or("", |(_, password)| password);
                    (without_password(word), after_value(password))
                }
                Next::Host if !word.starts_with('-') => (masked_host(word), Next::Host),
                _ => masked_word(word),
            };
            masked.push_str(&shown);
            next = after;
        }
        if !matches!(next, Next::Within(_)) {
            masked.push_str(blank);
        }
    }
    masked
}

/// What the next word of a line is.
#[derive(Clone, Copy)]
enum Next {
    Plain,
    /// The value of a name that sounds like a secret's.
    Secret,
    /// How a request is authorized, and then the secret: `Bearer abc`.
    Authorization,
    /// What follows the word `password` in a sentence, which may be one.
    Prose,
    /// A user, and what stands after a `:` is the user's password.
    User,
    /// A host, which may have a name before it: `NAME:USER@ADDRESS`.
    Host,
    /// More of such a value, up to the quote that ends it.
    Within(char),
}

/// A word of a line, and what the next one is.
fn masked_word(word: &str) -> (String, Next) {
    let secret = |at: usize| is_secret(&word[..at]);
    match word.char_indices().find(|(at, c)| matches!(c, '=' | ':') && secret(*at)) {
        // In JSON a blank stands before the value.
        Some((at, ':')) if at + 1 == word.len() => (word.to_owned(), after_name(&word[..at])),
        Some((at, _)) if is_authorization(&word[..at]) && is_scheme(&word[at + 1..]) => (word.to_owned(), Next::Secret),
        Some((at, _)) => (format!("{}{MASK}", &word[..=at]), after_value(&word[at + 1..])),
        None if word.starts_with('-') && is_secret(word) => (word.to_owned(), Next::Secret),
        None if USER.contains(&word) => (word.to_owned(), Next::User),
        None if word == HOSTS => (word.to_owned(), Next::Host),
        None if word.strip_prefix(HOSTS).is_some_and(|rest| rest.starts_with('=')) => {
            let (option, host) = word.split_at(HOSTS.len() + 1);
            (format!("{option}{}", masked_host(host)), Next::Plain)
        }
        None if unquoted(word) == BEARER => (word.to_owned(), Next::Secret),
        None if PASSWORD.contains(&unquoted(word).as_str()) => (word.to_owned(), Next::Prose),
        None if has_user(word) => (without_password(word), Next::Plain),
        None => (without_user(word), Next::Plain),
    }
}

/// How requests are authorized (RFC 9110, section 11): the word before the credentials.
const SCHEMES: [&str; 5] = [BEARER, "basic", "digest", "negotiate", "token"];
/// The scheme that stands before tokens also where nothing says that it is one (RFC 6750).
const BEARER: &str = "bearer";
/// Words that a secret may follow in a sentence.
const PASSWORD: [&str; 3] = ["password", "passwd", "passphrase"];
/// Words that follow those in a sentence and are no secret.
const PROSE: [&str; 36] = [
    "and",
    "as",
    "at",
    "authentication",
    "by",
    "cannot",
    "denied",
    "does",
    "expired",
    "failed",
    "failure",
    "file",
    "for",
    "from",
    "given",
    "has",
    "in",
    "incorrect",
    "invalid",
    "is",
    "missing",
    "must",
    "needed",
    "not",
    "of",
    "on",
    "or",
    "prompt",
    "rejected",
    "required",
    "to",
    "was",
    "were",
    "with",
    "without",
    "wrong",
];

fn is_scheme(word: &str) -> bool {
    SCHEMES.contains(&word.to_ascii_lowercase().as_str())
}

fn is_of_prose(word: &str) -> bool {
    PROSE.contains(&unquoted(word).trim_end_matches(['.', ',', ';', ':', '!', '?', ')']))
}

/// Whether a secret may still follow: `the password is abc`.
fn is_linking(word: &str) -> bool {
    ["is", "was"].contains(&word)
}

/// In lower case, and without what opens a quotation.
fn unquoted(word: &str) -> String {
    word.trim_start_matches(['"', '\'', '`', '(']).to_ascii_lowercase()
}

fn is_authorization(name: &str) -> bool {
    name.trim_matches(['"', '\'']).to_ascii_lowercase().ends_with("authorization")
}

/// What follows a name of a secret and a colon.
fn after_name(name: &str) -> Next {
    if is_authorization(name) { Next::Authorization } else { Next::Secret }
}

/// Options after which many programs take `USER:PASSWORD`: curl, and what follows it.
const USER: [&str; 3] = ["-u", "--user", "--proxy-user"];

/// The option that hosts follow, of this program and of run-perf: what stands before an `@` there holds no password.
const HOSTS: &str = "--hosts";

/// A host as it is named, `NAME:USER@ADDRESS`; of what is no such name the secrets are masked.
fn masked_host(word: &str) -> String {
    let is_named = word.rsplit_once('@').is_none_or(|(before, _)| before.matches(':').count() <= 1);
    let is_plain = word.chars().all(|c| c.is_alphanumeric() || ".-_:@[]%".contains(c));
    if is_named && is_plain { word.to_owned() } else { masked_word(word).0 }
}

/// Whether such an option has its value in the same word: `--user=joe:…`, `-ujoe:…`.
fn has_user(word: &str) -> bool {
    let is_long = USER[1..].iter().any(|option| word.strip_prefix(option).is_some_and(|rest| rest.starts_with('=')));
    (is_long || word.starts_with(USER[0])) && word.contains(':')
}

/// `USER:PASSWORD` without the latter.
fn without_password(word: &str) -> String {
    word.split_once(':').map_or_else(|| word.to_owned(), |(user, _)| format!("{user}:{MASK}"))
}

/// What follows a secret: the rest of it where its quote is still open.
fn after_value(value: &str) -> Next {
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
    quote.filter(|quote| !value[1..].contains(*quote)).map_or(Next::Plain, Next::Within)
}

/// The lines of a file of settings with their secrets masked: `password = abc` and whatever a command line may hold.
pub fn masked_lines(text: &str) -> String {
    let line = |line: &str| match line.split_once('=') {
        Some((name, value)) if is_secret(name) && value.starts_with(' ') && name.split_whitespace().count() == 1 => {
            format!("{name}= {MASK}")
        }
        _ => masked_words(line),
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// A value as it is recorded: what names that sound like a secret's stand for is masked, and so are the secrets in texts.
pub fn masked_fields(value: Json) -> Json {
    match value {
        Json::String(text) => Json::String(masked_words(&text)),
        Json::Array(all) => Json::Array(all.into_iter().map(masked_fields).collect()),
        Json::Object(all) => {
            let field = |(name, value): (String, Json)| {
                let shown = if is_secret(&name) { Json::from(MASK) } else { masked_fields(value) };
                (name, shown)
            };
            Json::Object(all.into_iter().map(field).collect())
        }
        other => other,
    }
}

/// Options separated by commas, with their secrets masked: `user=x,password=***`.
pub fn masked_options(options: &str) -> String {
    options.split(',').map(masked).collect::<Vec<_>>().join(",")
}

/// One option, a path or an address, with its secrets masked; what stands before a `:` is no name here.
pub fn masked(word: &str) -> String {
    let word = without_declared(word);
    let secret = word.match_indices('=').find(|(at, _)| is_secret(&word[..*at]));
    secret.map_or_else(|| without_user(&word), |(at, _)| format!("{}{MASK}", &word[..=at]))
}

/// A text with the users and passwords of its URLs masked, and all else as it is.
pub fn without_passwords(text: &str) -> String {
    let text = without_declared(text);
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.as_ref();
    while let Some(start) = rest.find("://").map(|at| at + 3) {
        let end = rest[start..].find(|c: char| c == '/' || c.is_whitespace()).map_or(rest.len(), |end| start + end);
        let authority = &rest[start..end];
        let host = authority.rfind('@').filter(|at| authority[..*at].contains(':')).map_or(0, |at| at);
        shown += &rest[..start];
        shown += if host > 0 { MASK } else { "" };
        shown += &authority[host..];
        rest = &rest[end..];
    }
    shown + rest
}

/// The part before the `@` of an address is masked where it is a URL's or holds a `:`.
fn without_user(word: &str) -> String {
    let Some(at) = word.rfind('@') else { return word.to_owned() };
    let (user, host) = word.split_at(at);
    match (user.find("://"), user.find(':')) {
        (Some(scheme), _) => format!("{}{MASK}{host}", &user[..scheme + 3]),
        (None, Some(colon)) => format!("{}{MASK}{host}", &user[..=colon]),
        (None, None) => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn settings_of_a_file_are_masked_line_by_line() {
        let text = "# key = what opens\nport = 1\n  password = a b\ntoken=abc\nsecret =\n";
        assert_eq!(masked_lines(text), "# key = what opens\nport = 1\n  password = ***\ntoken=***\nsecret =\n");
    }

    #[test]
    fn secrets_are_masked_wherever_they_stand() {
        for (line, wanted) in [
            ("ro quiet root=UUID=1-2", "ro quiet root=UUID=1-2"),
            ("luks.password=\"a b\" ro", "luks.password=*** ro"),
            ("--password 'a  b c' ro", "--password *** ro"),
            ("--api-token abc  --fast", "--api-token ***  --fast"),
            ("--auth-required --fast", "--auth-required --fast"),
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
            ("curl -H 'Authorization: Bearer abc' x", "curl -H 'Authorization: Bearer *** x"),
            (
                "command:{\"c\":\"curl -H Authorization:Basic abc -s\"}",
                "command:{\"c\":\"curl -H Authorization:Basic *** -s\"}",
            ),
            ("{\"Authorization\": \"Bearer abc\"} -v", "{\"Authorization\": *** -v"),
            ("Authorization: abc -v", "Authorization: *** -v"),
            ("use Bearer abc for it", "use Bearer *** for it"),
            ("--password basic abc", "--password *** abc"),
            ("login with password abc failed", "login with password *** failed"),
            ("the password is abc, joe", "the password is *** joe"),
            ("the password is wrong; Password for joe", "the password is wrong; Password for joe"),
            ("7 tests passed: 3 by passing x=1, passed=4", "7 tests passed: 3 by passing x=1, passed=4"),
            ("DB_PASS=abc sshpass -p x userPass=abc", "DB_PASS=*** sshpass -p x userPass=***"),
        ] {
            assert_eq!(masked_words(line), wanted, "{line}");
            assert_eq!(masked_words(wanted), wanted, "masking twice");
        }
        assert_eq!(masked_options("rw,username=joe,password=x"), "rw,username=joe,password=***");
        assert_eq!(masked("keyserver:/export"), "keyserver:/export");
    }

    #[test]
    fn passwords_of_urls_are_masked_and_nothing_else() {
        let text = "x=https://joe:pw@host/a,b http://joe@host token=1 s3://k:v@";
        assert_eq!(without_passwords(text), "x=https://***@host/a,b http://joe@host token=1 s3://***@");
    }

    #[test]
    fn words_of_a_command_are_masked_each_by_itself() {
        let words = ["run", "--token", "a b", "-u", "joe:x y", "--pass", "-v", "sh", "-c", "curl -u me:pw", "k=v"];
        let shown = ["run", "--token", "***", "-u", "joe:***", "--pass", "-v", "sh", "-c", "curl -u me:***", "k=v"];
        assert_eq!(masked_arguments(words), shown);
    }

    #[test]
    fn fields_are_masked_by_their_names_and_texts_by_what_stands_in_them() {
        let given = serde_json::json!({
            "own": {"password": "abc", "pins": {"key": [1, 2]}, "rack": "B7", "unit": 3, "note": ["use Bearer abc now"]},
        });
        let shown = serde_json::json!({
            "own": {"password": "***", "pins": {"key": "***"}, "rack": "B7", "unit": 3, "note": ["use Bearer *** now"]},
        });
        assert_eq!(masked_fields(given), shown);
    }

    proptest! {
        #[test]
        fn a_named_secret_never_gets_through(
            before in "[a-z]{0,8}", name in "(--)?(api_|my-)?(token|PASSWORD|secret|Key)", by in "[ =:]",
            value in "zq[a-zA-Z0-9=@:/]{6,20}",
        ) {
            let name = if by == " " { format!("--{}", name.trim_start_matches('-')) } else { format!("x.{name}") };
            let line = masked_words(&format!("{before} {name}{by}{value} ro"));
            prop_assert!(!line.contains(&value) && line.ends_with(" ro"), "{line}");
        }

        #[test]
        fn a_quoted_secret_never_gets_through(
            words in proptest::collection::vec("zq[a-zA-Z0-9=:-]{1,6}", 1..4), quote in "[\"']", by in "( |=|: )",
        ) {
            let line = masked_words(&format!("run --token{by}{quote}{}{quote} -v", words.join(" ")));
            prop_assert!(!line.contains("zq") && line.ends_with(" -v"), "{line}");
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = masked_words(&text);
            let _ = masked_options(&text);
        }
    }
}
