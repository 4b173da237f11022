//! Users and passwords in URLs and addresses.

use super::{MASK, mask_declared};

/// Masks the passwords of URLs in a text with their users, and the declared secrets, and nothing else: for what people
/// and programs write.
pub fn mask_url_credentials(text: &str) -> String {
    mask_users_of_urls(&mask_declared(text), |user| user.contains(':'))
}

/// Masks the users of URLs in a word, or the password in `USER:PASSWORD@HOST`.
pub(super) fn mask_user(word: &str) -> String {
    if word.contains("://") {
        return mask_users_of_urls(word, |_| true);
    }
    let Some((user, host)) = word.rsplit_once('@') else { return word.to_owned() };
    match user.split_once(':') {
        // Digests of images and parameters of tests: `redis:5@sha256:…`, `redis:key=a@b`.
        Some((_, password)) if host.starts_with("sha256:") || is_setting(password) => word.to_owned(),
        Some((user, _)) => format!("{user}:{MASK}@{host}"),
        None => word.to_owned(),
    }
}

fn is_setting(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| {
        name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    })
}

/// Masks the users of the URLs in a text that satisfy a condition.
fn mask_users_of_urls(text: &str, is_masked: impl Fn(&str) -> bool) -> String {
    let mut output = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("://").map(|position| position + 3) {
        output += &rest[..start];
        rest = &rest[start..];
        if let Some(user) = url_user(rest) {
            output += if is_masked(user) { MASK } else { user };
            rest = &rest[user.len()..];
        }
    }
    output + rest
}

/// The user, with the password, at the start of what follows `://`.
fn url_user(rest: &str) -> Option<&str> {
    let end = rest.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`')).unwrap_or(rest.len());
    let url = &rest[..end];
    let authority = &url[..url.find(['/', '?', '#']).unwrap_or(url.len())];
    if let Some(position) = authority.rfind('@') {
        return Some(&authority[..position]);
    }
    // A password may have a `/` that should have been escaped; a port is a number.
    let (_, port) = authority.rsplit_once(':').filter(|_| !authority.ends_with(']'))?;
    let is_port = port.chars().all(|c| c.is_ascii_digit());
    url.rfind('@').filter(|_| !is_port).map(|position| &url[..position])
}
