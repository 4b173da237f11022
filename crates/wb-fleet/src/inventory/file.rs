//! `hosts.toml`:
//!
//! ```toml
//! [hosts.a]
//! address = "root@10.0.0.1"
//! [hosts.a.params]         # says otherwise than what is found
//! guest-cpus = "0-3"
//! [hosts.a.own]            # whatever else there is to say
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
use wb_model::WorkerName;
use wb_model::serde_message::humanize_serde_error;
use wb_plan::suggestion::suggest;
use wb_plan::{PlanError, SourceText};

use super::params::ParamError;
use super::{Address, Host, HostParams, Inventory, parse_host_name};

/// What a table of the file is made of.
type TomlEntry<'a> = (&'a Spanned<Cow<'a, str>>, &'a Spanned<DeValue<'a>>);

pub(super) fn parse(source: &SourceText) -> Result<Inventory, PlanError> {
    let table = DeTable::parse(&source.text).map_err(|error| {
        let message = error.message().trim().replace('\n', ", ");
        PlanError::at(source, error.span().unwrap_or(0..0), format!("this is no TOML: {message}"), "here")
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

/// Reads values and says where they are wrong.
struct InventoryParser<'a> {
    source: &'a SourceText,
}

impl InventoryParser<'_> {
    fn host(&self, (name, value): TomlEntry<'_>) -> Result<Host, PlanError> {
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
                "own" => {
                    for (key, value) in self.table(value)? {
                        params.extra.insert(key.get_ref().to_string(), self.json(value)?);
                    }
                }
                _ => return Err(self.unknown_key(key, "host", &["address", "params", "own"])),
            }
        }
        let missing = || self.error_at(name.span(), "this host has no address", "`address = \"…\"` is missing");
        let address = address.ok_or_else(missing)?;
        let name = parse_host_name(name.get_ref()).map_err(|why| self.error_at(name.span(), why, "here"))?;
        Ok(Host { name, address, params })
    }

    fn members(&self, inventory: &Inventory, value: &Spanned<DeValue<'_>>) -> Result<Vec<WorkerName>, PlanError> {
        let DeValue::Array(members) = value.get_ref() else {
            return Err(self.error_at(value.span(), "a group is a list of hosts", "not this"));
        };
        let host = |member: &Spanned<DeValue<'_>>| {
            let name = self.string(member)?;
            let found = inventory.hosts.iter().find(|host| host.name.as_str() == name);
            found.map(|host| host.name.clone()).ok_or_else(|| {
                let names = inventory.hosts.iter().map(|host| host.name.as_str());
                let label = suggest(name, names).map_or("unknown".to_owned(), |near| format!("did you mean `{near}`?"));
                self.error_at(member.span(), format!("there is no host `{name}`"), &label)
            })
        };
        members.iter().map(host).collect()
    }

    fn group_name(&self, inventory: &Inventory, key: &Spanned<Cow<'_, str>>) -> Result<WorkerName, PlanError> {
        let name = parse_host_name(key.get_ref()).map_err(|why| self.error_at(key.span(), why, "here"))?;
        match inventory.host(&name) {
            None => Ok(name),
            Some(_) => {
                Err(self.error_at(key.span(), format!("`{name}` is a host already"), "a group needs another name"))
            }
        }
    }

    fn table<'b>(&self, value: &'b Spanned<DeValue<'b>>) -> Result<Vec<TomlEntry<'b>>, PlanError> {
        match value.get_ref() {
            DeValue::Table(table) => Ok(table.iter().collect()),
            _ => Err(self.error_at(value.span(), "a table is expected", "not this")),
        }
    }

    fn string<'b>(&self, value: &'b Spanned<DeValue<'b>>) -> Result<&'b str, PlanError> {
        value.get_ref().as_str().ok_or_else(|| self.error_at(value.span(), "a text is expected", "not this"))
    }

    fn json(&self, value: &Spanned<DeValue<'_>>) -> Result<Value, PlanError> {
        // Its own text is what it is again.
        let text = self.source.text.get(value.span()).unwrap_or_default();
        let read = toml::de::ValueDeserializer::parse(text).and_then(Value::deserialize);
        read.map_err(|error| self.error_at(value.span(), humanize_serde_error(error.message()), "here"))
    }

    fn bad_param(&self, key: Range<usize>, value: Range<usize>, error: &ParamError) -> PlanError {
        match error {
            ParamError::Unknown { near, .. } => {
                let label = near.map_or("unknown".to_owned(), |near| format!("did you mean `{near}`?"));
                self.error_at(key, error.to_string(), &label).with_help("what is only yours goes into [hosts.NAME.own]")
            }
            ParamError::Value { .. } => self.error_at(value, error.to_string(), "here"),
        }
    }

    fn unknown_key(&self, key: &Spanned<Cow<'_, str>>, what: &str, known: &[&str]) -> PlanError {
        let name = key.get_ref();
        let near = suggest(name, known.iter().copied());
        let label = near.map_or("unknown".to_owned(), |near| format!("did you mean `{near}`?"));
        let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
        self.error_at(key.span(), format!("there is no key `{name}` here"), &label)
            .with_help(format!("in this {what} are {}", known.join(", ")))
    }

    fn error_at(&self, span: Range<usize>, message: impl Into<String>, label: &str) -> PlanError {
        PlanError::at(self.source, span, message, label)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_inventory_is_read() {
        let text = "[hosts.b]\naddress = 'b.example'\n[hosts.a]\naddress = \"root@10.0.0.1:2222\"\n\
            [hosts.a.params]\nhugepage-kb = 2048\nhost-cpus = '0-3'\ndisable-smt = true\n\
            [hosts.a.own]\nrack = 'B7'\nslots = [1, 2]\n[groups]\nall = ['a', 'b']\n";
        let inventory = parse(&SourceText::new("hosts.toml", text)).unwrap();
        let names: Vec<&str> = inventory.hosts().iter().map(|host| host.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        let params = &inventory.hosts()[0].params;
        assert_eq!((params.hugepage_kb, params.disable_smt), (Some(2048), Some(true)));
        assert_eq!((&params.extra["rack"], &params.extra["slots"]), (&json!("B7"), &json!([1, 2])));
        assert_eq!(inventory.groups().values().next().unwrap().len(), 2);
    }

    /// The message, the place and the label of what is wrong.
    fn said(text: &str) -> String {
        use miette::Diagnostic;
        let error = parse(&SourceText::new("hosts.toml", text)).unwrap_err();
        let label = error.labels().unwrap().next().unwrap();
        let place = &text[label.offset()..label.offset() + label.len()];
        format!("{error} | {place} | {}", label.label().unwrap_or_default())
    }

    #[test]
    fn a_mistake_is_shown_at_its_place() {
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
        insta::assert_snapshot!(all.map(|text| said(&text)).join("\n"), @r#"
        there is no key `host` here | host | did you mean `hosts`?
        this host has no address | a | `address = "…"` is missing
        `a b` is not a name: letters, digits, `_`, `.` and `-` are allowed | 'a b' | here
        `local` is this machine: a host needs another name | local | here
        `-x` is no address: `USER@HOST:PORT` is expected, or a name of your ssh configuration | '-x' | here
        a table is expected | 3 | not this
        this is no TOML: unclosed table, expected `]` |  | here
        there is no key `adress` here | adress | did you mean `address`?
        a host has no parameter `guest-cpu` | guest-cpu | did you mean `guest-cpus`?
        `arch` takes a name such as "x86_64", not 3 | 3 | here
        a host has no parameter `zebra` | zebra | unknown
        there is no host `b` | 'b' | unknown
        `a` is a host already | a | a group needs another name
        a group is a list of hosts | 'a' | not this
        "#);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(\\[hosts\\.[a-z]\\]\n)?[a-z.=\\[\\]\"'0-9\n]{0,40}|.{0,40}") {
            let _ = parse(&SourceText::new("hosts.toml", &text));
        }
    }
}
