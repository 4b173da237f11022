//! Scenarios that a peers file defines.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use wb_model::Bytes;
use wb_results::{Measure, Scenario};

/// A scenario of a peers file. Its text is `NAME=SEND/RECEIVE*ITERATIONS`, followed by ` latency` where times are
/// measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomScenario {
    pub name: Arc<str>,
    pub measure: Measure,
    /// Bytes from the dialer to the listener, which are sent first.
    pub send: Bytes,
    /// Bytes from the listener to the dialer.
    pub receive: Bytes,
    pub iterations: u32,
}

const LATENCY_SUFFIX: &str = " latency";

impl CustomScenario {
    pub fn scenario(&self) -> Scenario {
        Scenario::Custom { name: self.name.clone(), measure: self.measure }
    }
}

impl fmt::Display for CustomScenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, measure, send, receive, iterations } = self;
        write!(f, "{name}={}/{}*{iterations}", send.0, receive.0)?;
        if *measure == Measure::Latency { f.write_str(LATENCY_SUFFIX) } else { Ok(()) }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid scenario `{0}`: expected NAME=SEND/RECEIVE*ITERATIONS")]
pub struct InvalidScenario(String);

impl FromStr for CustomScenario {
    type Err = InvalidScenario;

    fn from_str(text: &str) -> Result<Self, InvalidScenario> {
        let parse = || {
            let (rest, measure) = match text.strip_suffix(LATENCY_SUFFIX) {
                Some(rest) => (rest, Measure::Latency),
                None => (text, Measure::Throughput),
            };
            let (name, rest) = rest.split_once('=')?;
            let (bytes, iterations) = rest.split_once('*')?;
            let (send, receive) = bytes.split_once('/')?;
            let bytes = |text: &str| Some(Bytes(text.parse().ok()?));
            Some(Self {
                name: name.into(),
                measure,
                send: bytes(send)?,
                receive: bytes(receive)?,
                iterations: iterations.parse().ok()?,
            })
        };
        parse().ok_or_else(|| InvalidScenario(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_scenario_is_read_as_it_was_written(
            name in "[a-z][a-z0-9-]{0,9}", send: u64, receive: u64, iterations: u32, is_latency: bool,
        ) {
            let measure = if is_latency { Measure::Latency } else { Measure::Throughput };
            let scenario =
                CustomScenario { name: name.into(), measure, send: Bytes(send), receive: Bytes(receive), iterations };
            prop_assert_eq!(scenario.to_string().parse(), Ok(scenario));
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = text.parse::<CustomScenario>();
        }
    }
}
