//! Writes `results.md` in the suites' shape; what did not pass has its cause.

use std::fmt::Write;

use crate::markdown::escape;

use super::display::DisplayScenario;
use super::yaml::Totals;
use super::{BoxStatistics, MatrixResults, Scenario};

/// Writes results as Markdown: header, summary, a table of each scenario, and the status of each cell.
pub fn markdown(results: &MatrixResults) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write_results(&mut text, results);
    text
}

fn write_results(out: &mut String, results: &MatrixResults) -> std::fmt::Result {
    let metadata = &results.metadata;
    let totals = Totals::new(results);
    let (all, passed) = totals.all();
    let rate = if all > 0 { passed as f64 * 100.0 / all as f64 } else { 0.0 };
    writeln!(out, "# Performance Test Results\n")?;
    writeln!(out, "**Test Pass:** {}", escape(&metadata.test_pass))?;
    writeln!(out, "**Started:** {}", escape(&metadata.started_at))?;
    writeln!(out, "**Completed:** {}", escape(&metadata.completed_at))?;
    writeln!(out, "**Duration:** {}s", metadata.duration_seconds)?;
    writeln!(out, "**Platform:** {} ({})\n", escape(&metadata.platform), escape(&metadata.os))?;
    writeln!(out, "## Summary\n")?;
    writeln!(out, "- **Total Tests:** {all} ({} baseline + {} main)", totals.baselines.0, totals.tests.0)?;
    writeln!(out, "- **Passed:** {passed} ({rate:.1}%)")?;
    writeln!(out, "- **Failed:** {}\n", all - passed)?;
    for (title, (count, passed)) in [("Baseline Results", totals.baselines), ("Main Test Results", totals.tests)] {
        writeln!(out, "### {title}\n- Total: {count}\n- Passed: {passed}\n- Failed: {}\n", count - passed)?;
    }
    writeln!(out, "---\n\n## Box Plot Statistics\n")?;
    let scenarios = results.scenarios();
    for scenario in &scenarios {
        write_table(out, results, scenario)?;
    }
    for (title, cells) in [("Baseline Results", &results.baselines), ("Test Results", &results.tests)] {
        writeln!(out, "---\n\n## {title}\n")?;
        for cell in cells {
            writeln!(out, "### {}\n- Status: {}", escape(&cell.name), cell.status.suite_word())?;
            if let Some(cause) = cell.status.cause() {
                writeln!(out, "- Cause: {}", escape(&cause))?;
            }
            for scenario in scenarios.iter().filter(|_| cell.status.cause().is_none()) {
                if let Some(obstacle) = cell.obstacle(scenario) {
                    writeln!(out, "- No {}: {}", scenario.name(), escape(&obstacle))?;
                }
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

fn write_table(out: &mut String, results: &MatrixResults, scenario: &Scenario) -> std::fmt::Result {
    let what = if scenario.is_rate() { " Throughput" } else { "" };
    writeln!(out, "### {}{what} ({})\n", scenario.title(), scenario.suite_unit())?;
    writeln!(out, "| Test | Min | Q1 | Median | Q3 | Max | Outliers |")?;
    writeln!(out, "|------|-----|-------|--------|-------|-----|----------|")?;
    for cell in &results.tests {
        let figures = match &cell.statistics(scenario) {
            Some(statistics) => {
                let BoxStatistics { low_whisker, q1, median, q3, high_whisker, outliers } = statistics;
                let numbers = [low_whisker, q1, median, q3, high_whisker].map(|value| scenario.suite_number(*value));
                format!("{} | {}", numbers.join(" | "), outliers.len())
            }
            None => {
                let median = cell.iterations(scenario).map(|iterations| iterations.median());
                let median = median.map(|median| scenario.suite_number(median));
                format!("null | null | {} | null | null | 0", median.unwrap_or_else(|| "null".to_owned()))
            }
        };
        writeln!(out, "| {} | {figures} |", escape(&cell.name))?;
    }
    writeln!(out)
}
