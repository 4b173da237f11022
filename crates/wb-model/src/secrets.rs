//! Masking of secrets: values that look like secrets, and secrets declared by the user, are replaced by `***`.
//!
//! The heuristic errs on the side of masking: `keymap=us` is masked too.

mod declared;

use serde_json::Value as Json;

pub use declared::{
    MIN_SECRET_LENGTH, SecretTooShort, contains_declared, declare, has_declared_secrets, mask_declared,
    mask_declared_json, reader_contains_declared,
};

/// Replacement of a secret.
pub const MASK: &str = "***";

/// Substrings of names whose values are secrets.
const SECRET_NAME_PARTS: [&str; 11] =
    ["password", "passwd", "passphrase", "passcode", "secret", "token", "key", "credential", "auth", "cookie", BEARER];

/// Last words of names whose values describe secrets without being secret: `key-maximum`, `tokens_per_second`.
const HARMLESS_SUFFIXES: [&str; 16] = [
    "maximum", "minimum", "max", "min", "size", "sizes", "length", "lengths", "count", "counts", "number", "pattern",
    "bytes", "bits", "range", "second",
];

/// Whether a name, or one of several names before a value (`user=joe:token`), suggests a secret.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_name_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.split(|c| !is_name_char(c)).any(|name| {
        let last = name.rsplit(['-', '_', '.']).next().unwrap_or_default();
        !HARMLESS_SUFFIXES.contains(&last)
            && (SECRET_NAME_PARTS.iter().any(|part| name.contains(part)) || has_pass(name))
    })
}

/// Whether a word of a name ends in `pass`, as in `DB_PASS` and `dbpass2`, and not in `passed`.
fn has_pass(name: &str) -> bool {
    let is_end = |(at, part): (usize, &str)| !name[at + part.len()..].starts_with(|c: char| c.is_ascii_alphabetic());
    name.match_indices("pass").any(is_end)
}

/// Masks the value of a variable completely if its name suggests a secret, otherwise the secrets in it.
pub fn mask_value(name: &str, value: &str) -> String {
    if is_secret_name(name) { MASK.to_owned() } else { mask_argument(value) }
}

/// Whether a text contains something that looks like a secret, or a declared secret.
pub fn contains_secret(text: &str) -> bool {
    mask_argument(text) != text
}

/// Masks the secrets in one argument of a command, or another single value: everything after the name of a secret at
/// its start (`auth=Bearer abc`, `Cookie: a=b; c=d`), JSON by its fields, and anything else like a command line.
pub fn mask_argument(argument: &str) -> String {
    let argument = mask_declared(argument);
    mask_json_suffix(&argument).or_else(|| mask_after_name(&argument)).unwrap_or_else(|| mask_secret_words(&argument))
}

/// Masks an argument that ends in JSON, `NAME:{…}` or `NAME=[…]`; none for other arguments.
fn mask_json_suffix(argument: &str) -> Option<String> {
    let (name, json) = argument.split_at(argument.find(['{', '['])?);
    if is_secret_name(name) || name.contains(char::is_whitespace) {
        return None;
    }
    // Anything but JSON is masked by other rules.
    let value: Json = serde_json::from_str(json).ok()?;
    let masked = mask_fields(value.clone());
    let json = if masked == value { json.to_owned() } else { masked.to_string() };
    Some(mask_word(name).0 + &json)
}

/// Masks an argument that begins with the name of a secret; none for other arguments.
fn mask_after_name(argument: &str) -> Option<String> {
    let first = argument.split(char::is_whitespace).next().unwrap_or_default();
    let (at, _) = first.match_indices(['=', ':']).find(|(at, _)| is_secret_name(&first[..*at]))?;
    let (name, value) = argument.split_at(at + 1);
    let white_space = &value[..value.len() - value.trim_start().len()];
    let mask = if value.trim().is_empty() { "" } else { MASK };
    Some(format!("{}{white_space}{mask}", mask_user(name)))
}

