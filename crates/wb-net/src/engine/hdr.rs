//! Histograms as text: HdrHistogram's own V2 encoding in base64, which its other implementations can read.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer as Reader, Serializer as _, V2SerializeError, V2Serializer};
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

use super::buckets::Buckets;

/// Upper limit for the base64 of a latency histogram, in bytes.
const MAX_ENCODED_LEN: usize = 1 << 20;

pub(super) fn serialize<S: Serializer>(counts: &Buckets, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&encode(&counts.to_hdr()).map_err(S::Error::custom)?)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Buckets, D::Error> {
    let histogram = decode(&String::deserialize(from)?).map_err(D::Error::custom)?;
    Ok(Buckets::from(&histogram))
}

pub(crate) fn encode(histogram: &Histogram<u32>) -> Result<String, V2SerializeError> {
    let mut bytes = Vec::new();
    V2Serializer::new().serialize(histogram, &mut bytes)?;
    Ok(STANDARD.encode(bytes))
}

/// Decodes a latency histogram from untrusted text.
pub(crate) fn decode(text: &str) -> Result<Histogram<u32>, String> {
    if text.len() > MAX_ENCODED_LEN {
        return Err("histogram too long: expected at most 1 MiB".to_owned());
    }
    let bytes = STANDARD.decode(text).map_err(|error| error.to_string())?;
    if !has_latency_header(&bytes) {
        return Err("invalid latency histogram: unexpected header".to_owned());
    }
    Reader::new().deserialize(&mut bytes.as_slice()).map_err(|error| error.to_string())
}

/// Whether the header is of V2, with the actual payload length, and with a range of at most an hour at three digits:
/// these fields determine how much memory the decoder allocates.
fn has_latency_header(bytes: &[u8]) -> bool {
    let Some((header, payload)) = bytes.split_at_checked(40) else { return false };
    header[0..4] == [0x1c, 0x84, 0x93, 0x13]
        && header[4..8] == (payload.len() as u32).to_be_bytes()
        && header[12..16] <= [0, 0, 0, 3][..]
        && header[24..32] <= (1_u64 << 42).to_be_bytes()[..]
}

#[cfg(test)]
mod tests {
    use base64::Engine;

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
        let bytes = super::STANDARD.decode(value["counts"].as_str().expect("text")).expect("base64");
        for hostile in [(4..8, vec![0x7f; 4]), (12..16, vec![0, 0, 0, 5]), (24..32, vec![0x7f; 8])] {
            let mut bytes = bytes.clone();
            bytes.splice(hostile.0, hostile.1);
            value["counts"] = super::STANDARD.encode(bytes).into();
            assert!(serde_json::from_value::<LatencyHistogram>(value.clone()).is_err());
        }
    }
}
