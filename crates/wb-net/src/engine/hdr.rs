//! The buckets of a histogram as text.

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serializer};
use wb_results::net::histogram::{decode, encode};

use super::buckets::Buckets;

pub(super) fn serialize<S: Serializer>(counts: &Buckets, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&encode(&counts.to_hdr()).map_err(S::Error::custom)?)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Buckets, D::Error> {
    let histogram = decode(&String::deserialize(from)?).map_err(D::Error::custom)?;
    Ok(Buckets::from(&histogram))
}

#[cfg(test)]
mod tests {
    use crate::engine::latency::LatencyHistogram;

    #[test]
    fn a_latency_histogram_round_trips() {
        let mut histogram = LatencyHistogram::new(3);
        (1..5000).for_each(|n| histogram.record(n * 1000));
        let text = serde_json::to_string(&histogram).expect("it is text");
        let decoded: LatencyHistogram = serde_json::from_str(&text).expect("it is a histogram");
        assert_eq!(decoded, histogram);
    }
}
