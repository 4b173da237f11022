//! The request of a session: the tests and settings that make up the plan of each profile.

use std::collections::BTreeMap;

use wb_model::CellId;
use wb_plan::{Catalog, Plan, PlanWorkers, Request, Sampling, SelectableCell, Selection, UnmatchedAssignment, spec};
use wb_profile::NamedProfile;
use wb_test::Registry;

use crate::error::SessionError;
use crate::event::{EventSink, SessionEvent};

/// Placeholder for the requested tests in the test list of a profile.
const REQUESTED_TESTS: &str = "$@";

pub struct MeasureRequest {
    /// The name of the plan, or the tests as given, with secrets masked.
    pub name: String,
    /// The text of the plan, if there is one.
    pub text: Option<String>,
    pub publish: Option<String>,
    pub requests: Vec<Request>,
    pub sampling: Sampling,
    pub selection: Selection,
    pub registry: Registry,
}

impl MeasureRequest {
    /// Makes the plan for these workers in a profile, and warns if the time budget is too small.
    pub fn plan(
        &self,
        workers: Option<&PlanWorkers>,
        named: &NamedProfile,
        events: &EventSink,
    ) -> Result<Plan, SessionError> {
        let plan = self.expand(workers, named)?;
        // What another profile has may be missing in one with tests of its own.
        if (plan.cells.is_empty() || named.profile.tests.is_none())
            && let Some(UnmatchedAssignment { message, help }) = self.find_unmatched(&plan)
        {
            return Err(SessionError::UnmatchedSelection { message, help });
        }
        if plan.cells.is_empty() {
            let patterns = self.selection.select_patterns();
            return Err(SessionError::EmptyPlan { plan: self.name.clone(), patterns, skipped: plan.skipped.len() });
        }
        self.report_unmatched_patterns(&plan, named, events);
        report_shortfalls(&plan, &self.registry, events);
        Ok(plan)
    }

    /// Reports patterns that select nothing, which are probably misspelt. One that names a profile may be meant for another.
    fn report_unmatched_patterns(&self, plan: &Plan, named: &NamedProfile, events: &EventSink) {
        let cells = self.selectable_cells(plan);
        let is_of_profile =
            |pattern: &&str| pattern.split_once('/').is_none_or(|(profile, _)| profile == named.name.as_str());
        if named.profile.tests.is_none() {
            for pattern in self.selection.unmatched_patterns(&cells).into_iter().filter(is_of_profile) {
                events.emit(SessionEvent::UnmatchedPattern(pattern.to_owned()));
            }
        }
    }

    /// All cells of a plan, the skipped ones included.
    fn selectable_cells<'a>(&'a self, plan: &'a Plan) -> Vec<SelectableCell<'a>> {
        let cells = plan.cells.iter().map(|cell| (&cell.id, &cell.params, &cell.matrix_name));
        let skipped = plan.skipped.iter().map(|cell| (&cell.id, &cell.params, &cell.matrix_name));
        let selectable = |(id, params, matrix_name): (&'a CellId, _, &'a Option<String>)| {
            let declaration = self.registry.declaration(id.test.as_str());
            SelectableCell::new(id, params, declaration).with_matrix_name(matrix_name.as_deref())
        };
        cells.chain(skipped).map(selectable).collect()
    }

    /// Expands the requests into cells, without warnings; the plan may be empty.
    pub fn expand(&self, workers: Option<&PlanWorkers>, named: &NamedProfile) -> Result<Plan, SessionError> {
        let requests = self.profile_requests(named)?;
        Ok(wb_plan::expand(&requests, &self.sampling, &self.registry, workers, &named.name, &self.selection)?)
    }

    /// What the selection names and no requested cell has.
    fn find_unmatched(&self, plan: &Plan) -> Option<UnmatchedAssignment> {
        if self.selection.is_unrestricted() {
            return None;
        }
        self.selection.find_unmatched(&self.selectable_cells(plan))
    }

    /// The tests of a profile: its own, in which `$@` stands for the requested ones, or else the requested ones.
    fn profile_requests(&self, named: &NamedProfile) -> Result<Vec<Request>, SessionError> {
        let Some(tests) = &named.profile.tests else { return Ok(self.requests.clone()) };
        let mut requests = Vec::new();
        for test in tests {
            match test.as_str() {
                REQUESTED_TESTS => requests.extend(self.requests.iter().cloned()),
                spec => requests.push(spec::parse(spec)?),
            }
        }
        Ok(requests)
    }
}

/// Reports tests whose minimum number of samples does not fit into the time budget.
fn report_shortfalls(plan: &Plan, registry: &Registry, events: &EventSink) {
    let mut shortfalls = BTreeMap::new();
    for cell in &plan.cells {
        if let Some(shortfall) = plan.shortfall(cell) {
            let test_cell = registry.test_cell(cell.id.test.as_str(), &cell.params);
            let shortening = test_cell.and_then(|cell| cell.shortening());
            *shortfalls.entry((&cell.id.test, shortfall, shortening)).or_insert(0) += 1;
        }
    }
    let budget_seconds = plan.sampling.budget.map_or(0.0, |budget| budget.seconds());
    for ((test, shortfall, shortening), cells) in shortfalls {
        events.emit(SessionEvent::BudgetShortfall { test: test.clone(), cells, shortfall, budget_seconds, shortening });
    }
}
