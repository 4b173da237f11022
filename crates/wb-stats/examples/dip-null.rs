//! Simulates the dip of uniform samples and prints the table of `src/dip_null.rs`.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use wb_stats::{Samples, dip};

const COUNTS: [usize; 13] = [6, 7, 8, 9, 10, 12, 15, 20, 30, 50, 100, 200, 500];
const LEVELS: [f64; 7] = [0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.001];

fn main() {
    println!("pub(crate) const NULL: [(usize, [f64; {}]); {}] = [", LEVELS.len(), COUNTS.len());
    for n in COUNTS {
        let dips = scaled_dips(n, if n > 100 { 20_000 } else { 200_000 });
        let critical: Vec<String> = LEVELS.iter().map(|p| format!("{:.3}", dips.quantile(1.0 - p))).collect();
        println!("    ({n}, [{}]),", critical.join(", "));
    }
    println!("];");
}

fn scaled_dips(n: usize, repetitions: usize) -> Samples {
    let mut rng = ChaCha8Rng::seed_from_u64(n as u64);
    let mut dips = Vec::with_capacity(repetitions);
    for _ in 0..repetitions {
        let uniform: Vec<f64> = (0..n).map(|_| rng.random()).collect();
        let dip = Samples::new(&uniform).ok().and_then(|samples| dip(&samples));
        dips.extend(dip.map(|dip| dip.dip * (n as f64).sqrt()));
    }
    Samples::new(&dips).expect("dips are finite")
}
