//! Scaling with the number of connections: round trips over all of them at the same time.

use super::peers;
use crate::bench_env::BenchEnv;
use crate::limits::{BenchFigure, LimitCheck};

/// Numbers of simultaneous connections.
const CONNECTIONS: [u32; 5] = [1, 10, 100, 1000, 10_000];

pub(crate) fn limits(env: &BenchEnv) -> Vec<LimitCheck<'_>> {
    vec![LimitCheck::new("net growth", || growth_figures(env))]
}

/// Measures round trips per second, and the server's memory for each additional connection.
fn growth_figures(env: &BenchEnv) -> Result<Vec<BenchFigure>, String> {
    let mut figures = Vec::new();
    let mut baseline = None;
    for connections in CONNECTIONS {
        let measured = peers::many_connections(env, connections)?.measure().map_err(|error| error.to_string())?;
        let results: serde_json::Value = serde_json::from_str(&measured.output).map_err(|error| error.to_string())?;
        let totals = &results[0]["totals"];
        let name = format!("{connections} connection{}", if connections == 1 { "" } else { "s" });
        let rounds = totals["rounds-per-second"].as_f64().ok_or("missing `rounds-per-second` in the result")?;
        figures.push(BenchFigure::new(name.clone(), rounds, "round trips/s", None));
        let memory = measured.server_memory.ok_or("the server exited by itself")? as f64;
        match baseline {
            None => {
                baseline = Some(memory);
                figures.push(BenchFigure::new(format!("{name}: server memory"), memory / 1e6, "MB", None));
            }
            Some(baseline) => {
                let per_connection = (memory - baseline) / f64::from(connections - 1) / 1e3;
                figures.push(BenchFigure::new(
                    format!("{name}: server memory per additional connection"),
                    per_connection,
                    "kB",
                    None,
                ));
            }
        }
    }
    Ok(figures)
}
