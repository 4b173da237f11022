//! Masking of secrets, which are replaced by `***`. Secrets are:
//! - what the user declares (`--secret-from`), wherever it occurs;
//! - the values of variables, settings and metadata with the name of a secret, decided by its words (`API_TOKEN`), not by
//!   parts of them (`keyspace`);
//! - users and passwords in URLs;
//! - the values of options that are known to hold secrets (`--password abc`, `-u joe:abc`, `sshpass -p abc`).
//!
//! Parameters of tests are recorded as typed, except `env` and `before`, which are variables and a command, and
//! passwords in URLs. What people and programs write is not searched for anything but declared secrets and URLs. A
//! guess that masks a parameter would make a record that cannot be repeated.

mod declared;
mod names;
mod selection;
mod url;
mod words;

use serde_json::Value as Json;

pub use declared::{
    MIN_SECRET_LENGTH, SecretTooShort, contains_declared, declare, has_declared_secrets, mask_declared,
    mask_declared_json, reader_contains_declared,
};
pub use names::is_secret_name;
pub use selection::mask_param;
pub use url::mask_url_credentials;
pub use words::{mask_arguments, mask_command_line, mask_provisioner_arguments};

use selection::mask_selection;
use url::mask_user;
use words::{CommandKind, is_secret_separator, mask_after_scheme, mask_line_of};

pub const MASK: &str = "***";

/// Masks the value of a variable completely if its name is that of a secret, otherwise the secrets in it.
pub fn mask_value(name: &str, value: &str) -> String {
    if is_secret_name(name) { MASK.to_owned() } else { mask_argument(value) }
}

/// Masks the secrets in one argument of a command, or another single value: everything after the name of a secret at
/// its start (`auth=Bearer abc`, `Cookie: a=b; c=d`), JSON by its fields, parameters of tests by their kinds, and
/// anything else like a command line.
pub fn mask_argument(argument: &str) -> String {
    mask_argument_of(CommandKind::Any, argument)
}

fn mask_argument_of(kind: CommandKind, argument: &str) -> String {
    let argument = mask_declared(argument);
    mask_selection(&argument)
        .or_else(|| mask_json_suffix(&argument))
        .or_else(|| mask_after_name(&argument))
        .or_else(|| mask_after_scheme(&argument))
        .unwrap_or_else(|| mask_line_of(kind, &argument))
}

/// Masks a name with parameters as JSON, `NAME:{…}`, which are not those of a test.
fn mask_object(text: &str) -> String {
    mask_json_suffix(text).unwrap_or_else(|| mask_argument(text))
}

/// Masks an argument that ends in JSON, `NAME:{…}` or `NAME=[…]`; none for other arguments.
fn mask_json_suffix(argument: &str) -> Option<String> {
    let (name, json) = argument.split_at(argument.find(['{', '['])?);
    let names_value =
        name.char_indices().any(|(position, c)| matches!(c, '=' | ':') && is_secret_separator(argument, position, c));
    if names_value || name.contains(char::is_whitespace) {
        return None;
    }
    // Anything but JSON is masked by other rules.
    let value: Json = serde_json::from_str(json).ok()?;
    let mut masked = mask_fields(value.clone());
    if let (PROVISIONER_COMMAND, Some(Json::String(typed))) = (name, value.get("command")) {
        masked["command"] = Json::from(mask_line_of(CommandKind::Provisioner, typed));
    }
    let json = if masked == value { json.to_owned() } else { masked.to_string() };
    Some(mask_command_line(name) + &json)
}

const PROVISIONER_COMMAND: &str = "command:";

/// Masks an argument that begins with the name of a secret; none for other arguments.
fn mask_after_name(argument: &str) -> Option<String> {
    let first = argument.split(char::is_whitespace).next().unwrap_or_default();
    let mut separators = first.char_indices().filter(|(_, c)| matches!(c, '=' | ':'));
    let (position, _) = separators.find(|(position, c)| is_secret_separator(first, *position, *c))?;
    let (name, value) = argument.split_at(position + 1);
    let white_space = &value[..value.len() - value.trim_start().len()];
    let mask = if value.trim().is_empty() { "" } else { MASK };
    Some(format!("{}{white_space}{mask}", mask_user(name)))
}

/// Masks the secrets in the lines of a settings file or a script: `password = abc`, `password: abc`, and everything
/// that is masked in a command line.
pub fn mask_lines(text: &str) -> String {
    text.split('\n').map(mask_line).collect::<Vec<_>>().join("\n")
}

fn mask_line(line: &str) -> String {
    let is_name = |name: &str| name.split_whitespace().count() == 1 && is_secret_name(name.trim());
    let setting =
        line.find([':', '=']).filter(|position| is_name(&line[..*position]) && line[*position + 1..].starts_with(' '));
    match setting {
        Some(position) if !line[position + 1..].trim().is_empty() => format!("{} {MASK}", &line[..=position]),
        _ => mask_command_line(line),
    }
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
    let secret = word.match_indices('=').find(|(position, _)| is_secret_name(&word[..*position]));
    secret.map_or_else(|| mask_user(&word), |(position, _)| format!("{}{MASK}", mask_user(&word[..=position])))
}

#[cfg(test)]
mod tests;
