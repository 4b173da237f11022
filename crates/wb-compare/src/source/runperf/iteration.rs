//! An iteration of pbench's format: only what is compared, the rest is skipped as it is met.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::figure::Figure;

/// Text that borrows from the file where it has no escapes.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct Text<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

#[derive(Debug, Deserialize)]
pub(super) struct Iteration<'a> {
    #[serde(borrow, default)]
    pub(super) iteration_name: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) iteration_data: Option<Data<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Data<'a> {
    #[serde(borrow, default)]
    pub(super) parameters: Option<Parameters<'a>>,
    #[serde(borrow, default)]
    pub(super) throughput: Entries<'a, Aggregate>,
    #[serde(borrow, default)]
    pub(super) latency: Entries<'a, Aggregate>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Parameters<'a> {
    #[serde(borrow, default)]
    pub(super) benchmark: Vec<Entries<'a, &'a RawValue>>,
    #[serde(borrow, default)]
    pub(super) user: Vec<User<'a>>,
}

/// What the user said of a run; only its profile belongs to how the case was measured.
#[derive(Debug, Deserialize)]
pub(super) struct User<'a> {
    #[serde(borrow, default)]
    pub(super) profile: Option<Text<'a>>,
}

/// An object's entries in the order of the file.
#[derive(Debug)]
pub(super) struct Entries<'a, T>(pub(super) Vec<(Text<'a>, T)>);

impl<T> Default for Entries<'_, T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de: 'a, 'a, T: Deserialize<'de>> Deserialize<'de> for Entries<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor(PhantomData))
    }
}

struct EntriesVisitor<'a, T>(PhantomData<(&'a (), T)>);

impl<'de: 'a, 'a, T: Deserialize<'de>> Visitor<'de> for EntriesVisitor<'a, T> {
    type Value = Entries<'a, T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<'a, T>, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Entries(entries))
    }
}

/// A metric's values by client, of which the one over all of them counts.
#[derive(Debug)]
pub(super) struct Aggregate(pub(super) Option<Client>);

/// A metric of a client. A sample's time series is none of its samples.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) mean: Figure,
    pub(super) stddevpct: Figure,
    pub(super) samples: Vec<Sample>,
}

#[derive(Debug, Deserialize)]
struct AnyClient<'a> {
    #[serde(borrow, default)]
    client_hostname: Option<Text<'a>>,
    #[serde(default)]
    mean: Figure,
    #[serde(default)]
    stddevpct: Figure,
    #[serde(default)]
    samples: Option<Vec<Sample>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Sample {
    #[serde(default)]
    pub(super) value: Figure,
}

impl<'de> Deserialize<'de> for Aggregate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(AggregateVisitor)
    }
}

struct AggregateVisitor;

impl<'de> Visitor<'de> for AggregateVisitor {
    type Value = Aggregate;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of clients")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut clients: A) -> Result<Aggregate, A::Error> {
        let mut all = None;
        while let Some(client) = clients.next_element::<AnyClient<'de>>()? {
            if all.is_none() && client.client_hostname.is_some_and(|name| name.0 == "all") {
                let (mean, stddevpct) = (client.mean, client.stddevpct);
                all = Some(Client { mean, stddevpct, samples: client.samples.unwrap_or_default() });
            }
        }
        Ok(Aggregate(all))
    }
}
