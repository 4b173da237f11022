//! The instruction sets for which each kernel is compiled, and which of them this machine supports.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The instruction set that the measured loops use, selected at run time.
///
/// Ordered from narrow to wide. The machine code of a kernel for one instruction set does not depend on the machine
/// that compiled it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Isa {
    /// One element per instruction.
    Scalar,
    /// 128-bit vectors.
    Sse2,
    /// 256-bit vectors with fused multiply-add.
    Avx2,
    /// 512-bit vectors (f, vl, dq, bw).
    Avx512,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unsupported instruction set {isa}: this machine supports {}", names(available))]
pub struct UnsupportedIsa {
    pub isa: Isa,
    pub available: Vec<Isa>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown instruction set `{0}`: expected one of {all}", all = names(&Isa::ALL))]
pub struct UnknownIsa(pub String);

impl Isa {
    pub const ALL: [Self; 4] = [Self::Scalar, Self::Sse2, Self::Avx2, Self::Avx512];

    /// What this CPU and its operating system support, narrow to wide.
    #[must_use]
    pub fn available() -> Vec<Self> {
        Self::ALL.into_iter().filter(|isa| isa.exists()).collect()
    }

    #[must_use]
    pub fn widest() -> Self {
        Self::ALL.into_iter().rfind(|isa| isa.exists()).unwrap_or(Self::Scalar)
    }

    pub fn require(self) -> Result<(), UnsupportedIsa> {
        if self.exists() { Ok(()) } else { Err(UnsupportedIsa { isa: self, available: Self::available() }) }
    }

    /// The name as users type it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Sse2 => "sse2",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn exists(self) -> bool {
        match self {
            Self::Scalar | Self::Sse2 => true,
            Self::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            Self::Avx512 => {
                Self::Avx2.exists()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512bw")
            }
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn exists(self) -> bool {
        self == Self::Scalar
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Isa {
    type Err = UnknownIsa;

    fn from_str(name: &str) -> Result<Self, UnknownIsa> {
        Self::ALL.into_iter().find(|isa| isa.name() == name).ok_or_else(|| UnknownIsa(name.to_owned()))
    }
}

fn names(all: &[Isa]) -> String {
    all.iter().map(|isa| isa.name()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_round_trips_through_display_parse_and_serde() {
        for isa in Isa::ALL {
            assert_eq!(isa.to_string().parse(), Ok(isa));
            assert_eq!(serde_json::to_string(&isa).unwrap(), format!("\"{isa}\""));
        }
    }

    #[test]
    fn an_unknown_name_lists_the_valid_ones() {
        assert_eq!(
            "mmx".parse::<Isa>().unwrap_err().to_string(),
            "unknown instruction set `mmx`: expected one of scalar, sse2, avx2, avx512"
        );
    }

    #[test]
    fn scalar_is_always_available_and_the_widest_is_the_last() {
        let available = Isa::available();
        assert_eq!(available.first(), Some(&Isa::Scalar));
        assert_eq!(available.last(), Some(&Isa::widest()));
        assert!(Isa::widest().require().is_ok());
    }

    #[test]
    fn an_unsupported_isa_is_reported_with_the_supported_ones() {
        let error = UnsupportedIsa { isa: Isa::Avx512, available: vec![Isa::Scalar, Isa::Sse2] };
        assert_eq!(error.to_string(), "unsupported instruction set avx512: this machine supports scalar, sse2");
    }
}
