//! Secrets in the words of commands, by options and settings that hold them.

use super::names::{
    PROVISIONER_OPTION, ShortOption, is_list_of_secrets, is_secret_header, is_secret_name, short_option,
};
use super::selection::mask_selection;
use super::url::mask_user;
use super::{MASK, mask_argument_of, mask_declared, mask_object};

/// Masks the secrets in the words of a command, each by itself; after `--password` and `-u` also the next word.
pub fn mask_arguments<A: AsRef<str>>(words: impl IntoIterator<Item = A>) -> Vec<String> {
    mask_arguments_of(CommandKind::Any, words)
}

/// Masks the secrets in the words of a command that prepares machines: as in any command, and what follows `-p`.
pub fn mask_provisioner_arguments<A: AsRef<str>>(words: impl IntoIterator<Item = A>) -> Vec<String> {
    mask_arguments_of(CommandKind::Provisioner, words)
}

fn mask_arguments_of<A: AsRef<str>>(kind: CommandKind, words: impl IntoIterator<Item = A>) -> Vec<String> {
    let mut masker = Masker::new(kind);
    let mask = |word: A| {
        let word = mask_declared(word.as_ref());
        let (output, after) = match masker.next {
            NextWord::Authorization(_) if is_scheme(&word) => (word.clone().into_owned(), NextWord::Secret(None)),
            NextWord::Value(_) => (MASK.to_owned(), NextWord::Plain),
            NextWord::Secrets if !word.starts_with('-') => (MASK.to_owned(), NextWord::Secrets),
            NextWord::Secret(_) | NextWord::Authorization(_) if !word.starts_with('-') => {
                (MASK.to_owned(), NextWord::Plain)
            }
            NextWord::Basic(_) if is_encoded(&word) => (MASK.to_owned(), NextWord::Plain),
            NextWord::User(_) if has_password(&word) => (mask_password(&word), NextWord::Plain),
            NextWord::Host if is_named_host(&word) => (word.clone().into_owned(), NextWord::Host),
            NextWord::Host if !word.starts_with('-') => (mask_object(&word), NextWord::Host),
            NextWord::Object if !word.starts_with('-') => (mask_object(&word), NextWord::Plain),
            _ if word.contains(|c: char| c.is_whitespace() || "{[".contains(c)) => {
                (mask_argument_of(kind, &word), NextWord::Plain)
            }
            // A quote that is open at the end of an argument does not continue in the next one.
            _ => match masker.mask_word(&word) {
                (output, NextWord::RestOfValue(_)) => (output, NextWord::Plain),
                output => output,
            },
        };
        masker.proceed(&word, after);
        output
    };
    words.into_iter().map(mask).collect()
}

/// Masks the secrets in a command line: `TOKEN=abc`, `--password abc`, `"token": "abc"`, `https://user:abc@host`,
/// `H=Bearer abc`. White space between words is preserved.
pub fn mask_command_line(line: &str) -> String {
    mask_line_of(CommandKind::Any, line)
}

