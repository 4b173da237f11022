//! Comparisons that fail because each side measured with the widest instruction set of its machine.

use std::collections::BTreeSet;

use wb_compare::comparison::{CheckResult, ComparisonResult, FinalVerdict};
use wb_kernels::Isa;

/// The parameter that is the instruction set.
const ISA_PARAM: &str = "isa";
/// What recorded commands say of where results go.
const INTO_FLAG: &str = "--into";

/// How both sides can be measured with the same instruction set.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CommonIsa {
    /// The widest that all machines have.
    pub(super) isa: Isa,
    /// Those that were measured with, narrow to wide.
    pub(super) measured_isas: BTreeSet<Isa>,
    /// The command line that measures with it.
    pub(super) command: String,
}

/// How the checks that are incomparable because of their instruction sets can be compared; none where there is none.
pub(super) fn find_common_isa(outcome: &ComparisonResult) -> Option<CommonIsa> {
    let refused = outcome.checks.iter().filter(|check| check.final_verdict == FinalVerdict::Incomparable);
    let (mut measured, mut tests) = (BTreeSet::new(), BTreeSet::new());
    for check in refused {
        let Some(sides) = side_isas(check) else { continue };
        measured.extend(sides);
        tests.extend(check.id.split('/').nth(1));
    }
    // A machine has all that are narrower than its widest.
    let isa = *measured.first()?;
    let recorded = outcome.builds.first().and_then(|build| build.runs.first()?.metadata.get("command"));
    let recorded = recorded.and_then(|command| with_isa(command, &tests, isa));
    let command = recorded.unwrap_or_else(|| {
        let tests: Vec<String> = tests.iter().map(|test| format!("{test}:{ISA_PARAM}={isa}")).collect();
        format!("weighbridge run {}", tests.join(" "))
    });
    Some(CommonIsa { isa, measured_isas: measured, command })
}

/// The instruction sets of a check's sides.
fn side_isas(check: &CheckResult) -> Option<[Isa; 2]> {
    let difference = check.differences.iter().find(|difference| difference.name == ISA_PARAM)?;
    let isa = |side: &Option<String>| side.as_deref()?.parse().ok();
    Some([isa(&difference.before)?, isa(&difference.after)?])
}

/// A recorded command of `run` with an instruction set for these tests, into a folder of its own; none where it does not
/// name them all, or cannot be typed as it is recorded.
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
    fn a_recorded_command_gets_the_instruction_set_and_a_folder_of_its_own() {
        let typed = |command: &str, tests: &[&str]| with_isa(command, &tests.iter().copied().collect(), Isa::Sse2);
        let command = "/opt/weighbridge run himeno ramspeed:mode=copy fio --profiles Localhost,DefaultLibvirt --into R";
        assert_eq!(
            typed(command, &["himeno", "ramspeed"]).unwrap(),
            "weighbridge run himeno:isa=sse2 ramspeed:mode=copy,isa=sse2 fio --profiles Localhost,DefaultLibvirt --into \
             R-sse2"
        );
        // What was not named, what measures otherwise, and what a shell would read otherwise.
        assert_eq!(typed("weighbridge run --plan quick", &["himeno"]), None);
        assert_eq!(typed("weighbridge ab himeno base", &["himeno"]), None);
        assert_eq!(typed("weighbridge run himeno:{\"grid\": \"XS\"}", &["himeno"]), None);
        assert_eq!(typed("weighbridge run himeno:isa=avx2", &["himeno"]), None);
    }
}
