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
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    use crate::engine::latency::LatencyHistogram;

    #[test]
    fn a_latency_histogram_round_trips() {
        let mut histogram = LatencyHistogram::new(3);
        (1..5000).for_each(|n| histogram.record(n * 1000));
        let text = serde_json::to_string(&histogram).expect("it is text");
        let decoded: LatencyHistogram = serde_json::from_str(&text).expect("it is a histogram");
        assert_eq!(decoded, histogram);
    }

    // The bounds that the other side sends determine how much memory its histogram takes.
    #[test]
    fn a_histogram_that_would_need_much_memory_is_refused() {
        let histogram = LatencyHistogram::new(3);
        let text = serde_json::to_string(&histogram).expect("it is text");
        let mut value: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
        let bytes = STANDARD.decode(value["counts"].as_str().expect("text")).expect("base64");
        for hostile in [(4..8, vec![0x7f; 4]), (12..16, vec![0, 0, 0, 5]), (24..32, vec![0x7f; 8])] {
            let mut bytes = bytes.clone();
            bytes.splice(hostile.0, hostile.1);
            value["counts"] = STANDARD.encode(bytes).into();
            assert!(serde_json::from_value::<LatencyHistogram>(value.clone()).is_err());
        }
    }
}
