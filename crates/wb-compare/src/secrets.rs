//! Secrets in the command of a run that another program recorded.

/// What stands for a secret.
const MASK: &str = "***";

/// Parts of names whose values are secrets.
const SECRET: [&str; 8] = ["passw", "passphrase", "secret", "token", "key", "credential", "auth", "cookie"];

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET.iter().any(|part| name.contains(part))
}

/// A command line with its secrets masked: `--default-password abc`, `token=abc`, `https://user:abc@host`. Words keep
/// their spaces; a value in JSON (`"token": "abc"`) is masked too.
pub(crate) fn masked_command(command: &str) -> String {
    let mut masked = String::with_capacity(command.len());
    let mut secret_follows = false;
    for piece in command.split_inclusive(char::is_whitespace) {
        let word = piece.trim_end();
        let (shown, next) = if word.is_empty() {
            (String::new(), secret_follows)
        } else if secret_follows && !word.starts_with('-') {
            (MASK.to_owned(), false)
        } else {
            masked_word(word)
        };
        secret_follows = next;
        masked.push_str(&shown);
        masked.push_str(&piece[word.len()..]);
    }
    masked
}

/// A word with what is secret in it masked, and whether the next word is the secret that this one names.
fn masked_word(word: &str) -> (String, bool) {
    let value =
        word.char_indices().find(|(at, c)| matches!(c, '=' | ':') && is_secret(&word[..*at])).map(|(at, _)| at + 1);
    match value {
        Some(value) if value == word.len() => (word.to_owned(), true),
        Some(value) => (format!("{}{MASK}", &word[..value]), false),
        None => (without_user(word), word.starts_with('-') && is_secret(word)),
    }
}

/// A URL without the user and password in it.
fn without_user(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
    let authority = rest.split('/').next().unwrap_or_default();
    match authority.rfind('@') {
        Some(at) => format!("{scheme}://{MASK}{}", &rest[at..]),
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn secrets_are_masked_wherever_they_stand() {
        for (command, wanted) in [
            (
                "run-perf -vvv --hosts a:1 -- fio:{\"type\":\"read\"}",
                "run-perf -vvv --hosts a:1 -- fio:{\"type\":\"read\"}",
            ),
            ("run-perf --default-password abc  -v", "run-perf --default-password ***  -v"),
            ("run-perf --default-password=abc -v", "run-perf --default-password=*** -v"),
            ("run-perf --auth --fast", "run-perf --auth --fast"),
            ("--metadata token=abc url=https://joe:pw@x/y", "--metadata token=*** url=https://***@x/y"),
            ("uperf:{\"a\": 1, \"token\": \"abc\"}", "uperf:{\"a\": 1, \"token\": ***"),
        ] {
            assert_eq!(masked_command(command), wanted, "{command}");
            assert_eq!(masked_command(wanted), wanted, "masking twice");
        }
    }

    proptest! {
        #[test]
        fn a_named_secret_never_gets_through(
            name in "(--)?(api-|my_)?(token|PASSWORD|secret)", by in "[ =:]", secret in "zq[a-zA-Z0-9=:/]{6,20}",
        ) {
            let name = if by == " " { format!("--{}", name.trim_start_matches('-')) } else { name };
            let masked = masked_command(&format!("run {name}{by}{secret} -v"));
            prop_assert!(!masked.contains(&secret), "{}", masked);
        }

        #[test]
        fn no_text_panics(text: String) {
            masked_command(&text);
        }
    }
}
