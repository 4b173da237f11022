//! Parser of `hosts.toml`:
//!
//! ```toml
//! [hosts.a]
//! address = "root@10.0.0.1"
//! [hosts.a.params]         # overrides the detected parameters
//! guest-cpus = "0-3"
//! [hosts.a.extra]           # any further keys of the user
//! rack = "B7"
//!
//! [groups]
//! clients = ["b", "c"]
//! ```

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;
use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use wb_diagnostics::{Diagnostic, SourceText, humanize_serde_error, suggest};
use wb_model::WorkerName;

use super::params::ParamError;
use super::{Address, Host, HostParams, Inventory, parse_host_name};

type TomlEntry<'a> = (&'a Spanned<Cow<'a, str>>, &'a Spanned<DeValue<'a>>);

pub(super) fn parse(source: &SourceText) -> Result<Inventory, Diagnostic> {
    let table = DeTable::parse(&source.text).map_err(|error| {
        let message = error.message().trim().replace('\n', ", ");
        Diagnostic::at(source, error.span().unwrap_or(0..0), format!("invalid TOML: {message}"), "here")
    })?;
    let reader = InventoryParser { source };
    let mut inventory = Inventory::default();
    let mut groups = Vec::new();
    for (key, value) in table.get_ref() {
        match key.get_ref().as_ref() {
            "hosts" => {
                for entry in reader.table(value)? {
                    inventory.hosts.push(reader.host(entry)?);
                }
            }
            "groups" => groups.extend(reader.table(value)?),
            _ => return Err(reader.unknown_key(key, "inventory", &["hosts", "groups"])),
        }
    }
    inventory.hosts.sort_by(|one, two| one.name.cmp(&two.name));
    for (key, value) in groups {
        let members = reader.members(&inventory, value)?;
        inventory.groups.insert(reader.group_name(&inventory, key)?, members);
    }
    Ok(inventory)
}

struct InventoryParser<'a> {
    source: &'a SourceText,
}

