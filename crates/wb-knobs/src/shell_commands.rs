//! The commands that change a setting, as a user types them.

use crate::KnobTarget;

/// Writes `value` to one file.
pub(crate) fn echo(value: &str, path: &str) -> String {
    format!("echo {value} | sudo tee {path}")
}

/// Writes `value` to the file of each target; `path` is given a target's name, or a pattern for many.
pub(crate) fn echo_each(value: &str, targets: &[KnobTarget], path: impl Fn(&str) -> String) -> String {
    let several = targets.len() > 1;
    let names: Vec<String> = match targets.first() {
        Some(KnobTarget::Policy(_)) if several => vec!["policy*".to_owned()],
        Some(KnobTarget::Cpu(_)) if several => vec!["cpu[0-9]*".to_owned()],
        _ => targets.iter().map(KnobTarget::to_string).collect(),
    };
    let paths: Vec<String> = names.iter().map(|name| path(name)).collect();
    echo(value, &paths.join(" "))
}

/// Sets kernel settings: `vm.swappiness=1`.
pub(crate) fn sysctl(settings: &str) -> String {
    format!("sudo sysctl {settings}")
}