/// Masks the secrets in the words of a command, each by itself; after `--password` and `-u` also the next word.
pub fn mask_arguments<A: AsRef<str>>(words: impl IntoIterator<Item = A>) -> Vec<String> {
    let mut next = NextWord::Plain;
    let mask = |word: A| {
        let word = mask_declared(word.as_ref());
        let (output, after) = match next {
            NextWord::Authorization(_) if is_scheme(&word) => (word.into_owned(), NextWord::Secret(None)),
            NextWord::Secret(_) | NextWord::Authorization(_) if !word.starts_with('-') => {
                (MASK.to_owned(), NextWord::Plain)
            }
            NextWord::Basic(_) if is_encoded(&word) => (MASK.to_owned(), NextWord::Plain),
            NextWord::User(_) if word.contains(':') => (mask_password(&word), NextWord::Plain),
            NextWord::Host if is_named_host(&word) => (word.into_owned(), NextWord::Host),
            NextWord::Host if !word.starts_with('-') => (mask_argument(&word), NextWord::Host),
            _ if word.contains(|c: char| c.is_whitespace() || "{[".contains(c)) => {
                (mask_argument(&word), NextWord::Plain)
            }
            // An argument that ends in `password` does not start a sentence that continues in the next one.
            _ => match mask_word(&word) {
                (output, NextWord::Prose | NextWord::RestOfValue(_)) => (output, NextWord::Plain),
                output => output,
            },
        };
        next = after;
        output
    };
    words.into_iter().map(mask).collect()
}

/// Masks the secrets in a command line or a sentence: `token=abc`, `--password abc`, `"token": "abc"`,
/// `https://user:abc@host`, `Bearer abc`, `with password abc`. White space between words is preserved.
pub fn mask_secret_words(line: &str) -> String {
    let line = mask_declared(line);
    let mut masked = String::with_capacity(line.len());
    let mut next = NextWord::Plain;
    for piece in line.split_inclusive(char::is_whitespace) {
        let word = piece.trim_end();
        let white_space = &piece[word.len()..];
        if let NextWord::RestOfValue(quote) = next {
            if word.contains(quote) {
                next = NextWord::Plain;
                masked.push_str(white_space);
            }
            continue;
        }
        if !word.is_empty() {
            let (output, after) = match next {
                NextWord::Authorization(quote) if is_scheme(word) => {
                    (word.to_owned(), NextWord::Secret(quote.or(open_quote(word))))
                }
                NextWord::Prose if is_linking_verb(word) => (word.to_owned(), NextWord::Prose),
                NextWord::Prose if is_prose_word(word) => mask_word(word),
                NextWord::Secret(quote) | NextWord::Authorization(quote) if !word.starts_with('-') => {
                    (mask_until_quote(quote), next_after_value(quote, word))
                }
                NextWord::Basic(quote) if is_encoded(word) => (mask_until_quote(quote), next_after_value(quote, word)),
                NextWord::Prose if !word.starts_with('-') => (mask_until_quote(None), next_after_value(None, word)),
                NextWord::User(quote) if word.contains(':') => {
                    let (user, password) = word.split_once(':').unwrap_or((word, ""));
                    let quote = quote.or(open_quote(user));
                    (format!("{user}:{}", mask_until_quote(quote)), next_after_value(quote, password))
                }
                NextWord::Host if is_named_host(word) => (word.to_owned(), NextWord::Host),
                NextWord::Host if !word.starts_with('-') => (mask_word(word).0, NextWord::Host),
                _ => mask_word(word),
            };
            masked.push_str(&output);
            next = after;
        }
        if !matches!(next, NextWord::RestOfValue(_)) {
            masked.push_str(white_space);
        }
    }
    masked
}

/// Expected kind of the next word of a line. A quote that opens before the name of a secret ends the secret.
#[derive(Clone, Copy)]
enum NextWord {
    Plain,
    /// The value of a name that suggests a secret.
    Secret(Option<char>),
    /// An authorization scheme followed by the secret: `Bearer abc`.
    Authorization(Option<char>),
    /// The word after `Basic`: a secret if it looks like base64.
    Basic(Option<char>),
    /// The word after `password` in a sentence, which may be a secret.
    Prose,
    /// A user; the text after a `:` is the password.
    User(Option<char>),
    /// A host, which may have a name before it: `NAME:USER@ADDRESS`.
    Host,
    /// The rest of a secret, up to the quote or bracket that ends it.
    RestOfValue(char),
}

