//! What must not be recorded: values that look like secrets are replaced by `***`.
//!
//! The rule errs on the side of masking: `keymap=us` is masked too.

/// What stands for a secret.
const MASK: &str = "***";

/// Parts of names whose values are secrets.
const SECRET: [&str; 10] =
    ["password", "passwd", "passphrase", "pass", "secret", "token", "key", "credential", "auth", "cookie"];

/// Whether a name sounds like a secret's.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET.iter().any(|part| name.contains(part))
}

/// A variable's value, masked where its name sounds like a secret's.
pub fn masked_value<'a>(name: &str, value: &'a str) -> &'a str {
    if is_secret(name) { MASK } else { value }
}

/// A command line with its secrets masked: `token=abc`, `--password abc`, `https://user:abc@host`.
pub fn masked_words(line: &str) -> String {
    let mut after_flag = false;
    let masked = words(line).into_iter().map(|word| {
        let is_flag = word.starts_with('-');
        let hidden = after_flag && !is_flag;
        after_flag = is_flag && !word.contains('=') && is_secret(word);
        if hidden { MASK.to_owned() } else { masked(word) }
    });
    masked.collect::<Vec<_>>().join(" ")
}

/// Options separated by commas, with their secrets masked: `user=x,password=***`.
pub fn masked_options(options: &str) -> String {
    options.split(',').map(masked).collect::<Vec<_>>().join(",")
}

/// One word, a path or an address, with its secrets masked.
pub fn masked(word: &str) -> String {
    let mut end = 0;
    for part in word.split_inclusive('=') {
        end += part.len();
        if part.ends_with('=') && is_secret(part) {
            return format!("{}{MASK}", &word[..end]);
        }
    }
    without_user(word)
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

/// The words of a line; double quotes hold one together.
fn words(line: &str) -> Vec<&str> {
    let mut quoted = false;
    let separator = |c: char| {
        quoted ^= c == '"';
        !quoted && c.is_whitespace()
    };
    line.split(separator).filter(|word| !word.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn secrets_are_masked_wherever_they_stand() {
        for (line, wanted) in [
            ("ro quiet root=UUID=1-2", "ro quiet root=UUID=1-2"),
            ("luks.password=\"a b\" ro", "luks.password=*** ro"),
            ("--api-token abc --fast", "--api-token *** --fast"),
            ("--auth-required --fast", "--auth-required --fast"),
            ("systemd.setenv=MY_TOKEN=abc", "systemd.setenv=MY_TOKEN=***"),
            ("ds=https://joe:pw@host/x", "ds=https://***@host/x"),
            ("netroot=iscsi:joe:pw@10.0.0.1::3260", "netroot=iscsi:***@10.0.0.1::3260"),
            ("console=a@b", "console=a@b"),
        ] {
            assert_eq!(masked_words(line), wanted, "{line}");
        }
        assert_eq!(masked_options("rw,username=joe,password=x"), "rw,username=joe,password=***");
    }

    proptest! {
        #[test]
        fn a_named_secret_never_gets_through(
            before in "[a-z]{0,8}", name in "(api_|my-)?(token|PASSWORD|secret|Key)", value in "zq[a-zA-Z0-9=@:/]{6,20}",
        ) {
            let line = masked_words(&format!("{before} x.{name}={value} ro"));
            prop_assert!(!line.contains(&value), "{line}");
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = masked_words(&text);
            let _ = masked_options(&text);
        }
    }
}
