//! The rules of pbench's result files that importing and comparing share.

/// The name under which pbench records the aggregate over all clients.
pub const ALL_CLIENTS: &str = "all";

/// Whether an iteration's name marks it as failed: `NAME-failN`.
pub fn is_failed_iteration(name: &str) -> bool {
    let number = name.rsplit_once("-fail").map(|(_, number)| number);
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_iterations_end_with_their_number() {
        for (name, failed) in
            [("a-fail1", true), ("a-fail12", true), ("a-fail", false), ("a-fail1x", false), ("fail1", false)]
        {
            assert_eq!(is_failed_iteration(name), failed, "{name}");
        }
    }
}
