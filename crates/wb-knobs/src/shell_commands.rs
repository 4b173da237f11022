//! Shell commands that change settings, as advice to the user.

use crate::KnobTarget;

pub(crate) fn echo(value: &str, path: &str) -> String {
    format!("echo {value} | sudo tee {path}")
}

/// `path` is called with a target's name, or with a glob for several CPUs or policies.
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

/// The command that sets kernel settings: `vm.swappiness=1`.
pub(crate) fn sysctl(settings: &str) -> String {
    format!("sudo sysctl {settings}")
}
