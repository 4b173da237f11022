//! Classifies the error messages of ssh.

use crate::error::ConnectErrorKind;

type Classifier = fn(String) -> ConnectErrorKind;

/// Messages of OpenSSH (8.x to 10.x), the most specific first, and the error for each.
const KNOWN_MESSAGES: [(&str, Classifier); 17] = [
    ("REMOTE HOST IDENTIFICATION HAS CHANGED", |message| ConnectErrorKind::HostKeyChanged { message, file: None }),
    ("has changed and you have requested strict checking", |message| ConnectErrorKind::HostKeyChanged {
        message,
        file: None,
    }),
    ("host key is known for", |message| ConnectErrorKind::UnknownHostKey(message)),
    ("Host key verification failed", |message| ConnectErrorKind::UnknownHostKey(message)),
    ("Could not resolve hostname", |message| ConnectErrorKind::UnknownHostName(message)),
    ("Permission denied (", |message| ConnectErrorKind::AuthenticationFailed(message)),
    ("Too many authentication failures", |message| ConnectErrorKind::AuthenticationFailed(message)),
    ("No more authentication methods", |message| ConnectErrorKind::AuthenticationFailed(message)),
    ("Connection refused", |message| ConnectErrorKind::Unreachable(message)),
    ("timed out", |message| ConnectErrorKind::Unreachable(message)),
    ("No route to host", |message| ConnectErrorKind::Unreachable(message)),
    ("Network is unreachable", |message| ConnectErrorKind::Unreachable(message)),
    ("Host is down", |message| ConnectErrorKind::Unreachable(message)),
    ("Connection reset by", |message| ConnectErrorKind::Unreachable(message)),
    ("Connection closed by", |message| ConnectErrorKind::Unreachable(message)),
    ("kex_exchange_identification", |message| ConnectErrorKind::Unreachable(message)),
    ("not responding", |message| ConnectErrorKind::Unreachable(message)),
];

/// Determines why a connection failed, from the standard error of ssh, whose message is kept.
pub(crate) fn classify_failure(stderr: &str) -> ConnectErrorKind {
    let entry = KNOWN_MESSAGES.iter().find(|(sentence, _)| stderr.contains(sentence));
    let line = |part: &str| stderr.lines().find(|line| line.contains(part)).unwrap_or_default().trim().to_owned();
    let why = match entry {
        Some((sentence, classify)) => classify(line(sentence).trim_matches(['@', ' ']).to_owned()),
        None => ConnectErrorKind::Ssh(last_line(stderr)),
    };
    match why {
        ConnectErrorKind::HostKeyChanged { message: line, .. } => {
            ConnectErrorKind::HostKeyChanged { message: line, file: offending_key_file(stderr) }
        }
        other => other,
    }
}

/// The known hosts file with the old key: `Offending ED25519 key in FILE:LINE`.
fn offending_key_file(stderr: &str) -> Option<String> {
    let offending = stderr.lines().find(|line| line.starts_with("Offending "))?;
    let (file, _) = offending.split_once(" key in ")?.1.rsplit_once(':')?;
    Some(file.to_owned())
}

/// The last line that is not empty, or `no message`.
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
        UnknownHostName: has an unknown host name: ssh: Could not resolve hostname nosuch: Name or service not known
        AuthenticationFailed: refused your authentication: root@x: Permission denied (publickey).
        UnknownHostKey: has an unknown host key: No ED25519 host key is known for 10.0.0.1 and you have requested strict checking.
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
