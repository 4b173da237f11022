//! The instruction set a kernel runs with: named by the user, never guessed by the compiler.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// Instructions that the measured loops may use, chosen at run time.
///
/// Ordered from narrow to wide. A kernel compiled for one of these is the same machine code
/// whatever machine built it.
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

/// The CPU lacks an instruction set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this cpu lacks isa {isa}: it has {}", names(available))]
pub struct UnsupportedIsa {
    /// The instruction set that was asked for.
    pub isa: Isa,
    /// Those that this CPU has.
    pub available: Vec<Isa>,
}

/// A name that is no instruction set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no isa: one of {all}", all = names(&Isa::ALL))]
pub struct UnknownIsa(pub String);

impl Isa {
    /// Every instruction set, narrow to wide.
    pub const ALL: [Self; 4] = [Self::Scalar, Self::Sse2, Self::Avx2, Self::Avx512];

    /// Those that this CPU and its operating system support, narrow to wide.
    #[must_use]
    pub fn available() -> Vec<Self> {
        Self::ALL.into_iter().filter(|isa| isa.exists()).collect()
    }

    /// The widest that this CPU and its operating system support.
    #[must_use]
    pub fn widest() -> Self {
        Self::ALL.into_iter().rfind(|isa| isa.exists()).unwrap_or(Self::Scalar)
    }

    /// Returns an error if this CPU lacks the instruction set.
    ///
    /// # Errors
    /// [`UnsupportedIsa`] with those that this CPU has.
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
    fn a_name_survives_display_parse_and_serde() {
        for isa in Isa::ALL {
            assert_eq!(isa.to_string().parse(), Ok(isa));
            assert_eq!(serde_json::to_string(&isa).unwrap(), format!("\"{isa}\""));
        }
    }

    #[test]
    fn an_unknown_name_lists_the_known() {
        assert_eq!("mmx".parse::<Isa>().unwrap_err().to_string(), "`mmx` is no isa: one of scalar, sse2, avx2, avx512");
    }

    #[test]
    fn scalar_is_always_there_and_the_widest_is_the_last_available() {
        let available = Isa::available();
        assert_eq!(available.first(), Some(&Isa::Scalar));
        assert_eq!(available.last(), Some(&Isa::widest()));
        assert!(Isa::widest().require().is_ok());
    }

    #[test]
    fn a_missing_isa_is_named_with_those_that_are_there() {
        let error = UnsupportedIsa { isa: Isa::Avx512, available: vec![Isa::Scalar, Isa::Sse2] };
        assert_eq!(error.to_string(), "this cpu lacks isa avx512: it has scalar, sse2");
    }
}
