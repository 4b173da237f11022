//! What ssh means by what it says before there is a connection.

use crate::error::ConnectErrorKind;

/// What a sentence means; it is kept.
type Classifier = fn(String) -> ConnectErrorKind;

/// Sentences of OpenSSH (8.x to 10.x), the telling ones first, and what each means.
const KNOWN_MESSAGES: [(&str, Classifier); 17] = [
    ("REMOTE HOST IDENTIFICATION HAS CHANGED", |said| ConnectErrorKind::HostKeyChanged { said, file: None }),
    ("has changed and you have requested strict checking", |said| ConnectErrorKind::HostKeyChanged {
        said,
        file: None,
    }),
    ("host key is known for", |said| ConnectErrorKind::UnknownHostKey { said }),
    ("Host key verification failed", |said| ConnectErrorKind::UnknownHostKey { said }),
    ("Could not resolve hostname", |said| ConnectErrorKind::UnknownHostName { said }),
    ("Permission denied (", |said| ConnectErrorKind::AuthenticationFailed { said }),
    ("Too many authentication failures", |said| ConnectErrorKind::AuthenticationFailed { said }),
    ("No more authentication methods", |said| ConnectErrorKind::AuthenticationFailed { said }),
    ("Connection refused", |said| ConnectErrorKind::Unreachable { said }),
    ("timed out", |said| ConnectErrorKind::Unreachable { said }),
    ("No route to host", |said| ConnectErrorKind::Unreachable { said }),
    ("Network is unreachable", |said| ConnectErrorKind::Unreachable { said }),
    ("Host is down", |said| ConnectErrorKind::Unreachable { said }),
    ("Connection reset by", |said| ConnectErrorKind::Unreachable { said }),
    ("Connection closed by", |said| ConnectErrorKind::Unreachable { said }),
    ("kex_exchange_identification", |said| ConnectErrorKind::Unreachable { said }),
    ("not responding", |said| ConnectErrorKind::Unreachable { said }),
];

/// What was in the way of a connection, by all that ssh said. Its own words are kept.
pub(crate) fn classify_failure(said: &str) -> ConnectErrorKind {
    let known = KNOWN_MESSAGES.iter().find(|(sentence, _)| said.contains(sentence));
    let line = |of: &str| said.lines().find(|line| line.contains(of)).unwrap_or_default().trim().to_owned();
    let why = match known {
        Some((sentence, why)) => why(line(sentence).trim_matches(['@', ' ']).to_owned()),
        None => ConnectErrorKind::Ssh { said: last_line(said) },
    };
    match why {
        ConnectErrorKind::HostKeyChanged { said: line, .. } => {
            ConnectErrorKind::HostKeyChanged { said: line, file: offending_key_file(said) }
        }
        other => other,
    }
}

/// The file of known hosts that has another key: `Offending ED25519 key in FILE:LINE`.
fn offending_key_file(said: &str) -> Option<String> {
    let offending = said.lines().find(|line| line.starts_with("Offending "))?;
    let (file, _) = offending.split_once(" key in ")?.1.rsplit_once(':')?;
    Some(file.to_owned())
}

/// The last thing said, or that nothing was.
pub(crate) fn last_line(said: &str) -> String {
    let last = said.lines().map(str::trim).rfind(|line| !line.is_empty());
    last.unwrap_or("without a word").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ssh_says_is_understood() {
        let said = |text: &str| {
            let why = classify_failure(text);
            let kind = format!("{why:?}");
            format!("{}: {why}", kind.split([' ', '(']).next().unwrap())
        };
        let all = [
            "ssh: connect to host 10.0.0.1 port 22: Connection timed out\r\n",
            "ssh: connect to host 10.0.0.1 port 22: Connection refused\r\n",
            "ssh: Could not resolve hostname nosuch: Name or service not known\r\n",
            "Warning: Permanently added 'x' (ED25519) to the list of known hosts.\r\nroot@x: Permission denied (publickey).\r\n",
            "No ED25519 host key is known for 10.0.0.1 and you have requested strict checking.\r\nHost key verification failed.\r\n",
            "@@@\r\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\r\n@@@\r\nHost key verification failed.\r\n",
            "/etc/ssh/ssh_config: line 3: Bad configuration option: nonsense\r\n",
            "",
        ];
        insta::assert_snapshot!(all.map(said).join("\n"), @r#"
        Unreachable: cannot be reached: ssh: connect to host 10.0.0.1 port 22: Connection timed out
        Unreachable: cannot be reached: ssh: connect to host 10.0.0.1 port 22: Connection refused
        NameUnknown: has a name that nobody knows: ssh: Could not resolve hostname nosuch: Name or service not known
        KeyRefused: does not let you in: root@x: Permission denied (publickey).
        HostKeyUnknown: has a key that you have not accepted yet: No ED25519 host key is known for 10.0.0.1 and you have requested strict checking.
        HostKeyChanged: has another key than before: it may be another machine that says it is this one: WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!
        Ssh: cannot be reached by ssh: /etc/ssh/ssh_config: line 3: Bad configuration option: nonsense
        Ssh: cannot be reached by ssh: without a word
        "#);
    }

    #[test]
    fn the_file_that_has_another_key_is_read_where_ssh_names_it() {
        let file = |text: &str| match classify_failure(text) {
            ConnectErrorKind::HostKeyChanged { file, .. } => file,
            other => panic!("{other:?}"),
        };
        let named = "REMOTE HOST IDENTIFICATION HAS CHANGED!\r\nOffending ED25519 key in /a b/known:hosts:12\r\n";
        assert_eq!(file(named).as_deref(), Some("/a b/known:hosts"));
        assert_eq!(file("REMOTE HOST IDENTIFICATION HAS CHANGED!\r\n"), None);
    }
}
