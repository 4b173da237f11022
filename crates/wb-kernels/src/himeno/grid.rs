//! The five grid sizes of the Himeno benchmark.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Size of the grid in points, boundaries included, and memory of its 14 single-precision arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Grid {
    /// 32 × 32 × 64, 3.7 MB
    XS,
    /// 64 × 64 × 128, 29 MB
    S,
    /// 128 × 128 × 256, 235 MB
    M,
    /// 256 × 256 × 512, 1.9 GB
    L,
    /// 512 × 512 × 1024, 15 GB
    XL,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown grid `{0}`: expected one of XS, S, M, L, XL")]
pub struct UnknownGrid(pub String);

impl Grid {
    pub const ALL: [Self; 5] = [Self::XS, Self::S, Self::M, Self::L, Self::XL];

    /// Number of planes, of rows in a plane, and of points in a row.
    #[must_use]
    pub const fn extent(self) -> [usize; 3] {
        match self {
            Self::XS => [32, 32, 64],
            Self::S => [64, 64, 128],
            Self::M => [128, 128, 256],
            Self::L => [256, 256, 512],
            Self::XL => [512, 512, 1024],
        }
    }

    /// All points but the boundary.
    #[must_use]
    pub fn interior_points(self) -> u64 {
        self.extent().iter().map(|&length| length as u64 - 2).product()
    }

    /// 34 for each interior point, the count that the original benchmark uses.
    #[must_use]
    pub fn flops_per_iteration(self) -> u64 {
        34 * self.interior_points()
    }

    /// The name in results; users may also type it in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::XS => "XS",
            Self::S => "S",
            Self::M => "M",
            Self::L => "L",
            Self::XL => "XL",
        }
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Grid {
    type Err = UnknownGrid;

    fn from_str(name: &str) -> Result<Self, UnknownGrid> {
        Self::ALL
            .into_iter()
            .find(|grid| grid.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| UnknownGrid(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_round_trips_through_text_and_json() {
        for grid in Grid::ALL {
            assert_eq!(grid.to_string().to_lowercase().parse(), Ok(grid));
            let json = format!("\"{grid}\"");
            assert_eq!(serde_json::to_string(&grid).unwrap(), json);
            assert_eq!(serde_json::from_str::<Grid>(&json).unwrap(), grid);
        }
        assert_eq!(
            "XXL".parse::<Grid>().unwrap_err().to_string(),
            "unknown grid `XXL`: expected one of XS, S, M, L, XL"
        );
    }

    #[test]
    fn flops_are_thirty_four_for_each_interior_point() {
        assert_eq!(Grid::S.flops_per_iteration(), 34 * 62 * 62 * 126);
    }
}
