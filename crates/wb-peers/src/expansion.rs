//! The cells of a matrix: ordered pairs of endpoints, with one common value of each axis that applies.

use std::fmt::Write;

use crate::matrix::{Endpoint, Matrix, Suite};

/// Two endpoints, and what they are to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell<'m> {
    /// Whether both endpoints are baselines.
    pub is_baseline: bool,
    /// Opens connections.
    pub dialer: &'m Endpoint,
    /// Accepts connections.
    pub listener: &'m Endpoint,
    /// One value for each axis that both support; `None` where the axis does not apply.
    pub values: Vec<Option<&'m str>>,
}

impl Cell<'_> {
    /// The name as libp2p's suites write it: `DIALER x LISTENER (tcp, noise, yamux)`.
    pub fn name(&self) -> String {
        let mut name = format!("{} x {}", self.dialer.id, self.listener.id);
        let values: Vec<&str> = self.values.iter().flatten().copied().collect();
        if !values.is_empty() {
            // Writing to a string does not fail.
            let _ = write!(name, " ({})", values.join(", "));
        }
        name
    }
}

/// Two endpoints that no cell can have, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImpossiblePair<'m> {
    /// Whether both endpoints are baselines.
    pub is_baseline: bool,
    pub dialer: &'m Endpoint,
    pub listener: &'m Endpoint,
    pub obstacle: Obstacle<'m>,
}

/// Why two endpoints have no cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle<'m> {
    DifferentProtocols,
    /// The first cannot open connections.
    NoDialer,
    /// The second cannot accept connections.
    NoListener,
    /// An axis of which they support no common value.
    NothingInCommon(&'m str),
}

impl std::fmt::Display for Obstacle<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::DifferentProtocols => f.write_str("different protocols"),
            Self::NoDialer => f.write_str("the first cannot open connections"),
            Self::NoListener => f.write_str("the second cannot accept connections"),
            Self::NothingInCommon(axis) => write!(f, "no common {axis}"),
        }
    }
}

pub type PairCells<'m> = Result<Vec<Cell<'m>>, ImpossiblePair<'m>>;

/// Lists the cells of each ordered pair, pairs of an endpoint with itself included: baselines first, dialers and
/// listeners in the order of the file, values in the order of the dialer, nested in the order of the axes.
pub fn pairs(matrix: &Matrix) -> impl Iterator<Item = PairCells<'_>> {
    product(matrix, &matrix.baselines, true).chain(product(matrix, &matrix.endpoints, false))
}

fn product<'m>(
    matrix: &'m Matrix,
    endpoints: &'m [Endpoint],
    is_baseline: bool,
) -> impl Iterator<Item = PairCells<'m>> {
    endpoints
        .iter()
        .flat_map(move |dialer| endpoints.iter().map(move |listener| pair_cells(matrix, is_baseline, dialer, listener)))
}

fn pair_cells<'m>(
    matrix: &'m Matrix,
    is_baseline: bool,
    dialer: &'m Endpoint,
    listener: &'m Endpoint,
) -> PairCells<'m> {
    let mut cells = Vec::new();
    let mut obstacle = None;
    if dialer.protocol != listener.protocol {
        obstacle = Some(Obstacle::DifferentProtocols);
    } else if !dialer.can_dial() {
        obstacle = Some(Obstacle::NoDialer);
    } else if !listener.can_listen() {
        obstacle = Some(Obstacle::NoListener);
    } else {
        let expansion = Expansion { matrix, is_baseline, dialer, listener };
        expansion.add_cells(&mut Vec::new(), &mut cells, &mut obstacle);
    }
    match obstacle {
        Some(obstacle) if cells.is_empty() => Err(ImpossiblePair { is_baseline, dialer, listener, obstacle }),
        _ => Ok(cells),
    }
}

struct Expansion<'m> {
    matrix: &'m Matrix,
    is_baseline: bool,
    dialer: &'m Endpoint,
    listener: &'m Endpoint,
}

impl<'m> Expansion<'m> {
    /// Adds the cells whose values begin with `values`, and notes the first axis without a common value.
    fn add_cells(
        &self,
        values: &mut Vec<Option<&'m str>>,
        cells: &mut Vec<Cell<'m>>,
        obstacle: &mut Option<Obstacle<'m>>,
    ) {
        let axis = values.len();
        let Some(name) = self.matrix.axes.get(axis) else {
            let Self { is_baseline, dialer, listener, .. } = *self;
            return cells.push(Cell { is_baseline, dialer, listener, values: values.clone() });
        };
        if !self.applies(axis, values) {
            values.push(None);
            self.add_cells(values, cells, obstacle);
            values.pop();
            return;
        }
        let both = self.dialer.supports[axis].iter().filter(|value| self.listener.supports[axis].contains(value));
        let mut has_common = false;
        for value in both {
            has_common = true;
            values.push(Some(value));
            self.add_cells(values, cells, obstacle);
            values.pop();
        }
        if !has_common && obstacle.is_none() {
            *obstacle = Some(Obstacle::NothingInCommon(&name.0));
        }
    }

    /// Whether an axis applies to a cell with these values of the axes before it.
    fn applies(&self, axis: usize, values: &[Option<&str>]) -> bool {
        let holds = |(axis, of): &(usize, Vec<String>)| {
            values[*axis].is_some_and(|value| of.iter().any(|candidate| candidate == value))
        };
        if self.matrix.rules.iter().any(|rule| rule.drop.contains(&axis) && rule.when.iter().all(holds)) {
            return false;
        }
        let is_unused = self.dialer.supports[axis].is_empty() && self.listener.supports[axis].is_empty();
        // The suites know endpoints without a secure channel only as baselines.
        !(is_unused && (self.is_baseline || self.matrix.suite == Suite::Weighbridge))
    }
}
