//! Classifies the error messages of ssh.

use crate::error::ConnectErrorKind;

/// Makes the error cause from the message.
type Classifier = fn(String) -> ConnectErrorKind;

/// Messages of OpenSSH (8.x to 10.x), the most specific first, and the cause of each.
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
    ("Connection refused", |said| ConnectErrorKind::Unreachable { message: said }),
    ("timed out", |said| ConnectErrorKind::Unreachable { message: said }),
    ("No route to host", |said| ConnectErrorKind::Unreachable { message: said }),
    ("Network is unreachable", |said| ConnectErrorKind::Unreachable { message: said }),
    ("Host is down", |said| ConnectErrorKind::Unreachable { message: said }),
    ("Connection reset by", |said| ConnectErrorKind::Unreachable { message: said }),
    ("Connection closed by", |said| ConnectErrorKind::Unreachable { message: said }),
    ("kex_exchange_identification", |said| ConnectErrorKind::Unreachable { message: said }),
    ("not responding", |said| ConnectErrorKind::Unreachable { message: said }),
];

/// Determines why a connection failed, from the standard error of ssh. The original message is kept.
pub(crate) fn classify_failure(stderr: &str) -> ConnectErrorKind {
    let entry = KNOWN_MESSAGES.iter().find(|(sentence, _)| stderr.contains(sentence));
    let line = |part: &str| stderr.lines().find(|line| line.contains(part)).unwrap_or_default().trim().to_owned();
    let why = match entry {
        Some((sentence, classify)) => classify(line(sentence).trim_matches(['@', ' ']).to_owned()),
        None => ConnectErrorKind::Ssh { said: last_line(stderr) },
    };
    match why {
        ConnectErrorKind::HostKeyChanged { said: line, .. } => {
            ConnectErrorKind::HostKeyChanged { said: line, file: offending_key_file(stderr) }
        }
        other => other,
    }
}

/// Finds the known hosts file with the old key: `Offending ED25519 key in FILE:LINE`.
fn offending_key_file(stderr: &str) -> Option<String> {
    let offending = stderr.lines().find(|line| line.starts_with("Offending "))?;
    let (file, _) = offending.split_once(" key in ")?.1.rsplit_once(':')?;
    Some(file.to_owned())
}

/// Returns the last line that is not empty, or `no message`.
pub(crate) fn last_line(stderr: &str) -> String {
    let last = stderr.lines().map(str::trim).rfind(|line| !line.is_empty());
    last.unwrap_or("no message").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_ssh_are_classified() {
        let describe = |text: &str| {
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
        insta::assert_snapshot!(all.map(describe).join("\n"), @r#"
        Unreachable: cannot be reached: ssh: connect to host 10.0.0.1 port 22: Connection timed out
        Unreachable: cannot be reached: ssh: connect to host 10.0.0.1 port 22: Connection refused
        NameUnknown: has an unknown host name: ssh: Could not resolve hostname nosuch: Name or service not known
        KeyRefused: refused your authentication: root@x: Permission denied (publickey).
        HostKeyUnknown: has an unknown host key: No ED25519 host key is known for 10.0.0.1 and you have requested strict checking.
        HostKeyChanged: has a changed host key and may be another machine: WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!
        Ssh: cannot be reached over ssh: /etc/ssh/ssh_config: line 3: Bad configuration option: nonsense
        Ssh: cannot be reached over ssh: no message
        "#);
    }

    #[test]
    fn the_known_hosts_file_with_the_old_key_is_found() {
        let file = |text: &str| match classify_failure(text) {
            ConnectErrorKind::HostKeyChanged { file, .. } => file,
            other => panic!("{other:?}"),
        };
        let named = "REMOTE HOST IDENTIFICATION HAS CHANGED!\r\nOffending ED25519 key in /a b/known:hosts:12\r\n";
        assert_eq!(file(named).as_deref(), Some("/a b/known:hosts"));
        assert_eq!(file("REMOTE HOST IDENTIFICATION HAS CHANGED!\r\n"), None);
    }
}
