//! Arguments of `peers`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use wb_peers::SelectionFlags;
use wb_peers::selection::SelectIgnore;

/// Exit statuses of `peers list`.
const LIST_EXIT_STATUS: &str = "\
A filter is a list of patterns separated by `|`. A pattern is a part of a name, `glob:GLOB`, `re:REGEX`, or `~ALIAS` of \
the file; `!` in front selects each id that the pattern does not match.

exit status: 0 success, 1 error, 4 nothing is selected";

/// Commands of matrices
#[derive(Debug, Subcommand)]
pub(crate) enum PeersCommand {
    /// Print the names of the cells, baselines first
    #[command(after_help = LIST_EXIT_STATUS)]
    List(Box<PeersListArgs>),
}

/// Arguments of `peers list`
#[derive(Debug, Args)]
pub(crate) struct PeersListArgs {
    /// Matrix: a peers file in TOML or YAML, or impls.yaml or images.yaml of libp2p's performance suites
    pub(crate) file: PathBuf,
    /// Print every possible cell, and why it is in or out
    #[arg(long)]
    pub(crate) why: bool,
    /// Print JSON, with every possible cell
    #[arg(long, conflicts_with = "why")]
    pub(crate) json: bool,
    /// Which cells
    #[command(flatten)]
    pub(crate) selection: MatrixFlags,
}

/// Selection among the cells of a matrix
#[derive(Debug, Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct MatrixFlags {
    /// Keep matching tests: by name, baselines included; by the id of either side for impls.yaml
    #[arg(long, value_name = "FILTER")]
    test_select: Option<String>,
    /// Drop tests whose name matches
    #[arg(long, value_name = "FILTER")]
    test_ignore: Option<String>,
    /// Keep baselines whose id matches
    #[arg(long, value_name = "FILTER")]
    baseline_select: Option<String>,
    /// Drop matching baselines: by id, by name for impls.yaml
    #[arg(long, value_name = "FILTER")]
    baseline_ignore: Option<String>,
    /// Keep tests of which the ids of both sides match
    #[arg(long, value_name = "FILTER")]
    impl_select: Option<String>,
    /// Drop tests of which the id of a side matches
    #[arg(long, value_name = "FILTER")]
    impl_ignore: Option<String>,
    /// Keep tests with a matching transport
    #[arg(long, value_name = "FILTER")]
    transport_select: Option<String>,
    /// Drop tests with a matching transport
    #[arg(long, value_name = "FILTER")]
    transport_ignore: Option<String>,
    /// Keep tests with a matching security layer, or without one
    #[arg(long, value_name = "FILTER", visible_alias = "secure-select")]
    security_select: Option<String>,
    /// Drop tests with a matching security layer
    #[arg(long, value_name = "FILTER", visible_alias = "secure-ignore")]
    security_ignore: Option<String>,
    /// Keep tests with a matching multiplexer, or without one
    #[arg(long, value_name = "FILTER")]
    muxer_select: Option<String>,
    /// Drop tests with a matching multiplexer
    #[arg(long, value_name = "FILTER")]
    muxer_ignore: Option<String>,
    /// Keep tests with a matching value of an axis, or without one; repeatable
    #[arg(long, value_name = "AXIS=FILTER", value_parser = parse_axis_filter)]
    axis_select: Vec<(String, String)>,
    /// Drop tests with a matching value of an axis; repeatable
    #[arg(long, value_name = "AXIS=FILTER", value_parser = parse_axis_filter)]
    axis_ignore: Vec<(String, String)>,
    /// Pair each endpoint with each other, in a suite that pairs it only with itself by default
    #[arg(long)]
    full_matrix_test: bool,
}

impl MatrixFlags {
    /// The selection.
    pub(crate) fn to_selection(&self) -> SelectionFlags {
        let both = |select: &Option<String>, ignore: &Option<String>| SelectIgnore {
            select: select.clone(),
            ignore: ignore.clone(),
        };
        let named = [
            ("transport", both(&self.transport_select, &self.transport_ignore)),
            ("security", both(&self.security_select, &self.security_ignore)),
            ("muxer", both(&self.muxer_select, &self.muxer_ignore)),
        ];
        let named = named.into_iter().filter(|(_, filter)| *filter != SelectIgnore::default());
        let select = self.axis_select.iter().map(|(axis, filter)| (axis.clone(), both(&Some(filter.clone()), &None)));
        let ignore = self.axis_ignore.iter().map(|(axis, filter)| (axis.clone(), both(&None, &Some(filter.clone()))));
        SelectionFlags {
            test: both(&self.test_select, &self.test_ignore),
            baseline: both(&self.baseline_select, &self.baseline_ignore),
            implementation: both(&self.impl_select, &self.impl_ignore),
            axes: named.map(|(axis, filter)| (axis.to_owned(), filter)).chain(select).chain(ignore).collect(),
            full_matrix: self.full_matrix_test,
        }
    }
}

fn parse_axis_filter(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(axis, _)| !axis.is_empty());
    parts.map(|(axis, filter)| (axis.to_owned(), filter.to_owned())).ok_or_else(|| "expected AXIS=FILTER".to_owned())
}