/// Masks the secrets in a word of a line; returns also the expected kind of the next word.
fn mask_word(word: &str) -> (String, NextWord) {
    if word == HOSTS_OPTION {
        return (word.to_owned(), NextWord::Host);
    }
    if let Some(host) = word.strip_prefix(HOSTS_OPTION).and_then(|rest| rest.strip_prefix('=')) {
        let host = if is_named_host(host) { host.to_owned() } else { mask_word(host).0 };
        return (format!("{HOSTS_OPTION}={host}"), NextWord::Plain);
    }
    let quote = open_quote(word);
    let output = mask_user(word);
    if has_user(&output) {
        let (user, password) = output.split_once(':').unwrap_or((&output, ""));
        let quote = open_quote(user);
        return (format!("{}:{}", mask_word(user).0, mask_until_quote(quote)), next_after_value(quote, password));
    }
    let bare = output.trim_matches(|c: char| "\"'`()[]{},".contains(c)).to_ascii_lowercase();
    let last = bare.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let Some((at, separator)) =
        output.char_indices().find(|(at, c)| matches!(c, '=' | ':') && is_secret_name(&output[..*at]))
    else {
        let next = match last {
            _ if bare.starts_with('-') && is_secret_name(&bare) => NextWord::Secret(quote),
            _ if USER_OPTIONS.contains(&bare.as_str()) => NextWord::User(quote),
            BEARER => NextWord::Secret(quote),
            BASIC => NextWord::Basic(quote),
            _ if PASSWORD_WORDS.contains(&last) => NextWord::Prose,
            _ => NextWord::Plain,
        };
        return (output, next);
    };
    let (name, value) = output.split_at(at + 1);
    let is_authorizing = is_authorization(&name[..at]);
    // In JSON, white space precedes the value.
    match value {
        "" if separator == ':' && is_authorizing => (output, NextWord::Authorization(quote)),
        "" if separator == ':' => (output, NextWord::Secret(quote)),
        scheme if is_authorizing && is_scheme(scheme) => (output, NextWord::Secret(quote)),
        scheme if is_scheme(scheme) => (format!("{name}{MASK}"), NextWord::Secret(quote)),
        value => {
            let quote = open_quote(name);
            (format!("{name}{}", mask_until_quote(quote)), next_after_value(quote, value))
        }
    }
}

/// Returns the replacement of a secret, with the quote that opened before its name.
fn mask_until_quote(quote: Option<char>) -> String {
    MASK.chars().chain(quote).collect()
}

/// Authorization schemes of requests (RFC 9110, section 11): the word before the credentials.
const SCHEMES: [&str; 5] = [BEARER, BASIC, "digest", "negotiate", "token"];
/// Scheme of tokens (RFC 6750), recognised also without the name of a header before it.
const BEARER: &str = "bearer";
/// Scheme of a user and a password in base64 (RFC 7617).
const BASIC: &str = "basic";
/// Words that may precede a secret in a sentence.
const PASSWORD_WORDS: [&str; 3] = ["password", "passwd", "passphrase"];
/// Words that may follow those in a sentence without being secrets.
const PROSE_WORDS: [&str; 36] = [
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
    SCHEMES.contains(&unquoted(word).as_str())
}

/// Whether a word looks like base64, and not like ordinary prose (`basic settings`, `Basic Linear`).
fn is_encoded(word: &str) -> bool {
    let word = word.trim_matches(|c: char| "\"'`()[]{},.;".contains(c));
    let is_base64 = word.chars().all(|c| c.is_ascii_alphanumeric() || "+/=-_.~".contains(c));
    let is_prose = word.chars().skip(1).all(|c| c.is_ascii_lowercase() || c == '-');
    is_base64 && !is_prose && word.len() >= 4 && !word.starts_with(['-', '/'])
}

fn is_prose_word(word: &str) -> bool {
    !word.starts_with(['"', '\''])
        && PROSE_WORDS.contains(&unquoted(word).trim_end_matches(['.', ',', ';', ':', '!', '?', ')']))
}

/// Whether a secret may follow after this word: `the password is abc`.
fn is_linking_verb(word: &str) -> bool {
    ["is", "was"].contains(&word)
}

/// Converts to lower case and removes opening quotes.
fn unquoted(word: &str) -> String {
    word.trim_start_matches(['"', '\'', '`', '(']).to_ascii_lowercase()
}

fn is_authorization(name: &str) -> bool {
    name.trim_matches(['"', '\'']).to_ascii_lowercase().ends_with("authorization")
}

/// Options that take `USER:PASSWORD` in curl and similar programs.
const USER_OPTIONS: [&str; 3] = ["-u", "--user", "--proxy-user"];

/// Option of this program and of run-perf that takes hosts: the part before an `@` there contains no password.
const HOSTS_OPTION: &str = "--hosts";

/// Whether a word is a host in the form `NAME:USER@ADDRESS`.
fn is_named_host(word: &str) -> bool {
    let is_named = word.rsplit_once('@').is_none_or(|(before, _)| before.matches(':').count() <= 1);
    is_named && !word.starts_with('-') && word.chars().all(|c| c.is_alphanumeric() || ".-_:@[]%".contains(c))
}

