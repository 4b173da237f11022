//! What more and more connections cost: round trips over all of them at a time.

use super::peers;
use crate::{
    bench_env::BenchEnv,
    limits::{BenchFigure, LimitCheck},
};

/// Connections at a time.
const CONNECTIONS: [u32; 5] = [1, 10, 100, 1000, 10_000];

pub(crate) fn limits(place: &BenchEnv) -> Vec<LimitCheck<'_>> {
    vec![LimitCheck::new("net growth", || growth_figures(place))]
}

/// Round trips per second, and the server's memory for each connection more than one.
fn growth_figures(place: &BenchEnv) -> Result<Vec<BenchFigure>, String> {
    let mut figures = Vec::new();
    let mut alone = None;
    for connections in CONNECTIONS {
        let measured = peers::many_connections(place, connections)?.measure().map_err(|error| error.to_string())?;
        let printed: serde_json::Value = serde_json::from_str(&measured.printed).map_err(|error| error.to_string())?;
        let totals = &printed[0]["totals"];
        let name = format!("{connections} connection{}", if connections == 1 { "" } else { "s" });
        let rounds = totals["rounds-per-second"].as_f64().ok_or("the result has no rounds")?;
        figures.push(BenchFigure::new(format!("{name}:"), rounds, "round trips/s", None));
        let memory = measured.server_memory.ok_or("the server ended by itself")? as f64;
        match alone {
            None => {
                alone = Some(memory);
                figures.push(BenchFigure::new(format!("{name}: the server's memory"), memory / 1e6, "MB", None));
            }
            Some(alone) => {
                let each = (memory - alone) / f64::from(connections - 1) / 1e3;
                figures.push(BenchFigure::new(format!("{name}: the server's memory for each more"), each, "kB", None));
            }
        }
    }
    Ok(figures)
}
