//! An iteration in pbench's format, limited to the compared parts; the rest is skipped while parsing. The same parts
//! are written.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use wb_model::pbench::ALL_CLIENTS;

use super::number::PbenchNumber;

/// Text that borrows from the file unless it has escapes.
#[derive(Debug, Deserialize, Serialize)]
#[serde(transparent)]
pub(crate) struct BorrowedText<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Iteration<'a> {
    #[serde(borrow, default)]
    pub(crate) iteration_name: Option<BorrowedText<'a>>,
    #[serde(borrow, default)]
    pub(crate) iteration_data: Option<PbenchData<'a>>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct PbenchData<'a> {
    #[serde(borrow, default)]
    pub(crate) parameters: Option<IterationParameters<'a>>,
    #[serde(borrow, default)]
    pub(crate) throughput: Entries<'a, ClientAggregate>,
    #[serde(borrow, default)]
    pub(crate) latency: Entries<'a, ClientAggregate>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct IterationParameters<'a> {
    #[serde(borrow, default)]
    pub(crate) benchmark: Vec<Entries<'a, &'a RawValue>>,
    #[serde(borrow, default)]
    pub(crate) user: Vec<UserParameters<'a>>,
}

/// Parameters given by the user; only the profile is part of how the case was measured.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct UserParameters<'a> {
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) profile: Option<BorrowedText<'a>>,
}

/// The entries of an object, in the order of the file.
#[derive(Debug)]
pub(crate) struct Entries<'a, T>(pub(crate) Vec<(BorrowedText<'a>, T)>);

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

impl<T: Serialize> Serialize for Entries<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
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

/// A metric's values by client, of which only the aggregate over all clients is kept.
#[derive(Debug)]
pub(crate) struct ClientAggregate(pub(crate) Option<ClientMetric>);

/// The values of a metric for one client. The time series of samples are ignored.
#[derive(Debug, Default, Serialize)]
pub(crate) struct ClientMetric {
    #[serde(skip_serializing_if = "PbenchNumber::is_missing")]
    pub(crate) mean: PbenchNumber,
    #[serde(skip_serializing_if = "PbenchNumber::is_missing")]
    pub(crate) stddevpct: PbenchNumber,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) samples: Vec<PbenchSample>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct PbenchSample {
    #[serde(default)]
    pub(crate) value: PbenchNumber,
}

impl<'de> Deserialize<'de> for ClientAggregate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(AllClientsVisitor)
    }
}

impl Serialize for ClientAggregate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct NamedClient<'a> {
            client_hostname: &'static str,
            #[serde(flatten)]
            client: &'a ClientMetric,
        }
        serializer.collect_seq(self.0.iter().map(|client| NamedClient { client_hostname: ALL_CLIENTS, client }))
    }
}

struct AllClientsVisitor;

impl<'de> Visitor<'de> for AllClientsVisitor {
    type Value = ClientAggregate;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of clients")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut clients: A) -> Result<ClientAggregate, A::Error> {
        let mut all = None;
        while let Some(client) = clients.next_element::<OptionalClientAggregate>()? {
            all = all.or(client.0);
        }
        Ok(ClientAggregate(all))
    }
}

/// A client, kept only if it is the aggregate.
struct OptionalClientAggregate(Option<ClientMetric>);

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Field {
    ClientHostname,
    Mean,
    Stddevpct,
    Samples,
    #[serde(other)]
    Other,
}

impl<'de> Deserialize<'de> for OptionalClientAggregate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(AnyClientVisitor)
    }
}

struct AnyClientVisitor;

impl<'de> Visitor<'de> for AnyClientVisitor {
    type Value = OptionalClientAggregate;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a client")
    }

    /// pbench writes the name first, so that the values of single clients need not be parsed.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OptionalClientAggregate, A::Error> {
        let mut is_all = None;
        let mut client = ClientMetric::default();
        while let Some(field) = map.next_key()? {
            match field {
                Field::ClientHostname => {
                    is_all = map.next_value::<Option<BorrowedText<'de>>>()?.map(|name| name.0 == ALL_CLIENTS)
                }
                Field::Mean if is_all != Some(false) => client.mean = map.next_value()?,
                Field::Stddevpct if is_all != Some(false) => client.stddevpct = map.next_value()?,
                Field::Samples if is_all != Some(false) => {
                    client.samples = map.next_value::<Option<Vec<PbenchSample>>>()?.unwrap_or_default();
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(OptionalClientAggregate((is_all == Some(true)).then_some(client)))
    }
}
