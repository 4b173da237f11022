//! Suggests a common instruction set for comparisons refused because the sides measured with different ones.

use std::collections::BTreeSet;

use wb_compare::comparison::{CheckResult, ComparisonResult, FinalVerdict};
use wb_kernels::Isa;

/// Name of the parameter that selects the instruction set.
const ISA_PARAM: &str = "isa";
/// Flag of the run folder in recorded commands.
const INTO_FLAG: &str = "--into";

/// An instruction set that both sides support, and the command that measures with it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CommonIsa {
    /// The widest instruction set that all machines support.
    pub(super) isa: Isa,
    /// The instruction sets that were used, narrow to wide.
    pub(super) measured_isas: BTreeSet<Isa>,
    /// The command line that measures with `isa`.
    pub(super) command: String,
}

/// Finds a common instruction set for the checks that are incomparable because of it; `None` if there are none.
pub(super) fn find_common_isa(outcome: &ComparisonResult) -> Option<CommonIsa> {
    let refused = outcome.checks.iter().filter(|check| check.final_verdict == FinalVerdict::Incomparable);
    let (mut measured, mut tests) = (BTreeSet::new(), BTreeSet::new());
    for check in refused {
        let Some(sides) = side_isas(check) else { continue };
        measured.extend(sides);
        tests.extend(check.id.split('/').nth(1));
    }
    // A machine supports all instruction sets that are narrower than its widest.
    let isa = *measured.first()?;
    let recorded = outcome.builds.first().and_then(|build| build.runs.first()?.metadata.get("command"));
    let recorded = recorded.and_then(|command| with_isa(command, &tests, isa));
    let command = recorded.unwrap_or_else(|| {
        let tests: Vec<String> = tests.iter().map(|test| format!("{test}:{ISA_PARAM}={isa}")).collect();
        format!("weighbridge run {}", tests.join(" "))
    });
    Some(CommonIsa { isa, measured_isas: measured, command })
}

/// The instruction sets of the two sides of a check.
fn side_isas(check: &CheckResult) -> Option<[Isa; 2]> {
    let difference = check.differences.iter().find(|difference| difference.name == ISA_PARAM)?;
    let isa = |side: &Option<String>| side.as_deref()?.parse().ok();
    Some([isa(&difference.before)?, isa(&difference.after)?])
}

/// Adds an instruction set for these tests to a recorded `run` command, and a suffix to its run folder. `None` if the
/// command does not name all of the tests, or would need shell quoting.
fn with_isa(command: &str, tests: &BTreeSet<&str>, isa: Isa) -> Option<String> {
    let words: Vec<&str> = command.split(' ').collect();
    let is_plain = |word: &&str| !word.contains(['{', '*', '\'', '"']) && !word.contains("isa=");
    if words.get(1) != Some(&"run") || !words.iter().all(is_plain) {
        return None;
    }
    let mut missing = tests.clone();
    let mut typed = vec!["weighbridge".to_owned()];
    for (before, word) in words.iter().zip(&words[1..]) {
        let test = word.split(':').next().unwrap_or(word);
        typed.push(match word {
            _ if *before == INTO_FLAG => format!("{word}-{isa}"),
            _ if tests.contains(test) => {
                missing.remove(test);
                let sign = if word.contains(':') { ',' } else { ':' };
                format!("{word}{sign}{ISA_PARAM}={isa}")
            }
            word => (*word).to_owned(),
        });
    }
    missing.is_empty().then(|| typed.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_isa_adds_the_parameter_and_a_folder_suffix() {
        let typed = |command: &str, tests: &[&str]| with_isa(command, &tests.iter().copied().collect(), Isa::Sse2);
        let command = "/opt/weighbridge run himeno ramspeed:mode=copy fio --profiles Localhost,DefaultLibvirt --into R";
        assert_eq!(
            typed(command, &["himeno", "ramspeed"]).unwrap(),
            "weighbridge run himeno:isa=sse2 ramspeed:mode=copy,isa=sse2 fio --profiles Localhost,DefaultLibvirt --into \
             R-sse2"
        );
        // Tests that are not named, another subcommand, quoting, and an explicit instruction set.
        assert_eq!(typed("weighbridge run --plan quick", &["himeno"]), None);
        assert_eq!(typed("weighbridge ab himeno base", &["himeno"]), None);
        assert_eq!(typed("weighbridge run himeno:{\"grid\": \"XS\"}", &["himeno"]), None);
        assert_eq!(typed("weighbridge run himeno:isa=avx2", &["himeno"]), None);
    }
}