pub(super) fn mask_line_of(kind: CommandKind, line: &str) -> String {
    let line = mask_declared(line);
    let mut masked = String::with_capacity(line.len());
    let mut masker = Masker::new(kind);
    for piece in line.split_inclusive(char::is_whitespace) {
        let word = piece.trim_end();
        let white_space = &piece[word.len()..];
        if let NextWord::RestOfValue(quote) = masker.next {
            if word.contains(quote) {
                masker.next = if masker.is_list { NextWord::Secrets } else { NextWord::Plain };
                masked.push_str(white_space);
            }
            continue;
        }
        if !word.is_empty() {
            let (output, after) = masker.mask_next_word(word);
            masked.push_str(&output);
            masker.proceed(word, after);
        }
        if !matches!(masker.next, NextWord::RestOfValue(_)) {
            masked.push_str(white_space);
        }
    }
    masked
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandKind {
    Any,
    /// Prepares machines: `-p` takes a password.
    Provisioner,
}

/// Expected kind of the next word of a line. A quote that opens before the name of a secret ends the secret.
#[derive(Clone, Copy)]
enum NextWord {
    Plain,
    /// The value of an option that always has one.
    Value(Option<char>),
    /// The value of the name of a secret, unless it is an option.
    Secret(Option<char>),
    /// One of the values of an option with several secrets, which the next option ends.
    Secrets,
    /// An authorization scheme followed by the secret: `Bearer abc`.
    Authorization(Option<char>),
    /// The word after `Basic`: a secret if it looks like base64.
    Basic(Option<char>),
    /// A user; the text after a `:` is the password.
    User(Option<char>),
    /// A host, which may have a name before it: `NAME:USER@ADDRESS`.
    Host,
    /// A name with parameters as JSON; parameters with the names of secrets are secrets.
    Object,
    /// The rest of a secret, up to the quote or bracket that ends it.
    RestOfValue(char),
}

/// State between the words of a command.
struct Masker {
    next: NextWord,
    kind: CommandKind,
    /// Whether the option with several secrets has not ended.
    is_list: bool,
    /// The short option with a secret of the program that the last words named.
    option: Option<&'static ShortOption>,
}

impl Masker {
    fn new(kind: CommandKind) -> Self {
        let option = (kind == CommandKind::Provisioner).then_some(&PROVISIONER_OPTION);
        Self { next: NextWord::Plain, kind, is_list: false, option }
    }

    fn proceed(&mut self, word: &str, next: NextWord) {
        self.next = next;
        self.is_list = matches!(next, NextWord::Secrets) || (self.is_list && matches!(next, NextWord::RestOfValue(_)));
        if let Some(option) = short_option(word.trim_start_matches(QUOTES)) {
            self.option = Some(option);
        } else if word.ends_with([';', '|', '&']) {
            self.option = Self::new(self.kind).option;
        }
    }

    /// Masks the secrets in a word of a line; returns also the expected kind of the next word.
    fn mask_next_word(&self, word: &str) -> (String, NextWord) {
        match self.next {
            NextWord::Authorization(quote) if is_scheme(word) => {
                (word.to_owned(), NextWord::Secret(quote.or(open_quote(word))))
            }
            NextWord::Value(quote) => (mask_until_quote(quote), next_after_value(quote, word)),
            NextWord::Secrets if !word.starts_with('-') => match next_after_value(None, word) {
                NextWord::Plain => (MASK.to_owned(), NextWord::Secrets),
                rest => (MASK.to_owned(), rest),
            },
            NextWord::Secret(quote) | NextWord::Authorization(quote) if !word.starts_with('-') => {
                (mask_until_quote(quote), next_after_value(quote, word))
            }
            NextWord::Basic(quote) if is_encoded(word) => (mask_until_quote(quote), next_after_value(quote, word)),
            NextWord::User(quote) if has_password(word) => {
                let (user, password) = word.split_once(':').unwrap_or((word, ""));
                let quote = quote.or(open_quote(user));
                (format!("{user}:{}", mask_until_quote(quote)), next_after_value(quote, password))
            }
            NextWord::Host if is_named_host(word) => (word.to_owned(), NextWord::Host),
            NextWord::Host if !word.starts_with('-') => (mask_object(word), NextWord::Host),
            NextWord::Object if word.ends_with('}') => (mask_object(word), NextWord::Plain),
            _ => self.mask_word(word),
        }
    }

    fn mask_word(&self, word: &str) -> (String, NextWord) {
        if let Some(option) = [HOSTS_OPTION].into_iter().chain(OBJECT_OPTIONS).find(|option| word.starts_with(option)) {
            let next = if option == HOSTS_OPTION { NextWord::Host } else { NextWord::Object };
            match word[option.len()..].strip_prefix('=') {
                Some(host) if option == HOSTS_OPTION && is_named_host(host) => {
                    return (word.to_owned(), NextWord::Plain);
                }
                Some(value) => return (format!("{option}={}", mask_object(value)), NextWord::Plain),
                None if word == option => return (word.to_owned(), next),
                None => {}
            }
        }
        if let Some(masked) = self.mask_short_option(word) {
            return masked;
        }
        if let Some(masked) = mask_selection(word) {
            return (masked, NextWord::Plain);
        }
        mask_setting(word)
    }

    /// Masks an option of the program, `-pVALUE` or `-p`.
    fn mask_short_option(&self, word: &str) -> Option<(String, NextWord)> {
        let ShortOption { option, takes_next, takes_attached } =
            *self.option.filter(|known| !known.option.is_empty())?;
        let bare = word.trim_start_matches(QUOTES);
        let value = bare.strip_prefix(option)?;
        let opening = &word[..word.len() - bare.len()];
        let quote = opening.chars().next_back();
        match value {
            "" if takes_next => Some((word.to_owned(), NextWord::Value(quote.filter(|quote| *quote != '`')))),
            _ if !value.is_empty() && takes_attached => {
                let masked = format!("{opening}{option}{}", mask_until_quote(quote));
                Some((masked, next_after_value(quote, value)))
            }
            _ => None,
        }
    }
}

fn mask_setting(word: &str) -> (String, NextWord) {
    let quote = open_quote(word);
    let output = mask_user(word);
    if has_user(&output) {
        let (user, password) = output.split_once(':').unwrap_or((&output, ""));
        let quote = open_quote(user);
        return (format!("{}:{}", mask_setting(user).0, mask_until_quote(quote)), next_after_value(quote, password));
    }
    let bare = output.trim_matches(|c: char| "\"'`()[]{},".contains(c)).to_ascii_lowercase();
    let last = bare.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let Some((position, separator)) = output
        .char_indices()
        .find(|(position, c)| matches!(c, '=' | ':') && is_secret_separator(&output, *position, *c))
    else {
        let next = match last {
            _ if bare.starts_with('-') && is_list_of_secrets(&bare) => NextWord::Secrets,
            _ if bare.starts_with('-') && is_secret_name(&bare) => NextWord::Secret(quote),
            _ if USER_OPTIONS.contains(&bare.as_str()) => NextWord::User(quote),
            // A value that begins with a scheme is a credential, whatever its name; a sentence is none.
            BEARER if is_value(&bare, BEARER) => NextWord::Secret(quote),
            BASIC if is_value(&bare, BASIC) => NextWord::Basic(quote),
            _ => NextWord::Plain,
        };
        return (output, next);
    };
    let (name, value) = output.split_at(position + 1);
    let is_authorizing = is_authorization(&name[..position]);
    // In JSON and headers, white space precedes the value.
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

fn is_value(word: &str, value: &str) -> bool {
    word.strip_suffix(value).is_some_and(|before| before.trim_end_matches(['"', '\'', '[']).ends_with(['=', ':']))
}

/// Whether a separator ends the name of a secret: `TOKEN=`, `"token": ` in JSON, `Cookie: ` of a header. A colon after
/// other words is punctuation.
pub(super) fn is_secret_separator(word: &str, position: usize, separator: char) -> bool {
    let (before, value) = (&word[..position], &word[position + 1..]);
    let name = before.trim_end_matches(QUOTES);
    let is_delimiter = |c: char| c.is_whitespace() || "\"'`[](){}?&;".contains(c);
    let segment = name.rsplit(is_delimiter).next().unwrap_or_default();
    match separator {
        '=' => is_secret_name(setting_name(segment)),
        _ if is_secret_header(segment.rsplit(['=', ',']).next().unwrap_or_default()) => true,
        // The value of a field in JSON follows after white space, or begins as JSON does.
        _ => {
            let is_field = value.is_empty() || value.starts_with(['"', '{', '[']);
            name.len() < before.len() && is_field && is_secret_name(segment)
        }
    }
}

/// The name before a `=`; empty for a parameter of a test (`redis:keyspace=`), but not for a variable (`env:TOKEN=`).
fn setting_name(segment: &str) -> &str {
    let variable = match segment.rsplit_once("env:") {
        Some((kind, variable)) if kind.is_empty() || kind.ends_with([':', '+']) => variable,
        _ if segment.contains(':') => "",
        _ => segment,
    };
    variable.rsplit(['=', ',']).next().unwrap_or_default()
}

/// Returns the replacement of a secret, with the quote that opened before its name.
fn mask_until_quote(quote: Option<char>) -> String {
    MASK.chars().chain(quote).collect()
}

const QUOTES: [char; 3] = ['"', '\'', '`'];

/// Authorization schemes of requests (RFC 9110, section 11): the word before the credentials.
const SCHEMES: [&str; 5] = [BEARER, BASIC, "digest", "negotiate", "token"];
/// Scheme of tokens (RFC 6750), recognised also without the name of a header before it.
const BEARER: &str = "bearer";
/// Scheme of a user and a password in base64 (RFC 7617).
const BASIC: &str = "basic";

fn is_scheme(word: &str) -> bool {
    SCHEMES.contains(&unquoted(word).as_str())
}

/// Masks a value that is a scheme and a credential, `Bearer abc`; none for other values.
pub(super) fn mask_after_scheme(value: &str) -> Option<String> {
    let (scheme, credential) = value.split_once(' ')?;
    let is_credential = match scheme.to_ascii_lowercase().as_str() {
        BEARER => !credential.trim().contains(char::is_whitespace),
        BASIC => is_encoded(credential.trim()),
        _ => false,
    };
    is_credential.then(|| format!("{scheme} {MASK}"))
}

/// Whether a word looks like base64, and not like ordinary prose (`basic settings`, `Basic Linear`).
fn is_encoded(word: &str) -> bool {
    let word = word.trim_matches(|c: char| "\"'`()[]{},.;".contains(c));
    let is_base64 = word.chars().all(|c| c.is_ascii_alphanumeric() || "+/=-_.~".contains(c));
    let is_prose = word.chars().skip(1).all(|c| c.is_ascii_lowercase() || c == '-');
    is_base64 && !is_prose && word.len() >= 4 && !word.starts_with(['-', '/'])
}

fn unquoted(word: &str) -> String {
    word.trim_start_matches(['"', '\'', '`', '(']).to_ascii_lowercase()
}

fn is_authorization(name: &str) -> bool {
    name.trim_matches(['"', '\'']).to_ascii_lowercase().ends_with("authorization")
}

/// Options of this program and of run-perf that take a name with parameters as JSON.
const OBJECT_OPTIONS: [&str; 2] = ["--provisioner", "--profiles"];

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
    let value = word.trim_start_matches(|c: char| c != '=').trim_start_matches('=');
    let value = if is_long { value } else { word.strip_prefix(USER_OPTIONS[0]).unwrap_or_default() };
    has_password(value)
}

/// Whether the value of a user option has a password. Numbers are a user and a group: `-u 1000:1000`.
fn has_password(user: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    user.split_once(':').is_some_and(|(user, password)| !(is_number(user) && is_number(password)))
}

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

/// The quote that a word opens and does not close. One after a letter is an apostrophe; one after a `\` is ignored.
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
