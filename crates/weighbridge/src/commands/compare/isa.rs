//! Suggests a common instruction set for checks that are incomparable because the sides measured with different ones.

use std::collections::BTreeSet;

use wb_kernels::Isa;
use wb_results::comparison::{CheckResult, ComparisonResult, FinalVerdict};

const ISA_PARAM: &str = "isa";
const INTO_FLAG: &str = "--into";

/// An instruction set that both sides support, and the command that measures with it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CommonIsa {
    /// The narrowest instruction set that was measured: every machine supports it.
    pub(super) isa: Isa,
    /// The instruction sets that were used, narrow to wide.
    pub(super) measured_isas: BTreeSet<Isa>,
    /// The command line that measures with `isa`.
    pub(super) command: String,
}

/// Finds a common instruction set for the checks that are incomparable because of it; `None` if there are no such
/// checks.
pub(super) fn find_common_isa(outcome: &ComparisonResult) -> Option<CommonIsa> {
    let incomparable = outcome.checks.iter().filter(|check| check.final_verdict == FinalVerdict::Incomparable);
    let (mut measured, mut tests) = (BTreeSet::new(), BTreeSet::new());
    for check in incomparable {
        let Some(sides) = side_isas(check) else { continue };
        measured.extend(sides);
        // The test is the second part of `PROFILE/TEST/SERIAL:…`.
        tests.extend(check.id.split('/').nth(1));
    }
    // A machine supports all instruction sets that are narrower than the one it measured with.
    let isa = *measured.first()?;
    let recorded = outcome.builds.first().and_then(|build| build.runs.first()?.metadata.get("command"));
    let recorded = recorded.and_then(|command| with_isa(command, &tests, isa));
    let command = recorded.unwrap_or_else(|| {
        let tests: Vec<String> = tests.iter().map(|test| format!("{test}:{ISA_PARAM}={isa}")).collect();
        format!("weighbridge run {}", tests.join(" "))
    });
    Some(CommonIsa { isa, measured_isas: measured, command })
}

fn side_isas(check: &CheckResult) -> Option<[Isa; 2]> {
    let difference = check.differences.iter().find(|difference| difference.name == ISA_PARAM)?;
    let isa = |side: &Option<String>| side.as_deref()?.parse().ok();
    Some([isa(&difference.before)?, isa(&difference.after)?])
}

/// Adds an instruction set for these tests to a recorded command, and a suffix to its run folder. `None` if the command
/// is not `run`, does not name all of the tests, already selects an instruction set, or would need shell quoting.
fn with_isa(command: &str, tests: &BTreeSet<&str>, isa: Isa) -> Option<String> {
    let words: Vec<&str> = command.split(' ').collect();
    let is_rewritable = |word: &&str| !word.contains(['{', '*', '\'', '"']) && !word.contains("isa=");
    if words.get(1) != Some(&"run") || !words.iter().all(is_rewritable) {
        return None;
    }
    let mut missing = tests.clone();
    let mut rewritten = vec!["weighbridge".to_owned()];
    for (previous, word) in words.iter().zip(&words[1..]) {
        let test = word.split(':').next().unwrap_or(word);
        rewritten.push(match word {
            _ if *previous == INTO_FLAG => format!("{word}-{isa}"),
            _ if tests.contains(test) => {
                missing.remove(test);
                let separator = if word.contains(':') { ',' } else { ':' };
                format!("{word}{separator}{ISA_PARAM}={isa}")
            }
            word => (*word).to_owned(),
        });
    }
    missing.is_empty().then(|| rewritten.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_isa_adds_the_parameter_and_a_folder_suffix() {
        let rewritten = |command: &str, tests: &[&str]| with_isa(command, &tests.iter().copied().collect(), Isa::Sse2);
        let command = "/opt/weighbridge run himeno ramspeed:mode=copy fio --profiles Localhost,DefaultLibvirt --into R";
        assert_eq!(
            rewritten(command, &["himeno", "ramspeed"]).unwrap(),
            "weighbridge run himeno:isa=sse2 ramspeed:mode=copy,isa=sse2 fio --profiles Localhost,DefaultLibvirt --into \
             R-sse2"
        );
        // Tests that are not named, another subcommand, quoting, and an explicit instruction set.
        assert_eq!(rewritten("weighbridge run --plan quick", &["himeno"]), None);
        assert_eq!(rewritten("weighbridge ab himeno base", &["himeno"]), None);
        assert_eq!(rewritten("weighbridge run himeno:{\"grid\": \"XS\"}", &["himeno"]), None);
        assert_eq!(rewritten("weighbridge run himeno:isa=avx2", &["himeno"]), None);
    }
}