impl InventoryParser<'_> {
    fn host(&self, (name, value): TomlEntry<'_>) -> Result<Host, Diagnostic> {
        let mut address = None;
        let mut params = HostParams::default();
        for (key, value) in self.table(value)? {
            match key.get_ref().as_ref() {
                "address" => {
                    let text = self.string(value)?;
                    let parsed = text.parse::<Address>();
                    address = Some(parsed.map_err(|error| self.error_at(value.span(), error.to_string(), "here"))?);
                }
                "params" => {
                    for (key, value) in self.table(value)? {
                        let set = params.set(key.get_ref(), self.json(value)?);
                        set.map_err(|error| self.bad_param(key.span(), value.span(), &error))?;
                    }
                }
                "extra" => {
                    for (key, value) in self.table(value)? {
                        params.extra.insert(key.get_ref().to_string(), self.json(value)?);
                    }
                }
                _ => return Err(self.unknown_key(key, "host", &["address", "params", "extra"])),
            }
        }
        let missing = || self.error_at(name.span(), "missing address of this host", "expected `address = \"…\"`");
        let address = address.ok_or_else(missing)?;
        let name = parse_host_name(name.get_ref()).map_err(|reason| self.error_at(name.span(), reason, "here"))?;
        Ok(Host { name, address, params })
    }

    fn members(&self, inventory: &Inventory, value: &Spanned<DeValue<'_>>) -> Result<Vec<WorkerName>, Diagnostic> {
        let DeValue::Array(members) = value.get_ref() else {
            return Err(self.error_at(value.span(), "invalid group: expected a list of host names", "not a list"));
        };
        let host = |member: &Spanned<DeValue<'_>>| {
            let name = self.string(member)?;
            let host = inventory.hosts.iter().find(|host| host.name.as_str() == name);
            host.map(|host| host.name.clone()).ok_or_else(|| {
                let names = inventory.hosts.iter().map(|host| host.name.as_str());
                self.error_at(member.span(), format!("unknown host `{name}`"), "unknown")
                    .with_suggestion(suggest(name, names))
            })
        };
        members.iter().map(host).collect()
    }

    fn group_name(&self, inventory: &Inventory, key: &Spanned<Cow<'_, str>>) -> Result<WorkerName, Diagnostic> {
        let name = parse_host_name(key.get_ref()).map_err(|reason| self.error_at(key.span(), reason, "here"))?;
        match inventory.host(&name) {
            None => Ok(name),
            Some(_) => Err(self.error_at(
                key.span(),
                format!("group name `{name}` is already used by a host"),
                "choose another name",
            )),
        }
    }

    fn table<'b>(&self, value: &'b Spanned<DeValue<'b>>) -> Result<Vec<TomlEntry<'b>>, Diagnostic> {
        match value.get_ref() {
            DeValue::Table(table) => Ok(table.iter().collect()),
            _ => Err(self.error_at(value.span(), "expected a table", "not a table")),
        }
    }

    fn string<'b>(&self, value: &'b Spanned<DeValue<'b>>) -> Result<&'b str, Diagnostic> {
        value.get_ref().as_str().ok_or_else(|| self.error_at(value.span(), "expected a string", "not a string"))
    }

    fn json(&self, value: &Spanned<DeValue<'_>>) -> Result<Value, Diagnostic> {
        // Parse the text of the value again, as JSON value.
        let text = self.source.text.get(value.span()).unwrap_or_default();
        let result = toml::de::ValueDeserializer::parse(text).and_then(Value::deserialize);
        result.map_err(|error| self.error_at(value.span(), humanize_serde_error(error.message()), "here"))
    }

    fn bad_param(&self, key: Range<usize>, value: Range<usize>, error: &ParamError) -> Diagnostic {
        match error {
            ParamError::Unknown { suggestion, .. } => {
                self.error_at(key, error.to_string(), "unknown").with_suggestion(suggestion.clone()).with_help(format!(
                    "host parameters: {}; keys of your own go into [hosts.NAME.extra]",
                    HostParams::names().join(", ")
                ))
            }
            ParamError::InvalidValue { .. } | ParamError::AmbiguousCpus { .. } => {
                self.error_at(value, error.to_string(), "here")
            }
        }
    }

    fn unknown_key(&self, key: &Spanned<Cow<'_, str>>, what: &str, keys: &[&str]) -> Diagnostic {
        let name = key.get_ref();
        let suggestion = suggest(name, keys);
        let keys: Vec<String> = keys.iter().map(|name| format!("`{name}`")).collect();
        self.error_at(key.span(), format!("unknown key `{name}`"), "unknown")
            .with_suggestion(suggestion)
            .with_help(format!("keys of this {what}: {}", keys.join(", ")))
    }

    fn error_at(&self, span: Range<usize>, message: impl Into<String>, label: &str) -> Diagnostic {
        Diagnostic::at(self.source, span, message, label)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_inventory_is_parsed() {
        let text = "[hosts.b]\naddress = 'b.example'\n[hosts.a]\naddress = \"root@10.0.0.1:2222\"\n\
            [hosts.a.params]\nhugepage-kb = 2048\nhost-cpus = '0-3'\ndisable-smt = true\n\
            [hosts.a.extra]\nrack = 'B7'\nslots = [1, 2]\n[groups]\nall = ['a', 'b']\n";
        let inventory = parse(&SourceText::new("hosts.toml", text)).unwrap();
        let names: Vec<&str> = inventory.hosts().iter().map(|host| host.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        let params = &inventory.hosts()[0].params;
        assert_eq!((params.hugepage_kb, params.disable_smt), (Some(2048), Some(true)));
        assert_eq!((&params.extra["rack"], &params.extra["slots"]), (&json!("B7"), &json!([1, 2])));
        assert_eq!(inventory.groups().values().next().unwrap().len(), 2);
    }

    /// Describes the error of a text: message, location and label.
    fn describe(text: &str) -> String {
        let error = parse(&SourceText::new("hosts.toml", text)).unwrap_err();
        format!("{error} | {} | {}", error.excerpt(), error.label())
    }

    #[test]
    fn errors_are_located() {
        let host = |lines: &str| format!("[hosts.a]\naddress = 'x'\n{lines}");
        let all = [
            "[host.a]".to_owned(),
            "[hosts.a]\n".to_owned(),
            "[hosts.'a b']\naddress = 'x'".to_owned(),
            "[hosts.local]\naddress = 'x'".to_owned(),
            "[hosts.a]\naddress = '-x'".to_owned(),
            "hosts = 3".to_owned(),
            "[hosts.a".to_owned(),
            host("adress = 'y'"),
            host("params.guest-cpu = 3"),
            host("params.arch = 3"),
            host("params.zebra = 3"),
            host("[groups]\nall = ['b']"),
            host("[groups]\na = ['a']"),
            host("[groups]\nall = 'a'"),
        ];
        insta::assert_snapshot!(all.map(|text| describe(&text)).join("\n"), @r#"
        unknown key `host` | host | did you mean `hosts`?
        missing address of this host | a | expected `address = "…"`
        invalid name `a b`: expected letters, digits, `_`, `.` and `-` | 'a b' | here
        invalid host name `local`: it is reserved for this machine | local | here
        invalid address `-x`: expected USER@HOST:PORT or a name from your ssh configuration | '-x' | here
        expected a table | 3 | not a table
        invalid TOML: unclosed table, expected `]` |  | here
        unknown key `adress` | adress | did you mean `address`?
        unknown host parameter `guest-cpu` | guest-cpu | did you mean `guest-cpus`?
        invalid value 3 for `arch`: expected a name such as "x86_64" | 3 | here
        unknown host parameter `zebra` | zebra | unknown
        unknown host `b` | 'b' | unknown
        group name `a` is already used by a host | a | choose another name
        invalid group: expected a list of host names | 'a' | not a list
        "#);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(\\[hosts\\.[a-z]\\]\n)?[a-z.=\\[\\]\"'0-9\n]{0,40}|.{0,40}") {
            let _ = parse(&SourceText::new("hosts.toml", &text));
        }
    }
}
