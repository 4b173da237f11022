//! Scaling with the number of connections: round trips over all of them at the same time.

use super::peers;
use crate::bench_env::BenchEnv;
use crate::benchmark::{BenchFigure, Benchmark, FigureBound};

/// The limit of the server's memory for each additional connection in kB, with this number of connections.
const MEMORY_LIMIT: (u32, f64) = (10_000, 4.096);

const CONNECTIONS: [u32; 5] = [1, 10, 100, 1000, 10_000];

pub(crate) fn benchmarks(env: &BenchEnv) -> Vec<Benchmark<'_>> {
    vec![Benchmark::new("net growth", || growth_figures(env)), Benchmark::new("net start-up", || start_up_figures(env))]
}

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
                let bound = (connections == MEMORY_LIMIT.0).then_some(FigureBound::Below(MEMORY_LIMIT.1));
                figures.push(BenchFigure::new(
                    format!("{name}: server memory per additional connection"),
                    per_connection,
                    "kB",
                    bound,
                ));
            }
        }
    }
    Ok(figures)
}

/// Strands whose start is measured, and the limit of its time in seconds.
const STARTED_STRANDS: u32 = 1000;
const START_UP_LIMIT: f64 = 0.3;

/// Repetitions of a start.
const STARTS: usize = 7;

/// Measures what a client needs around its transactions: from its start to its exit, without the time of the data phase.
fn start_up_figures(env: &BenchEnv) -> Result<Vec<BenchFigure>, String> {
    let starts: Result<Vec<f64>, String> = (0..STARTS)
        .map(|_| {
            let measured =
                peers::many_connections(env, STARTED_STRANDS)?.measure().map_err(|error| error.to_string())?;
            let results: serde_json::Value =
                serde_json::from_str(&measured.output).map_err(|error| error.to_string())?;
            let seconds = results[0]["totals"]["seconds"].as_f64().ok_or("missing `seconds` in the result")?;
            Ok(measured.client_seconds - seconds)
        })
        .collect();
    let label = format!("{STARTED_STRANDS} strands");
    Ok(vec![BenchFigure::median(label, &starts?, "s", Some(FigureBound::Below(START_UP_LIMIT)))?])
}
