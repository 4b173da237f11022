//! A worker's facts as a reader wants them.

use wb_model::{Facts, Unit};

/// What describes the machines of a run: one in a row for each thing that is known of it, several in a row each.
pub fn describe_all<'a>(facts: impl Iterator<Item = &'a Facts>) -> Vec<(String, String)> {
    let mut machines: Vec<Vec<(String, String)>> = Vec::new();
    for described in facts.map(describe) {
        if !machines.contains(&described) {
            machines.push(described);
        }
    }
    let row = |described: Vec<(String, String)>| {
        let (host, others): (Vec<_>, Vec<_>) = described.into_iter().partition(|(name, _)| name == "host");
        let others: Vec<String> = others.into_iter().map(|(name, text)| format!("{name} {text}")).collect();
        (host.into_iter().map(|(_, host)| host).next().unwrap_or_default(), others.join(" · "))
    };
    match machines.len() {
        0 | 1 => machines.pop().unwrap_or_default(),
        _ => machines.into_iter().map(row).collect(),
    }
}

/// What describes a machine, in the order to show; what is not known of one that others measured on is left out.
pub fn describe(facts: &Facts) -> Vec<(String, String)> {
    let size = |bytes: wb_model::Bytes| Some(Unit::new("B").figure(bytes.0 as f64).to_string()).filter(|_| bytes.0 > 0);
    let text = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let known = [
        ("host", text(&facts.hostname)),
        ("CPU", text(&facts.cpu_model)),
        ("CPUs", facts.topology()),
        ("last-level cache", size(facts.last_level_cache())),
        ("memory", size(facts.memory)),
        ("kernel", text(&format!("{} {}", facts.kernel, facts.arch))),
    ];
    let mut rows: Vec<(String, String)> =
        known.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?))).collect();
    if let Some(hypervisor) = &facts.hypervisor {
        rows.push(("hypervisor".to_owned(), hypervisor.clone()));
    }
    if facts.emulated {
        rows.push((
            "emulated".to_owned(),
            "instructions are emulated by software: not a figure of any hardware".to_owned(),
        ));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_of_a_machine_is_left_out() {
        assert_eq!(describe(&Facts::default()), []);
        let facts = Facts { hostname: "vm".to_owned(), kernel: "6.1".to_owned(), ..Facts::default() };
        let rows = [("host", "vm"), ("kernel", "6.1")].map(|(name, text)| (name.to_owned(), text.to_owned()));
        assert_eq!(describe(&facts), rows);
        let other = Facts { hostname: "vm2".to_owned(), kernel: "6.2".to_owned(), emulated: true, ..Facts::default() };
        assert_eq!(describe_all([&facts, &facts].into_iter()), rows);
        let both = describe_all([&facts, &other, &facts].into_iter());
        assert_eq!(both[0], ("vm".to_owned(), "kernel 6.1".to_owned()));
        assert!(both[1].0 == "vm2" && both[1].1.starts_with("kernel 6.2 · emulated "), "{both:?}");
    }
}