/// Whether a user option has its value in the same word: `--user=joe:…`, `-ujoe:…`.
fn has_user(word: &str) -> bool {
    let word = word.trim_start_matches(['"', '\'']);
    let is_long =
        USER_OPTIONS[1..].iter().any(|option| word.strip_prefix(option).is_some_and(|rest| rest.starts_with('=')));
    (is_long || word.starts_with(USER_OPTIONS[0])) && word.contains(':')
}

/// Masks the password in `USER:PASSWORD`.
fn mask_password(word: &str) -> String {
    word.split_once(':').map_or_else(|| word.to_owned(), |(user, _)| format!("{user}:{MASK}"))
}

/// Returns the kind of the word after a secret: the rest of the secret if a quote or a bracket is still open.
fn next_after_value(quote: Option<char>, value: &str) -> NextWord {
    let end = match (quote, value.chars().next()) {
        (Some(quote), _) => return if value.contains(quote) { NextWord::Plain } else { NextWord::RestOfValue(quote) },
        (None, Some('{')) => Some('}').filter(|end| !value.contains(*end)),
        (None, Some('[')) => Some(']').filter(|end| !value.contains(*end)),
        (None, _) => open_quote(value),
    };
    end.map_or(NextWord::Plain, NextWord::RestOfValue)
}

/// Returns the quote that a word opens and does not close. A quote after a letter is an apostrophe; one after a `\` is
/// ignored.
fn open_quote(word: &str) -> Option<char> {
    let (mut open, mut before) = (None, ' ');
    for c in word.chars() {
        match open {
            None if matches!(c, '"' | '\'') && !before.is_alphanumeric() && before != '\\' => open = Some(c),
            Some(quote) if quote == c && before != '\\' => open = None,
            _ => {}
        }
        before = c;
    }
    open
}

/// Masks the secrets in the lines of a settings file: `password = abc`, and everything that is masked in a command
/// line.
pub fn mask_lines(text: &str) -> String {
    let line = |line: &str| match line.split_once('=') {
        Some((name, value))
            if is_secret_name(name) && value.starts_with(' ') && name.split_whitespace().count() == 1 =>
        {
            format!("{name}= {MASK}")
        }
        _ => mask_secret_words(line),
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Masks the secrets in a JSON value: values whose names suggest secrets, and secrets in strings.
pub fn mask_fields(value: Json) -> Json {
    match value {
        Json::String(text) => Json::String(mask_argument(&text)),
        Json::Array(all) => Json::Array(all.into_iter().map(mask_fields).collect()),
        Json::Object(all) => {
            let field = |(name, value): (String, Json)| {
                let value = if is_secret_name(&name) { Json::from(MASK) } else { mask_fields(value) };
                (mask_argument(&name), value)
            };
            Json::Object(all.into_iter().map(field).collect())
        }
        other => other,
    }
}

/// Masks the secrets in options separated by commas: `user=x,password=***`.
pub fn mask_options(options: &str) -> String {
    options.split(',').map(mask_option).collect::<Vec<_>>().join(",")
}

/// Masks the secrets in one option, path or address; text before a `:` is not treated as a name.
pub fn mask_option(word: &str) -> String {
    let word = mask_declared(word);
    let secret = word.match_indices('=').find(|(at, _)| is_secret_name(&word[..*at]));
    secret.map_or_else(|| mask_user(&word), |(at, _)| format!("{}{MASK}", mask_user(&word[..=at])))
}

/// Masks the users and passwords of URLs in a text, and nothing else.
pub fn mask_url_credentials(text: &str) -> String {
    let text = mask_declared(text);
    let mut output = String::with_capacity(text.len());
    let mut rest = text.as_ref();
    while let Some(start) = rest.find("://").map(|at| at + 3) {
        let end = rest[start..].find(|c: char| c == '/' || c.is_whitespace()).map_or(rest.len(), |end| start + end);
        let authority = &rest[start..end];
        let host = authority.rfind('@').filter(|at| authority[..*at].contains(':')).map_or(0, |at| at);
        output += &rest[..start];
        output += if host > 0 { MASK } else { "" };
        output += &authority[host..];
        rest = &rest[end..];
    }
    output + rest
}

/// Masks the part before the `@` of an address if it is a URL or that part contains a `:`.
fn mask_user(word: &str) -> String {
    let Some(at) = word.rfind('@') else { return word.to_owned() };
    let (user, host) = word.split_at(at);
    match (user.find("://"), user.find(':')) {
        (Some(scheme), _) => format!("{}{MASK}{host}", &user[..scheme + 3]),
        (None, Some(colon)) => format!("{}{MASK}{host}", &user[..=colon]),
        (None, None) => word.to_owned(),
    }
}

#[cfg(test)]
mod tests;
