//! Options that select cells.

use clap::Args;

/// Flags that select cells
#[derive(Debug, Default, Args)]
pub(crate) struct SelectionFlags {
    /// Include only these cells: parameters in any order and by any of their names (`rw=randread,bs=[4k,64k]`,
    /// `fio:bs=4k`), or a glob on cells' names; may be given more than once
    #[arg(long, value_name = "PARAM=VALUE,…|GLOB")]
    pub(crate) select: Vec<String>,
    /// Exclude these cells, named as with --select; may be given more than once
    #[arg(long, value_name = "PARAM=VALUE,…|GLOB")]
    pub(crate) ignore: Vec<String>,
}
