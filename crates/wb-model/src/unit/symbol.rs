//! The table of symbols of units, and the prefixes that each takes.

#[derive(Debug)]
pub(super) struct Symbol {
    /// Its notations; the first is the one that is written.
    pub(super) names: &'static [&'static str],
    pub(super) prefixes: PrefixFamily,
}

/// Prefixes that a symbol takes when it is read, and when it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PrefixFamily {
    /// Physical units have multiples and fractions, told apart by their case: `MW` and `mW`.
    Physical,
    /// Events have no fractions; yet `m/s` is no rate of millions.
    Counted,
    /// Bits and operations have no fractions, and are often written in lower case: `mflops`, `gbps`, `Kbit`.
    Data,
    /// Bytes: multiples are read in powers of 1000 (`MB`) and of 1024 (`MiB`), and written as what was read; without a
    /// prefix, in powers of 1024.
    Bytes,
}

use PrefixFamily::{Bytes, Counted, Data, Physical};

/// All symbols. Anything else is a word, such as `requests/s`.
pub(super) const SYMBOLS: [Symbol; 16] = [
    Symbol { names: &["s", "sec"], prefixes: Physical },
    Symbol { names: &["Hz"], prefixes: Physical },
    Symbol { names: &["W"], prefixes: Physical },
    Symbol { names: &["Wh"], prefixes: Physical },
    Symbol { names: &["J"], prefixes: Physical },
    Symbol { names: &["V"], prefixes: Physical },
    Symbol { names: &["A"], prefixes: Physical },
    Symbol { names: &["B"], prefixes: Bytes },
    Symbol { names: &["B/s", "B/sec", "Bps"], prefixes: Bytes },
    Symbol { names: &["bit"], prefixes: Data },
    Symbol { names: &["bit/s", "bits/s", "bit/sec", "bits/sec", "b/s", "bps"], prefixes: Data },
    Symbol { names: &["flops", "flop/s", "FLOPS", "FLOP/s"], prefixes: Data },
    Symbol { names: &["IPS"], prefixes: Counted },
    Symbol { names: &["IOPS"], prefixes: Counted },
    Symbol { names: &["pps"], prefixes: Counted },
    Symbol { names: &["/s", "1/s"], prefixes: Counted },
];

pub(super) type Prefixes = &'static [(&'static str, f64)];

pub(super) const BINARY: [(&str, f64); 5] =
    [("Ti", 1_099_511_627_776.0), ("Gi", 1_073_741_824.0), ("Mi", 1_048_576.0), ("Ki", 1024.0), ("", 1.0)];
pub(super) const MULTIPLES: [(&str, f64); 5] = [("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0)];
const MULTIPLES_AND_FRACTIONS: [(&str, f64); 9] =
    [("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0), ("m", 1e-3), ("µ", 1e-6), ("n", 1e-9), ("p", 1e-12)];
/// Longer times are not written in kiloseconds.
const FRACTIONS: [(&str, f64); 4] = [("", 1.0), ("m", 1e-3), ("µ", 1e-6), ("n", 1e-9)];

/// Notations that are read besides those that are written: `u` and the Greek letter for `µ`.
const PHYSICAL_ALIASES: [(&str, f64); 2] = [("u", 1e-6), ("μ", 1e-6)];
const DATA_ALIASES: [(&str, f64); 4] = [("K", 1e3), ("m", 1e6), ("g", 1e9), ("t", 1e12)];

impl Symbol {
    pub(super) fn name(&self) -> &'static str {
        self.names[0]
    }

    /// The prefixes that it is written with, largest first.
    pub(super) fn written(&self) -> Prefixes {
        match self.prefixes {
            Physical if self.name() == "s" => &FRACTIONS,
            Physical => &MULTIPLES_AND_FRACTIONS,
            Counted | Data => &MULTIPLES,
            Bytes => &BINARY,
        }
    }

    /// The prefixes that it is read with: name, factor, and the prefixes to write its values with.
    pub(super) fn read(&self) -> impl Iterator<Item = (&'static str, f64, Prefixes)> {
        let readings: Vec<(Prefixes, Prefixes)> = match self.prefixes {
            Physical => vec![(&MULTIPLES_AND_FRACTIONS, self.written()), (&PHYSICAL_ALIASES, self.written())],
            Counted => vec![(&MULTIPLES, &MULTIPLES)],
            Data => vec![(&MULTIPLES, &MULTIPLES), (&DATA_ALIASES, &MULTIPLES)],
            // Without a prefix, bytes are written in powers of 1024, so that reading is first here.
            Bytes => vec![(&BINARY, &BINARY), (&MULTIPLES, &MULTIPLES), (&DATA_ALIASES, &MULTIPLES)],
        };
        readings
            .into_iter()
            .flat_map(|(read, written)| read.iter().map(move |(name, factor)| (*name, *factor, written)))
    }
}
